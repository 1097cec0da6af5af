// Formats of numbers on axes and in readings of points.
import type { Axis, Chart, Point, Value } from "./chart";

const PLAIN = new Intl.NumberFormat("en", { maximumFractionDigits: 3 });
const COMPACT = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });
const SMALL = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });
const PERCENT = new Intl.NumberFormat("en", { style: "percent", maximumFractionDigits: 1 });

export function tick(axis: Axis, value: Value): string {
  if (typeof value !== "number") return value ?? "–";
  if (axis.percent) return PERCENT.format(value);
  if (Math.abs(value) >= 100_000) return COMPACT.format(value);
  return Math.abs(value) < 0.01 ? SMALL.format(value) : PLAIN.format(value);
}

export function amount(axis: Axis, value: Value): string {
  if (typeof value !== "number") return value ?? "not known";
  return axis.percent ? PERCENT.format(value) : Math.abs(value) < 0.01 ? SMALL.format(value) : PLAIN.format(value);
}

// One point in words: what the arrow keys and the pointer say.
export function reading(chart: Chart, point: Point): string {
  const axis = chart.y;
  const parts = [`${chart.x.title} ${amount(chart.x, point.x)}`];
  if (point.y !== null) parts.push(`${axis.title} ${amount(axis, point.y)}`);
  if (point.value !== null) parts.push(PLAIN.format(point.value));
  if (point.low !== null && point.high !== null) {
    parts.push(`${amount(axis, point.low)} to ${amount(axis, point.high)}`);
  }
  return chart.series.length > 1 || point.y === null ? `${point.series}: ${parts.join(", ")}` : parts.join(", ");
}

// A long name loses its middle: its beginning and its end tell it from others.
export function shorten(text: string, letters: number): string {
  if (text.length <= letters) return text;
  const kept = Math.max(4, letters - 1);
  return `${text.slice(0, Math.ceil(kept / 2))}…${text.slice(-Math.floor(kept / 2))}`;
}
