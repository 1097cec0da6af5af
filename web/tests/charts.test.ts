// Charts as elements: every mark is drawn, legends and readings say what the data say, keys lead where they should.
import { describe, expect, it } from "vitest";
import { type Axis, type Chart, type Mark, type Series, pointsOf } from "../src/charts/chart";
import { drawChart, drawItem } from "../src/charts/draw";
import { layoutOf } from "../src/charts/layout";
import { HEAT, heat } from "../src/charts/palette";
import { moved } from "../src/charts/reading";
import { reading, shorten, tick } from "../src/charts/words";

const axis = (title: string, more: Partial<Axis> = {}): Axis => ({
  title,
  scale: "linear",
  low: null,
  high: null,
  percent: false,
  ...more,
});

const series = (mark: Mark, more: Partial<Series> = {}): Series => ({
  name: mark,
  mark,
  x: [1, 2, 3],
  y: [0.1, null, 0.3],
  low: [],
  high: [],
  value: [],
  dashed: false,
  pale: false,
  measure: "",
  color: "",
  ...more,
});

const chart = (list: Series[], more: Partial<Chart> = {}): Chart => ({
  id: "c",
  title: "A chart",
  alt: "What it says.",
  x: axis("step"),
  y: axis("share", { percent: true }),
  series: list,
  note: "",
  stacked: false,
  kind: "chart",
  ...more,
});

const names = { x: ["stepwise-sum, h = 16", "stepwise-sum, h = 8"], y: [0.2, 0.4] };
const category = { x: axis("cell", { scale: "category" as const }) };

describe("drawing", () => {
  it.each<[string, Chart]>([
    ["line", chart([series("line")])],
    ["step", chart([series("step", { low: [0, null, 0.2], high: [0.2, null, 0.4] })])],
    ["points", chart([series("points", { dashed: true })])],
    ["bars", chart([series("bars"), series("bars", { name: "more" })])],
    ["names", chart([series("bars", names), series("points", { ...names, name: "b" })], category)],
    ["stacked", chart([series("bars", names), series("bars", { ...names, name: "b" })], { ...category, stacked: true })],
    ["cells", chart([series("cells", { x: ["a", "b"], y: ["p", "q"], value: [1, 2] })], category)],
    ["rule", chart([series("line"), series("rule", { y: [] }), series("rule", { x: [0], y: [0.2], name: "level" })])],
    ["log", chart([series("points", { y: [1, 10, 100] })], { y: axis("tokens", { scale: "log" }) })],
    ["nothing", chart([series("line", { x: [], y: [] })])],
  ])("draws %s as one picture with its alternative", (_, item) => {
    const drawn = drawChart(item, 600);
    const [picture] = drawn.querySelectorAll("svg.chart-picture");
    expect(picture?.getAttribute("role")).toBe("img");
    expect(picture?.getAttribute("aria-label")).toBe("What it says.");
  });

  it("draws the panels of a figure side by side", () => {
    const one = chart([series("line")]);
    const drawn = drawItem({ id: "f", title: "f", panels: [one, one, one], note: "", kind: "figure" }, 700);
    expect(drawn.querySelectorAll(".chart").length).toBe(3);
    expect(drawn.style.getPropertyValue("--chart-columns")).toBe("2");
  });

  it("draws a measure in its own color, and other series in those of the palette", () => {
    const list = [series("bars", { ...names, color: "missing-input" }), series("bars", { ...names, name: "b" })];
    const drawn = drawChart(chart(list, category), 600);
    expect(drawn.innerHTML).toContain("var(--measure-missing-input)");
    expect(drawn.innerHTML).not.toContain("var(--chart-series-0)");
    expect(drawn.innerHTML).toContain("var(--chart-series-1)");
  });

  it("names every series in its legend, as text", () => {
    const hostile = "<img src=x onerror=alert(1)>";
    const drawn = drawChart(chart([series("line", { name: hostile }), series("points")]), 600);
    expect([...drawn.querySelectorAll(".chart-legend li")].map((item) => item.textContent)).toEqual([hostile, "points"]);
    expect(drawn.querySelector("img")).toBeNull();
  });

  it("adds stacks up", () => {
    const item = chart([series("bars", names), series("bars", { ...names, name: "b" })], { ...category, stacked: true });
    const bars = [...drawChart(item, 600).querySelectorAll("g[data-mark=bar] rect")];
    const starts = bars.map((bar) => Number(bar.getAttribute("x")));
    const widths = bars.map((bar) => Number(bar.getAttribute("width")));
    expect(bars.length).toBe(4);
    // The second series begins where the first ends, up to the gap that keeps them apart.
    expect(Math.abs((starts[0] ?? 0) + (widths[0] ?? 0) - (starts[2] ?? 0))).toBeLessThan(2);
  });
});

