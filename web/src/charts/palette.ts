// The colors of charts by name; their values are in charts.css.
import { colorOf } from "../colors";
import type { Series } from "./chart";

export const SERIES = 8;
export const HEAT = 7;
export const SYMBOLS = ["circle", "square", "triangle", "diamond2", "star", "cross", "wye", "plus"] as const;

// Few points of a line get a symbol of their own, so that color is not all that tells lines apart.
export function isMarked(points: number): boolean {
  return points > 2 && points <= 24;
}

// A measure has its own color everywhere; other series take the next of the palette.
export function color(series: Series, index: number): string {
  return series.color && !NUMBERED.test(series.color) ? colorOf(series.color) : `var(--chart-series-${numberOf(series, index) % SERIES})`;
}

// How opaque a series is: the companion of another has its color, paler.
export function opacity(series: Series): number {
  return series.pale ? 0.65 : 1;
}

export function symbol(series: Series, index: number): (typeof SYMBOLS)[number] {
  return SYMBOLS[numberOf(series, index) % SYMBOLS.length] ?? "circle";
}

const NUMBERED = /^series-(\d+)$/; // the same for a name in all charts of a page

function numberOf(series: Series, index: number): number {
  return Number(NUMBERED.exec(series.color ?? "")?.[1] ?? index);
}

export const HEAT_COLORS = Array.from({ length: HEAT }, (_, step) => `var(--chart-heat-${step})`);

// Which of the heat colors a value has: equal steps from the lowest to the highest value.
export function heat(value: number, low: number, high: number): number {
  if (high <= low) return 0;
  return Math.min(HEAT - 1, Math.max(0, Math.floor(((value - low) / (high - low)) * HEAT)));
}
