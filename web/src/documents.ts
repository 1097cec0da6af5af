// The documents that the viewer's server sends. tools/web_types.py writes this file; `make web` runs it.

export type Cause =
  | "cascade"
  | "computation"
  | "malformed"
  | "not_answered"
  | "state_supply"
  | "truncated"
  | "undetermined";

export type Cell = number | string | boolean | null;

export type FieldKind = "flag" | "number" | "share" | "text";

export type FolderKind = "analysis" | "compaction" | "evidence" | "sweep";

export type Mark = "bars" | "cells" | "line" | "points" | "rule" | "step";

export type Scale = "category" | "linear" | "log";

// The beginning of a long text.
export interface Excerpt {
  text: string;
  length: number;
  next: number;
  part: string;
}

export type Text = string | Excerpt;

export type Value = number | string | null;

export type ValueState = "lost" | "returned" | "stored" | "used";

export type WrongKind =
  | "correct_inputs"
  | "declined"
  | "misinformed"
  | "missing"
  | "never_submitted"
  | "not_fetched"
  | "on_corrupted"
  | "propagated"
  | "protocol"
  | "truncated_reply"
  | "unanswered"
  | "uncertain"
  | "unreached";

// Every folder that can be shown.
export interface Folders {
  name: string;
  folders: ListedFolder[];
}

// A folder that can be shown.
export interface ListedFolder {
  key: string;
  kind: FolderKind;
  stamp: string;
  about: string;
  changed: number;
}

// A text that changes whenever a folder does.
export interface Changes {
  stamp: string;
}

// The columns of a folder's runs, and its progress or what its analysis came to.
export interface Overview {
  kind: FolderKind;
  fields: Field[];
  alike: SharedValue[];
  progress: FolderProgress | null;
  failures: FailureGroup[];
  summary: AnalysisSummary | null;
  advice: AdviceRow[];
  answers: string[];
}

// One column of a table.
export interface Field {
  key: string;
  title: string;
  kind: FieldKind;
  meaning: string;
  facet: boolean;
  shown: boolean;
  part: "replicate" | "result" | "setting";
  order: string[];
}

// What all rows have in common.
export interface SharedValue {
  title: string;
  value: string;
}

// The progress of one folder at one moment.
export interface FolderProgress {
  kind: string;
  state: "complete" | "running" | "waiting";
  runs: number;
  planned_runs: number;
  planned_cells: number;
  lost: number;
  spent_usd: number | null;
}

// Runs that failed in the same way.
export interface FailureGroup {
  workload: string;
  model: string;
  condition: string;
  kind: string;
  message: string;
  runs: number;
  first: string;
}

// The summary of an analysis, as `analysis.json` stores it; a share of nothing is None.
export interface AnalysisSummary {
  complete: boolean;
  logs: LogSources | null;
  eirkit: string;
  options: MeasuringOptions;
  runs: number;
  skipped: SkippedInput[];
  goal_access: number | null;
  mean_peak_tokens: number | null;
  mean_peak_covered_tokens: number | null;
  mean_peak_seen_tokens: number | null;
  mean_peak_environment_tokens: number | null;
  mean_peak_paper_tokens: number | null;
  judged_read_tokens: number;
  covered_runs: number;
  goal_runs: number;
  goal_sources: Record<string, number>;
  formats: Record<string, number>;
  coverage: FormatCoverage[];
  sub_agents: SubAgents;
  outcomes: OutcomeCounts;
  turns: number;
  reads: number;
  writes: number;
  trajectory_tokens: number;
  undivided_reads: number;
  read_tokens: number;
  repeat_tokens: number;
  dead_read_tokens: number;
  clipped_views: number;
  clipped_goal_views: number;
  clipped_modified_views: number;
  lines_recovered: number;
  lines_never_recovered: number;
  lines_ambiguous: number;
  edit_failures: number;
  repeated_commands: number;
  repeated_edits: number;
  submits_after_failed_test: number;
  overflow_errors: number;
  dead_read_covered_tokens: number;
  dead_read_share: number | null;
  repeat_share: number | null;
  breaks: BreakTotals;
  later_used: Record<string, LaterUse>;
  mean_peak_context_share: number | null;
  costliest_breaks: RunBreak[];
  largest: ListedRun[];
  repeated_files: RepeatedFile[];
  instructions: InstructionCounts;
  todos: InstructionCounts;
  advice: Advice[];
}

// What identifies the corpus of an analysis.
export interface LogSources {
  names: string[];
  digest: string;
}