describe("layout", () => {
  it("lets long names run down the side, and short ones stand below", () => {
    expect(layoutOf(chart([series("bars", names)], category), 600).flipped).toBe(true);
    expect(layoutOf(chart([series("bars", { x: ["a", "b"] })], category), 600).flipped).toBe(false);
    const settings = { x: ["h = 16", "h = 14", "h = 12", "h = 10", "h = 8", "h = 6", "h = 4"] };
    expect(layoutOf(chart([series("bars", settings)], category), 900).flipped).toBe(false);
    expect(layoutOf(chart([series("bars", settings)], category), 360).flipped).toBe(true);
  });

  it("puts numbers in order, and names in the order of the chart", () => {
    expect(layoutOf(chart([series("bars", { x: [8, 4, 16] })]), 600).places).toEqual([4, 8, 16]);
    expect(layoutOf(chart([series("bars", { x: ["b", "a", "c"] })], category), 600).places).toEqual(["b", "a", "c"]);
  });
});

describe("words", () => {
  it("says figures as people read them", () => {
    expect(tick(axis("x", { percent: true }), 0.25)).toBe("25%");
    expect(tick(axis("x"), 1500)).toBe("1,500");
    expect(tick(axis("x"), 2_500_000)).toBe("2.5M");
    expect(tick(axis("x"), null)).toBe("–");
    expect(shorten("reference/calculator", 11)).toBe("refer…lator");
  });

  it("reads a point with its interval", () => {
    const one = chart([series("points", { low: [0, null, 0], high: [0.2, null, 0.4] })]);
    const [first] = pointsOf(one.series[0]!, 0);
    expect(reading(one, first!)).toBe("step 1, share 10%, 0% to 20%");
  });
});

describe("keys", () => {
  const points = [pointsOf(series("line"), 0), pointsOf(series("line", { x: [1], y: [1] }), 1)];

  it.each<[string, [number, number], [number, number] | null]>([
    ["ArrowRight", [0, -1], [0, 0]],
    ["ArrowRight", [0, 2], [0, 2]],
    ["ArrowLeft", [0, 0], [0, 0]],
    ["ArrowDown", [0, 2], [1, 0]],
    ["ArrowUp", [1, 0], [0, 0]],
    ["Home", [0, 2], [0, 0]],
    ["End", [0, 0], [0, 2]],
    ["x", [0, 0], null],
  ])("%s from %j leads to %j", (key, [row, column], there) => {
    expect(moved(key, row, column, points)).toEqual(there);
  });

  it("are read out", () => {
    const drawn = drawChart(chart([series("line")]), 600);
    drawn.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight" }));
    expect(drawn.querySelector(".chart-reading")?.textContent).toBe("step 1, share 10%");
  });
});

describe("heat", () => {
  it("takes equal steps from the lowest to the highest value", () => {
    expect([0, 0.5, 1].map((value) => heat(value, 0, 1))).toEqual([0, 3, HEAT - 1]);
    expect(heat(1, 1, 1)).toBe(0);
  });
});
