// The view of one recorded run: turns, demand over cuts, graph of actions, and what was lost.
import { label } from "../measures";
import type { Cell, CutRow, FileUse, RunRow, RunView, TurnCounts } from "../documents";
import { go } from "./address";
import { actionPicture, useOf, isMeasured } from "./actions";
import { Breaks } from "./breaks";
import { demandPicture } from "./demand";
import { Inert } from "./inert";
import { Legend } from "./legend";
import { Figures } from "./overview";
import { Picture } from "./picture";
import { Scrubber, Turn } from "./scrub";
import { TurnPanel } from "./turn";
import { shown } from "./words";

export function VestigePage({ at, run, address }: { at: string; run: RunView; address: URLSearchParams }) {
  const last = Math.max(1, run.turns.length);
  const turn = Math.min(last, Math.max(1, Number(address.get("turn")) || run.run.peak_cut || 1));
  const eventful = run.turns.filter((entry) => entry.events.length).map((entry) => entry.turn);
  const entry = run.turns[turn - 1];
  const touched = run.actions.length > 0 || run.cuts.some((cut) => cut.later_used > 0);
  return (
    <>
      <Headline run={run} />
      <Scrubber name="turn" title="turn" mark="event" at={turn} last={last} marks={eventful} />
      <TurnStrip run={run} turn={turn} />
      {touched ? <Pictures run={run} turn={turn} /> : <p class="quiet">{UNTOUCHED}</p>}
      {entry && <TurnPanel at={at} run={run} entry={entry} />}
      <Losses run={run} />
    </>
  );
}

const UNTOUCHED = "No file was read or written in this run, so there is no demand to draw; that is not the same as no need.";

function Pictures({ run, turn }: { run: RunView; turn: number }) {
  const choose = (to: number) => go({ turn: String(to) }, "replace");
  return (
    <>
      <figure>
        <figcaption>
          <strong>Demand.</strong> {demandWords(run, turn)}
        </figcaption>
        <Picture make={(width) => demandPicture(run, turn, width, choose)} on={[run, turn]} label={demandWords(run, turn)} class="timeline" />
        <Legend keys={[["needed", "needed for the goal"], ["later", "used later for anything"], ["break", "compaction or clear"]]} />
      </figure>
      <figure>
        <figcaption>
          <strong>Actions.</strong> {actionWords(run)}
        </figcaption>
        <Picture make={(width) => actionPicture(run, turn, width, choose)} on={[run, turn]} label={actionWords(run)} class="timeline" />
        <Legend
          keys={[
            ["read", "read that the goal needed"],
            ["write", "write in the slice"],
            ["dead", "read in vain: leads nowhere"],
            ["dead-write", "written in vain"],
            ["unjudged", "not known where it leads"],
            ["clipped", "clipped view"],
          ]}
        />
      </figure>
    </>
  );
}

const KINDS = { lit: "leads to the goal", vain: "touched files that lead to no known goal", still: "touched no file" };

function kindOf(entry: TurnCounts): keyof typeof KINDS {
  if (entry.needed) return "lit";
  return entry.reads + entry.writes ? "vain" : "still";
}

// One cell a turn: whether it led to the goal, and whether something befell it.
function TurnStrip({ run, turn }: { run: RunView; turn: number }) {
  const count = (kind: keyof typeof KINDS) => run.turns.filter((entry) => kindOf(entry) === kind).length;
  const eventful = run.turns.filter((entry) => entry.events.length).length;
  const words = `${run.turns.length} turns: ${count("lit")} lead to the goal, ${count("vain")} touched files that lead to no known goal, ${count("still")} touched none; something befell ${eventful}.`;
  return (
    <>
      <div class="strip turns" role="img" aria-label={words}>
        {run.turns.map((entry) => (
          <span
            key={entry.turn}
            class={`bead ${kindOf(entry)}${entry.turn === turn ? " here" : ""}${entry.events.length ? " missed" : ""}`}
            title={[`turn ${entry.turn}: ${KINDS[kindOf(entry)]}`, ...entry.events].join("; ")}
            onClick={() => go({ turn: String(entry.turn) }, "replace")}
          />
        ))}
      </div>
      <Legend keys={[["correct", "leads to the goal"], ["later", "touched files that lead to no known goal"], ["still", "touched no file"], ["missed", "clipped, compacted or anomalous"]]} />
    </>
  );
}

export function Headline({ run }: { run: RunView }) {
  const row = run.run;
  const text = (name: keyof RunRow) => shown(one(row[name]), "number");
  const outcome = row.resolved === null ? "unknown" : row.resolved ? "resolved" : "failed";
  const figures: [string, string][] = [
    ["model", text("model")],
    ["log", `${text("source")} (${text("format")})`],
    ["outcome", outcome],
    ["turns", text("turns")],
    [label("trajectory_tokens"), `${text("trajectory_tokens")} tokens`],
    ["goal", run.goal.join(", ") || row.goal_files.join(", ") || "none"],
    [label(row.unit === "tokens" ? "peak_demand_tokens" : "later_used_peak"), peakWords(row)],
    ["reads in vain", deadWords(run)],
  ];
  return (
    <>
      <div class="answer">
        {run.answer.map((sentence) => (
          <p key={sentence}>{sentence}</p>
        ))}
      </div>
      <Figures figures={figures} />
    </>
  );
}

