// The colour of each cause and fate, by its label.
import { colourOf } from "../colours";
import { measuresOf } from "../measures";

const FATES = [...measuresOf("fates"), ...measuresOf("word_fates")];
const NAMES = new Map(FATES.map((one) => [one.id, one.label]));

// The colour of a column that counts a fate; null for any other column.
export function fateColour(key: string): string | null {
  const name = NAMES.get(key);
  return name === undefined ? null : failureColour(name);
}

const COLOURS = new Map([...FATES, ...measuresOf("kinds")].map((one) => [one.label, colourOf(one.colour)]));

export function failureColour(label: string): string {
  return COLOURS.get(label) ?? "var(--faint)";
}

// A run without failures has none to name.
export function failureWords(label: string): string {
  return label === "–" ? "no failure" : label;
}
