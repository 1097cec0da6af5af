// Figures and names as people read them.
import type { Cause, Cell, FieldKind, Step } from "./api";

export function shown(cell: Cell | undefined, kind: FieldKind): string {
  if (cell === null || cell === undefined || cell === "") return "–";
  if (typeof cell === "boolean") return cell ? "yes" : "no";
  if (typeof cell === "string") return cell;
  if (kind === "share" || kind === "flag") return `${(100 * cell).toFixed(1)}%`;
  return Number.isInteger(cell) ? cell.toLocaleString("en") : cell.toLocaleString("en", { maximumSignificantDigits: 4 });
}

export const CAUSES: Record<Cause, string> = {
  state_supply: "state supply",
  computation: "computation",
  cascade: "cascade",
};

const WHY: Record<string, string> = {
  missing: "a required answer was not to be had",
  never_submitted: "a required answer was never given, so nobody could supply it",
  propagated: "it follows from the agent's own earlier wrong answers",
  correct_inputs: "all inputs were there and right",
  on_corrupted: "some inputs were wrong, and the answer does not follow from them either",
  not_fetched: "an input was obtainable within the budgets and was not obtained",
  protocol: "the reply could not be read as an answer to this step",
  unanswered: "the step was revealed and left",
  unreached: "the run ended before the step was revealed",
};

export type Verdict = "correct" | Cause | "unknown";

export function verdictOf(step: Step): Verdict {
  if (step.cause) return step.cause;
  return step.correct ? "correct" : "unknown";
}

export function sentence(step: Step): string {
  if (step.correct) return "Correct.";
  if (!step.cause) return step.submitted === undefined ? "No answer is asked of this step here." : "Not judged.";
  return `Wrong: ${CAUSES[step.cause]}; ${WHY[step.why ?? ""] ?? step.why}.`;
}

export function values(payload: number[] | null | undefined): string {
  return payload ? payload.join(" ") : "–";
}
