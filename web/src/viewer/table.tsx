// The table of runs: one page of rows at a time, sorted by a heading, filtered by the address.
import type { Facet, Field, Page } from "../documents";
import { go, linkTo, rowsAsked } from "./address";
import { useAnswer } from "./asking";
import { failureColor, outcomeColor } from "./failures";
import { Inert } from "./inert";
import { TermLink } from "./terms";
import { shown } from "./words";

const ROWS = 100;
// What the rows are, and what beside the run says where a row leads.
export interface RowKind {
  title: string;
  one: string;
  many: string;
  place: string[];
}
export const RUNS: RowKind = { title: "Runs", one: "run", many: "runs", place: [] };
export const COMPACTIONS: RowKind = { title: "Compactions", one: "compaction", many: "compactions", place: ["turn", "budget"] };
const ANY_SHARE = "1e-9"; // less than the share of one record

export function RunTable({ at, address, stamp, of = RUNS }: { at: string; address: URLSearchParams; stamp: string; of?: RowKind }) {
  const offset = Number(address.get("offset") ?? 0) || 0;
  const asked = { at, ...rowsAsked(address), offset, limit: ROWS };
  const { data, error, waiting } = useAnswer("runs", asked, stamp);
  if (error) return <p class="fault">{error}</p>;
  if (!data) return <p class="quiet">Reading {of.many}…</p>;
  return (
    <section aria-label={of.title} aria-busy={waiting}>
      <Filters page={data} address={address} many={of.many} />
      <p class="count" role="status">
        {data.matched === data.total
          ? `${data.total.toLocaleString("en")} ${data.total === 1 ? of.one : of.many}`
          : `${data.matched.toLocaleString("en")} of ${data.total.toLocaleString("en")} ${of.many}`}
      </p>
      {data.matched > 0 ? (
        <div class="scroll named" tabIndex={0} role="region" aria-label={`Table of ${of.many}`}>
          <Rows page={data} at={at} address={address} place={of.place} />
        </div>
      ) : (
        <p class="quiet">{data.total ? `No ${of.one} fits what is asked for; “All ${of.many}” takes the filters away.` : `No ${of.one} has ended yet.`}</p>
      )}
      <Pager page={data} />
    </section>
  );
}

