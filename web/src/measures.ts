// Names, meanings and colors of measures, from measures.json, which is generated from the Python declarations.
import groups from "./measures.json";

export interface Measure {
  id: string;
  label: string;
  meaning: string;
  unit: string;
  of: string;
  better: string | null;
  pooled: string;
  color: string;
}

const GROUPS: Record<string, Measure[]> = groups;
const BY_ID = new Map(Object.values(GROUPS).flatMap((group) => group.map((measure) => [measure.id, measure] as const)));

export function measuresOf(group: keyof typeof groups): Measure[] {
  return GROUPS[group] ?? [];
}

export function measure(id: string): Measure {
  const found = BY_ID.get(id);
  if (!found) throw new Error(`no measure named ${id}`);
  return found;
}

export function label(id: string): string {
  return measure(id).label;
}

const BY_LABEL = new Map([...BY_ID.values()].map((one) => [one.label, one.id]));

// The measure with an identifier or a label; null for anything else.
export function measureNamed(name: string): string | null {
  return BY_ID.has(name) ? name : (BY_LABEL.get(name.replace(/^mean /, "")) ?? null);
}

export function allMeasures(): Measure[] {
  return [...BY_ID.values()];
}
