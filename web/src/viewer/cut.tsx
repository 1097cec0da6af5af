// One cut of a run line by line: which lines later work needed, and beside each line which compactors kept it.
import { label } from "../measures";
import { go } from "./address";
import type { CutCompactor, CutContext, CutLine, CutPart } from "../documents";
import { useAnswer } from "./asking";
import { Inert } from "./inert";
import { Legend } from "./legend";
import { shown } from "./words";

const LINES: [value: string, words: string][] = [
  ["needed", "needed lines"],
  ["lost", "needed lines that some dropped"],
  ["all", "all lines"],
];
const PAGE = 1000; // lines that the server sends at a time

export function CutPage({ at, run, address, stamp }: { at: string; run: string; address: URLSearchParams; stamp: string }) {
  const [turn, budget, lines, offset] = [address.get("turn") ?? "0", address.get("budget") ?? "0", address.get("lines") ?? "needed", address.get("offset") ?? "0"];
  const { data, error, waiting } = useAnswer("cut", { at, run, turn, budget, lines, offset }, stamp);
  if (error) return <p class="fault">{error}</p>;
  if (!data) return <p class="quiet">Reading the cut…</p>;
  const chosen = data.compactors.findIndex((one) => one.name === address.get("compactor"));
  const places = chosen < 0 ? data.compactors.map((_, place) => place) : [chosen];
  return (
    <section aria-label="One cut" aria-busy={waiting}>
      <p>
        Before turn {data.turn} the context had {data.context_tokens.toLocaleString("en")} tokens. Later work needed{" "}
        {data.needed_lines.toLocaleString("en")} of its lines, {data.needed_tokens.toLocaleString("en")} tokens.
      </p>
      <Choices cut={data} lines={lines} chosen={data.compactors[chosen]?.name ?? ""} />
      <Compactors all={data.compactors} chosen={chosen} />
      <Legend
        keys={[
          ["line-needed", "needed"],
          ["line-kept", label("line_kept")],
          ["line-dropped", label("line_dropped")],
          ["line-other", "● kept, ○ dropped, not needed"],
        ]}
      />
      {data.missing && <p class="inexact">Only needed lines are shown: <Inert text={data.missing} />.</p>}
      {data.matched > 0 ? <Text cut={data} places={places} /> : <p class="quiet">No line is like that; choose other lines.</p>}
      <Pager cut={data} />
    </section>
  );
}

function Choices({ cut, lines, chosen }: { cut: CutContext; lines: string; chosen: string }) {
  const names: [string, string][] = cut.compactors.map((one) => [one.name, one.name]);
  return (
    <form class="filters" onSubmit={(event) => event.preventDefault()} aria-label="What is shown">
      <Choice name="turn" title="cut before turn" value={String(cut.turn)} values={cut.turns.map((turn) => [String(turn), String(turn)])} />
      <Choice name="budget" title="budget" value={String(cut.budget)} values={cut.budgets.map((one) => [String(one), `${one.toLocaleString("en")} tokens`])} />
      <Choice name="compactor" title="compactor" value={chosen} values={[["", "all, side by side"], ...names]} />
      <Choice name="lines" title="lines" value={lines} values={LINES} />
    </form>
  );
}

function Choice({ name, title, value, values }: { name: string; title: string; value: string; values: [string, string][] }) {
  return (
    <label>
      {title}
      <select name={name} value={value} onChange={(event) => go({ [name]: event.currentTarget.value || null, offset: null }, "replace")}>
        {values.map(([one, words]) => (
          <option key={one} value={one}>
            {words}
          </option>
        ))}
      </select>
    </label>
  );
}

function Compactors({ all, chosen }: { all: CutCompactor[]; chosen: number }) {
  return (
    <ol class="compactors">
      {all.map((one, place) => (
        <li key={one.name}>
          <button type="button" class="plain" aria-pressed={place === chosen} onClick={() => go({ compactor: place === chosen ? null : one.name }, "replace")}>
            <Inert text={one.name} />
          </button>{" "}
          <span class="quiet">
            {one.status === "ok" ? (
              `kept ${shown(one.kept_share, "share")} of what was needed in ${one.used_tokens.toLocaleString("en")} tokens`
            ) : (
              <>
                failed, {one.status}: <Inert text={one.reason} />
              </>
            )}
          </span>
        </li>
      ))}
    </ol>
  );
}

function Text({ cut, places }: { cut: CutContext; places: number[] }) {
  return (
    <table class={places.length === 1 ? "cut single" : "cut"}>
      <thead>
        <tr>
          <th scope="col">line</th>
          {places.map((place) => (
            <th key={place} scope="col" title={cut.compactors[place]?.name ?? ""}>
              <span aria-hidden="true">{place + 1}</span>
              <span class="unseen">
                <Inert text={cut.compactors[place]?.name ?? ""} />
              </span>
            </th>
          ))}
        </tr>
      </thead>
      {cut.parts.map((part, number) => (
        <Part key={number} part={part} places={places} />
      ))}
    </table>
  );
}

function Part({ part, places }: { part: CutPart; places: number[] }) {
  return (
    <tbody>
      <tr>
        <th scope="rowgroup" colSpan={places.length + 1}>
          <Inert text={part.title} />
        </th>
      </tr>
      {part.lines.map((line, number) => (
        <Line key={number} line={line} places={places} />
      ))}
    </tbody>
  );
}

function Line({ line, places }: { line: CutLine; places: number[] }) {
  const all = places.every((place) => line.kept[place] === "1");
  return (
    <tr class={`${line.needed ? "needed" : "other"} ${all ? "stays" : "goes"}`}>
      <td class="line">
        <Inert text={line.text} />
      </td>
      {places.map((place) => {
        const kept = line.kept[place] === "1";
        return (
          <td key={place} class={kept ? "kept" : "dropped"}>
            <span role="img" aria-label={kept ? "kept" : "dropped"}>
              {kept ? "●" : "○"}
            </span>
          </td>
        );
      })}
    </tr>
  );
}

function Pager({ cut }: { cut: CutContext }) {
  if (cut.matched <= PAGE && cut.offset === 0) return null;
  const last = Math.min(cut.offset + PAGE, cut.matched);
  const to = (offset: number) => () => {
    go({ offset: offset > 0 ? String(offset) : null });
    scrollTo(0, 0);
  };
  return (
    <nav class="pager" aria-label="Lines">
      <button type="button" disabled={cut.offset === 0} onClick={to(cut.offset - PAGE)}>
        Earlier
      </button>
      <span>
        lines {(cut.offset + 1).toLocaleString("en")} – {last.toLocaleString("en")} of {cut.matched.toLocaleString("en")}
      </span>
      <button type="button" disabled={last >= cut.matched} onClick={to(cut.offset + PAGE)}>
        Later
      </button>
    </nav>
  );
}