// Counted from the actions that are drawn, so that the figure is the number of dots.
function deadWords(run: RunView): string {
  const reads = run.actions.filter((action) => action.kind === "read");
  const dead = isMeasured(run.run) ? String(reads.filter((action) => useOf(run, action) === "dead").length) : "–";
  return `${dead} of ${reads.length}`;
}

function peakWords(row: RunRow): string {
  const text = (name: keyof RunRow) => shown(one(row[name]), "number");
  if (row.unit !== "tokens") return `${text("later_used_peak")} entities`;
  if (!isMeasured(row)) return "not measured: no goal file was touched";
  return `${text("peak_demand_tokens")} tokens${row.peak_cut ? ` at cut ${text("peak_cut")}` : ""}`;
}

export function one(value: Cell | Cell[] | undefined): Cell {
  return Array.isArray(value) ? value.join(", ") : (value ?? null);
}

function demandWords(run: RunView, turn: number): string {
  const cut: CutRow | undefined = run.cuts[turn - 1];
  const unit = run.run.unit === "tokens" ? "tokens" : "entities";
  if (!cut) return "No cuts.";
  const needed = cut.demand_tokens === null || !isMeasured(run.run) ? "" : `${cut.demand_tokens.toLocaleString("en")} tokens in ${cut.live_files} ${cut.live_files === 1 ? "file" : "files"} needed for the goal, `;
  return `Before turn ${turn}: ${needed}${cut.later_used.toLocaleString("en")} ${unit} used later for anything.`;
}

function actionWords(run: RunView): string {
  const count = (use: string) => run.actions.filter((action) => useOf(run, action) === use).length;
  const unjudged = count("unjudged") ? `, of ${count("unjudged")} it is not known` : "";
  const more = run.actions_left_out ? `, ${run.actions_left_out} more are not drawn` : "";
  return `${count("needed")} of ${run.actions.length} reads and writes lead to the goal${unjudged}${more}.`;
}

const TABLES: [keyof RunView & string, string, string[]][] = [
  ["dropped", "What they dropped", ["cut", "path", "tokens", "carried_share", "dropped_tokens", "fate", "reread_turn"]],
  ["instructions", "What became of instructions", ["cut", "kind", "text", "survival", "broken_turn", "broken_by"]],
  ["hidden_lines", "Gold lines that a clipped view left out", ["turn", "path", "line", "outcome", "recovered_turn", "text"]],
  ["clips", "Clipped views", ["turn", "call", "paths", "on_goal", "shown_characters", "hidden_characters"]],
  ["anomalies", "Anomalies", ["turn", "signature"]],
  ["files", "Files", ["path", "goal", "reads", "needed_reads", "writes", "read_tokens", "repeat_tokens", "dead_tokens"]],
];

const TITLES: Record<string, string> = {
  cut: "turn",
  reread_turn: "read again in turn",
  recovered_turn: "shown in turn",
  ...Object.fromEntries(["dropped_tokens", "read_tokens", "repeat_tokens"].map((id) => [id, label(id)])),
  dead_tokens: label("dead_read_tokens"),
};
// What became of a dropped file, as the table of breaks calls it.
const FATES: Record<string, string> = {
  reread: label("reread_dropped_tokens"),
  overwritten: label("overwritten_tokens"),
  never: label("never_reread_tokens"),
};

function Losses({ run }: { run: RunView }) {
  return (
    <>
      {run.breaks.length > 0 && <Breaks rows={run.breaks} />}
      {TABLES.map(([name, title, columns]) => {
        const rows = (name === "files" ? costliest(run.files) : run[name]) as unknown as Row[];
        return rows.length ? <Listed key={name} title={title} rows={rows} columns={columns} /> : null;
      })}
    </>
  );
}

function costliest(files: FileUse[]): FileUse[] {
  return [...files].sort((a, b) => b.read_tokens - a.read_tokens);
}

const LISTED = 200; // rows
type Row = Record<string, Cell | Cell[]>; // of any table: its columns are named above

function Listed({ title, rows, columns }: { title: string; rows: Row[]; columns: string[] }) {
  const known = columns.filter((column) => rows.some((row) => row[column] !== undefined));
  const place = columns.find((column) => column === "turn" || column === "cut");
  const side = (column: string) => (rows.some((row) => typeof row[column] === "number") ? "figure" : "");
  return (
    <section aria-label={title}>
      <h2>
        {title} ({rows.length})
      </h2>
      <div class="scroll short" tabIndex={0} role="region" aria-label={title}>
        <table class="rows">
          <thead>
            <tr>
              {known.map((column) => (
                <th key={column} scope="col" class={side(column)}>
                  {TITLES[column] ?? column.replaceAll("_", " ")}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.slice(0, LISTED).map((row, number) => (
              <tr key={number}>
                {known.map((column) => (
                  <td key={column} class={side(column)}>
                    {column === place || column.endsWith("_turn") ? (
                      <Turn turn={row[column]} />
                    ) : (
                      <Inert text={cellWords(column, one(row[column]))} />
                    )}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function cellWords(column: string, cell: Cell): string {
  if (column === "signature") return String(cell).replaceAll("_", " ");
  if (column === "fate") return FATES[String(cell)] ?? shown(cell, "text");
  return shown(cell, column.endsWith("share") ? "share" : "number");
}
