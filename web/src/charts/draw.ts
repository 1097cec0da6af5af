// Draws a chart as an element: legend, picture, and a reading of single points for keyboards and screen readers.
import * as Plot from "@observablehq/plot";
import { type Axis, type Chart, type Figure, isFigure } from "./chart";
import { type Layout, layoutOf } from "./layout";
import { legendOf } from "./legend";
import { marksOf } from "./marks";
import { addReading } from "./reading";
import { shorten, tick } from "./words";

const NARROWEST = 260;
const WIDEST = 920;

// Draw a chart, or the panels of a figure side by side, as wide as told.
export function drawItem(item: Chart | Figure, width: number): HTMLElement {
  if (!isFigure(item)) return drawChart(item, width);
  const panels = document.createElement("div");
  panels.className = "chart-panels";
  const columns = Math.max(1, Math.min(item.panels.length, Math.floor(width / 320)));
  for (const panel of item.panels) {
    const one = document.createElement("div");
    const title = document.createElement("p");
    title.className = "chart-panel-title";
    title.textContent = panel.title;
    one.append(title, drawChart(panel, width / columns - 12));
    panels.append(one);
  }
  panels.style.setProperty("--chart-columns", String(columns));
  return panels;
}

export function drawChart(chart: Chart, given: number): HTMLElement {
  const width = Math.round(Math.min(WIDEST, Math.max(NARROWEST, given)));
  const layout = layoutOf(chart, width);
  const picture = Plot.plot(optionsOf(chart, layout, width)) as SVGSVGElement;
  // A picture is one thing to a screen reader; what the library calls its parts is for stylesheets and tests.
  for (const part of picture.querySelectorAll("[aria-label]")) {
    part.setAttribute("data-mark", part.getAttribute("aria-label") ?? "");
    part.removeAttribute("aria-label");
  }
  picture.setAttribute("role", "img");
  picture.setAttribute("aria-label", chart.alt);
  const element = document.createElement("div");
  element.className = "chart";
  const legend = legendOf(chart);
  element.append(...(legend ? [legend, picture] : [picture]));
  addReading(element, picture, chart);
  return element;
}

function optionsOf(chart: Chart, layout: Layout, width: number): Plot.PlotOptions {
  const grid = { grid: !layout.flipped };
  const figures = { ...scaleOf(chart.y), ...grid, ...whole(chart), labelAnchor: "top" } as Plot.ScaleOptions;
  const options: Plot.PlotOptions = {
    width,
    height: layout.height,
    marginLeft: layout.margin,
    marginBottom: 40,
    marginTop: 32, // room for the title of the axis above its highest figure
    className: "chart-picture",
    style: { background: "transparent", color: "var(--chart-ink)", fontFamily: "inherit", fontSize: "12px" },
    marks: marksOf(chart, layout),
  };
  if (chart.series.some((series) => series.mark === "cells")) {
    return { ...options, x: { ...band(chart.x, layout), type: "band" }, y: { type: "band", label: chart.y.title } };
  }
  if (layout.flipped) return { ...options, ...flipped(chart, layout) };
  if (layout.slots.length) return { ...options, y: figures, ...side(chart, layout, "fx", "x") };
  const along = { ...scaleOf(chart.x), ticks: Math.max(3, Math.round(width / 95)) };
  return { ...options, y: figures, x: layout.banded ? band(chart.x, layout) : along };
}

// A few things that are counted have no halves.
function whole(chart: Chart): Plot.ScaleOptions {
  const values = chart.series.flatMap((series) => series.y.map(Number));
  const most = Math.max(0, ...values);
  return !chart.y.percent && most <= 6 && values.every(Number.isInteger) ? { ticks: Math.max(1, most) } : {};
}

function flipped(chart: Chart, layout: Layout): Plot.PlotOptions {
  const figures = { ...scaleOf(chart.y), ...whole(chart), grid: true } as Plot.ScaleOptions;
  const names = layout.slots.length ? side(chart, layout, "fy", "y") : { y: { ...band(chart.x, layout), label: null } };
  return { x: figures, marginRight: 40, ...names };
}

// Places as facets, series as slots inside them.
function side(chart: Chart, layout: Layout, facet: "fx" | "fy", slot: "x" | "y"): Plot.PlotOptions {
  const domain = layout.slots.map((series) => series.name);
  const anchor = facet === "fx" ? "bottom" : "left";
  const label = facet === "fx" ? chart.x.title : null;
  const places = { domain: layout.places, axis: anchor, label, padding: 0.18, tickFormat: tickOf(chart.x, layout) };
  return {
    [slot]: { type: "band", domain, axis: null, padding: 0.12 },
    [facet]: places as Plot.ScaleOptions,
  };
}

function band(axis: Axis, layout: Layout): Plot.ScaleOptions {
  const shown = { label: axis.title, domain: layout.places, tickFormat: tickOf(axis, layout), labelArrow: "none" };
  return { type: "band", padding: 0.2, labelAnchor: "center", ...shown } as Plot.ScaleOptions;
}

function tickOf(axis: Axis, layout: Layout): (value: unknown) => string {
  return (value) => (layout.flipped ? shorten(tick(axis, value as string), layout.names) : tick(axis, value as number));
}

function scaleOf(axis: Axis): Plot.ScaleOptions {
  const shown = { label: axis.title, labelArrow: "none" as const, labelAnchor: "center" as const };
  const format = { tickFormat: (value: number) => tick(axis, value), nice: axis.low === null && axis.high === null };
  const scale: Plot.ScaleOptions = { type: axis.scale === "log" ? "log" : "linear", ...shown, ...format };
  if (axis.low !== null && axis.high !== null) return { ...scale, domain: [axis.low, axis.high], clamp: false };
  if (axis.low === 0) return { ...scale, zero: true, nice: true };
  return axis.scale === "log" ? { ...scale, ticks: 6 } : { ...scale, nice: true };
}