// How runs were measured.
export interface MeasuringOptions {
  visibility: "environment" | "seen";
  goal_tests: boolean;
  own_edits: "all" | "last";
  rule: "edit-aware" | "paper";
  windows_dated: string;
}

// A part of the input that is not in an analysis, and why.
export interface SkippedInput {
  source: string;
  reason: string;
}

// How many calls in the logs of one format and version were understood.
export interface FormatCoverage {
  format: string;
  agent_version: string;
  runs: number;
  calls: number;
  understood: number;
  silent_runs: number;
  unknown: UnknownTool[];
}

// A tool with calls that were not understood.
export interface UnknownTool {
  tool: string;
  calls: number;
}

// All sub-agents of an analysis; its other totals count each of them once.
export interface SubAgents {
  runs: number;
  turns: number;
  calls: number;
  reads: number;
  writes: number;
  trajectory_tokens: number;
  parents: number;
  by_parent: StartedSubAgents[];
}

// The sub-agents that one run started.
export interface StartedSubAgents {
  runs: number;
  turns: number;
  calls: number;
  reads: number;
  writes: number;
  trajectory_tokens: number;
  parent_run: string;
}

// Runs by outcome.
export interface OutcomeCounts {
  resolved: number;
  failed: number;
  unknown: number;
}

// Sums over all compactions and clears of an analysis, in tokens of files unless named otherwise.
export interface BreakTotals {
  compactions: number;
  clears: number;
  manual_compactions: number;
  automatic_compactions: number;
  live_tokens: number;
  dropped_tokens: number;
  reread_tokens: number;
  never_reread_tokens: number;
  reread_dropped_tokens: number;
  overwritten_tokens: number;
  unknown_tokens: number;
  unmeasured: number;
}

// Quantiles of what runs held at the peak for later use, in one unit, and in files or entities.
export interface LaterUse {
  runs: number;
  peak_p50: number;
  peak_p90: number;
  peak_p99: number;
  files_p50: number;
  files_p90: number;
  files_p99: number;
}

// One break, with its run.
export interface RunBreak {
  cut: number;
  kind: "clear" | "compaction";
  carried_tokens: number;
  live_files: number;
  live_tokens: number;
  dropped_tokens: number;
  reread_files: number;
  reread_tokens: number;
  reread_turns: number;
  overwritten_files: number;
  never_reread_files: number;
  never_reread_tokens: number;
  reread_dropped_tokens: number;
  overwritten_tokens: number;
  unknown_tokens: number;
  evidence: "clear" | "history" | "none" | "opaque" | "preserved" | "prompt" | "removed" | "size" | "summary";
  shrunk_tokens: number | null;
  measured: boolean;
  compactions: number;
  clears: number;
  trigger: "auto" | "manual" | "unknown";
  manual_compactions: number;
  automatic_compactions: number;
  run_id: string;
}

// What a summary lists of the runs with the largest demand.
export interface ListedRun {
  run_id: string;
  unit: "entities" | "tokens";
  turns: number;
  peak_demand_tokens: number | null;
  peak_cut: number | null;
  later_used_peak: number;
  later_used_peak_cut: number | null;
  goal_source: "gold" | "log" | "own-edits" | null;
  goal_files: string[];
  goal_accessed: boolean;
  read_tokens: number | null;
  repeat_tokens: number | null;
  dead_read_tokens: number | null;
  peak_context_tokens: number | null;
}

// One file that was shown again although unchanged, over all runs.
export interface RepeatedFile {
  path: string;
  repeat_tokens: number;
  repeat_reads: number;
  runs: number;
  run_id: string;
  turn: number;
}

// What became of instructions, or of open to-dos, at compactions and clears.
export interface InstructionCounts {
  verbatim?: number;
  substance?: number;
  gone?: number;
  unknown?: number;
  broken?: number;
}

// One thing to act on: a file shown again, a compaction, a lost rule, a clipped view, or an expired cache.
export interface Advice {
  kind: "clip" | "compaction" | "expired" | "file" | "instruction";
  run_id: string;
  model?: string;
  turn: number;
  subject: string;
  tokens?: number | null;
  count?: number;
  runs?: number;
  trigger?: "auto" | "manual" | "unknown";
  cut?: number;
  by?: string;
  usd?: number | null;
}

// One thing to act on with its price, in words.
export interface AdviceRow {
  kind: "clip" | "compaction" | "expired" | "file" | "instruction";
  run_id: string;
  model: string;
  turn: number;
  subject: string;
  tokens: number | null;
  count: number;
  runs: number;
  trigger: "auto" | "manual" | "unknown";
  cut: number;
  by: string;
  usd: number | null;
  words: string;
}

