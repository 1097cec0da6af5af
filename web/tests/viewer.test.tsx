// What can be said about the viewer without a browser: texts stay texts, keys lead where they should, addresses keep.
import { render } from "preact";
import { beforeEach, describe, expect, it } from "vitest";
import type { Step } from "../src/viewer/api";
import { addressOf } from "../src/viewer/api";
import { go, readAddress, rowsAsked } from "../src/viewer/address";
import { Block, Inert, pieces } from "../src/viewer/inert";
import { target } from "../src/viewer/scrub";
import { sentence, shown, verdictOf } from "../src/viewer/words";

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
    expect(sentence(step)).toBe("Wrong: cascade; it follows from the agent's own earlier wrong answers.");
    expect(sentence({ ...step, cause: null, correct: true })).toBe("Correct.");
  });
});
