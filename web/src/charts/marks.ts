// The marks of one series (lines, bars, points) as marks of Observable Plot.
import * as Plot from "@observablehq/plot";
import { type Chart, type Point, type Series, pointsOf } from "./chart";
import type { Layout } from "./layout";
import { HEAT_COLORS, color, heat, isMarked, opacity, symbol } from "./palette";
import { reading, tick } from "./words";

type Options = Record<string, unknown>;
const DASHES = "5 3";
const MOST_LABELS = 24;

export function marksOf(chart: Chart, layout: Layout): Plot.Markish[] {
  // Dashed lines last: what is below them shows through their gaps.
  const isOnTop = (series: Series) => Number(series.dashed && (series.mark === "line" || series.mark === "step"));
  const order = chart.series.map((series, index) => ({ series, index })).sort((a, b) => isOnTop(a.series) - isOnTop(b.series));
  const drawn = order.flatMap(({ series, index }) => seriesMarks(chart, layout, series, index));
  return [...drawn, ...tips(chart, layout)];
}

function seriesMarks(chart: Chart, layout: Layout, series: Series, index: number): Plot.Markish[] {
  const points = pointsOf(series, index);
  switch (series.mark) {
    case "line":
    case "step":
      return lines(points, series, index, chart.behind?.[index] ?? 0);
    case "points":
      return dots(points, layout, series, index);
    case "bars":
      return bars(chart, points, layout, series, index);
    case "cells":
      return cells(points);
    case "rule":
      return rules(points, layout, series, index);
  }
}

// A line with others on top of it is drawn wider and paler, so that its edges stay in sight.
function lines(points: Point[], series: Series, index: number, wider: number): Plot.Markish[] {
  const curve = series.mark === "step" ? "step-after" : "linear";
  const band = points.filter((point) => point.low !== null && point.high !== null);
  const area = Plot.areaY(band, { x: "x", y1: "low", y2: "high", curve, fill: color(series, index), fillOpacity: 0.16 });
  const stroke: Options = { x: "x", y: "y", curve, stroke: color(series, index), strokeWidth: 2 + 4 * wider, strokeOpacity: wider ? 0.55 : 1, strokeLinejoin: "round" };
  if (series.dashed) stroke.strokeDasharray = DASHES;
  const line = Plot.lineY(points, stroke);
  const few = isMarked(points.length) && series.mark === "line";
  return [...(band.length ? [area] : []), line, ...(few ? [dot(points, {}, series, index, 4 + 3 * wider)] : [])];
}

function dots(points: Point[], layout: Layout, series: Series, index: number): Plot.Markish[] {
  return [...intervals(points, layout, series, index), dot(points, place(layout, series.name), series, index)];
}

function dot(points: Point[], where: Options, series: Series, index: number, r = 4): Plot.Markish {
  const known = points.filter((point) => point.y !== null);
  const filled = series.dashed || series.pale ? { fill: "var(--chart-paper)" } : { fill: color(series, index) };
  const at = Object.keys(where).length ? where : { x: "x", y: "y" };
  return Plot.dot(known, { ...at, ...filled, stroke: color(series, index), strokeWidth: 1.5, strokeOpacity: opacity(series), r, symbol: symbol(series, index) });
}

// Where a point stands: across or along, and in its own slot where series stand side by side.
function place(layout: Layout, name: string): Options {
  const [along, across, facet] = layout.flipped ? ["y", "x", "fy"] : ["x", "y", "fx"];
  if (layout.slots.length) return { [facet]: "x", [along]: () => name, [across]: "y" };
  return { [along]: "x", [across]: "y" };
}

function intervals(points: Point[], layout: Layout, series: Series, index: number): Plot.Markish[] {
  const known = points.filter((point) => point.low !== null && point.high !== null);
  if (!known.length) return [];
  const { x, y, ...more } = place(layout, series.name) as Options;
  const stroke = { stroke: color(series, index), strokeWidth: 1.5, strokeOpacity: opacity(series), ...more };
  return layout.flipped
    ? [Plot.ruleY(known, { y, x1: "low", x2: "high", ...stroke } as Plot.RuleYOptions)]
    : [Plot.ruleX(known, { x, y1: "low", y2: "high", ...stroke } as Plot.RuleXOptions)];
}

