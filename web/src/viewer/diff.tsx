// An edit of a file as removed and added lines, with the lines around them.
import type { LoggedCall } from "../documents";
import { Inert } from "./inert";

export type DiffLine = { kind: "same" | "taken" | "put" | "place"; text: string };

const MOST_PAIRS = 1_000_000; // of lines that are compared; beyond it the old text stands before the new one
const TAKEN = ["old_string", "old_str", "oldText", "old_text", "search"];
const PUT = ["new_string", "new_str", "newText", "new_text", "replace"];

// The edits of a call as lines, with the names of the arguments that they show; null for a call that edits nothing.
export function editOf(call: Pick<LoggedCall, "arguments">): { lines: DiffLine[]; shown: string[] } | null {
  const given = new Map(call.arguments.flatMap(({ name, value }) => (typeof value === "string" ? [[name, value] as const] : [])));
  const [taken, put] = [TAKEN, PUT].map((names) => names.find((one) => given.has(one)));
  if (taken && put) return { lines: diffLines(given.get(taken) ?? "", given.get(put) ?? ""), shown: [taken, put] };
  const several = editsIn(given.get("edits"));
  if (several) return { lines: several, shown: ["edits"] };
  const patch = [...given].find(([, text]) => isPatch(text));
  return patch ? { lines: patchLines(patch[1]), shown: [patch[0]] } : null;
}

// A list of edits, as JSON.
function editsIn(text: string | undefined): DiffLine[] | null {
  try {
    const edits: unknown = JSON.parse(text ?? "");
    if (!Array.isArray(edits) || !edits.length) return null;
    const found = edits.map((edit: Record<string, unknown>) => [TAKEN, PUT].map((names) => names.map((name) => edit[name]).find((one) => typeof one === "string")));
    if (found.some(([taken, put]) => taken === undefined || put === undefined)) return null;
    return found.flatMap(([taken, put], place) => [{ kind: "place" as const, text: `edit ${place + 1}` }, ...diffLines(String(taken), String(put))]);
  } catch {
    return null; // not JSON, or not a list of objects
  }
}

export function isPatch(text: string): boolean {
  return /^(@@ |\*\*\* Begin Patch|diff --git )/m.test(text) && /^[+-]/m.test(text);
}

// A patch as it is written, each line by its first letter.
export function patchLines(text: string): DiffLine[] {
  return text.split("\n").map((line) => {
    if (/^(@@|\*\*\*|diff |index |--- |\+\+\+ )/.test(line)) return { kind: "place", text: line };
    if (line.startsWith("+")) return { kind: "put", text: line.slice(1) };
    if (line.startsWith("-")) return { kind: "taken", text: line.slice(1) };
    return { kind: "same", text: line.startsWith(" ") ? line.slice(1) : line };
  });
}

// The difference of two texts by lines, with as many lines in common as there can be.
export function diffLines(before: string, after: string): DiffLine[] {
  const [a, b] = [before.split("\n"), after.split("\n")];
  if (a.length * b.length > MOST_PAIRS) return [...all("taken", a), ...all("put", b)];
  const width = b.length + 1;
  const common = new Uint32Array((a.length + 1) * width);
  const at = (i: number, j: number) => common[i * width + j] ?? 0;
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      common[i * width + j] = a[i] === b[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
    }
  }
  const lines: DiffLine[] = [];
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      lines.push({ kind: "same", text: a[i++] ?? "" });
      j++;
    } else if (i < a.length && (j === b.length || at(i + 1, j) >= at(i, j + 1))) lines.push({ kind: "taken", text: a[i++] ?? "" });
    else lines.push({ kind: "put", text: b[j++] ?? "" });
  }
  return lines;
}

function all(kind: DiffLine["kind"], texts: string[]): DiffLine[] {
  return texts.map((text) => ({ kind, text }));
}

const SIGNS = { same: " ", taken: "−", put: "+", place: " " };

export function Diff({ lines, label }: { lines: DiffLine[]; label: string }) {
  const count = (kind: DiffLine["kind"]) => lines.filter((line) => line.kind === kind).length;
  return (
    <div class="block">
      <p class="quiet">
        {label}: lines taken out {count("taken")}, put in {count("put")}
      </p>
      <pre class="diff" tabIndex={0} role="region" aria-label={label}>
        {lines.map((line, place) => (
          <div key={place} class={line.kind}>
            {SIGNS[line.kind]} <Inert text={line.text} />
          </div>
        ))}
      </pre>
    </div>
  );
}
