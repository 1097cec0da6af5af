// The requests to the server; see src/eirkit/report/viewer/routes.py.
import type { Answers } from "../documents";
import { answerOf } from "./static";

export type Asked = Record<string, string | number | string[] | undefined>;

export function addressOf(path: string, asked: Asked): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(asked)) {
    if (value === undefined) continue;
    for (const one of Array.isArray(value) ? value : [String(value)]) query.append(name, one);
  }
  return `api/${path}?${query}`;
}

// Ask the server; what it refuses becomes an error with its words.
export async function ask<P extends keyof Answers>(path: P, asked: Asked, signal?: AbortSignal): Promise<Answers[P]> {
  if (globalThis.eirkitStatic) return answerOf(globalThis.eirkitStatic, addressOf(path, asked)) as Answers[P];
  const response = await fetch(addressOf(path, asked), signal ? { signal } : {});
  const document = (await response.json()) as Answers[P] & { error?: string };
  if (!response.ok) throw new Error(document.error ?? `the server said ${response.status}; start the viewer again`);
  return document;
}
