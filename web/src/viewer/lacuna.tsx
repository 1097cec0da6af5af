// The view of one LACUNA run, step by step: graph, records at hand, prompt and reply, why it is wrong.
import { label, measuresOf } from "../measures";
import type { Cause, LacunaRun, Step } from "../documents";
import { go } from "./address";
import { arcPicture, COLORS } from "./arcs";
import { useAnswer } from "./asking";
import { Inert } from "./inert";
import { Legend } from "./legend";
import { Figures } from "./overview";
import { Picture } from "./picture";
import { PressureChart } from "./pressure";
import { Scrubber } from "./scrub";
import { StepPanel } from "./step";
import { capital, counted, shown, type Verdict, verdictOf, verdictWords } from "./words";

export function LacunaPage({ at, run, address }: { at: string; run: LacunaRun; address: URLSearchParams }) {
  const last = Math.max(1, run.steps.length);
  const t = Math.min(last, Math.max(1, Number(address.get("t")) || run.score?.first_error || run.lost?.at || 1));
  const wrong = run.steps.filter((step) => step.cause).map((step) => step.t);
  const beside = address.getAll("with");
  return (
    <>
      <Headline run={run} />
      <Profile run={run} />
      {run.unknown && <p class="fault">{run.unknown}</p>}
      <Scrubber name="t" title={run.units.step} mark={`wrong ${run.units.outcome}`} at={t} last={last} marks={wrong} />
      <Strip run={run} t={t} />
      {beside.map((name) => (
        <OtherStrip key={name} at={at} name={name} t={t} />
      ))}
      <Legend keys={beside.length ? KEYS : keysOf(run)} />
      <Compare run={run} beside={beside} />
      <div class="arms">
        <Arm at={at} run={run} t={t} />
        {beside.map((name) => (
          <OtherArm key={name} at={at} name={name} t={t} beside={beside} />
        ))}
      </div>
      <PressureChart at={at} run={run} t={t} />
    </>
  );
}

const KEYS: [string, string][] = [
  ["correct", verdictWords("correct")],
  ...measuresOf("causes").map((cause): [string, string] => [cause.id, cause.label]),
  ["missed", "an input was not in context"],
  ["cone", "in the recovery cone"],
  ["unknown", verdictWords("unknown")],
];

// Of a run alone, only what occurs in it.
export function keysOf(run: Pick<LacunaRun, "steps" | "task">): [string, string][] {
  const found = new Set<string>(run.steps.map(verdictOf));
  if (run.steps.some((step) => step.missed)) found.add("missed");
  if (run.task.family === "numbers") found.add("cone");
  return KEYS.filter(([look]) => found.has(look));
}

function sizeOf(task: LacunaRun["task"]): string {
  return task.family === "numbers" ? `n = ${task.n}, m = ${task.m}` : `${task.preset}, ${task.questions} questions at most`;
}

function Headline({ run }: { run: LacunaRun }) {
  const { score, task } = run;
  const figures: [string, string][] = [
    ["task", `${task.workload}, ${sizeOf(task)}, seed ${run.seed}`],
    ["run", run.label],
  ];
  if (score) {
    figures.push([label("accuracy"), shown(score.accuracy, "share")], [label("miss_rate"), shown(score.miss_rate, "share")]);
    figures.push([label("first_miss"), shown(score.first_miss, "number")], [label("first_error"), shown(score.first_error, "number")]);
    for (const cause of measuresOf("causes")) {
      const id = cause.id as Cause;
      if (score.errors[id]) figures.push([cause.label, `${shown(score.error_shares[id], "share")} (${counted(score.errors[id], run.units.outcome)})`]);
    }
  }
  figures.push(["ended", run.ending ?? "–"]);
  return <Figures figures={figures} />;
}

