// The color of each outcome, symptom and cause, by its label.
import { colorOf } from "../colors";
import { measuresOf } from "../measures";

const OUTCOMES = [...measuresOf("fates"), ...measuresOf("answer_symptoms"), ...measuresOf("answer_causes")];
const NAMES = new Map(OUTCOMES.map((one) => [one.id, one.label]));

// The color of a column that counts an outcome; null for any other column.
export function outcomeColor(key: string): string | null {
  const name = NAMES.get(key);
  return name === undefined ? null : failureColor(name);
}

const COLORS = new Map([...OUTCOMES, ...measuresOf("kinds")].map((one) => [one.label, colorOf(one.color)]));

export function failureColor(label: string): string {
  return COLORS.get(label) ?? "var(--faint)";
}

// A run without failures has none to name.
export function failureWords(label: string): string {
  return label === "–" ? "no failure" : label;
}
