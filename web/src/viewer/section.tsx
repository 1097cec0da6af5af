// A section of a report inside the viewer: its sentences, charts and tables.
import type { ShownTable } from "../documents";
import { useAnswer } from "./asking";
import { Inert, Prose } from "./inert";
import { Drawn } from "./possible";

// What a rescue, a capability test or a probe came to, before its single runs.
export function EvidencePart({ at, stamp }: { at: string; stamp: string }) {
  const { data, error } = useAnswer("evidence", { at }, stamp);
  if (error) return <p class="quiet">{error}</p>;
  if (!data) return null;
  return (
    <section aria-label={data.title}>
      <h2>{data.title}</h2>
      {data.words.map((words) => (
        <p key={words}>
          <Prose text={words} />
        </p>
      ))}
      {data.charts.map((chart) => (
        <Drawn key={chart.id} item={chart} />
      ))}
      {data.tables.map((table) => (
        <Shown key={table.title} table={table} />
      ))}
    </section>
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
