// What can be said about the viewer without a browser: texts stay texts, keys lead where they should, addresses keep.
import { render } from "preact";
import { beforeEach, describe, expect, it } from "vitest";
import { measuresOf } from "../src/measures";
import { actionPicture } from "../src/viewer/actions";
import type { Field, FieldKind, ActionRow, BreakCost, Page, RunRow, RunView, Step } from "../src/documents";
import { addressOf } from "../src/viewer/api";
import { Breaks, breakFigures } from "../src/viewer/breaks";
import { go, readAddress, rowsAsked } from "../src/viewer/address";
import { diffLines, editOf } from "../src/viewer/diff";
import { cellWords } from "../src/viewer/heat";
import { Block, Inert, pieces } from "../src/viewer/inert";
import { wholeTicks } from "../src/viewer/picture";
import { keysOf } from "../src/viewer/lacuna";
import { target } from "../src/viewer/scrub";
import { answerOf } from "../src/viewer/static";
import { Headline } from "../src/viewer/vestige";
import { capital, counted, sentence, shown, verdictOf } from "../src/viewer/words";

const HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>\u001b[31mred \u202egnp.exe\u202c\u200b\u0000";

describe("texts of others", () => {
  it("become text nodes, never elements", () => {
    const place = document.createElement("div");
    render(<Inert text={HOSTILE} />, place);
    expect(place.querySelector("script, img")).toBeNull();
    expect(place.textContent).toContain("<script>alert(1)</script><img src=x onerror=alert(2)>");
  });

  it("have their own direction, and marks that cannot be seen are named", () => {
    const place = document.createElement("div");
    render(<Inert text={HOSTILE} />, place);
    expect(place.firstElementChild?.tagName).toBe("BDI");
    expect([...place.querySelectorAll(".mark")].map((mark) => mark.textContent)).toEqual(["ESC", "U+202E", "U+202C", "U+200B", "NUL"]);
    expect(place.textContent).not.toMatch(/[\u0000\u001b\u202e\u202c\u200b]/);
  });

  it("lose nothing: what is shown and what is named stand for every character", () => {
    for (let code = 0; code < 0x2100; code++) {
      const text = `a${String.fromCharCode(code)}b`;
      const found = pieces(text);
      const whole = found.map((piece) => (piece.mark ? "?" : piece.text)).join("");
      expect(whole.length).toBe(3);
      expect(found[0]?.text.startsWith("a")).toBe(true);
    }
    expect(pieces("line\none\ttab")).toEqual([{ text: "line\none\ttab", mark: false }]);
  });

  it("say how much of them is not shown yet", () => {
    const place = document.createElement("div");
    render(<Block text={{ text: "abc", length: 10, next: 3, part: "reply" }} asked={{}} label="reply" />, place);
    expect(place.querySelector("button")?.textContent).toContain("7 characters left");
    render(<Block text="abc" asked={{}} label="reply" />, place);
    expect(place.querySelector("button")).toBeNull();
  });

  it("count what is left as the server does, whatever takes two units here", () => {
    const place = document.createElement("div");
    render(<Block text={{ text: "😀😀😀", length: 10, next: 3, part: "reply" }} asked={{}} label="reply" />, place);
    expect(place.querySelector("button")?.textContent).toContain("7 characters left");
  });
});

describe("keys", () => {
  it("move by one, to the ends, and between marks", () => {
    const marks = [3, 7];
    expect(["ArrowLeft", "ArrowRight", "Home", "End", "n", "p", "x"].map((key) => target(key, 5, 9, marks))).toEqual([4, 6, 1, 9, 7, 3, null]);
  });

  it("stop at the ends", () => {
    expect(target("ArrowLeft", 1, 9, [])).toBe(1);
    expect(target("ArrowRight", 9, 9, [])).toBe(9);
    expect(target("n", 5, 9, [])).toBe(5);
    expect(target("p", 5, 9, [])).toBe(5);
  });
});

describe("the address", () => {
  beforeEach(() => go({}, "replace", true));

  it("keeps filters, and forgets the token", () => {
    history.replaceState(null, "", "?token=secret&at=sweep&f.model=a%2Fb&f.h=4&sort=-accuracy&q=x&t=3");
    go({ "f.h": null, t: "4" }, "replace");
    expect(readAddress().has("token")).toBe(false);
    expect(rowsAsked(readAddress())).toEqual({ "f.model": ["a/b"], sort: ["-accuracy"], q: ["x"] });
    expect(readAddress().get("t")).toBe("4");
  });

  it("asks the server for several values of one name", () => {
    expect(addressOf("runs", { at: "a/b", "f.h": ["4", "8"], sort: undefined, offset: 0 })).toBe("api/runs?at=a%2Fb&f.h=4&f.h=8&offset=0");
  });
});

describe("words", () => {
  it("show figures as people read them", () => {
    expect([shown(0.5, "share"), shown(null, "number"), shown(12345, "number"), shown(true, "flag"), shown(0.12345, "number")]).toEqual(["50.0%", "–", "12,345", "yes", "0.1235"]);
  });

  it("say why a step is wrong", () => {
    const step: Step = { t: 1, refs: [], submitted: [1], correct: false, cause: "cascade", why: "propagated" };
    expect(verdictOf(step)).toBe("cascade");
    expect(sentence(step, "step")).toBe("Wrong: carried-over error; the answer follows from earlier wrong answers.");
    expect(sentence({ ...step, cause: null, correct: true }, "step")).toBe("Correct.");
    expect(sentence({ t: 1, refs: [] }, "question")).toBe("No answer is asked of this question here.");
    expect([counted(1, "answer"), counted(2, "answer"), capital("question")]).toEqual(["1 answer", "2 answers", "Question"]);
  });
});

describe("compactions and clears", () => {
  const dropped = { live_tokens: 4100, dropped_tokens: 2940, reread_tokens: 2010, reread_dropped_tokens: 1950, overwritten_tokens: 40, never_reread_tokens: 950, unknown_tokens: 120 };
  const rows = [
    { cut: 5, kind: "compaction", measured: true, ...dropped },
    { cut: 9, kind: "clear", measured: true, ...dropped, live_tokens: 3000, dropped_tokens: 2000, reread_dropped_tokens: 1010 },
    { cut: 12, kind: "clear", measured: false, ...Object.fromEntries(Object.keys(dropped).map((name) => [name, 0])) },
  ];
  const table = (some: typeof rows) => {
    const place = document.createElement("div");
    render(<Breaks rows={some as unknown as BreakCost[]} />, place);
    const cells = [...place.querySelectorAll("tr")].map((row) => [...row.children].map((cell) => cell.textContent));
    return { cells, text: place.textContent ?? "" };
  };
  const figure = (text: string | null | undefined) => Number((text ?? "").replaceAll(",", ""));

  it("have the columns of the terminal, and three of them add up to what was not carried", () => {
    const [head, ...body] = table(rows).cells;
    expect(head).toEqual(["what", "turn", ...measuresOf("breaks").map((sum) => sum.label)]);
    expect(body[0]).toEqual(["compaction", "5", "4,100", "2,940", "1,950", "40", "950", "120"]);
    for (const row of [body[0], body[1]]) expect(row?.slice(4, 7).map(figure).reduce((sum, one) => sum + one)).toBe(figure(row?.[3]));
    expect(body.at(-1)).toEqual(["together", "7,100", "4,940", "2,960", "80", "1,900", "240"]);
  });

  it("show no figures of what was not measured", () => {
    const { cells, text } = table(rows);
    expect(cells[3]).toEqual(["clear", "12", "–", "–", "–", "–", "–", "–"]);
    expect(text).toContain("Not measured: 1 of 3");
    expect(table(rows.slice(0, 1)).text).not.toMatch(/Not measured|together/);
  });

  it("are summed for an analysis as its own page does", () => {
    const sums = { compactions: 1, clears: 2, manual_compactions: 0, automatic_compactions: 1, ...dropped, unmeasured: 1 };
    expect(breakFigures(sums).map(([, value]) => value)).toEqual(["1 / 2", "1 of 3: no file was used", "4,100 tokens", "2,940 tokens", "1,950 tokens", "40 tokens", "950 tokens", "120 tokens"]);
    expect(breakFigures({ ...sums, unmeasured: 3 }).length).toBe(2);
  });
});

describe("reads in vain", () => {
  const action = (turn: number, kind: ActionRow["kind"], necessary: boolean, judged: boolean): ActionRow => ({ turn, kind, path: `${turn}.py`, version: 1, tokens: 9, repeat_tokens: 0, necessary, judged, sink: false, carried_to: null });
  // Three reads lead to the goal, two to nothing; of four it is not known, as the run was cut before its goal.
  const actions = [
    ...[1, 2, 3].map((turn) => action(turn, "read", true, true)),
    ...[4, 5].map((turn) => action(turn, "read", false, true)),
    ...[6, 7, 8, 9].map((turn) => action(turn, "read", false, false)),
    action(10, "write", false, true),
  ];
  const runOf = (row: Partial<RunRow>) => ({ run: { unit: "tokens", reads: 9, dead_reads: 2, goal_files: [], ...row }, goal: [], answer: [], actions, clips: [], turns: actions.map(({ turn }) => ({ turn })) }) as unknown as RunView;
  const drawn = (run: RunView) => {
    const groups = [...actionPicture(run, 1, 800, () => {}).querySelectorAll('g[aria-label="dot"]')];
    return groups.filter((group) => group.getAttribute("fill") === "var(--faint)").map((group) => group.querySelectorAll("path, circle").length);
  };
  const told = (run: RunView) => {
    const place = document.createElement("div");
    render(<Headline run={run} />, place);
    return /reads in vain\s*(\S+ of \d+)/.exec(place.textContent ?? "")?.[1];
  };

  it("are as many as the dots of dead reads", () => {
    const run = runOf({ goal_accessed: true });
    expect(told(run)).toBe("2 of 9");
    expect(drawn(run)).toEqual([2, 1]); // reads, and the write
  });

  it("are not drawn where none are counted", () => {
    const run = runOf({ goal_accessed: false });
    expect(told(run)).toBe("– of 9");
    expect(drawn(run).reduce((sum, dots) => sum + dots, 0)).toBe(0);
  });
});

describe("the heat map", () => {
  it("says once what all cells are means of", () => {
    const cell = (over: string) => ({ over });
    expect(cellWords([cell("3 runs over 3 seeds"), cell("3 runs over 3 seeds")])).toBe("Every cell: 3 runs over 3 seeds.");
    expect(cellWords([cell("3 runs over 3 seeds"), cell("2 runs over 2 seeds")])).toBe("Cells: 3 runs over 3 seeds; or 2 runs over 2 seeds.");
    expect(cellWords([1, 2, 3, 4].map((runs) => cell(`${runs} runs`)))).toContain("under the pointer");
  });
});

describe("an edit", () => {
  const call = (given: Record<string, string>) => ({ arguments: Object.entries(given).map(([name, value]) => ({ name, value })) });
  const drawn = (given: Record<string, string>) => editOf(call(given))?.lines.map((line) => `${line.kind} ${line.text}`);

  it("keeps the lines that both texts share", () => {
    expect(drawn({ file_path: "a", old_string: "x\ny\nz", new_string: "x\nw\nz\nv" })).toEqual(["same x", "taken y", "put w", "same z", "put v"]);
    expect(drawn({ edits: JSON.stringify([{ old_string: "x", new_string: "y" }]) })).toEqual(["place edit 1", "taken x", "put y"]);
  });

  it("is found in a patch, and not in a list with dashes", () => {
    expect(drawn({ input: "*** Begin Patch\n@@ def f\n-x\n+y\n z" })).toEqual(["place *** Begin Patch", "place @@ def f", "taken x", "put y", "same z"]);
    expect(drawn({ content: "--- a\n- one\n- two" })).toBeUndefined();
    expect(drawn({ edits: "[1]" })).toBeUndefined();
  });

  it("can be undone and done from its lines", () => {
    const [before, after] = ["a b c a b b a".split(" ").join("\n"), "c b a b a c".split(" ").join("\n")];
    const lines = diffLines(before, after);
    const side = (kind: string) => lines.filter((line) => line.kind === "same" || line.kind === kind).map((line) => line.text).join("\n");
    expect([side("taken"), side("put")]).toEqual([before, after]);
    expect(lines.filter((line) => line.kind === "same").length).toBe(4); // the longest common subsequence, by hand: b a b a
  });
});

describe("a copy without a server", () => {
  const rows = [
    { run: "a", model: "x", h: 2, accuracy: 0.5 },
    { run: "b", model: "y", h: 4, accuracy: null },
    { run: "c", model: "x", h: 4, accuracy: 0.9 },
  ];
  const field = (key: string, kind: FieldKind): Field => ({ key, title: key, kind, meaning: "", facet: true, shown: true, part: "result", order: [] });
  const page = { fields: [field("run", "text"), field("model", "text"), field("h", "number"), field("accuracy", "share")], rows, matched: 3, total: 3, offset: 0, facets: [] };
  const copy = { answers: { "api/run?at=x&run=a+b%2Fc%7E*": { kind: "lacuna" }, "api/step?at=x": { error: "gone" } }, runs: { x: page } };
  const runs = (query: string) => (answerOf(copy, `api/runs?at=x${query}`) as Page).rows.map((row) => row["run"]).join("");

  it("filters, sorts and pages rows as the server does", () => {
    expect(runs("")).toBe("abc");
    expect(runs("&f.model=x&f.h=4")).toBe("c");
    expect(runs("&min.accuracy=0.6")).toBe("c");
    expect(runs("&f.accuracy=–")).toBe("b");
    expect(runs("&q=Y")).toBe("b");
    expect([runs("&sort=-accuracy"), runs("&sort=accuracy"), runs("&sort=-run")]).toEqual(["cab", "acb", "cba"]);
    expect(runs("&offset=1&limit=1")).toBe("b");
  });

  it("finds an answer whatever the order of what is asked, and says where it has none", () => {
    expect(answerOf(copy, addressOf("run", { run: "a b/c~*", at: "x" }))).toEqual({ kind: "lacuna" });
    expect(() => answerOf(copy, "api/step?at=x")).toThrow("gone");
    expect(() => answerOf(copy, "api/turn?at=x")).toThrow("eirkit view");
  });
});

describe("ticks", () => {
  it("are whole, and few where there is little room", () => {
    expect(wholeTicks(1, 97, 1000).length).toBeGreaterThan(wholeTicks(1, 97, 200).length);
    for (const room of [10, 100, 200, 400, 1000]) {
      const ticks = wholeTicks(1, 97, room);
      expect(ticks.every(Number.isInteger)).toBe(true);
      expect(ticks.length).toBeLessThanOrEqual(Math.max(3, room / 32 + 1));
    }
  });
});

describe("the legend of a run", () => {
  it("has the causes that occur in it", () => {
    const steps = [{ t: 1, correct: true }, { t: 2, correct: false, cause: "cascade" }] as unknown as Step[];
    const of = (family: string) => keysOf({ steps, task: { family } } as unknown as Parameters<typeof keysOf>[0]).map(([look]) => look);
    expect(of("conversations")).toEqual(["correct", "cascade"]);
    expect(of("numbers")).toEqual(["correct", "cascade", "cone"]);
  });
});