function Rows({ page, at, address, place }: { page: Page; at: string; address: URLSearchParams; place: string[] }) {
  const fields = page.fields.filter((field) => field.shown);
  const [first] = fields;
  const sort = address.get("sort") ?? "";
  return (
    <table class="rows">
      <thead>
        <tr>
          {fields.map((field) => (
            <Heading key={field.key} field={field} sort={sort} />
          ))}
        </tr>
      </thead>
      <tbody>
        {page.rows.map((row, number) => {
          const name = String(row[first?.key ?? ""]);
          const to = { at, run: name, ...Object.fromEntries(place.map((key) => [key, String(row[key])])) };
          return (
            <tr key={place.length ? number : name}>
              {fields.map((field) => (
                <td key={field.key} class={field.kind === "text" ? "" : "figure"}>
                  {field === first ? (
                    <a href={linkTo(to)} onClick={(event) => follow(event, to)}>
                      <Inert text={name} />
                    </a>
                  ) : (
                    <>
                      {field.key === "failure" && row[field.key] && (
                        <span class="swatch" style={{ background: failureColor(String(row[field.key])) }} />
                      )}
                      <Inert text={shown(row[field.key], field.kind)} />
                    </>
                  )}
                </td>
              ))}
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}

function follow(event: MouseEvent, to: Record<string, string>): void {
  if (event.metaKey || event.ctrlKey || event.shiftKey || event.button) return;
  event.preventDefault();
  go(to, "push", true);
  scrollTo(0, 0);
}

function Heading({ field, sort }: { field: Field; sort: string }) {
  const direction = sort === field.key ? "ascending" : sort === `-${field.key}` ? "descending" : "none";
  const color = outcomeColor(field.key);
  const next = direction === "none" ? (field.kind === "text" ? field.key : `-${field.key}`) : reversed(sort, field);
  return (
    <th scope="col" aria-sort={direction} class={field.kind === "text" ? "" : "figure"}>
      <button type="button" title={field.meaning} onClick={() => go({ sort: next, offset: null }, "replace")}>
        {color && <span class="swatch" style={{ background: color }} />}
        {field.title}
        <span aria-hidden="true">{direction === "ascending" ? " ▲" : direction === "descending" ? " ▼" : ""}</span>
      </button>
      <TermLink name={field.key} title={field.title} />
    </th>
  );
}

// A third press takes the order away again.
function reversed(sort: string, field: Field): string | null {
  const first = field.kind === "text" ? field.key : `-${field.key}`;
  if (sort !== first) return null;
  return sort.startsWith("-") ? field.key : `-${field.key}`;
}

function Filters({ page, address, many }: { page: Page; address: URLSearchParams; many: string }) {
  const chosen = [...address.keys()].some((name) => /^(f|min|max)\.|^q$/.test(name));
  const facets = page.facets.filter((facet) => facet.distinct > 1 || address.has(`f.${facet.key}`));
  return (
    <form class="filters" onSubmit={(event) => event.preventDefault()} aria-label="Filters">
      <label>
        search
        <input
          type="search"
          name="q"
          value={address.get("q") ?? ""}
          onInput={(event) => go({ q: event.currentTarget.value || null, offset: null }, "replace")}
        />
      </label>
      {facets.map((facet) => (
        <Choice key={facet.key} facet={facet} chosen={address.get(`f.${facet.key}`) ?? ""} />
      ))}
      <OutcomeChoice outcomes={page.fields.filter((field) => outcomeColor(field.key))} address={address} />
      {chosen && (
        <button type="button" onClick={() => go(cleared(address), "replace")}>
          All {many}
        </button>
      )}
    </form>
  );
}

function Choice({ facet, chosen }: { facet: Facet; chosen: string }) {
  const known = facet.values.some((value) => value.label === chosen);
  return (
    <label>
      {facet.title}
      <select
        name={`f.${facet.key}`}
        value={chosen}
        onChange={(event) => go({ [`f.${facet.key}`]: event.currentTarget.value || null, offset: null }, "replace")}
      >
        <option value="">any</option>
        {chosen && !known && <option value={chosen}>{chosen} (0)</option>}
        {facet.values.map((value) => (
          <option key={value.label} value={value.label}>
            {value.label} ({value.rows.toLocaleString("en")})
          </option>
        ))}
      </select>
    </label>
  );
}

// Runs in which at least one record or answer had an outcome.
function OutcomeChoice({ outcomes, address }: { outcomes: Field[]; address: URLSearchParams }) {
  if (!outcomes.length) return null;
  const chosen = outcomes.find((outcome) => address.has(`min.${outcome.key}`))?.key ?? "";
  const choose = (key: string) => ({ ...(chosen ? { [`min.${chosen}`]: null } : {}), ...(key ? { [`min.${key}`]: ANY_SHARE } : {}), offset: null });
  return (
    <label>
      with the outcome
      <select name="outcome" value={chosen} onChange={(event) => go(choose(event.currentTarget.value), "replace")}>
        <option value="">any</option>
        {outcomes.map((outcome) => (
          <option key={outcome.key} value={outcome.key}>
            {outcome.title}
          </option>
        ))}
      </select>
    </label>
  );
}

function cleared(address: URLSearchParams): Record<string, null> {
  const names = [...address.keys()].filter((name) => /^(f|min|max)\.|^q$|^offset$/.test(name));
  return Object.fromEntries(names.map((name) => [name, null]));
}

function Pager({ page }: { page: Page }) {
  const last = Math.min(page.offset + ROWS, page.matched);
  if (page.matched <= ROWS && page.offset === 0) return null;
  const to = (offset: number) => () => {
    go({ offset: offset > 0 ? String(offset) : null });
    document.querySelector(".count")?.scrollIntoView();
  };
  return (
    <nav class="pager" aria-label="Pages">
      <button type="button" disabled={page.offset === 0} onClick={to(page.offset - ROWS)}>
        Earlier
      </button>
      <span>
        {(page.offset + 1).toLocaleString("en")} – {last.toLocaleString("en")}
      </span>
      <button type="button" disabled={last >= page.matched} onClick={to(page.offset + ROWS)}>
        Later
      </button>
    </nav>
  );
}
