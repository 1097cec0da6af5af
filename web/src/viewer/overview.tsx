// The view of a folder: its result in a sentence, its heat map and its runs.
import { label } from "../measures";
import { linkTo, reportOf } from "./address";
import type { AdviceRow, AnalysisSummary, FailureGroup, FolderProgress } from "../documents";
import { useAnswer } from "./asking";
import { breakFigures } from "./breaks";
import { HeatMap } from "./heat";
import { Inert, Prose } from "./inert";
import { SectionPart } from "./section";
import { COMPACTIONS, RUNS, RunTable } from "./table";
import { TermLink } from "./terms";
import { shown } from "./words";

export function FolderPage({ at, address, stamp }: { at: string; address: URLSearchParams; stamp: string }) {
  const { data, error } = useAnswer("overview", { at }, stamp);
  return (
    <>
      {error && <p class="fault">{error}</p>}
      {data?.answers.map((answer) => (
        <p key={answer}>
          <Prose text={answer} />
        </p>
      ))}
      {data?.progress && <Standing progress={data.progress} />}
      <p class="quiet">
        <a href={reportOf(at)}>The report of this folder</a>
      </p>
      {data?.kind === "evidence" && <SectionPart path="evidence" at={at} stamp={stamp} />}
      {data && data.advice.length > 0 && <WhatToDo at={at} advice={data.advice} />}
      {data?.summary && <Found summary={data.summary} />}
      {data && data.alike.length > 0 && (
        <p class="quiet">
          All runs: <Inert text={data.alike.map((one) => `${one.title} ${one.value}`).join(", ")} />
        </p>
      )}
      {data && data.failures.length > 0 && <Lost failures={data.failures} />}
      {data && <HeatMap at={at} address={address} stamp={stamp} fields={data.fields} />}
      {data?.kind === "sweep" && data.progress?.state !== "running" && <SectionPart path="possible" at={at} stamp={stamp} folded />}
      <RunTable at={at} address={address} stamp={stamp} of={data?.kind === "compaction" ? COMPACTIONS : RUNS} />
    </>
  );
}

const STATES = { running: "running", complete: "complete", waiting: "not complete, and nobody writes to it" };

function Standing({ progress }: { progress: FolderProgress }) {
  const planned = progress.planned_runs;
  return (
    <p class="standing" data-state={progress.state}>
      <strong>{STATES[progress.state]}</strong>: {progress.runs.toLocaleString("en")} of {planned.toLocaleString("en")} runs
      {progress.lost > 0 && `, ${progress.lost} lost to infrastructure failures`}
      {!!progress.spent_usd && `, $${progress.spent_usd.toFixed(2)}`}
      {progress.state !== "complete" && (
        <progress value={progress.runs} max={planned} aria-label="runs that have ended" />
      )}
    </p>
  );
}

// The few things worth acting on, each with its cost and a link to the turn.
function WhatToDo({ at, advice }: { at: string; advice: AdviceRow[] }) {
  return (
    <section aria-label="What to do">
      <h2>What to do</h2>
      <ul>
        {advice.map((one) => (
          <li key={`${one.kind}${one.run_id}${one.turn}${one.words}`}>
            <Inert text={one.words} />{" "}
            <a href={linkTo({ at, run: one.run_id, turn: String(one.turn) })}>
              <Inert text={`turn ${one.turn} of ${one.run_id}`} />
            </a>
            {one.tokens !== null && `, ${one.tokens.toLocaleString("en")} tokens`}
            {one.usd !== null && `, at least $${one.usd.toFixed(2)}`}
          </li>
        ))}
      </ul>
    </section>
  );
}

function Found({ summary }: { summary: AnalysisSummary }) {
  const { breaks, outcomes } = summary;
  const aimless = !summary.goal_access && Object.keys(summary.goal_sources).every((source) => source === "own-edits");
  const peak = summary.covered_runs === 0 ? null : summary.mean_peak_tokens; // where no goal file was touched, zero says nothing
  const figures: [string, string][] = [
    ["runs", summary.runs.toLocaleString("en")],
    ["resolved / failed / unknown", `${outcomes.resolved} / ${outcomes.failed} / ${outcomes.unknown}`],
    [label("goal_accessed"), aimless ? "– (no goal is known)" : shown(summary.goal_access, "share")],
    [`mean ${label("peak_demand_tokens")}`, peak === null ? "not measured" : `${shown(Math.round(peak), "number")} tokens`],
    [label("dead_read_share"), shown(summary.dead_read_share, "share")],
    [label("repeat_share"), shown(summary.repeat_share, "share")],
    [label("clipped_views"), summary.clipped_views.toLocaleString("en")],
    ...breakFigures(breaks),
    ["skipped", summary.skipped.length.toLocaleString("en")],
  ];
  return <Figures figures={figures} />;
}

export function Figures({ figures }: { figures: [string, string][] }) {
  return (
    <dl class="figures">
      {figures.map(([name, value]) => (
        <div key={name}>
          <dt>
            {name}
            <TermLink name={name} title={name} />
          </dt>
          <dd>
            <Inert text={value} />
          </dd>
        </div>
      ))}
    </dl>
  );
}

function Lost({ failures }: { failures: FailureGroup[] }) {
  return (
    <details>
      <summary>{failures.reduce((sum, one) => sum + one.runs, 0)} runs were lost to infrastructure failures and are not scored</summary>
      <ul>
        {failures.map((one) => (
          <li key={`${one.model}${one.kind}${one.message}`}>
            {one.runs} × <Inert text={`${one.model}, ${one.condition}, ${one.kind}: ${one.message}`} />
          </li>
        ))}
      </ul>
    </details>
  );
}