function bars(chart: Chart, points: Point[], layout: Layout, series: Series, index: number): Plot.Markish[] {
  const known = points.filter((point) => point.y !== null);
  const fill = { fill: color(series, index), fillOpacity: series.dashed ? 0.35 : 1, insetLeft: 0.5, insetRight: 0.5 };
  const where = chart.stacked ? stacked(chart, known, layout) : place(layout, series.name);
  const made = layout.flipped ? Plot.barX(known, { ...where, ...fill }) : Plot.barY(known, { ...where, ...fill });
  return [made, ...(chart.stacked ? [] : [...whiskers(known, layout, series.name), ...labels(chart, known, layout, series)])];
}

// A few bars say their figures, so that none at all is not taken for nothing drawn.
function labels(chart: Chart, points: Point[], layout: Layout, series: Series): Plot.Markish[] {
  const many = layout.places.length * Math.max(1, layout.slots.length) > MOST_LABELS;
  if (many || points.some((point) => point.low !== null)) return [];
  const text = (point: Point) => tick(chart.y, point.y);
  const where = place(layout, series.name);
  const shown = { text, fill: "var(--chart-ink)", fontSize: 11 };
  return layout.flipped
    ? [Plot.text(points, { ...where, ...shown, textAnchor: "start", dx: 4 })]
    : [Plot.text(points, { ...where, ...shown, lineAnchor: "bottom", dy: -4 })];
}

function whiskers(points: Point[], layout: Layout, name: string): Plot.Markish[] {
  const known = points.filter((point) => point.low !== null && point.high !== null);
  if (!known.length) return [];
  const { x, y, ...more } = place(layout, name) as Options;
  const stroke = { stroke: "var(--chart-ink)", strokeWidth: 1.2, ...more };
  return layout.flipped
    ? [Plot.ruleY(known, { y, x1: "low", x2: "high", ...stroke } as Plot.RuleYOptions)]
    : [Plot.ruleX(known, { x, y1: "low", y2: "high", ...stroke } as Plot.RuleXOptions)];
}

// Stacks are added up here, series by series, so that marks of single series can be drawn like all others.
function stacked(chart: Chart, points: Point[], layout: Layout): Options {
  const below = (point: Point): number =>
    chart.series
      .slice(0, point.index)
      .filter((series) => series.mark === "bars")
      .reduce((sum, series) => sum + Number(series.y[series.x.indexOf(point.x)] ?? 0), 0);
  const from = points.map(below);
  const to = points.map((point, at) => (from[at] ?? 0) + Number(point.y));
  return layout.flipped ? { y: "x", x1: from, x2: to } : { x: "x", y1: from, y2: to };
}

function cells(points: Point[]): Plot.Markish[] {
  const known = points.filter((point) => point.value !== null);
  const values = known.map((point) => Number(point.value));
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const step = (point: Point) => heat(Number(point.value), low, high);
  return [
    Plot.cell(known, { x: "x", y: "y", fill: (point: Point) => HEAT_COLORS[step(point)], inset: 0.5 }),
  ];
}

function rules(points: Point[], layout: Layout, series: Series, index: number): Plot.Markish[] {
  const stroke: Options = { stroke: color(series, index), strokeWidth: 1.5 };
  if (series.dashed) stroke.strokeDasharray = DASHES;
  const across = points.filter((point) => point.y !== null).map((point) => Number(point.y));
  const along = points.filter((point) => point.y === null).map((point) => point.x);
  if (layout.flipped) return [Plot.ruleX(across, stroke)];
  return [...(along.length ? [Plot.ruleX(along, stroke)] : []), ...(across.length ? [Plot.ruleY(across, stroke)] : [])];
}

// What the pointer is nearest to, in words.
function tips(chart: Chart, layout: Layout): Plot.Markish[] {
  const points = chart.series.flatMap((series, index) =>
    series.mark === "rule" || (chart.stacked && series.mark === "bars") ? [] : pointsOf(series, index),
  );
  const known = points.filter((point) => point.y !== null);
  const say = { title: (point: Point) => reading(chart, point), fill: "var(--chart-paper)", stroke: "var(--chart-rule)" };
  const [along, across, facet] = layout.flipped ? ["y", "x", "fy"] : ["x", "y", "fx"];
  const where = layout.slots.length
    ? { [facet]: "x", [along]: (point: Point) => point.series, [across]: "y" }
    : { [along]: "x", [across]: "y" };
  return known.length ? [Plot.tip(known, Plot.pointer({ ...where, ...say }))] : [];
}