// Some of the rows that fit a query.
export interface Page {
  fields: Field[];
  rows: Record<string, Cell>[];
  matched: number;
  total: number;
  offset: number;
  facets: Facet[];
}

// The values of a column by which rows can be filtered.
export interface Facet {
  key: string;
  title: string;
  values: FacetValue[];
  distinct: number;
}

// One value of a facet, and how many rows have it.
export interface FacetValue {
  label: string;
  rows: number;
}

// A heat map.
export interface Grid {
  chart: Chart;
  runs: number[];
  noun: string;
  over: string[];
  filters: Record<string, string>[];
  mixed: string[];
  left_out: number;
  x: string[];
  y: string[];
  layout: GridLayout;
  kind: FieldKind;
  labels: string[];
}

// One chart, with a description in words for readers who cannot see it.
export interface Chart {
  id: string;
  title: string;
  alt: string;
  x: Axis;
  y: Axis;
  series: Series[];
  note: string;
  stacked: boolean;
  kind: "chart";
}

// One axis of a chart; a bound of None is derived from the data.
export interface Axis {
  title: string;
  scale: Scale;
  low: number | null;
  high: number | null;
  percent: boolean;
}

// One series of points, each with an optional interval.
export interface Series {
  name: string;
  mark: Mark;
  x: Value[];
  y: Value[];
  low: (number | null)[];
  high: (number | null)[];
  value: (number | null)[];
  dashed: boolean;
  pale: boolean;
  measure: string;
  color: string;
}

// The columns of a heat map; `y` may name several, separated by commas.
export interface GridLayout {
  x: string;
  y: string;
  value: string;
}

// A section of a report: its sentences, pictures and tables.
export interface ShownSection {
  title: string;
  words: string[];
  charts: DrawnChart[];
  figures: Figure[];
  tables: ShownTable[];
}

// A chart for the script that draws it, with what follows from its series.
export interface DrawnChart {
  id: string;
  title: string;
  alt: string;
  x: Axis;
  y: Axis;
  series: Series[];
  note: string;
  stacked: boolean;
  kind: "chart";
  behind: number[];
}

// Charts shown side by side under one title: small multiples, or the panels of a published figure.
export interface Figure {
  id: string;
  title: string;
  panels: Chart[];
  note: string;
  kind: "figure";
}

// A table of texts.
export interface ShownTable {
  title: string;
  columns: ShownColumn[];
  lines: string[][];
}

// One column of a table of texts.
export interface ShownColumn {
  title: string;
  meaning: string;
  figure: boolean;
}

// One run, without prompts and replies.
export interface LacunaRun {
  kind: "lacuna";
  run: string;
  label: string;
  cell: string;
  seed: number;
  model: string;
  ending: "action-limit" | "done" | "finished" | null;
  task: Task | ConversationTask;
  units: Units;
  access: Access;
  lost: LostAnswer | null;
  profile: MemoryProfile | null;
  warnings: string[];
  capacity: number | null;
  score: ShownScore | null;
  unknown: string;
  steps: Step[];
  siblings: Sibling[];
}

// The parameters of a task of numbers, without its seed; `TaskSpec` explains each.
export interface Task {
  family: "numbers";
  workload: string;
  n: number;
  m: number;
  lookback: number;
  fan_in: number;
  slots: number;
  digits: number;
  k: number;
  queries: string;
  warm_up: number;
  overwrites?: number;
  deletes?: number;
  expiry?: number;
  users?: number;
  rereads?: number;
}

// The parameters of conversations, without their seed; `ConversationSpec` explains each.
export interface ConversationTask {
  family: "conversation";
  workload: string;
  preset: string;
  questions: number;
}

// What the tasks of a workload and their steps are called where results are told.
export interface Units {
  task: string;
  step: string;
  outcome: string;
}

// How an agent accesses its earlier results; None for reads or recomputations means no limit.
export interface Access {
  condition: string;
  policy: string | null;
  memory: string | null;
  memory_settings: Record<string, unknown>;
  panel: string;
  h: number | null;
  reads: number | null;
  recomputations: number | null;
  actions: number;
  context_tokens: number | null;
  summary_prompt: string | null;
  budget: string;
}

// A lost answer, and the records that are still held when it is needed.
export interface LostAnswer {
  at: number;
  target: number;
  resident: number[];
}

