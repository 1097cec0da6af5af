// The slider over steps or turns, and its arrow keys.
import { useLayoutEffect } from "preact/hooks";
import type { Cell } from "../documents";
import { go } from "./address";

export function Scrubber({ name, title, mark, at, last, marks }: { name: string; title: string; mark: string; at: number; last: number; marks: number[] }) {
  const move = (to: number) => go({ [name]: String(Math.min(last, Math.max(1, to))) }, "replace");
  // Before the step is shown: a key that is pressed as soon as it is seen must not start from the one before.
  useLayoutEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
      const to = target(event.key, at, last, marks);
      if (to === null) return;
      event.preventDefault();
      move(to);
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, [at, last, marks]);
  return (
    <div class="scrubber">
      <button type="button" aria-label={`earlier ${title}`} disabled={at <= 1} onClick={() => move(at - 1)}>
        ←
      </button>
      <label>
        {title} <strong>{at}</strong> of {last}
        <input
          type="range"
          min={1}
          max={last}
          value={at}
          aria-keyshortcuts="ArrowLeft ArrowRight Home End n p"
          onInput={(event) => move(Number(event.currentTarget.value))}
        />
      </label>
      <button type="button" aria-label={`later ${title}`} disabled={at >= last} onClick={() => move(at + 1)}>
        →
      </button>
      <span class="quiet">← → move; n and p: next and previous {mark}</span>
    </div>
  );
}

function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (target instanceof HTMLInputElement) return target.type !== "range";
  return target instanceof HTMLSelectElement || target instanceof HTMLTextAreaElement;
}

// Where a key leads from here; null for keys that lead nowhere.
export function target(key: string, at: number, last: number, marks: number[]): number | null {
  switch (key) {
    case "ArrowLeft":
      return Math.max(1, at - 1);
    case "ArrowRight":
      return Math.min(last, at + 1);
    case "Home":
      return 1;
    case "End":
      return last;
    case "n":
      return marks.find((mark) => mark > at) ?? at;
    case "p":
      return marks.findLast((mark) => mark < at) ?? at;
    default:
      return null;
  }
}

// A turn that a table names, and the way to it.
export function Turn({ turn }: { turn: Cell | Cell[] | undefined }) {
  if (typeof turn !== "number") return <>–</>;
  const move = () => {
    go({ turn: String(turn) }, "replace");
    document.querySelector(".scrubber")?.scrollIntoView();
  };
  return (
    <button type="button" class="plain link" onClick={move}>
      {turn}
    </button>
  );
}
