// A recorded run: turns, demand over cuts, the graph of actions with the slice lit, and what was lost on the way.
import type { Cell, Cut, Row, TurnEntry, VestigeRun } from "./api";
import { go } from "./address";
import { actionPicture } from "./actions";
import { demandPicture } from "./demand";
import { Inert } from "./inert";
import { Figures } from "./overview";
import { Picture } from "./picture";
import { Scrubber } from "./scrub";
import { TurnPanel } from "./turn";
import { shown } from "./words";

export function VestigePage({ at, run, address }: { at: string; run: VestigeRun; address: URLSearchParams }) {
  const last = Math.max(1, run.turns.length);
  const turn = Math.min(last, Math.max(1, Number(address.get("turn")) || Number(run.run["peak_cut"]) || 1));
  const eventful = run.turns.filter((entry) => entry.events.length).map((entry) => entry.turn);
  const choose = (to: number) => go({ turn: String(to) }, "replace");
  const entry = run.turns[turn - 1];
  return (
    <>
      <Headline run={run} />
      <Scrubber name="turn" title="turn" at={turn} last={last} marks={eventful} />
      <TurnStrip run={run} turn={turn} />
      <figure>
        <figcaption>
          <strong>Demand.</strong> {demandWords(run, turn)}
        </figcaption>
        <Picture make={(width) => demandPicture(run, turn, width, choose)} on={[run, turn]} label={demandWords(run, turn)} class="timeline" />
        <p class="legend" aria-hidden="true">
          <span class="key needed" /> needed for the goal <span class="key later" /> used later for anything
          <span class="key break" /> compaction or clear
        </p>
      </figure>
      <figure>
        <figcaption>
          <strong>Actions.</strong> {actionWords(run)}
        </figcaption>
        <Picture make={(width) => actionPicture(run, turn, width, choose)} on={[run, turn]} label={actionWords(run)} class="timeline" />
        <p class="legend" aria-hidden="true">
          <span class="key read" /> read that the goal needed <span class="key write" /> write in the slice <span class="key dead" />{" "}
          dead: leads nowhere <span class="key clipped" /> clipped view
        </p>
      </figure>
      {entry && <TurnPanel at={at} run={run} entry={entry} />}
      <Losses run={run} />
    </>
  );
}

const KINDS = { lit: "leads to the goal", vain: "touched files in vain", still: "touched no file" };

function kindOf(entry: TurnEntry): keyof typeof KINDS {
  if (entry.needed) return "lit";
  return entry.reads + entry.writes ? "vain" : "still";
}

// One cell a turn: whether it led to the goal, and whether something befell it.
function TurnStrip({ run, turn }: { run: VestigeRun; turn: number }) {
  const count = (kind: keyof typeof KINDS) => run.turns.filter((entry) => kindOf(entry) === kind).length;
  const eventful = run.turns.filter((entry) => entry.events.length).length;
  const words = `${run.turns.length} turns: ${count("lit")} lead to the goal, ${count("vain")} touched files in vain, ${count("still")} touched none; something befell ${eventful}.`;
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
      <p class="legend" aria-hidden="true">
        <span class="key correct" /> leads to the goal <span class="key later" /> touched files in vain <span class="key still" /> touched
        no file <span class="key missed" /> clipped, compacted or anomalous
      </p>
    </>
  );
}

function Headline({ run }: { run: VestigeRun }) {
  const row = run.run;
  const text = (name: string) => shown(one(row[name]), "number");
  const outcome = row["resolved"] === true ? "resolved" : row["resolved"] === false ? "failed" : "unknown";
  const figures: [string, string][] = [
    ["model", text("model")],
    ["log", `${text("source")} (${text("format")})`],
    ["outcome", outcome],
    ["turns / tokens", `${text("turns")} / ${text("trajectory_tokens")}`],
    ["goal", run.goal.join(", ") || (Array.isArray(row["goal_files"]) ? row["goal_files"].join(", ") : "") || "none"],
    ["peak demand", row["unit"] === "tokens" ? `${text("peak_demand_tokens")} tokens at cut ${text("peak_cut")}` : `${text("later_used_peak")} entities`],
    ["dead reads", `${text("dead_reads")} of ${text("reads")}`],
  ];
  return <Figures figures={figures} />;
}

export function one(value: Cell | Cell[] | undefined): Cell {
  return Array.isArray(value) ? value.join(", ") : (value ?? null);
}

function demandWords(run: VestigeRun, turn: number): string {
  const cut: Cut | undefined = run.cuts[turn - 1];
  const unit = run.run["unit"] === "tokens" ? "tokens" : "entities";
  if (!cut) return "No cuts.";
  const needed = cut.demand_tokens === null ? "" : `${cut.demand_tokens.toLocaleString("en")} tokens in ${cut.live_files} ${cut.live_files === 1 ? "file" : "files"} needed for the goal, `;
  return `Before turn ${turn}: ${needed}${cut.later_used.toLocaleString("en")} ${unit} used later for anything.`;
}

function actionWords(run: VestigeRun): string {
  const needed = run.actions.filter((action) => action.necessary).length;
  const more = run.actions_left_out ? `, ${run.actions_left_out} more are not drawn` : "";
  return `${needed} of ${run.actions.length} reads and writes lead to the goal${more}.`;
}

const TABLES: [keyof VestigeRun & string, string, string[]][] = [
  ["breaks", "Compactions and clears", ["cut", "kind", "live_files", "live_tokens", "dropped_tokens", "reread_tokens", "never_reread_tokens"]],
  ["dropped", "What they dropped", ["cut", "path", "tokens", "carried_share", "dropped_tokens", "fate", "reread_turn"]],
  ["hidden_lines", "Gold lines that a clipped view left out", ["turn", "path", "line", "outcome", "recovered_turn", "text"]],
  ["clips", "Clipped views", ["turn", "call", "paths", "on_goal", "shown_characters", "hidden_characters"]],
  ["anomalies", "Anomalies", ["turn", "signature"]],
  ["files", "Files", ["path", "goal", "reads", "needed_reads", "writes", "read_tokens", "repeat_tokens", "dead_tokens"]],
];

function Losses({ run }: { run: VestigeRun }) {
  return (
    <>
      {TABLES.map(([name, title, columns]) => {
        const rows = run[name] as Row[];
        return rows.length ? <Listed key={name} title={title} rows={rows} columns={columns} /> : null;
      })}
    </>
  );
}

const LISTED = 200; // rows

function Listed({ title, rows, columns }: { title: string; rows: Row[]; columns: string[] }) {
  const known = columns.filter((column) => rows.some((row) => row[column] !== undefined));
  const place = columns.find((column) => column === "turn" || column === "cut");
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
                <th key={column} scope="col">
                  {column.replaceAll("_", " ")}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.slice(0, LISTED).map((row, number) => (
              <tr key={number}>
                {known.map((column) => (
                  <td key={column}>
                    {column === place || column.endsWith("_turn") ? (
                      <Turn turn={row[column]} />
                    ) : (
                      <Inert text={shown(one(row[column]), column.endsWith("share") ? "share" : "number")} />
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

function Turn({ turn }: { turn: Cell | Cell[] | undefined }) {
  if (typeof turn !== "number") return <>–</>;
  const move = () => {
    go({ turn: String(turn) }, "replace");
    document.querySelector(".scrubber")?.scrollIntoView();
  };
  return (
    <button type="button" class="plain link" onClick={move}>
      {turn}
    </button>
  );
}
