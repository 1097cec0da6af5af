// The heat map of a folder: a measure over two columns; a cell links to its runs.
import * as Plot from "@observablehq/plot";
import type { Field, Grid } from "../documents";
import { go, rowsAsked } from "./address";
import { useAnswer } from "./asking";
import { failureColor, failureWords } from "./failures";
import { draw, Picture } from "./picture";
import { isStatic } from "./static";
import { shown } from "./words";

export function HeatMap({ at, address, stamp, fields }: { at: string; address: URLSearchParams; stamp: string; fields: Field[] }) {
  const rows = rowsAsked(address);
  const asked = Object.fromEntries(["x", "y", "value"].map((name) => [name, address.get(name) ?? undefined]));
  const { data, error } = useAnswer("grid", { at, ...rows, sort: undefined, ...asked }, stamp);
  if (error) return <p class="quiet">{error}</p>;
  if (!data || !data.runs.length) return null;
  const facets = fields.filter((field) => field.facet && field.key !== "failure");
  const figures = fields.filter((field) => field.key === "failure" || (field.kind !== "text" && field.part === "result"));
  const down = facets.some((field) => field.key === data.layout.y) ? facets : [{ key: data.layout.y, title: data.chart.y.title }, ...facets];
  return (
    <section aria-label="Heat map">
      <Cells grid={data} />
      {!isStatic() && (
        <form class="filters" onSubmit={(event) => event.preventDefault()} aria-label="Heat map">
          <Pick name="value" title="color" chosen={data.layout.value} options={figures} />
          <Pick name="x" title="across" chosen={data.layout.x} options={facets} />
          <Pick name="y" title="down" chosen={data.layout.y} options={down} />
          {["x", "y", "value"].some((name) => address.has(name)) && (
            <button type="button" onClick={() => go({ x: null, y: null, value: null }, "replace")}>
              Every setting apart
            </button>
          )}
        </form>
      )}
    </section>
  );
}

function Pick({ name, title, chosen, options }: { name: string; title: string; chosen: string; options: { key: string; title: string }[] }) {
  return (
    <label>
      {title}
      <select name={name} value={chosen} onChange={(event) => go({ [name]: event.currentTarget.value }, "replace")}>
        {options.map((option) => (
          <option key={option.key} value={option.key}>
            {option.title}
          </option>
        ))}
      </select>
    </label>
  );
}

interface Place {
  x: string;
  y: string;
  value: number | null;
  runs: number;
  label: string; // of a text column
  over: string; // what it is a mean of: so many runs, over so many seeds
  filters: Record<string, string>; // that choose its runs
}

function Cells({ grid }: { grid: Grid }) {
  const [series] = grid.chart.series;
  if (!series) return null;
  const places: Place[] = series.x.map((x, at) => ({
    x: String(x),
    y: String(series.y[at]),
    value: series.value[at] ?? null,
    runs: grid.runs[at] ?? 0,
    label: grid.labels[at] ?? "",
    over: grid.over[at] ?? "",
    filters: grid.filters[at] ?? {},
  }));
  const choose = (place: Place) => go({ ...Object.fromEntries(Object.entries(place.filters).map(([key, label]) => [`f.${key}`, label])), offset: null });
  return (
    <>
      <Picture
        make={(width) => heatPicture(grid, places, width, choose)}
        on={[grid]}
        label={`${grid.chart.title}. ${grid.chart.alt}`}
        class="heat"
      />
      {grid.labels.length === 0 && <Scale grid={grid} places={places} />}
      <p class="quiet legend">{scaleWords(grid, places)}</p>
      {grid.mixed.length > 0 && <p class="caution">{mixedWords(grid)}</p>}
      {grid.labels.length > 0 && <Failures labels={[...new Set(grid.labels)]} />}
      <details>
        <summary>The same as a table</summary>
        <HeatTable grid={grid} places={places} choose={choose} />
      </details>
    </>
  );
}

function Failures({ labels }: { labels: string[] }) {
  return (
    <p class="legend">
      {labels.map((name) => (
        <span key={name} class="entry">
          <span class="swatch" style={{ background: failureColor(name) }} /> {failureWords(name)}
        </span>
      ))}
    </p>
  );
}

// Shares have one scale, from none to all; other figures one from their smallest to their largest.
function isShare(grid: Grid): boolean {
  return grid.kind === "share" || grid.kind === "flag";
}

// The colors of the cells between the smallest and the largest figure.
function Scale({ grid, places }: { grid: Grid; places: Place[] }) {
  const known = places.flatMap((place) => (place.value === null ? [] : [place.value]));
  const share = isShare(grid);
  const [low, high] = share ? [0, 1] : [Math.min(...known), Math.max(...known)];
  if (!known.length || low === high) return null;
  return (
    <p class="legend scale">
      {shown(low, grid.kind)} <span class="ramp" aria-hidden="true" /> {shown(high, grid.kind)}
    </p>
  );
}

// Cells too narrow for a figure still have a color, and somebody must say of what.
function scaleWords(grid: Grid, places: Place[]): string {
  const known = places.flatMap((place) => (place.value === null ? [] : [place.value]));
  const title = grid.chart.series[0]?.name ?? "";
  const more = `${cellWords(places)} Select a cell to list its ${grid.noun}s.${grid.left_out ? ` ${grid.left_out.toLocaleString("en")} more cells are not drawn; choose fewer with the filters.` : ""}`;
  if (grid.labels.length) return `Color: the most frequent ${title} of a cell's ${grid.noun}s, and the share of ${grid.noun}s that have it. ${more}`;
  if (!known.length) return `No ${grid.noun} has a value of ${title}.`;
  const [low, high] = [Math.min(...known), Math.max(...known)].map((value) => shown(value, grid.kind));
  const span = low === high ? `${low} everywhere` : `from ${low} (light) to ${high} (dark)`;
  const figure = grid.kind === "flag" ? `share ${title}` : `mean ${title}`;
  return `Color: ${figure} over the ${grid.noun}s of a cell, ${span}. ${more}`;
}

