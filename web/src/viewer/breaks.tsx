// Table of the compactions and clears of a recorded run, with the columns that the terminal prints.
import { label, measuresOf } from "../measures";
import type { AnalysisSummary, Row } from "./api";
import { Inert } from "./inert";
import { Turn } from "./scrub";
import { shown } from "./words";

const SUMS = measuresOf("breaks");

export function Breaks({ rows }: { rows: Row[] }) {
  const measured = rows.filter((row) => row["measured"] !== false);
  return (
    <section aria-label="Compactions and clears">
      <h2>Compactions and clears ({rows.length})</h2>
      {measured.length < rows.length && <p class="quiet">{unmeasuredWords(rows.length - measured.length, rows.length)}</p>}
      <div class="scroll short" tabIndex={0} role="region" aria-label="Compactions and clears">
        <table class="rows">
          <thead>
            <tr>
              <th scope="col">what</th>
              <th scope="col" class="figure">
                turn
              </th>
              {SUMS.map((sum) => (
                <th key={sum.id} scope="col" class="figure" title={sum.meaning}>
                  {sum.label}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map((row, number) => (
              <tr key={number}>
                <td>
                  <Inert text={String(row["kind"])} />
                </td>
                <td class="figure">
                  <Turn turn={row["cut"]} />
                </td>
                <Amounts of={(name) => (row["measured"] === false ? null : amount(row, name))} />
              </tr>
            ))}
          </tbody>
          {measured.length > 1 && (
            <tfoot>
              <tr>
                <th scope="row" colSpan={2}>
                  together
                </th>
                <Amounts of={(name) => total(measured, name)} />
              </tr>
            </tfoot>
          )}
        </table>
      </div>
      {measured.length > 0 && <p class="quiet">{MEANING}</p>}
    </section>
  );
}

const MEANING = `In tokens of files. ${SUMS.map((sum) => `${sum.label}: ${sum.meaning}`).join("; ")}.`;

function Amounts({ of }: { of: (name: string) => number | null }) {
  return (
    <>
      {SUMS.map((sum) => (
        <td key={sum.id} class="figure">
          {shown(of(sum.id), "number")}
        </td>
      ))}
    </>
  );
}

function amount(row: Row, name: string): number | null {
  const value = row[name];
  return typeof value === "number" ? value : null;
}

// An older analysis does not say all of it, and what is not said is no zero.
function total(rows: Row[], name: string): number | null {
  const values = rows.map((row) => amount(row, name));
  return values.every((value) => value !== null) ? values.reduce((sum: number, value) => sum + (value ?? 0), 0) : null;
}

function unmeasuredWords(unmeasured: number, all: number): string {
  return `Not measured: ${unmeasured.toLocaleString("en")} of ${all.toLocaleString("en")}, since no file was used by which need could be told.`;
}

// The same of a whole analysis, in the words of `vestige analyze`.
export function breakFigures(breaks: AnalysisSummary["breaks"]): [string, string][] {
  const all = breaks.compactions + breaks.clears;
  const unmeasured = breaks.unmeasured ?? 0;
  const figures: [string, string][] = [[`${label("summary_markers")} / ${label("clears")}`, `${shown(breaks.compactions, "number")} / ${shown(breaks.clears, "number")}`]];
  if (unmeasured) figures.push(["… not measured", `${shown(unmeasured, "number")} of ${shown(all, "number")}: no file was used`]);
  if (!all || unmeasured === all) return figures;
  const sums = SUMS.map((sum): [string, string] => [sum.label, `${shown(breaks[sum.id as keyof typeof breaks], "number")} tokens`]);
  return [...figures, ...sums];
}
