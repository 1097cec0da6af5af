// The requests to the server and the types of its documents; see src/eirkit/report/viewer/routes.py.
import type { Chart } from "../charts/chart";
import { answerOf } from "./static";

export type Cell = string | number | boolean | null;
export type FieldKind = "text" | "number" | "share" | "flag";

export interface Field {
  key: string;
  title: string;
  kind: FieldKind;
  meaning: string;
  facet: boolean;
  shown: boolean;
  part: "result" | "setting" | "replicate";
}

export interface Folder {
  key: string;
  kind: "sweep" | "evidence" | "analysis" | "compaction";
  stamp: string;
  about: string;
  changed: number; // seconds since 1970
}

export interface Folders {
  name: string;
  folders: Folder[];
}

export interface Progress {
  kind: string;
  state: "running" | "complete" | "waiting";
  runs: number;
  planned_runs: number | null;
  planned_cells: number | null;
  lost: number;
  skipped: number;
  spent_usd: number | null;
  read_share: number;
}

export interface Failure {
  workload: string;
  model: string;
  condition: string;
  kind: string;
  message: string;
  runs: number;
}

export interface Advice {
  kind: "file" | "compaction" | "instruction" | "clip";
  words: string;
  run_id: string;
  turn: number;
  tokens: number | null;
  usd: number | null; // the tokens once, as input
}

export interface AnalysisSummary {
  advice?: Advice[]; // an older analysis has none
  runs: number;
  goal_access: number | null;
  goal_sources?: Record<string, number>;
  covered_runs?: number; // that touched it
  mean_peak_tokens: number | null;
  dead_read_share: number | null;
  repeat_share: number | null;
  clipped_views: number;
  outcomes: { resolved: number; failed: number; unknown: number };
  breaks: {
    compactions: number;
    clears: number;
    live_tokens: number;
    dropped_tokens: number; // the sum of the next three
    reread_dropped_tokens?: number; // an older analysis says neither this nor the next
    overwritten_tokens?: number;
    never_reread_tokens: number;
    unknown_tokens: number;
    unmeasured?: number;
  };
  skipped: { source: string; reason: string }[];
}

export interface Overview {
  kind: Folder["kind"];
  fields: Field[];
  alike: { title: string; value: string }[];
  progress?: Progress;
  failures?: Failure[];
  summary?: AnalysisSummary;
  answers?: string[]; // of a compaction benchmark
}

export interface CutCompactor {
  name: string;
  status: string; // ok, or how it failed
  reason: string;
  used_tokens: number;
  kept_share: number | null;
}

export interface CutLine {
  text: string;
  needed: boolean;
  kept: string; // a digit for each compactor: 1 where it kept the line
}

export interface CutPart {
  title: string; // the message or the file that the lines are of
  lines: CutLine[];
}

export interface Cut {
  run: string;
  turn: number;
  turns: number[]; // of all cuts of the run
  budget: number;
  budgets: number[];
  context_tokens: number;
  needed_tokens: number;
  needed_lines: number;
  compactors: CutCompactor[];
  missing: string; // why only needed lines are known
  matched: number;
  offset: number;
  parts: CutPart[];
}

export interface Facet {
  key: string;
  title: string;
  values: { label: string; rows: number }[];
  distinct: number;
}

export interface Page {
  fields: Field[];
  rows: Record<string, Cell>[];
  matched: number;
  total: number;
  offset: number;
  facets: Facet[];
  read_share: number;
}

export interface Grid {
  chart: Chart;
  runs: number[]; // rows of each cell
  noun: string; // what a row is
  over: string[]; // what each cell is a mean of
  filters: Record<string, string>[]; // that choose the runs of each cell
  mixed: string[]; // settings in which the runs of some cell differ
  layout: { x: string; y: string; value: string };
  left_out: number;
  x: string[];
  y: string[];
  kind: FieldKind;
  labels: string[]; // of a text column: the most frequent value of each cell, whose share is the figure
}

// A long text arrives as its beginning; the rest is asked for by its part.
// The server counts characters otherwise than a page does: `next` is where it goes on, of the `length` that it counts.
export type Text = string | { text: string; length: number; next: number; part: string };

export type Cause =
  | "computation"
  | "state_supply"
  | "cascade"
  | "not_answered"
  | "malformed"
  | "truncated"
  | "undetermined";
export type Payload = number[];

export interface Step {
  t: number;
  refs: number[];
  kind?: string;
  input?: Payload | null;
  answer?: Payload;
  scored?: boolean;
  required?: number[];
  retained?: number[];
  missing?: number[];
  unavailable?: number[];
  restored?: [number, Payload][];
  submitted?: Payload | null;
  fault?: string | null;
  fetched?: number[];
  reads?: number;
  recomputations?: number;
  actions?: number;
  answers?: number;
  correct?: boolean;
  missed?: boolean;
  cause?: Cause | null;
  why?: string | null;
}

export interface Score {
  accuracy: number;
  miss_rate: number;
  steps: number;
  correct: number;
  first_miss: number | null;
  first_error: number | null;
  errors: Record<Cause, number>; // wrong steps
  error_shares: Record<Cause, number>; // of scored steps
}

export interface Sibling {
  run: string;
  different: string[];
  words: string;
}