// In which way a memory system was used.
export interface MemoryProfile {
  name: string;
  on: string;
  off: string;
  passages: number | null;
  passages_from: string;
}

// The score of a run.
export interface ShownScore {
  accuracy: number;
  miss_rate: number;
  steps: number;
  correct: number;
  first_miss: number | null;
  first_error: number | null;
  errors: Record<Cause, number>;
  error_shares: Record<Cause, number>;
}

// One step of a run; what is not known, or not reached, is left out.
export interface Step {
  t: number;
  refs: number[];
  kind?: string;
  input?: number[] | null;
  answer?: number[] | string;
  scored?: boolean;
  required?: number[];
  retained?: number[];
  missing?: number[];
  unavailable?: number[];
  restored?: [number, number[]][];
  submitted?: number[] | string | null;
  fault?: string | null;
  fetched?: number[];
  reads?: number;
  recomputations?: number;
  actions?: number;
  answers?: number;
  correct?: boolean;
  missed?: boolean;
  cause?: Cause | null;
  why?: WrongKind | null;
}

// A run of the same task and seed, and the settings in which it differs.
export interface Sibling {
  run: string;
  different: string[];
  label: string;
}

// All rows of a run that the viewer draws.
export interface RunView {
  kind: "vestige";
  run: RunRow;
  answer: string[];
  visibility: "environment" | "seen";
  turns: TurnCounts[];
  actions: ActionRow[];
  actions_left_out: number;
  goal: string[];
  cuts: CutRow[];
  states: StateRow[];
  files: FileUse[];
  clips: ClippedView[];
  hidden_lines: ShownLine[];
  anomalies: Anomaly[];
  breaks: BreakCost[];
  dropped: DroppedState[];
  entities: EntityDemand[];
  instructions: InstructionFate[];
  has_logs: boolean;
}

// One run; a row of `runs`.
export interface RunRow {
  run_id: string;
  task_id: string;
  model: string;
  format: string;
  source: string;
  agent_version: string;
  domain: "entities" | "files";
  unit: "entities" | "tokens";
  resolved: boolean | null;
  reward: number | null;
  exit_status: string;
  turns: number;
  tool_turns: number;
  calls: number;
  calls_understood: number;
  reads: number;
  writes: number;
  trajectory_tokens: number;
  goal_source: "gold" | "log" | "own-edits" | null;
  goal_files: string[];
  goal_accessed: boolean;
  peak_demand_tokens: number | null;
  peak_cut: number | null;
  peak_seen_tokens: number | null;
  peak_environment_tokens: number | null;
  peak_paper_tokens: number | null;
  segments: number | null;
  later_used_peak: number;
  later_used_peak_cut: number | null;
  later_used_peak_files: number;
  read_tokens: number | null;
  repeat_tokens: number | null;
  dead_reads: number;
  dead_read_tokens: number | null;
  judged_read_tokens: number | null;
  necessary_actions: number;
  actions: number;
  peak_context_tokens: number | null;
  context_measured: boolean;
  window_tokens: number | null;
  window_source: "compactions" | "log" | "table" | null;
  peak_context_share: number | null;
  prompt_monotone: boolean | null;
  prompt_drops: number;
  overflow_errors: number;
  summary_markers: number;
  clears: number;
  gold_files: number | null;
  gold_additions: number | null;
  gold_deletions: number | null;
  clipped_views: number;
  clipped_goal_views: number;
  clipped_modified_views: number;
  clipping_group: "ambiguous" | "mixed" | "never" | "none" | "recovered";
  lines_recovered: number;
  lines_never_recovered: number;
  lines_ambiguous: number;
  edit_failures: number;
  repeated_commands: number;
  repeated_edits: number;
  submits_after_failed_test: number;
  task_entities: number | null;
  parent_run: string;
  undivided_reads: number;
}

// What one turn did.
export interface TurnCounts {
  turn: number;
  reads: number;
  dead: number;
  writes: number;
  needed: boolean;
  events: string[];
}

// One read, or one file of a turn's write action; a row of `actions`.
export interface ActionRow {
  turn: number;
  kind: "read" | "write";
  path: string;
  version: number;
  tokens: number | null;
  necessary: boolean;
  judged: boolean;
  sink: boolean;
  carried_to: number | null;
  repeat_tokens: number | null;
}

// The moment before one turn; a row of `cuts`.
export interface CutRow {
  cut: number;
  demand_tokens: number | null;
  live_files: number;
  later_used: number;
  later_used_files: number;
}

