// One step of a LACUNA run: inputs, answers, outcomes of records, exact texts, the path of the error, the recovery cone.
import type { ComponentChildren } from "preact";
import type { ConversationTurn, LacunaRun, MemoryCall, Question, ShownAction, ShownExchange, Step, StepDetails } from "../documents";
import { go } from "./address";
import { COLORS } from "./arcs";
import { Block, Inert } from "./inert";
import { layerPicture } from "./layers";
import { Picture } from "./picture";
import { Why } from "./why";
import { capital, sentence, values, verdictOf } from "./words";

export function StepPanel({ at, run, step, more }: { at: string; run: LacunaRun; step: Step; more: StepDetails | null }) {
  return (
    <>
      <p class={`verdict ${verdictOf(step)}`}>
        <strong>
          {capital(run.units.step)} {step.t}.
        </strong> {more?.conversation?.symptom ? `Wrong: ${more.conversation.symptom}. Cause: ${more.conversation.cause}; ${more.conversation.meaning}.` : sentence(step, run.units.step)}
      </p>
      <dl class="pairs">
        {more?.conversation ? <Pair name="question"><Inert text={more.conversation.question} /></Pair> : <Pair name="input">{values(step.input)}</Pair>}
        <Pair name="true answer">{values(step.answer)}</Pair>
        <Pair name="submitted">{step.submitted === undefined ? "–" : step.submitted !== null ? values(step.submitted) : `nothing (${step.fault ?? "no answer"})`}</Pair>
        {!more?.conversation && (
          <>
            <Pair name="required">
              <Required step={step} />
            </Pair>
            <Pair name={`retained (${step.retained?.length ?? 0}${run.capacity ? ` of ${run.capacity}` : ""})`}>
              <Chips steps={step.retained ?? []} kind={(t) => (step.refs.includes(t) ? "available" : "idle")} />
            </Pair>
          </>
        )}
        {!!step.restored?.length && (
          <Pair name="put back">{step.restored.map(([t, payload]) => `A_${t} = ${values(payload)}`).join(", ")}</Pair>
        )}
        {!!step.fetched?.length && (
          <Pair name="fetched">
            <Chips steps={step.fetched} kind={() => "fetched"} />
          </Pair>
        )}
      </dl>
      {more && <Why at={at} run={run} more={more} />}
      {more?.conversation && <Conversation of={more.conversation} />}
      {more && <Fault run={run} step={step} more={more} />}
      {more?.cone && <Recovery run={run} more={more} />}
      {more && <Said at={at} run={run} more={more} />}
    </>
  );
}

// The user's turns in order, each marked by what became of it.
function Conversation({ of }: { of: Question }) {
  return (
    <section>
      <h3>The conversation until then</h3>
      <p class="turns-legend">
        {Object.entries(STATES).map(([state, meaning]) => (
          <span>
            <mark class={state}>value</mark> {meaning}
          </span>
        ))}
        <span>
          <strong>bold</strong> needed for the answer
        </span>
      </p>
      <ul class="conversation">
        {of.turns.map((turn) => (
          <li class={turn.needed ? "needed" : ""}>
            {turn.pieces.map(([text, state]) =>
              state === null ? (
                <Inert text={text} />
              ) : (
                <mark class={state} title={STATES[state]}>
                  <Inert text={text} />
                </mark>
              ),
            )}{" "}
            {marks(turn).map((mark) => <em>{mark}</em>)}
          </li>
        ))}
      </ul>
    </section>
  );
}

const STATES = {
  used: "used in the answer",
  returned: "returned for this question",
  stored: "kept by the memory",
  lost: "the memory does not have it",
};

function marks(turn: ConversationTurn): string[] {
  const found = turn.needed ? ["needed"] : [];
  if (turn.stored !== null) found.push(turn.stored ? "stored" : "not stored");
  if (turn.returned !== null && (turn.returned || turn.needed)) found.push(turn.returned ? "returned" : "not returned");
  if (turn.used !== null && (turn.used || turn.needed)) found.push(turn.used ? "used" : "not used");
  return found;
}