// What the workload calls its tasks, their steps, and what is right or wrong.
export interface Units {
  task: string;
  step: string;
  outcome: string;
}

export interface LacunaRun {
  kind: "lacuna";
  run: string;
  cell?: string; // of a sweep
  seed: number;
  model: string;
  ending: string | null;
  task: Record<string, Cell>;
  units: Units;
  trial?: Record<string, unknown>;
  access?: Record<string, unknown>;
  memory?: { profile?: { name: string; on: string; off: string }; warnings?: string[] };
  usage: Record<string, number | null>;
  capacity: number | null;
  score: Score | null;
  unknown: string;
  steps: Step[];
  words: string;
  siblings: Sibling[];
}

export interface Exchange {
  t: number;
  messages: { role: string; text: Text }[];
  exact: boolean;
  reply: Text | null;
  calls: { name: string; arguments: Record<string, unknown> }[];
  latency_seconds: number;
  input_tokens: number;
  output_tokens: number;
  cost_usd: number | null;
  from_cache: boolean;
  prompt_sha256: string;
}

export interface ActionTaken {
  number: number;
  action: Text;
  outcome: string;
  detail: Text;
  evicted: number | null;
  reason: string;
}

export interface MemoryCall {
  verb: string;
  passages: number;
  latency_seconds: number;
  lacking: number[];
  held: number[];
  mislabelled: number[];
  text?: Text;
  found?: Text[];
}

export interface Cone {
  targets: number[];
  nodes: number[];
  edges: [number, number][];
  resident: number[];
  depth: number;
  naive: string;
}

export interface NeededInput {
  name: string;
  step: number | null; // whose answer it is; a statement has none
  lines: [about: string, text: string][];
  fate: string | null;
}

export interface WhyCard {
  correct: boolean;
  sentences: string[];
  inputs: NeededInput[];
}

export interface Similar {
  way: string;
  count: number;
  runs: number;
  of_runs: number;
  examples: { run: string; t: number }[];
  sentence: string;
}

export interface StepMore {
  t: number;
  card: WhyCard | null; // null: the task is unknown, or nothing is answered
  exchanges: Exchange[];
  inexact: string; // why a prompt could not be rebuilt; empty if all could
  actions: ActionTaken[];
  memory: MemoryCall[];
  spread: { origins: number[]; path: [number, number][]; spoilt: number[] };
  cone: Cone | null;
  told?: Told; // of a conversation
}

export interface ToldTurn {
  text: string;
  needed: boolean;
  stored: boolean | null; // null: unknown
  returned: boolean | null;
  used: boolean | null;
  pieces: [string, "used" | "returned" | "stored" | "lost" | null][]; // the text, its values with what became of them
}

export interface Told {
  question: string;
  ability: string;
  fate: string | null; // why the answer is wrong
  meaning: string | null;
  evidence: string;
  turns: ToldTurn[];
}

export interface Pressure {
  unknown?: string;
  needed_bits: (number | null)[];
  upper_bits: (number | null)[] | null;
  capacity_bits: number;
  pressure: (number | null)[];
  peak_pressure: number;
  record_bits: number;
  held_bits: number[];
  method: string;
  h: number;
}

export interface TurnEntry {
  turn: number;
  reads: number;
  dead: number;
  writes: number;
  needed: boolean;
  events: string[];
}

export interface Action {
  turn: number;
  kind: "read" | "write";
  path: string;
  version: number;
  tokens: number | null;
  necessary: boolean;
  judged?: boolean; // whether the goal tells what it was for; older analyses do not say
  sink: boolean;
  carried_to: number | null;
}

export interface Cut {
  cut: number;
  demand_tokens: number | null;
  live_files: number;
  later_used: number;
  later_used_files: number;
}

export type Row = Record<string, Cell | Cell[]>;

export interface VestigeRun {
  kind: "vestige";
  run: Row;
  visibility: string | null;
  has_logs: boolean;
  turns: TurnEntry[];
  actions: Action[];
  actions_left_out: number;
  goal: string[];
  cuts: Cut[];
  states: Row[];
  files: Row[];
  clips: Row[];
  hidden_lines: Row[];
  anomalies: Row[];
  breaks: Row[];
  instructions: Row[];
  dropped: Row[];
  entities: Row[];
}

export interface Call {
  tool: string;
  arguments: { name: string; value: Text }[];
  output: Text;
  full_output: Text | null;
  exit_code: number | null;
  failed: boolean;
}

export interface Turn {
  turn: number;
  text: Text;
  calls: Call[];
  broken: string | null;
  carried: Text;
  rejected: boolean;
  prompt: Text;
  source: string;
}

export interface Source {
  lines: { number: number; text: string; here: boolean; at: number | null; before: number; after: number }[];
  line: number;
  lines_total: number;
  characters: number;
  source: string;
  offset: number;
}

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
export async function ask<T>(path: string, asked: Asked, signal?: AbortSignal): Promise<T> {
  if (globalThis.eirkitStatic) return answerOf(globalThis.eirkitStatic, addressOf(path, asked)) as T;
  const response = await fetch(addressOf(path, asked), signal ? { signal } : {});
  const document = (await response.json()) as T & { error?: string };
  if (!response.ok) throw new Error(document.error ?? `the server said ${response.status}; start the viewer again`);
  return document;
}
