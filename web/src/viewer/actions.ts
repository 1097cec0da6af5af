// Chart of the actions of a recorded run: turns across, files down; the slice that leads to the goal is highlighted.
import * as Plot from "@observablehq/plot";
import { colorOf } from "../colors";
import type { ActionRow, RunRow, RunView } from "../documents";
import { leftOf, RIGHT, turnAt, turnScale } from "./demand";
import { draw } from "./picture";

const LETTER = 7.6; // pixels, in the mean over a path with wide letters
const MOST_FILES = 40; // lanes; the files with the fewest actions share the last

interface Drawn extends ActionRow {
  lane: string;
}

// Without a goal file that the run came to, nothing says what led there; a zero would.
export function isMeasured(row: RunRow): boolean {
  return row.unit !== "tokens" || row.goal_accessed;
}

// What an action was for; dead reads are counted by the same rule.
export function useOf(run: RunView, action: ActionRow): "needed" | "dead" | "unjudged" {
  if (action.necessary) return "needed";
  return isMeasured(run.run) && action.judged ? "dead" : "unjudged";
}

export function actionPicture(run: RunView, turn: number, width: number, choose: (turn: number) => void): Element {
  const lanes = lanesOf(run);
  const actions: Drawn[] = run.actions.map((action) => ({ ...action, lane: lanes.of(action.path) }));
  const clipped = actions.filter((action) => run.clips.some((clip) => clip.turn === action.turn && clip.paths.includes(action.path)));
  const [needed, dead, unjudged] = (["needed", "dead", "unjudged"] as const).map((use) => actions.filter((action) => useOf(run, action) === use)) as [Drawn[], Drawn[], Drawn[]];
  const picture = draw({
    width,
    height: 64 + 18 * lanes.names.length,
    marginLeft: leftOf(width),
    marginRight: RIGHT,
    marginTop: 8,
    marginBottom: 42,
    x: turnScale(run, width),
    y: { type: "point", domain: lanes.names, label: null, tickSize: 0, grid: true, tickFormat: (name: string) => tail(name, Math.floor(leftOf(width) / LETTER)) },
    marks: [
      Plot.ruleX([turn], { stroke: "var(--ink)" }),
      Plot.link(carried(needed, actions), { x1: "turn", x2: "to", y1: "lane", y2: "target", stroke: "var(--accent)", strokeOpacity: 0.45, strokeWidth: 1.2 }),
      mark(unjudged, "read", "var(--paper)", "circle", "var(--quiet)"),
      mark(unjudged, "write", "var(--paper)", "square", "var(--quiet)"),
      mark(dead, "read", "var(--faint)", "circle", "var(--quiet)"),
      mark(dead, "write", "var(--faint)", "square", "var(--quiet)"),
      mark(needed, "read", colorOf("correct"), "circle", "var(--paper)"),
      mark(needed, "write", "var(--accent)", "square", "var(--paper)"),
      Plot.dot(clipped, { x: "turn", y: "lane", r: 8, stroke: colorOf("missing-input"), strokeWidth: 2, fill: "none" }),
    ],
    symbol: { type: "identity" },
    r: { type: "identity" },
  });
  picture.addEventListener("click", (event) => choose(turnAt(event, picture, run.turns.length, width)));
  return picture;
}

function mark(actions: Drawn[], kind: ActionRow["kind"], fill: string, symbol: "circle" | "square", stroke: string): Plot.Markish {
  const some = actions.filter((action) => action.kind === kind);
  return Plot.dot(some, { x: "turn", y: "lane", r: 4.5, fill, symbol, stroke, strokeWidth: 1 });
}

// From every read in the slice to what was written because of it.
function carried(reads: Drawn[], all: Drawn[]): { turn: number; to: number; lane: string; target: string }[] {
  const written = new Map<number, string[]>();
  for (const action of all) {
    if (action.kind === "write") written.set(action.turn, [...(written.get(action.turn) ?? []), action.lane]);
  }
  return reads.flatMap((action) => {
    const to = action.carried_to;
    if (action.kind !== "read" || to === null) return [];
    return [...new Set(written.get(to) ?? [])].map((target) => ({ turn: action.turn, to, lane: action.lane, target }));
  });
}

interface Lanes {
  names: string[];
  of: (path: string) => string;
}

// Goal files first, then by when they were first met.
function lanesOf(run: RunView): Lanes {
  const counts = new Map<string, number>();
  for (const action of run.actions) counts.set(action.path, (counts.get(action.path) ?? 0) + 1);
  const met = [...counts.keys()];
  const goal = new Set(run.goal);
  const ranked = [...met.filter((path) => goal.has(path)), ...met.filter((path) => !goal.has(path))];
  if (ranked.length <= MOST_FILES) return { names: ranked, of: (path) => path };
  const kept = new Set([...ranked].sort((a, b) => Number(goal.has(b)) - Number(goal.has(a)) || (counts.get(b) ?? 0) - (counts.get(a) ?? 0)).slice(0, MOST_FILES - 1));
  const rest = `${ranked.length - kept.size} other files`;
  return { names: [...ranked.filter((path) => kept.has(path)), rest], of: (path) => (kept.has(path) ? path : rest) };
}

function tail(name: string, longest: number): string {
  // What a path holds is somebody else's text; marks that turn its direction would turn the axis.
  const plain = name.replace(/[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2066-\u2069]/g, "�");
  return plain.length > longest ? `…${plain.slice(1 - longest)}` : plain;
}
