// The type of a chart as the server and the pages send it (`Chart` of src/eirkit/report/document.py).

export type Value = number | string | null;
export type Scale = "linear" | "log" | "category";
export type Mark = "line" | "step" | "points" | "bars" | "cells" | "rule";

export interface Axis {
  title: string;
  scale: Scale;
  low: number | null;
  high: number | null;
  percent: boolean;
}

export interface Series {
  name: string;
  mark: Mark;
  x: Value[];
  y: Value[];
  low: (number | null)[];
  high: (number | null)[];
  value: (number | null)[];
  dashed: boolean;
  measure?: string; // the identifier of the measure whose label is the name
  colour?: string; // a token of measures.css
}

export interface Chart {
  id: string;
  title: string;
  alt: string;
  x: Axis;
  y: Axis;
  series: Series[];
  note: string;
  stacked?: boolean;
  behind?: number[]; // for each series, how many later ones run along a part of it
}

export interface Figure {
  id: string;
  title: string;
  panels: Chart[];
  note: string;
}

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
