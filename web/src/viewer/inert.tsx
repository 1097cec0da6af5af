// Text that somebody else wrote: shown as plain text, never as markup, each piece in its own writing direction.
import { useState } from "preact/hooks";
import type { Text } from "../documents";
import { type Asked, ask } from "./api";

// Control characters, marks that turn the direction of text, and those that take no room at all.
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;

export interface Piece {
  text: string;
  mark: boolean;
}

// Split a text into what can be shown and names of what cannot.
export function pieces(text: string): Piece[] {
  const found: Piece[] = [];
  let end = 0;
  for (const match of text.matchAll(HIDDEN)) {
    if (match.index > end) found.push({ text: text.slice(end, match.index), mark: false });
    found.push({ text: nameOf(match[0].charCodeAt(0)), mark: true });
    end = match.index + match[0].length;
  }
  if (end < text.length) found.push({ text: text.slice(end), mark: false });
  return found;
}

const C0 = "NUL SOH STX ETX EOT ENQ ACK BEL BS HT LF VT FF CR SO SI DLE DC1 DC2 DC3 DC4 NAK SYN ETB CAN EM SUB ESC FS GS RS US".split(" ");

function nameOf(code: number): string {
  if (code < 0x20) return C0[code] ?? "";
  return `U+${code.toString(16).toUpperCase().padStart(4, "0")}`;
}

export function Inert({ text }: { text: string }) {
  return (
    <bdi>
      {pieces(text).map((piece) =>
        piece.mark ? (
          <span class="mark" title="a character that cannot be seen">
            {piece.text}
          </span>
        ) : (
          piece.text
        ),
      )}
    </bdi>
  );
}

// A sentence of eirkit's own, in which backticks mark commands and names.
export function Prose({ text }: { text: string }) {
  return (
    <>
      {text.split("`").map((part, place) =>
        place % 2 ? (
          <code key={place}>
            <Inert text={part} />
          </code>
        ) : (
          <Inert key={place} text={part} />
        ),
      )}
    </>
  );
}

// A block of text that may be long: its beginning, and more of it when asked for.
export function Block({ text, asked, label }: { text: Text; asked: Asked; label: string }) {
  const whole = typeof text === "string";
  const [more, setMore] = useState("");
  const [wait, setWait] = useState(false);
  const shown = (whole ? text : text.text) + more;
  const [next, setNext] = useState(whole ? 0 : text.next);
  const left = whole ? 0 : text.length - next;
  const fetchMore = async () => {
    if (whole) return;
    setWait(true);
    try {
      const found = await ask("text", { ...asked, part: text.part, offset: next });
      setMore(more + found.text);
      setNext(found.next);
    } finally {
      setWait(false);
    }
  };
  return (
    <div class="block">
      {/* Scrolling regions must be reachable by keyboard. */}
      <pre tabIndex={0} role="region" aria-label={label}>
        <Inert text={shown} />
      </pre>
      {left > 0 && (
        <button type="button" onClick={fetchMore} disabled={wait}>
          Show more ({left.toLocaleString("en")} characters left)
        </button>
      )}
    </div>
  );
}
