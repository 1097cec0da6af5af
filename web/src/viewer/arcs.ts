// Chart of the dependencies of a task: steps on a line, references as arcs; those of the current step are highlighted.
import * as Plot from "@observablehq/plot";
import { colorOf } from "../colors";
import { measure, measuresOf } from "../measures";
import type { LacunaRun, Step, StepDetails } from "../documents";
import { draw, wholeTicks } from "./picture";
import { verdictOf } from "./words";

const ROOM = 140; // pixels above the line
const WINDOW = 96; // steps that are drawn around the current one
export const COLORS: Record<string, string> = {
  correct: colorOf(measure("accuracy").color),
  ...Object.fromEntries(measuresOf("causes").map((cause) => [cause.id, colorOf(cause.color)])),
  unknown: "var(--quiet)",
};

interface Arc {
  from: number;
  to: number;
  role: "other" | "available" | "missing" | "spread";
}

export function arcPicture(run: LacunaRun, t: number, more: StepDetails | null, width: number, choose: (t: number) => void): Element {
  const [low, high] = windowOf(t, run.steps.length);
  const steps = run.steps.slice(low - 1, high);
  const arcs = arcsOf(steps, t, more);
  const lit = arcs.filter((arc) => arc.role !== "other");
  const [bend, rise] = bendOf(arcs, (width - 28) / (high - low + 1));
  const cone = new Set(more?.cone?.nodes ?? []);
  const spoilt = new Set(more?.spread.spoilt ?? []);
  const picture = draw({
    width,
    height: 70 + rise,
    marginTop: 8,
    marginBottom: 34,
    marginLeft: 14,
    marginRight: 14,
    x: { domain: [low - 0.5, high + 0.5], label: run.units.step, labelArrow: "none", tickFormat: "d", ticks: wholeTicks(low, high, width) },
    y: { domain: [-24, rise + 10], axis: null },
    marks: [
      arcMark(arcs.filter((arc) => arc.role === "other"), bend, "var(--faint)", 1),
      arcMark(lit.filter((arc) => arc.role === "spread"), bend, colorOf("missing-input"), 2, "4 3"),
      arcMark(lit.filter((arc) => arc.role === "available"), bend, colorOf("correct"), 2.5),
      arcMark(lit.filter((arc) => arc.role === "missing"), bend, colorOf("missing-input"), 2.5),
      Plot.dot(steps.filter((step) => cone.has(step.t)), { x: "t", y: 0, r: 9, stroke: "var(--cone)", strokeWidth: 2, strokeDasharray: "3 2" }),
      Plot.dot(steps, {
        x: "t",
        y: 0,
        r: (step: Step) => (step.t === t ? 7.5 : 5),
        fill: (step: Step) => COLORS[verdictOf(step)] ?? "var(--quiet)",
        symbol: (step: Step) => (verdictOf(step) === "correct" || verdictOf(step) === "unknown" ? "circle" : "square"),
        stroke: (step: Step) => (step.t === t ? "var(--ink)" : "var(--paper)"),
        strokeWidth: (step: Step) => (step.t === t ? 2.5 : 1),
      }),
      Plot.ruleX(steps.filter((step) => spoilt.has(step.t)), { x: "t", y1: -22, y2: -14, stroke: colorOf("carried-over-error"), strokeWidth: 4 }),
    ],
    symbol: { type: "identity" },
    r: { type: "identity" },
  });
  picture.addEventListener("click", (event) => choose(stepAt(event, picture, low, high, width)));
  return picture;
}

function windowOf(t: number, last: number): [number, number] {
  if (last <= WINDOW) return [1, last];
  const low = Math.min(Math.max(1, t - WINDOW / 2), last - WINDOW + 1);
  return [low, low + WINDOW - 1];
}

function arcsOf(steps: Step[], t: number, more: StepDetails | null): Arc[] {
  const missing = new Set(steps.find((step) => step.t === t)?.missing ?? []);
  const way = new Set((more?.spread.path ?? []).map(([from, to]) => `${from} ${to}`));
  return steps.flatMap((step) =>
    step.refs.map((from): Arc => {
      if (step.t === t) return { from, to: step.t, role: missing.has(from) ? "missing" : "available" };
      return { from, to: step.t, role: way.has(`${from} ${step.t}`) ? "spread" : "other" };
    }),
  );
}

// As round as the longest arc can be without leaving the picture.
function bendOf(arcs: Arc[], stepWidth: number): [degrees: number, rise: number] {
  const chord = stepWidth * Math.max(1, ...arcs.map((arc) => arc.to - arc.from));
  const bend = Math.min(75, (360 / Math.PI) * Math.atan((2 * ROOM) / chord));
  return [bend, (chord / 2) * Math.tan((bend * Math.PI) / 360)];
}

function arcMark(arcs: Arc[], bend: number, stroke: string, strokeWidth: number, strokeDasharray = "none"): Plot.Markish {
  return Plot.arrow(arcs, { x1: "from", x2: "to", y1: 0, y2: 0, bend, headLength: 5, inset: 7, stroke, strokeWidth, strokeDasharray });
}

function stepAt(event: MouseEvent, picture: Element, low: number, high: number, width: number): number {
  const box = picture.getBoundingClientRect();
  const share = ((event.clientX - box.left) * (width / box.width) - 14) / (width - 28);
  return Math.min(high, Math.max(low, Math.round(low - 0.5 + share * (high - low + 1))));
}
