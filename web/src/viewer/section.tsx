// Sections of a report inside the viewer: their sentences, charts and tables.
import "../charts/charts.css";
import { useEffect, useRef } from "preact/hooks";
import { type Chart, type Figure, isFigure } from "../charts/chart";
import { drawItem } from "../charts/draw";
import type { ShownTable } from "../documents";
import { useAnswer } from "./asking";
import { Inert, Prose } from "./inert";
import { useWidth } from "./picture";

// What a rescue, a capability test or a probe came to, or accuracy over the bits held. `folded`: tables are only opened.
export function SectionPart({ path, at, stamp, folded = false }: { path: "evidence" | "possible"; at: string; stamp: string; folded?: boolean }) {
  const { data, error } = useAnswer(path, { at }, stamp);
  if (error) return <p class="quiet">{error}</p>;
  if (!data || !(data.words.length || data.tables.length)) return null;
  const tables = data.tables.map((table) => <Shown key={table.title} table={table} />);
  return (
    <section aria-label={data.title}>
      <h2>{data.title}</h2>
      {data.words.map((words) => (
        <p key={words}>
          <Prose text={words} />
        </p>
      ))}
      {[...data.charts, ...data.figures].map((item) => (
        <Drawn key={item.id} item={item} />
      ))}
      {folded && tables.length > 0 ? (
        <details>
          <summary>The same as a table</summary>
          {tables}
        </details>
      ) : (
        tables
      )}
    </section>
  );
}

// A chart or figure as wide as the page, with its notes.
function Drawn({ item }: { item: Chart | Figure }) {
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

function Shown({ table }: { table: ShownTable }) {
  const side = (place: number) => (table.columns[place]?.figure ? "figure" : "");
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={table.title}>
      <table class="rows">
        <thead>
          <tr>
            {table.columns.map((column, place) => (
              <th key={column.title} scope="col" class={side(place)} title={column.meaning}>
                {column.title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {table.lines.map((line, number) => (
            <tr key={number}>
              {line.map((cell, place) => (
                <td key={place} class={side(place)}>
                  <Inert text={cell} />
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
