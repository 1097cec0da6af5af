// The charts of the server and the pages (`Chart` of src/eirkit/report/document.py), point by point.
import type * as documents from "../documents";

export type { Axis, Figure, Mark, Scale, Series, Value } from "../documents";
import type { Figure, Series, Value } from "../documents";

// `behind`: for each series, how many later ones run along a part of it.
export type Chart = documents.Chart & { behind?: number[] };

// One place of a series.
export interface Point {
  series: string;
  index: number; // of the series
  x: Value;
  y: Value;
  low: number | null;
  high: number | null;
  value: number | null;
}

export function pointsOf(series: Series, index: number): Point[] {
  return series.x.map((x, place) => ({
    series: series.name,
    index,
    x,
    y: series.y[place] ?? null,
    low: series.low[place] ?? null,
    high: series.high[place] ?? null,
    value: series.value[place] ?? null,
  }));
}

export function isFigure(item: Chart | Figure): item is Figure {
  return "panels" in item;
}