// One version of one file; a row of `states`.
export interface StateRow {
  path: string;
  version: number;
  made_at: number;
  first_seen: number;
  last_used: number | null;
  tokens: number;
  in_slice: boolean;
  later_used: number | null;
}

// One file over a whole run; a row of `files`.
export interface FileUse {
  path: string;
  goal: boolean;
  versions: number;
  reads: number;
  writes: number;
  read_tokens: number;
  repeat_reads: number;
  repeat_tokens: number;
  repeat_turn: number | null;
  most_repeated: number;
  needed_reads: number;
  dead_reads: number;
  dead_tokens: number;
  peak_tokens: number;
  live_from: number | null;
  live_until: number | null;
  live_cuts: number;
  reuses: number;
}

// One observation that the scaffold truncated.
export interface ClippedView {
  turn: number;
  call: number;
  paths: string[];
  on_goal: boolean;
  later_modified: boolean;
  later_viewed: boolean;
  shown_characters: number;
  hidden_characters: number | null;
}

// A hidden line with its text, where reference patches are given.
export interface ShownLine {
  path: string;
  line: number;
  turn: number;
  outcome: "ambiguous" | "never" | "recovered";
  recovered_turn: number | null;
  shown_before: boolean;
  text?: string | null;
}

// One event; the texts are excerpts for a reviewer.
export interface Anomaly {
  turn: number;
  signature: "edit_failure" | "repeated_command" | "repeated_edit" | "submit_after_failed_test";
  earlier_turn: number | null;
  command: string;
  output: string;
}

// One break, summed over the live states of which something was still in the context.
export interface BreakCost {
  cut: number;
  kind: "clear" | "compaction";
  carried_tokens: number;
  live_files: number;
  live_tokens: number;
  dropped_tokens: number;
  reread_files: number;
  reread_tokens: number;
  reread_turns: number;
  overwritten_files: number;
  never_reread_files: number;
  never_reread_tokens: number;
  reread_dropped_tokens: number;
  overwritten_tokens: number;
  unknown_tokens: number;
  evidence: "clear" | "history" | "none" | "opaque" | "preserved" | "prompt" | "removed" | "size" | "summary";
  shrunk_tokens: number | null;
  measured: boolean;
  compactions: number;
  clears: number;
  trigger: "auto" | "manual" | "unknown";
  manual_compactions: number;
  automatic_compactions: number;
}

// One live state at a break.
export interface DroppedState {
  cut: number;
  kind: "clear" | "compaction";
  path: string;
  tokens: number;
  carried_share: number;
  named: boolean;
  held_share: number;
  dropped_tokens: number;
  unknown_tokens: number;
  fate: "never" | "overwritten" | "reread";
  reread_turn: number | null;
  reread_tokens: number;
  reread_dropped_tokens: number;
  edited_tokens: number;
  turns_until: number | null;
  tokens_until: number | null;
}

// The largest number of entities that a run had seen, shown or named, and used later.
export interface EntityDemand {
  tool_turns: number;
  entities: number;
  peak_named_entities: number;
  peak_shown_entities: number;
  task_entities: number | null;
}

// One instruction at one break; a row of `instructions`.
export interface InstructionFate {
  cut: number;
  kind: "rule" | "todo";
  text: string;
  given_turn: number;
  survival: "gone" | "substance" | "unknown" | "verbatim";
  broken_turn: number | null;
  broken_by: string;
}

// One cut of a run, line by line.
export interface CutContext {
  run: string;
  source: string;
  turn: number;
  turns: number[];
  budget: number;
  budgets: number[];
  context_tokens: number;
  needed_tokens: number;
  needed_lines: number;
  compactors: CutCompactor[];
  missing: string;
  matched: number;
  offset: number;
  parts: CutPart[];
}

// What one compactor made of a cut.
export interface CutCompactor {
  name: string;
  status: string;
  reason: string;
  used_tokens: number;
  kept_share: number | null;
}

// A message or file, and lines of it.
export interface CutPart {
  title: string;
  lines: CutLine[];
}

// One line of a context, with a digit for each compactor: 1 where it kept the line.
export interface CutLine {
  text: string;
  needed: boolean;
  kept: string;
}

// One step of a run: what was said, how its error arose and spread, and its cone.
export interface StepDetails {
  t: number;
  card: StepCard | null;
  exchanges: ShownExchange[];
  inexact: string;
  actions: ShownAction[];
  memory: MemoryCall[];
  spread: Spread;
  cone: Cone | null;
  conversation: Question | null;
}

