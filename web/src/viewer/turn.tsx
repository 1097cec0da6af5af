// One turn of a recorded run: what it touched, what was said and done, and the raw log at that place.
import { useState } from "preact/hooks";
import { useOf } from "./actions";
import type { ActionRow, LoggedCall, TurnCounts, RunView } from "../documents";
import { useAnswer } from "./asking";
import { Diff, editOf } from "./diff";
import { Block, Inert } from "./inert";

export function TurnPanel({ at, run, entry }: { at: string; run: RunView; entry: TurnCounts }) {
  const id = run.run.run_id;
  const actions = run.actions.filter((action) => action.turn === entry.turn);
  return (
    <section aria-label={`Turn ${entry.turn}`}>
      <h2>Turn {entry.turn}</h2>
      {entry.events.length > 0 && (
        <ul class="events">
          {entry.events.map((event) => (
            <li key={event}>
              <Inert text={event} />
            </li>
          ))}
        </ul>
      )}
      <Touched run={run} actions={actions} />
      {run.has_logs ? (
        <Words at={at} id={id} turn={entry.turn} />
      ) : (
        <p class="quiet">To see what was said, start the viewer with --logs and what was analyzed.</p>
      )}
    </section>
  );
}

const LEADS = { needed: "", dead: ", leads nowhere", unjudged: ", not known where it leads" };

function Touched({ run, actions }: { run: RunView; actions: ActionRow[] }) {
  if (!actions.length) return <p class="quiet">No file was read or written.</p>;
  return (
    <ul class="touched">
      {actions.map((action, place) => (
        <li key={place} class={action.necessary ? "lit" : "dead"}>
          {action.kind} <Inert text={action.path} /> v{action.version}
          {action.tokens !== null && `, ${action.tokens.toLocaleString("en")} tokens`}
          {action.kind === "read" && action.carried_to !== null && `, carried to the write of turn ${action.carried_to}`}
          {LEADS[useOf(run, action)]}
        </li>
      ))}
    </ul>
  );
}

function Words({ at, id, turn }: { at: string; id: string; turn: number }) {
  const asked = { at, run: id, turn };
  const { data, error } = useAnswer("turn", asked);
  const [raw, setRaw] = useState(false);
  if (error) return <p class="fault">{error}</p>;
  if (!data || data.turn !== turn) return <p class="quiet">Reading the log…</p>;
  return (
    <>
      {data.broken && (
        <>
          <h3>
            {data.broken} just before; this took the context's place
          </h3>
          <Block text={data.carried || "(nothing)"} asked={asked} label="what was carried over" />
        </>
      )}
      {data.prompt && (
        <details>
          <summary>What the agent was told first</summary>
          <Block text={data.prompt} asked={asked} label="prompt" />
        </details>
      )}
      {data.text && <Block text={data.text} asked={asked} label="what the agent wrote" />}
      {data.calls.map((call, place) => (
        <div key={place} class="exchange">
          <h3>
            <Inert text={call.tool} />
            {call.failed && <span class="tag">failed</span>}
            {call.exit_code !== null && <span class="tag">exit code {call.exit_code}</span>}
          </h3>
          <Given call={call} asked={asked} />
          {call.output && <Block text={call.output} asked={asked} label="output" />}
          {call.full_output !== null && (
            <details>
              <summary>The whole output, before it was cut</summary>
              <Block text={call.full_output} asked={asked} label="whole output" />
            </details>
          )}
        </div>
      ))}
      <details open={raw} onToggle={(event) => setRaw(event.currentTarget.open)}>
        <summary>Raw log at this turn</summary>
        {raw && <Raw asked={asked} />}
      </details>
    </>
  );
}

// The arguments of a call; those that make an edit are shown as one difference.
function Given({ call, asked }: { call: LoggedCall; asked: { at: string; run: string; turn: number } }) {
  const edit = editOf(call);
  const plain = call.arguments.filter((argument) => !edit?.shown.includes(argument.name));
  return (
    <>
      {plain.map((argument) => (
        <Block key={argument.name} text={argument.value} asked={asked} label={`argument ${argument.name}`} />
      ))}
      {edit && <Diff lines={edit.lines} label="edit" />}
    </>
  );
}

function Raw({ asked }: { asked: { at: string; run: string; turn: number } }) {
  const { data, error } = useAnswer("source", asked);
  if (error) return <p class="fault">{error}</p>;
  if (!data) return <p class="quiet">Reading the log…</p>;
  return (
    <>
      <p class="quiet">
        <Inert text={data.source} />, line {data.line.toLocaleString("en")} of {data.lines_total.toLocaleString("en")}
      </p>
      <div class="raw scroll" tabIndex={0} role="region" aria-label="Raw log">
        {data.lines.map((line) => (
          <div key={line.number} class={line.here ? "line here" : "line"}>
            <span class="number">{line.number}</span>
            <span class="text">
              {line.before > 0 && <span class="cut">… {line.before.toLocaleString("en")} characters before</span>}
              <Inert text={line.text} />
              {line.after > 0 && <span class="cut">… {line.after.toLocaleString("en")} characters after</span>}
            </span>
          </div>
        ))}
      </div>
    </>
  );
}