function Pair({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

function Required({ step }: { step: Step }) {
  if (!step.refs.length) return <>nothing</>;
  const kind = (t: number) => {
    if (step.restored?.some(([r]) => r === t)) return "restored";
    if (step.fetched?.includes(t)) return "fetched";
    if (step.missing === undefined) return "idle";
    return step.missing.includes(t) ? "missing" : "available";
  };
  return <Chips steps={step.refs} kind={kind} named />;
}

function Chips({ steps, kind, named = false }: { steps: number[]; kind: (t: number) => string; named?: boolean }) {
  if (!steps.length) return <>none</>;
  return (
    <span class="chips">
      {steps.map((t) => (
        <button key={t} type="button" class={`chip ${kind(t)}`} onClick={() => go({ t: String(t) }, "replace")}>
          {t}
          {named && <span class="role"> {kind(t) === "idle" ? "" : kind(t)}</span>}
        </button>
      ))}
    </span>
  );
}

function Fault({ run, step, more }: { run: LacunaRun; step: Step; more: StepDetails }) {
  const { path } = more.spread;
  if (!step.cause || !path.length) return null;
  const nodes = [...new Set(path.flat())].map((id) => ({ id, ...look(run, id), ring: id === step.t }));
  return (
    <div class="fault-way">
      <h3>How the error came here</h3>
      <Picture
        make={(width) => layerPicture(nodes, path, width)}
        on={[run, more]}
        label={`Way of the fault: ${path.map(([from, to]) => `${from} to ${to}`).join(", ")}`}
        class="layers"
      />
    </div>
  );
}

function look(run: LacunaRun, t: number): { color: string } {
  const step = run.steps[t - 1];
  return { color: (step && COLORS[verdictOf(step)]) ?? "var(--quiet)" };
}

function list(steps: number[]): string {
  const shown = steps.slice(0, 12).join(", ");
  return `${steps.length === 1 ? "step" : "steps"} ${shown}${steps.length > 12 ? ` and ${steps.length - 12} more` : ""}`;
}

function Recovery({ run, more }: { run: LacunaRun; more: StepDetails }) {
  const cone = more.cone;
  if (!cone) return null;
  const nodes = cone.nodes.map((id) => ({ id, color: "var(--cone)", ring: cone.targets.includes(id) }));
  return (
    <div>
      <h3>Recovery cone</h3>
      <p>
        To have {list(cone.targets)} again, {cone.nodes.length} {cone.nodes.length === 1 ? "step" : "steps"} must be computed anew,{" "}
        {cone.depth} deep ({cone.naive} evaluations if nothing is kept on the way)
        {cone.resident.length ? `; it ends at the retained ${list(cone.resident)}` : ""}.
      </p>
      <Picture
        make={(width) => layerPicture(nodes, cone.edges, width)}
        on={[run, more]}
        label={`Recovery cone of ${cone.nodes.length} steps: ${cone.nodes.join(", ")}`}
        class="layers"
      />
    </div>
  );
}

function Said({ at, run, more }: { at: string; run: LacunaRun; more: StepDetails }) {
  const asked = { at, run: run.run, t: more.t };
  return (
    <>
      {more.memory.map((call, place) => (
        <Consulted key={place} call={call} asked={asked} />
      ))}
      {more.inexact && <p class="inexact">{more.inexact}</p>}
      {more.exchanges.map((exchange, place) => (
        <Spoken key={place} exchange={exchange} number={place + 1} asked={asked} />
      ))}
      {more.actions.length > 0 && <Actions actions={more.actions} />}
    </>
  );
}

function Spoken({ exchange, number, asked }: { exchange: ShownExchange; number: number; asked: { at: string; run: string; t: number } }) {
  const rules = exchange.messages.filter((message) => message.role === "system");
  const rest = exchange.messages.filter((message) => message.role !== "system");
  return (
    <div class="exchange">
      <h3>
        Prompt {number}
        <span class={exchange.exact ? "tag good" : "tag"}>{exchange.exact ? "exact: its hash is the recorded one" : "as recorded"}</span>
      </h3>
      {rules.length > 0 && (
        <details>
          <summary>Rules</summary>
          {rules.map((message, place) => (
            <Block key={place} text={message.text} asked={asked} label="rules" />
          ))}
        </details>
      )}
      {rest.map((message, place) => (
        <Block key={place} text={message.text} asked={asked} label={`prompt, ${message.role}`} />
      ))}
      {exchange.messages.length === 0 && <p class="quiet">not kept</p>}
      <h3>Reply {number}</h3>
      {exchange.reply !== null ? <Block text={exchange.reply} asked={asked} label="reply" /> : <p class="quiet">not kept</p>}
      {exchange.calls.length > 0 && <Block text={JSON.stringify(exchange.calls, null, 1)} asked={asked} label="tool calls" />}
      <p class="quiet">
        {exchange.input_tokens} tokens in, {exchange.output_tokens} out, {exchange.latency_seconds.toFixed(2)} s
        {exchange.from_cache ? ", from the cache" : ""}
      </p>
    </div>
  );
}

function Actions({ actions }: { actions: ShownAction[] }) {
  const evicts = actions.some((action) => action.evicted !== null);
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Actions of this step">
      <table class="rows">
        <thead>
          <tr>
            {["action", "outcome", "response", ...(evicts ? ["evicted"] : [])].map((head) => (
              <th key={head} scope="col">
                {head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {actions.map((action) => (
            <tr key={action.number}>
              <td>
                <Inert text={plain(action.action)} />
              </td>
              <td>{[action.outcome, action.reason].filter(Boolean).join(": ")}</td>
              <td>
                <Inert text={plain(action.detail)} />
              </td>
              {evicts && <td>{action.evicted ?? ""}</td>}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function plain(text: ShownAction["action"]): string {
  return typeof text === "string" ? text : text.text;
}

function Consulted({ call, asked }: { call: MemoryCall; asked: { at: string; run: string; t: number } }) {
  return (
    <details>
      <summary>
        Memory {call.verb}
        {call.verb === "search" && `: ${call.passages} ${call.passages === 1 ? "passage" : "passages"}`}, {call.latency_seconds.toFixed(2)} s
        {call.lacking.length ? `, lacking ${list(call.lacking)}` : ""}
      </summary>
      {call.text !== null && <Block text={call.text} asked={asked} label="asked of the memory" />}
      {call.found.map((passage, place) => (
        <Block key={place} text={passage} asked={asked} label={`passage ${place + 1}`} />
      ))}
    </details>
  );
}
