// The layout of a chart: direction, room for names, and whether series are side by side.
import { type Chart, type Mark, type Series, type Value } from "./chart";

export interface Layout {
  banded: boolean; // places are names, or bars stand on them
  flipped: boolean; // names run down the left side
  slots: Series[]; // that stand side by side at each place; none where they share it
  places: Value[]; // in the order of the chart
  names: number; // letters that fit in the margin of a flipped chart
  margin: number;
  height: number;
}

const SLOTTED: Mark[] = ["bars", "points"];
const LETTER = 6.4; // pixels, at the size of the axes
const LONG_NAME = 9; // letters that fit under a column
const LONGEST_NAME = 42;
const MARGIN = 52; // for figures at the left
const RIGHT = 20; // margin at the other side
const BETWEEN = 14; // pixels between two names under columns

export function layoutOf(chart: Chart, width: number): Layout {
  const drawn = chart.series.filter((series) => series.mark !== "rule");
  const cells = drawn.some((series) => series.mark === "cells");
  const banded = cells || chart.x.scale === "category" || drawn.some((series) => series.mark === "bars");
  const places = placesOf(drawn);
  const longest = Math.max(0, ...places.map((place) => String(place).length));
  const columns = drawn.every((series) => SLOTTED.includes(series.mark));
  const room = (width - MARGIN - RIGHT) / Math.max(1, places.length); // under a column
  const crowded = longest > LONG_NAME || longest * LETTER + BETWEEN > room;
  const flipped = banded && columns && !cells && crowded && places.length > 1;
  const slots = banded && columns && !chart.stacked && drawn.length > 1 ? drawn : [];
  const names = Math.min(LONGEST_NAME, longest, Math.floor((width * 0.42) / LETTER));
  const rows = cells ? placesDown(drawn) : places.length;
  return {
    banded,
    flipped,
    slots,
    places,
    names,
    margin: marginOf(chart, flipped, names),
    height: heightOf(width, flipped || cells ? rows : 0, slots.length, cells),
  };
}

function marginOf(chart: Chart, flipped: boolean, names: number): number {
  if (flipped) return Math.round(names * LETTER) + 14;
  const cells = chart.series.filter((series) => series.mark === "cells");
  const longest = Math.max(0, ...cells.flatMap((series) => series.y.map((place) => String(place).length)));
  return cells.length ? Math.round(longest * LETTER) + 18 : MARGIN;
}

function heightOf(width: number, rows: number, slots: number, cells: boolean): number {
  if (!rows) return Math.round(Math.min(300, Math.max(210, width * 0.42)));
  const each = cells ? 26 : slots ? Math.max(22, 15 * slots + 6) : 24;
  return rows * each + 60;
}

function placesOf(series: Series[]): Value[] {
  const found = [...new Set(series.flatMap((one) => one.x))];
  return found.every((place) => typeof place === "number") ? found.sort((a, b) => Number(a) - Number(b)) : found;
}

function placesDown(series: Series[]): number {
  return new Set(series.flatMap((one) => one.y)).size;
}
