// Reads and writes the address of the page, which holds the whole state of the viewer: folder, run, step, filters.
import { useEffect, useState } from "preact/hooks";
import { isStatic } from "./static";

const MOVED = "eirkit-moved";
let last = ""; // of a static copy, whose address stands behind #, where an anchor of the page may stand too

export function readAddress(): URLSearchParams {
  if (!isStatic()) return new URLSearchParams(location.search);
  const own = location.hash.slice(1);
  if (!own || own.includes("=")) last = own;
  return new URLSearchParams(last);
}

// Go somewhere else; values that are null leave the address. Scrubbing replaces, everything else can be gone back to.
export function go(changes: Record<string, string | string[] | null>, how: "push" | "replace" = "push", fresh = false): void {
  const query = fresh ? new URLSearchParams() : readAddress();
  for (const [name, value] of Object.entries(changes)) {
    query.delete(name);
    for (const one of value === null ? [] : Array.isArray(value) ? value : [value]) query.append(name, one);
  }
  query.delete("token");
  if (isStatic()) {
    if (how === "push") location.hash = query.toString();
    else location.replace(`#${query}`);
    dispatchEvent(new Event(MOVED));
    return;
  }
  const address = query.size ? `?${query}` : "./";
  if (how === "push") history.pushState(null, "", address);
  else history.replaceState(null, "", address);
  dispatchEvent(new Event(MOVED));
}

// The address of a place, for links that work with the middle button too.
export function linkTo(changes: Record<string, string>): string {
  return `${isStatic() ? "#" : "?"}${new URLSearchParams(changes)}`;
}

// The address of the first page.
export function linkHome(): string {
  return isStatic() ? "#" : "./";
}

// The report of a folder, which the server makes; its rows lead back here.
export function reportOf(at: string, anchor = ""): string {
  const page = isStatic() ? `report-${at}.html` : `report?${new URLSearchParams({ at })}`;
  return `${page}${anchor && `#${anchor}`}`;
}

export function useAddress(): URLSearchParams {
  const [address, setAddress] = useState(readAddress);
  useEffect(() => {
    const move = () => setAddress(readAddress());
    addEventListener("popstate", move);
    addEventListener("hashchange", move);
    addEventListener(MOVED, move);
    if (readAddress().toString() !== address.toString()) move(); // it changed before anybody listened
    return () => {
      removeEventListener("popstate", move);
      removeEventListener("hashchange", move);
      removeEventListener(MOVED, move);
    };
  }, []);
  return address;
}

// Everything that chooses rows: filters, bounds, words and order.
export function rowsAsked(address: URLSearchParams): Record<string, string | string[]> {
  const asked: Record<string, string | string[]> = {};
  for (const name of new Set(address.keys())) {
    if (/^(f|min|max)\./.test(name) || name === "q" || name === "sort") asked[name] = address.getAll(name);
  }
  return asked;
}
