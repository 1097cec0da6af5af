// Accuracy over the bits held: every cell of a sweep beside what any memory of its size could reach.
import "../charts/charts.css";
import { useEffect, useRef } from "preact/hooks";
import { type Chart, type Figure, isFigure } from "../charts/chart";
import { drawItem } from "../charts/draw";
import type { PlacedCell } from "../documents";
import { useAnswer } from "./asking";
import { Inert, Prose } from "./inert";
import { useWidth } from "./picture";
import { shown } from "./words";

export function PossiblePart({ at, stamp }: { at: string; stamp: string }) {
  const { data, error } = useAnswer("possible", { at }, stamp);
  if (error) return <p class="quiet">What was possible: {error}</p>;
  if (!data || (!data.figure && !data.words.length)) return null;
  return (
    <section aria-label="What was possible">
      <h2>What was possible</h2>
      {data.words.map((words) => (
        <p key={words}>
          <Prose text={words} />
        </p>
      ))}
      {data.figure && <Drawn item={data.figure} />}
      {data.cells.length > 0 && (
        <details>
          <summary>The same as a table</summary>
          <Placed cells={data.cells} />
        </details>
      )}
    </section>
  );
}

// A chart or figure as wide as the page, with its notes.
export function Drawn({ item }: { item: Chart | Figure }) {
  const place = useRef<HTMLDivElement>(null);
  const width = useWidth(place);
  useEffect(() => {
    if (!place.current || !width) return;
    const made = drawItem(item, width);
    for (const style of made.querySelectorAll("style")) style.remove(); // the page allows no inline styles
    place.current.replaceChildren(made);
  }, [width, item]);
  return (
    <>
      <div class="possible" ref={place} />
      {(isFigure(item) ? item.panels : [item]).map((panel) => panel.note && <p key={panel.id} class="quiet"><Prose text={panel.note} /></p>)}
    </>
  );
}

function Placed({ cells }: { cells: PlacedCell[] }) {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="What was possible as a table">
      <table class="rows">
        <thead>
          <tr>
            <th scope="col">workload</th>
            <th scope="col">cell</th>
            {["bits held, at most", "right", "95% interval", "keeping what fits", "no memory exceeds", "of the possible"].map((title) => (
              <th key={title} scope="col" class="figure">
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {cells.map((cell) => (
            <tr key={`${cell.workload}\n${cell.cell}`}>
              <td><Inert text={cell.workload} /></td>
              <th scope="row"><Inert text={cell.cell} /></th>
              <td class="figure">{cell.bits_at_most === null ? "unknown" : cell.bits_at_most.toFixed(1)}</td>
              <td class="figure">{shown(cell.step_accuracy, "share")}</td>
              <td class="figure">{shown(cell.low, "share")} to {shown(cell.high, "share")}</td>
              <td class="figure">{shown(cell.keeping, "share")}</td>
              <td class="figure">{shown(cell.ceiling, "share")}</td>
              <td class="figure">{cell.share ?? "not judged"}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
