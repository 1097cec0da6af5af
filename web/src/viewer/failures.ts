// The colour of each cause and outcome, by its label.
import { colourOf } from "../colours";
import { measuresOf } from "../measures";

const OUTCOMES = [...measuresOf("fates"), ...measuresOf("word_fates")];
const NAMES = new Map(OUTCOMES.map((one) => [one.id, one.label]));

// The colour of a column that counts an outcome; null for any other column.
export function outcomeColour(key: string): string | null {
  const name = NAMES.get(key);
  return name === undefined ? null : failureColour(name);
}

const COLOURS = new Map([...OUTCOMES, ...measuresOf("kinds")].map((one) => [one.label, colourOf(one.colour)]));

export function failureColour(label: string): string {
  return COLOURS.get(label) ?? "var(--faint)";
}

// A run without failures has none to name.
export function failureWords(label: string): string {
  return label === "–" ? "no failure" : label;
}
