// Compactions and clears in the terminal's columns: what was not carried over is the sum of the three that follow it.
import type { AnalysisSummary, Row } from "./api";
import { Inert } from "./inert";
import { Turn } from "./scrub";
import { shown } from "./words";

const SUMS = ["live_tokens", "dropped_tokens", "reread_dropped_tokens", "overwritten_tokens", "never_reread_tokens"] as const;
const TITLES: [string, string][] = [
  ["needed", "Tokens of files that were still to be used"],
  ["not carried", "Of these, what the text that took the context's place does not repeat: the sum of the next three"],
  ["reread", "In files that were shown once more"],
  ["edited", "In files that were edited without reading them again"],
  ["neither", "In files that were neither read again nor edited first"],
];

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
              {TITLES.map(([title, meaning]) => (
                <th key={title} scope="col" class="figure" title={meaning}>
                  {title}
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

const MEANING =
  "In tokens of files that were still needed. Not carried: the sum of what was in files read again, edited without rereading them, or neither.";

function Amounts({ of }: { of: (name: string) => number | null }) {
  return (
    <>
      {SUMS.map((name) => (
        <td key={name} class="figure">
          {shown(of(name), "number")}
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
  const figures: [string, string][] = [["compactions / clears", `${shown(breaks.compactions, "number")} / ${shown(breaks.clears, "number")}`]];
  if (unmeasured) figures.push(["… not measured", `${shown(unmeasured, "number")} of ${shown(all, "number")}: no file was used`]);
  if (!all || unmeasured === all) return figures;
  figures.push(["… still needed", `${shown(breaks.live_tokens, "number")} tokens`]);
  figures.push(["… not carried", `${shown(breaks.dropped_tokens, "number")} tokens`]);
  const fates = [breaks.reread_dropped_tokens, breaks.overwritten_tokens, breaks.never_reread_tokens];
  figures.push(["… reread + edited + neither", fates.map((tokens) => shown(tokens, "number")).join(" + ")]);
  return figures;
}
