// Formats of numbers and names in the viewer.
import { label, measuresOf } from "../measures";
import type { Cause, Cell, FieldKind, Step } from "../documents";

export function shown(cell: Cell | undefined, kind: FieldKind): string {
  if (cell === null || cell === undefined || cell === "") return "–";
  if (typeof cell === "boolean") return cell ? "yes" : "no";
  if (typeof cell === "string") return cell;
  if (kind === "share" || kind === "flag") return `${(100 * cell).toFixed(1)}%`;
  return Number.isInteger(cell) ? cell.toLocaleString("en") : cell.toLocaleString("en", { maximumSignificantDigits: 4 });
}

export type Verdict = "correct" | Cause | "unknown";

export function verdictOf(step: Step): Verdict {
  if (step.cause) return step.cause;
  return step.correct ? "correct" : "unknown";
}

// What came of a step in a word or two.
export function verdictWords(verdict: Verdict): string {
  return verdict === "correct" ? "correct" : verdict === "unknown" ? "not judged" : label(verdict);
}

export function sentence(step: Step, name: string): string {
  if (step.correct) return "Correct.";
  if (!step.cause) return step.submitted === undefined ? `No answer is asked of this ${name} here.` : "Not judged.";
  const why = measuresOf("kinds").find((kind) => kind.id === step.why)?.meaning ?? step.why;
  return `Wrong: ${label(step.cause)}; ${why}.`;
}

export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

export function capital(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1);
}

export function values(payload: number[] | string | null | undefined): string {
  return typeof payload === "string" ? payload : payload ? payload.join(" ") : "–";
}
