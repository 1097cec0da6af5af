// Why a step is wrong: what became of everything that its answer needed, and failures like it.
import { linkTo } from "./address";
import type { CardInput, LacunaRun, StepDetails } from "../documents";
import { useAnswer } from "./asking";
import { failureColor } from "./failures";
import { Inert } from "./inert";
import { label } from "../measures";

export function Why({ at, run, more }: { at: string; run: LacunaRun; more: StepDetails }) {
  const { card } = more;
  if (!card || card.correct) return null;
  return (
    <section class="why" aria-label="Why it is wrong">
      <h3>Why it is wrong</h3>
      <ul>
        {card.sentences.slice(1).map((sentence) => (
          <li key={sentence}>
            <Inert text={sentence} />
          </li>
        ))}
      </ul>
      {card.inputs.map((input, place) => (
        <Needed key={place} at={at} run={run.run} input={input} />
      ))}
      <Alike at={at} run={run} t={more.t} />
    </section>
  );
}

function Needed({ at, run, input }: { at: string; run: string; input: CardInput }) {
  return (
    <div class="needed-input">
      <h4>
        {input.step === null ? <Inert text={input.name} /> : <a href={linkTo({ at, run, t: String(input.step) })}>{input.name}</a>}
        {input.outcome && (
          <span class="outcome">
            <span class="swatch" style={{ background: failureColor(label(input.outcome)) }} /> {label(input.outcome)}
          </span>
        )}
      </h4>
      <dl class="pairs">
        {input.lines.map(([about, text]) => (
          <div key={about + text}>
            <dt>{about}</dt>
            <dd>
              <Inert text={text} />
            </dd>
          </div>
        ))}
      </dl>
    </div>
  );
}

function Alike({ at, run, t }: { at: string; run: LacunaRun; t: number }) {
  const { data } = useAnswer("similar", { at, run: run.run, t });
  const found = data?.similar;
  if (!found) return null;
  return (
    <p class="alike">
      <Inert text={found.sentence} />
      {found.examples.length > 0 && " Look at "}
      {found.examples.map((one, place) => (
        <>
          {place > 0 && ", "}
          <a key={one.run} href={linkTo({ at, run: one.run, t: String(one.t) })}>
            {run.units.step} {one.t} of <Inert text={one.run} />
          </a>
        </>
      ))}
      {found.examples.length > 0 && "."}
    </p>
  );
}
