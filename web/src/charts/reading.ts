// Reads out single points of a chart with the arrow keys.
import { type Chart, type Point, pointsOf } from "./chart";
import { reading } from "./words";

export function addReading(element: HTMLElement, picture: SVGSVGElement, chart: Chart): void {
  const series = chart.series.map(pointsOf).filter((points) => points.length);
  if (!series.length) return;
  const said = document.createElement("p");
  said.className = "chart-reading";
  said.setAttribute("aria-live", "polite");
  element.tabIndex = 0;
  element.setAttribute("role", "group");
  element.setAttribute("aria-label", `${chart.title}: chart; arrow keys read its points`);
  element.append(said);
  let [row, column] = [0, -1];
  const show = (): void => {
    const point = series[row]?.[column];
    said.textContent = point ? reading(chart, point) : "";
    picture.classList.toggle("chart-being-read", point !== undefined);
  };
  element.addEventListener("keydown", (event) => {
    const next = moved(event.key, row, column, series);
    if (!next) return;
    event.preventDefault();
    [row, column] = next;
    show();
  });
  element.addEventListener("blur", () => {
    said.textContent = "";
    column = -1;
  });
}

// Where a key leads; nothing for a key that does not move.
export function moved(key: string, row: number, column: number, series: Point[][]): [number, number] | null {
  const here = series[row]?.length ?? 0;
  const other = (next: number): [number, number] => {
    const length = series[next]?.length ?? 0;
    return [next, Math.max(0, Math.min(column, length - 1))];
  };
  switch (key) {
    case "ArrowRight":
      return [row, Math.min(here - 1, column + 1)];
    case "ArrowLeft":
      return [row, Math.max(0, column - 1)];
    case "ArrowDown":
      return other(Math.min(series.length - 1, row + 1));
    case "ArrowUp":
      return other(Math.max(0, row - 1));
    case "Home":
      return [row, 0];
    case "End":
      return [row, here - 1];
    case "Escape":
      return [row, -1];
    default:
      return null;
  }
}