// Why a step is wrong.
export interface StepCard {
  correct: boolean;
  sentences: string[];
  inputs: CardInput[];
}

// One thing that an answer needed, and what became of it.
export interface CardInput {
  name: string;
  step: number | null;
  lines: [string, string][];
  outcome: string | null;
}

// One prompt and its reply.
export interface ShownExchange {
  t: number;
  messages: ShownMessage[];
  exact: boolean;
  reply: Text | null;
  calls: RequestedCall[];
  latency_seconds: number;
  input_tokens: number;
  output_tokens: number;
  cost_usd: number | null;
  from_cache: boolean;
  prompt_sha256: string;
}

// One message of a prompt.
export interface ShownMessage {
  role: string;
  text: Text;
}

// A tool call of a reply.
export interface RequestedCall {
  name: string;
  arguments: Record<string, unknown>;
}

// One action of an agent-managed run.
export interface ShownAction {
  number: number;
  action: Text;
  outcome: "done" | "fault" | "late" | "refused";
  detail: Text;
  evicted: number | null;
  reason: string;
}

// One call to the memory.
export interface MemoryCall {
  verb: "forget" | "observe" | "recall" | "search" | "write";
  passages: number;
  latency_seconds: number;
  lacking: number[];
  held: number[];
  mislabeled: number[];
  text: Text | null;
  found: Text[];
}

// The origins and consequences of one wrong step; empty for a correct step.
export interface Spread {
  origins: number[];
  path: [number, number][];
  spoilt: number[];
  besides: number[];
}

// What must be computed again to have missing results.
export interface Cone {
  targets: number[];
  nodes: number[];
  edges: [number, number][];
  resident: number[];
  depth: number;
  naive: string;
}

// A question about a conversation, and the conversation until then.
export interface Question {
  question: string;
  ability: string;
  symptom: string | null;
  cause: string | null;
  meaning: string | null;
  evidence: string;
  turns: ConversationTurn[];
}

// A turn of the user; None where something is unknown.
export interface ConversationTurn {
  text: string;
  needed: boolean;
  stored: boolean | null;
  returned: boolean | null;
  used: boolean | null;
  pieces: TurnPiece[];
}

// A part of a turn, with what became of the value that it is.
export type TurnPiece = [text: string, state: ValueState | null];

// The failures like that of a step; None for a right step.
export interface Similar {
  similar: SimilarFailures | null;
}

// How often runs of a folder failed in the same way, this failure included.
export interface SimilarFailures {
  way: string;
  count: number;
  runs: number;
  of_runs: number;
  examples: SimilarExample[];
  memory: string | null;
  of_memory: number | null;
  sentence: string;
}

// A step that failed in the same way.
export interface SimilarExample {
  run: string;
  t: number;
}

// EIR and capacity over a run, or why they are unknown.
export interface Pressure {
  unknown: string;
  curve: PressureCurve | null;
}

// The bits needed and the capacity in bits after each step t = 0 … n.
export interface PressureCurve {
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

// The text and the calls of one turn, with the log's source.
export interface LoggedTurn {
  turn: number;
  text: Text;
  calls: LoggedCall[];
  broken: string | null;
  carried: Text | null;
  rejected: boolean;
  prompt: Text;
  source: string;
}

// One call of a tool, as the log has it.
export interface LoggedCall {
  tool: string;
  arguments: Argument[];
  output: Text;
  full_output: Text | null;
  exit_code: number | null;
  failed: boolean | null;
}

// One argument of a call; a value that is no text is written as JSON.
export interface Argument {
  name: string;
  value: Text;
}

// The numbered lines around an offset of a log.
export interface LogExcerpt {
  lines: LogLine[];
  line: number;
  lines_total: number;
  characters: number;
  source: string;
  offset: number;
}

// One line of a log, cut if it is long.
export interface LogLine {
  number: number;
  text: string;
  here: boolean;
  at: number | null;
  before: number;
  after: number;
}

// More of a long text.
export interface TextPiece {
  text: string;
  offset: number;
  next: number;
  length: number;
}

// What each path answers with.
export interface Answers {
  folders: Folders;
  changes: Changes;
  overview: Overview;
  runs: Page;
  grid: Grid;
  evidence: ShownSection;
  possible: ShownSection;
  run: LacunaRun | RunView;
  cut: CutContext;
  step: StepDetails;
  similar: Similar;
  pressure: Pressure;
  turn: LoggedTurn;
  source: LogExcerpt;
  text: TextPiece;
}
