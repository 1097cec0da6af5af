// Answers requests of an exported copy of the viewer from files, without a server; filters and sorts rows itself.
import type { Cell, Field, Page } from "../documents";

type Row = Page["rows"][number];

export interface StaticCopy {
  answers: Record<string, unknown>; // by address, parameters sorted
  runs: Record<string, Page>; // of each folder, all of its rows
}

declare global {
  var eirkitStatic: StaticCopy | undefined;
}

export function isStatic(): boolean {
  return globalThis.eirkitStatic !== undefined;
}

// The answer that was written beforehand.
export function answerOf(copy: StaticCopy, address: string): unknown {
  const [path = "", text = ""] = address.split("?");
  const asked = new URLSearchParams(text);
  const at = asked.get("at") ?? "";
  if (path === "api/runs" && copy.runs[at]) return rowsOf(copy.runs[at], asked);
  if (path === "api/grid") for (const name of [...asked.keys()]) if (/^(f|min|max)\.|^q$/.test(name)) asked.delete(name);
  asked.sort();
  const found = copy.answers[`${path}?${asked}`] as { error?: string } | undefined;
  if (found?.error) throw new Error(found.error);
  if (found === undefined) throw new Error("this copy without a server does not hold that; run `eirkit view` on a folder of your own");
  return found;
}

function rowsOf(page: Page, asked: URLSearchParams): Page {
  const kept = page.rows.filter((row) => [...asked].every(([name, value]) => fits(row, page.fields, name, value)));
  const sort = asked.get("sort") ?? "";
  const rows = sort ? sorted(kept, sort.replace(/^-/, ""), sort.startsWith("-")) : kept;
  const offset = Number(asked.get("offset") ?? 0);
  return { ...page, rows: rows.slice(offset, offset + Number(asked.get("limit") ?? rows.length)), matched: rows.length, offset };
}

function fits(row: Row, fields: Field[], name: string, value: string): boolean {
  const [kind = "", key = ""] = [name.split(".")[0], name.slice(name.indexOf(".") + 1)];
  const cell = row[key];
  if (kind === "f") return !(key in row) || labelOf(cell) === value; // what all rows share is in none of them
  if (kind === "min") return typeof cell === "number" && cell >= Number(value);
  if (kind === "max") return typeof cell === "number" && cell <= Number(value);
  if (name !== "q") return true;
  return fields.some((field) => field.kind === "text" && String(row[field.key] ?? "").toLowerCase().includes(value.toLowerCase()));
}

function labelOf(cell: Cell | undefined): string {
  if (cell === null || cell === undefined || cell === "") return "–";
  return typeof cell === "boolean" ? (cell ? "yes" : "no") : String(cell);
}

// Missing values stand last in either direction.
function sorted(rows: Row[], key: string, descending: boolean): Row[] {
  const rank = (cell: Cell | undefined) => (typeof cell === "boolean" ? Number(cell) : cell);
  return [...rows].sort((a, b) => {
    const [x, y] = [rank(a[key]), rank(b[key])];
    const gone = (cell: unknown) => cell === null || cell === undefined || cell === "";
    if (gone(x) || gone(y)) return Number(gone(x)) - Number(gone(y));
    const order = typeof x === "number" && typeof y === "number" ? x - y : String(x) < String(y) ? -1 : Number(String(x) > String(y));
    return descending ? -order : order;
  });
}
