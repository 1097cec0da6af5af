// The legend of a chart: a sample of each mark with the name of its series.
import type { Chart, Series } from "./chart";
import { HEAT_COLORS, type SYMBOLS, color, isMarked, opacity, symbol } from "./palette";

const SVG = "http://www.w3.org/2000/svg";
// Outlines in a box of 24 by 14, in the order of the palette's symbols.
const OUTLINES: Record<(typeof SYMBOLS)[number], string> = {
  circle: "M8 7a4 4 0 1 0 8 0a4 4 0 1 0 -8 0Z",
  square: "M8.5 3.5h7v7h-7Z",
  triangle: "M12 2.5L16.5 10.5h-9Z",
  diamond2: "M12 2L17 7L12 12L7 7Z",
  star: "M12 1.5L13.3 5.2L17.2 5.3L14.1 7.7L15.2 11.4L12 9.2L8.8 11.4L9.9 7.7L6.8 5.3L10.7 5.2Z",
  cross: "M10.5 2.5h3v3h3v3h-3v3h-3v-3h-3v-3h3Z",
  wye: "M12 7L8 4.5M12 7L16 4.5M12 7V12",
  plus: "M12 2.5v9M7.5 7h9",
};

export function legendOf(chart: Chart): HTMLElement | null {
  const cells = chart.series.find((series) => series.mark === "cells");
  if (cells) return heatLegend(cells);
  if (chart.series.length < 2) return null;
  const list = document.createElement("ul");
  list.className = "chart-legend";
  chart.series.forEach((series, index) => {
    const item = document.createElement("li");
    const name = document.createElement("span");
    name.textContent = series.name;
    item.append(sample(series, index), name);
    list.append(item);
  });
  return list;
}

function sample(series: Series, index: number): SVGElement {
  const box = document.createElementNS(SVG, "svg");
  box.setAttribute("viewBox", "0 0 24 14");
  box.setAttribute("width", "24");
  box.setAttribute("height", "14");
  box.setAttribute("aria-hidden", "true");
  const bar = series.mark === "bars";
  const line = series.mark === "line" || series.mark === "step" || series.mark === "rule";
  const outline = bar ? "M3 2h18v10h-18Z" : line ? "M1 7h22" : (OUTLINES[symbol(series, index)] ?? "");
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("d", outline);
  path.setAttribute("stroke", color(series, index));
  path.setAttribute("stroke-width", line ? "2" : "1.5");
  path.setAttribute("stroke-opacity", String(opacity(series)));
  path.setAttribute("fill", line || series.dashed || series.pale ? "none" : color(series, index));
  if (line && series.dashed) path.setAttribute("stroke-dasharray", "5 3");
  if (bar && series.dashed) path.setAttribute("fill-opacity", "0.35");
  if (bar && series.dashed) path.setAttribute("fill", color(series, index));
  box.append(path);
  if (series.mark === "line" && isMarked(series.x.length)) box.append(symbolSample(series, index));
  return box;
}

function symbolSample(series: Series, index: number): SVGElement {
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("d", OUTLINES[symbol(series, index)] ?? "");
  path.setAttribute("fill", series.dashed ? "var(--chart-paper)" : color(series, index));
  path.setAttribute("stroke", color(series, index));
  return path;
}

function heatLegend(cells: Series): HTMLElement {
  const values = cells.value.filter((value) => value !== null);
  const box = document.createElement("p");
  box.className = "chart-legend chart-heat";
  const steps = HEAT_COLORS.map((fill) => {
    const step = document.createElement("span");
    step.className = "chart-heat-step";
    step.style.background = fill;
    return step;
  });
  const label = (value: number) => Number(value.toPrecision(3)).toString();
  const [low, high] = [Math.min(...values), Math.max(...values)];
  box.append(`${cells.name} `, label(low), ...steps, label(high));
  return box;
}