// How the memory system was used, and what its own code warned of.
function Profile({ run }: { run: LacunaRun }) {
  const { profile, warnings } = run;
  if (!profile && !warnings.length) return null;
  return (
    <details class="profile" open={warnings.length > 0}>
      <summary>
        <Inert text={profile ? `Memory used ${profile.name}` : "The memory warned"} />
      </summary>
      <dl class="pairs">
        {profile && (
          <>
            <div>
              <dt>on</dt>
              <dd>
                <Inert text={profile.on} />
              </dd>
            </div>
            <div>
              <dt>off</dt>
              <dd>
                <Inert text={profile.off || "nothing"} />
              </dd>
            </div>
          </>
        )}
        {warnings.map((warning) => (
          <div key={warning}>
            <dt>warned</dt>
            <dd>
              <Inert text={warning} />
            </dd>
          </div>
        ))}
      </dl>
    </details>
  );
}

function Compare({ run, beside }: { run: LacunaRun; beside: string[] }) {
  const left = run.siblings.filter((one) => !beside.includes(one.run));
  if (!run.siblings.length) return null;
  return (
    <form class="filters" onSubmit={(event) => event.preventDefault()} aria-label="Compare">
      <label>
        beside it
        <select name="with" value="" onChange={(event) => go({ with: [...beside, event.currentTarget.value] })} disabled={beside.length > 2}>
          <option value="">choose a run of the same task…</option>
          {left.map((one) => (
            <option key={one.run} value={one.run}>
              {one.label} ({one.run})
            </option>
          ))}
        </select>
      </label>
    </form>
  );
}

function Arm({ at, run, t, close }: { at: string; run: LacunaRun; t: number; close?: () => void }) {
  const { data } = useAnswer("step", { at, run: run.run, t });
  const more = data?.t === t ? data : null;
  const step = run.steps[t - 1];
  if (!step) return null;
  return (
    <section class="arm" aria-label={`${capital(run.units.step)} ${t} of ${run.label}`}>
      <h2>
        <Inert text={run.label} />
        {close && (
          <button type="button" class="close" aria-label={`take ${run.label} away`} onClick={close}>
            ×
          </button>
        )}
      </h2>
      <Picture
        make={(width) => arcPicture(run, t, more, width, (to) => go({ t: String(to) }, "replace"))}
        on={[run, t, more]}
        label={graphWords(run, step)}
        class="graph"
      />
      <StepPanel at={at} run={run} step={step} more={more} />
    </section>
  );
}

function OtherArm({ at, name, t, beside }: { at: string; name: string; t: number; beside: string[] }) {
  const { data, error } = useAnswer("run", { at, run: name });
  if (error) return <p class="fault">{error}</p>;
  if (data?.kind !== "lacuna") return <p class="quiet">Reading the run…</p>;
  const close = () => go({ with: beside.filter((one) => one !== name) });
  return <Arm at={at} run={data} t={t} close={close} />;
}

function OtherStrip({ at, name, t }: { at: string; name: string; t: number }) {
  const { data } = useAnswer("run", { at, run: name });
  return data?.kind === "lacuna" ? <Strip run={data} t={t} /> : null;
}

function graphWords(run: LacunaRun, step: Step): string {
  const name = `${capital(run.units.step)} ${step.t}`;
  const refs = step.refs.length ? `${name} needs ${step.refs.join(", ")}` : `${name} needs no earlier answer`;
  const missing = step.missing?.length ? `; missing: ${step.missing.join(", ")}` : "";
  return `Dependency graph of ${counted(run.steps.length, run.units.step)}. ${refs}${missing}.`;
}

// One cell a step, colored by what came of it; the words are for those who do not see it.
function Strip({ run, t }: { run: LacunaRun; t: number }) {
  const counts = new Map<Verdict, number>();
  for (const step of run.steps) counts.set(verdictOf(step), (counts.get(verdictOf(step)) ?? 0) + 1);
  const words = [...counts].map(([verdict, count]) => `${count} ${verdictWords(verdict)}`).join(", ");
  return (
    <div class="strip" role="img" aria-label={`${run.label}: ${words}`}>
      {run.steps.map((step) => (
        <span
          key={step.t}
          class={`bead ${verdictOf(step)}${step.t === t ? " here" : ""}${step.missed ? " missed" : ""}`}
          title={`${run.units.step} ${step.t}: ${verdictWords(verdictOf(step))}`}
          style={{ background: COLORS[verdictOf(step)] ?? "" }}
          onClick={() => go({ t: String(step.t) }, "replace")}
        />
      ))}
    </div>
  );
}
