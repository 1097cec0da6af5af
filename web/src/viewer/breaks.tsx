// Table of the compactions and clears of a recorded run, with the columns that the terminal prints.
import { label, measuresOf } from "../measures";
import type { AnalysisSummary, BreakCost } from "../documents";
import { Inert } from "./inert";
import { Turn } from "./scrub";
import { shown } from "./words";

const SUMS = measuresOf("breaks");

export function Breaks({ rows }: { rows: BreakCost[] }) {
  const measured = rows.filter((row) => row.measured);
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
                  <Inert text={row.kind} />
                </td>
                <td class="figure">
                  <Turn turn={row.cut} />
                </td>
                <Amounts of={(name) => (row.measured ? amount(row, name) : null)} />
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

function amount(row: BreakCost, name: string): number {
  return Number(row[name as keyof BreakCost]);
}

function total(rows: BreakCost[], name: string): number {
  return rows.reduce((sum, row) => sum + amount(row, name), 0);
}

function unmeasuredWords(unmeasured: number, all: number): string {
  return `Not measured: ${unmeasured.toLocaleString("en")} of ${all.toLocaleString("en")}, since no file was used by which need could be told.`;
}

// The same of a whole analysis, in the words of `vestige analyze`.
export function breakFigures(breaks: AnalysisSummary["breaks"]): [string, string][] {
  const all = breaks.compactions + breaks.clears;
  const unmeasured = breaks.unmeasured;
  const figures: [string, string][] = [[`${label("summary_markers")} / ${label("clears")}`, `${shown(breaks.compactions, "number")} / ${shown(breaks.clears, "number")}`]];
  if (unmeasured) figures.push(["… not measured", `${shown(unmeasured, "number")} of ${shown(all, "number")}: no file was used`]);
  if (!all || unmeasured === all) return figures;
  const sums = SUMS.map((sum): [string, string] => [sum.label, `${shown(breaks[sum.id as keyof typeof breaks], "number")} tokens`]);
  return [...figures, ...sums];
}
