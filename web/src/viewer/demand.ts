// Chart of the demand of a recorded run before each turn.
import * as Plot from "@observablehq/plot";
import type { BreakCost, CutRow, RunView } from "../documents";
import { draw, wholeTicks } from "./picture";

export const RIGHT = 12;

// Where turns begin, in both pictures of a run: names of files want room, and so does the rest of a narrow page.
export function leftOf(width: number): number {
  return Math.round(Math.min(190, Math.max(90, 0.32 * width)));
}

export function turnScale(run: RunView, width: number): Plot.ScaleOptions {
  const last = Math.max(2, run.turns.length);
  const shown = { label: "turn", labelArrow: "none", labelAnchor: "center", tickFormat: "d" } as const;
  return { domain: [0.5, last + 0.5], ticks: wholeTicks(1, last, width - leftOf(width) - RIGHT), ...shown };
}

export function demandPicture(run: RunView, turn: number, width: number, choose: (turn: number) => void): Element {
  const known = run.cuts.filter((cut) => cut.demand_tokens !== null);
  const picture = draw({
    width,
    height: 182,
    marginLeft: leftOf(width),
    marginRight: RIGHT,
    marginTop: 20,
    marginBottom: 42,
    x: turnScale(run, width),
    y: { label: run.run.unit === "tokens" ? "tokens" : "entities", labelArrow: "none", grid: true, zero: true, nice: true, ticks: 5 },
    marks: [
      Plot.areaY(run.cuts, { x: "cut", y: "later_used", fill: "var(--faint)", fillOpacity: 0.5, curve: "step" }),
      Plot.areaY(known, { x: "cut", y: "demand_tokens", fill: "var(--accent)", fillOpacity: 0.25, curve: "step" }),
      Plot.lineY(known, { x: "cut", y: (cut: CutRow) => cut.demand_tokens, stroke: "var(--accent)", strokeWidth: 2, curve: "step" }),
      Plot.ruleX(run.breaks, { x: (row: BreakCost) => row.cut - 0.5, stroke: "var(--cone)", strokeWidth: 2, strokeDasharray: "4 3" }),
      Plot.ruleX([turn], { stroke: "var(--ink)" }),
      Plot.ruleY([0]),
    ],
  });
  picture.addEventListener("click", (event) => choose(turnAt(event, picture, run.turns.length, width)));
  return picture;
}

export function turnAt(event: MouseEvent, picture: Element, last: number, width: number): number {
  const box = picture.getBoundingClientRect();
  const left = leftOf(width);
  const share = ((event.clientX - box.left) * (width / box.width) - left) / (width - left - RIGHT);
  return Math.min(last, Math.max(1, Math.round(0.5 + share * Math.max(2, last))));
}