// What the cells are means of, if it is the same for all; else every cell says it where the pointer is.
export function cellWords(places: { over: string }[]): string {
  const kinds = [...new Set(places.map((place) => place.over))];
  if (kinds.length === 1) return `Every cell: ${kinds[0]}.`;
  return kinds.length <= 3 ? `Cells: ${kinds.join("; or ")}.` : "Each cell says over what it is a mean, in the table below and under the pointer.";
}

function mixedWords(grid: Grid): string {
  return `Some cells are means over different values of ${grid.mixed.join(" and ")}, so they describe none of them; “Every setting apart” separates them.`;
}

function heatPicture(grid: Grid, places: Place[], width: number, choose: (place: Place) => void): Element {
  const longest = Math.max(...grid.y.map((name) => name.length), 1);
  const margin = Math.min(260, 16 + LETTER * longest, 0.5 * width);
  const across = Math.max(...grid.x.map((name) => name.length), 1);
  const widest = Math.max(110, 20 + LETTER * across);
  const room = Math.max(24, Math.min(widest, (width - margin - 20) / Math.max(1, grid.x.length)));
  // Names that do not fit above their columns stand upright.
  const upright = LETTER * across + 14 > room;
  const above = upright ? Math.min(MOST_UPRIGHT, across) : 0;
  const share = isShare(grid);
  const named = grid.labels.length > 0;
  const picture = draw({
    width: Math.min(width, margin + 20 + room * grid.x.length),
    height: 60 + LETTER * above + 30 * grid.y.length,
    marginLeft: margin,
    marginTop: 34 + LETTER * above,
    marginBottom: 8,
    x: {
      domain: grid.x,
      axis: "top",
      label: grid.chart.x.title,
      labelArrow: "none",
      tickSize: 0,
      tickRotate: upright ? -90 : 0,
      tickFormat: (name: string) => cut(name, upright ? MOST_UPRIGHT : (room - 14) / LETTER),
    },
    y: { domain: grid.y, label: null, tickSize: 0, tickFormat: (name: string) => cut(name, (margin - 10) / LETTER) },
    color: named ? { type: "identity" } : { scheme: "YlGnBu", ...(share ? { domain: [0, 1] } : {}), type: "linear" },
    marks: [
      Plot.cell(places, { x: "x", y: "y", fill: named ? (place: Place) => failureColor(place.label) : "value", inset: 1, rx: 3 }),
      Plot.text(places, {
        x: "x",
        y: "y",
        text: (place: Place) => (room > 44 ? shown(place.value, named ? "share" : grid.kind) : ""),
        // Dark cells bear light figures.
        fill: (place: Place) => (named || (share ? (place.value ?? 0) : 0) > 0.55 ? "white" : "black"),
        stroke: (place: Place) => (named || (share ? (place.value ?? 0) : 0) > 0.55 ? "#17324d" : "white"),
        strokeWidth: 2.5,
        fontWeight: 600,
      }),
    ],
  });
  const cells = picture.querySelectorAll<SVGElement>("[aria-label=cell] rect");
  const drawn = places.filter((place) => place.value !== null);
  for (const [at, cell] of [...cells].entries()) {
    const place = drawn[at];
    if (!place) continue;
    const title = document.createElementNS("http://www.w3.org/2000/svg", "title");
    title.textContent = `${place.x} / ${place.y}: ${figureOf(place, grid)}, ${place.over}`;
    cell.append(title);
    cell.addEventListener("click", () => choose(place));
  }
  return picture;
}

// A mean, or the most frequent value and its share.
function figureOf(place: Place, grid: Grid): string {
  return grid.labels.length ? `${failureWords(place.label)} ${shown(place.value, "share")}` : shown(place.value, grid.kind);
}

const LETTER = 7; // pixels, in the mean over a name
const MOST_UPRIGHT = 18; // letters of a name that stands upright

function cut(name: string, longest: number): string {
  const kept = Math.max(2, Math.floor(longest)) - 1;
  return name.length > kept + 1 ? `…${name.slice(-kept)}` : name;
}

function HeatTable({ grid, places, choose }: { grid: Grid; places: Place[]; choose: (place: Place) => void }) {
  const at = new Map(places.map((place) => [`${place.x}\n${place.y}`, place]));
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Heat map as a table">
      <table class="rows">
        <thead>
          <tr>
            <th scope="col">{grid.chart.y.title}</th>
            {grid.x.map((x) => (
              <th key={x} scope="col" class="figure">
                {x}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {grid.y.map((y) => (
            <tr key={y}>
              <th scope="row">{y}</th>
              {grid.x.map((x) => {
                const place = at.get(`${x}\n${y}`);
                return (
                  <td key={x} class="figure">
                    {place ? (
                      <>
                        <button type="button" class="plain" onClick={() => choose(place)}>
                          {figureOf(place, grid)}
                        </button>
                        <div class="quiet">{place.over}</div>
                      </>
                    ) : (
                      "–"
                    )}
                  </td>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
