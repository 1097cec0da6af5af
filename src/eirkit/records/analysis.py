"""Results of VESTIGE as types: the rows of every table, the document `analysis.json`, one run, cohorts and their tests.

Columns are explained beside the fields. Tables have the run's id as their first column; rows of one run leave it out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

Domain = Literal["files", "entities"]
Unit = Literal["tokens", "entities"]
GoalSource = Literal["gold", "log", "own-edits"]
Visibility = Literal["seen", "environment"]
VISIBILITIES: tuple[Visibility, ...] = ("seen", "environment")
OwnEdits = Literal["last", "all"]
OWN_EDITS: tuple[OwnEdits, ...] = ("last", "all")
DemandRule = Literal["edit-aware", "paper"]
DEMAND_RULES: tuple[DemandRule, ...] = ("edit-aware", "paper")
WindowSource = Literal["log", "table", "compactions"]
Break = Literal["compaction", "clear"]
Trigger = Literal["manual", "auto", "unknown"]  # who started it: the user, or the agent when the context was full
# `summary`: the text that replaced the context is all that is known; `none`: not even that.
BreakEvidence = Literal["prompt", "history", "preserved", "removed", "size", "summary", "clear", "opaque", "none"]
Fate = Literal["reread", "overwritten", "never"]
Ending = Literal["reread", "overwrite", "end"]
LineOutcome = Literal["recovered", "never", "ambiguous"]
ClippingGroup = Literal["recovered", "never", "mixed", "ambiguous", "none"]
Signature = Literal["edit_failure", "repeated_command", "repeated_edit", "submit_after_failed_test"]
InstructionKind = Literal["rule", "todo"]
CohortKey = Literal["all", "folder", "model", "format"]  # how runs are split into cohorts
Survival = Literal["verbatim", "substance", "gone", "unknown"]


class RunRow(Struct, frozen=True, gc=False):
    """One run; a row of `runs`."""

    run_id: str
    task_id: str
    model: str
    format: str
    source: str
    agent_version: str  # "" if the log does not say
    domain: Domain
    unit: Unit  # unit of demand; runs of different units are never pooled
    resolved: bool | None
    reward: float | None
    exit_status: str
    turns: int
    tool_turns: int  # turns that called a tool or touched a file
    calls: int
    calls_understood: int  # calls of which it is known what they read and wrote
    reads: int
    writes: int
    trajectory_tokens: int
    goal_source: GoalSource | None  # None in a domain without goal files
    goal_files: tuple[str, ...]
    goal_accessed: bool
    peak_demand_tokens: int | None  # under the chosen visibility; 0 if no goal file was touched, None in other units
    peak_cut: int | None  # the first cut at which the peak is reached
    peak_seen_tokens: int | None
    peak_environment_tokens: int | None
    peak_paper_tokens: int | None  # by the paper's rule: an edit uses nothing, and without a goal the last edit is it
    segments: int | None  # parts of a session without a named goal, one for each prompt of the user; else None
    later_used_peak: int  # in the run's unit, counting every later use, whatever its purpose
    later_used_peak_cut: int | None
    later_used_peak_files: int  # files, or entities
    read_tokens: int | None  # None, like the next two, in runs over entities
    repeat_tokens: int | None  # tokens shown again although unchanged
    dead_reads: int
    dead_read_tokens: int | None  # tokens read that no action leading to the goal used
    judged_read_tokens: int | None  # tokens read in segments whose goal is known, of which these are a part
    necessary_actions: int
    actions: int
    peak_context_tokens: int | None  # largest prompt with its reply
    context_measured: bool  # False: the log gives no prompt sizes, so this is the total of the run
    window_tokens: int | None
    window_source: WindowSource | None  # where the size of the window comes from
    peak_context_share: float | None
    prompt_monotone: bool | None
    prompt_drops: int
    overflow_errors: int
    summary_markers: int
    clears: int
    gold_files: int | None
    gold_additions: int | None
    gold_deletions: int | None
    clipped_views: int
    clipped_goal_views: int
    clipped_modified_views: int  # clipped views of files that the run modified later
    clipping_group: ClippingGroup
    lines_recovered: int  # changed old lines that a clipped view hid and a later one showed
    lines_never_recovered: int
    lines_ambiguous: int
    edit_failures: int
    repeated_commands: int
    repeated_edits: int
    submits_after_failed_test: int
    task_entities: int | None  # entities that the task itself names
    parent_run: str = ""  # of a sub-agent: the run that started it
    undivided_reads: int = 0  # reads of files that were printed together without a mark: which part is whose is unknown


class ToolCoverage(Struct, frozen=True, gc=False):
    """The calls of one tool in a run, and how many of them were understood; a row of `calls`."""

    tool: str
    calls: int
    understood: int


class CutRow(Struct, frozen=True, gc=False):
    """The moment before one turn; a row of `cuts`."""

    cut: int
    demand_tokens: int | None  # None in other units
    live_files: int  # files, or entities
    later_used: int  # in the run's unit
    later_used_files: int


class StateRow(Struct, frozen=True, gc=False):
    """One version of one file; a row of `states`."""

    path: str
    version: int
    made_at: int  # the turn that wrote it; 0 if it existed before the run
    first_seen: int
    last_used: int | None  # the last turn in the slice that uses it
    tokens: int  # 1 for an entity
    in_slice: bool
    later_used: int | None  # the last turn that uses it for any purpose


class FileUse(Struct, gc=False):
    """One file over a whole run; a row of `files`."""

    path: str
    goal: bool
    versions: int = 0  # versions that the run made
    reads: int = 0
    writes: int = 0
    read_tokens: int = 0
    repeat_reads: int = 0  # reads that showed part of a version again
    repeat_tokens: int = 0  # tokens that they showed again
    repeat_turn: int | None = None  # the turn that showed most of it again
    most_repeated: int = 0  # tokens that it showed again
    needed_reads: int = 0  # reads in the slice
    dead_reads: int = 0  # reads outside the slice, in segments whose goal is known
    dead_tokens: int = 0  # tokens that they showed
    peak_tokens: int = 0  # tokens of its largest version
    live_from: int | None = None  # the first cut at which a version of it is live
    live_until: int | None = None
    live_cuts: int = 0  # cuts at which a version of it is live
    reuses: int = 0  # reads in the slice beyond the first of each version


class ActionRow(Struct, frozen=True, gc=False):
    """One read, or one file of a turn's write action; a row of `actions`."""

    turn: int
    kind: Literal["read", "write"]
    path: str
    version: int  # version that was read or made
    tokens: int | None  # tokens that a read showed
    necessary: bool  # it is in the slice
    judged: bool  # the goal of its segment is known, so that an action outside the slice led nowhere
    sink: bool  # it reads or writes a goal file
    carried_to: int | None  # of a read: the turn of the write action that depends on it
    repeat_tokens: int | None  # tokens of a read that had been shown before at this version


class RereadInterval(Struct, frozen=True, gc=False):
    """The interval from one read of a file to its next access or the end of the run."""

    path: str
    needed: bool
    from_turn: int
    from_tokens: int  # the clock at the read
    to_turn: int  # the run's last turn if the file was not accessed again
    distance_tokens: int
    ending: Ending


class RereadBin(Struct, frozen=True, gc=False):
    """One bin of distance for the needed or the other files of a run; a row of the regression."""

    needed: bool
    bin: int
    above_tokens: int  # a distance of exactly this many tokens belongs to the bin below
    up_to_tokens: int
    midpoint_tokens: int
    exposure_tokens: int  # tokens inside the bin, summed over all intervals that reach it
    rereads: int


class Gaps(Struct, frozen=True, gc=False):
    """The longest gaps of a run over the needed or the other files; None where there is none."""

    needed: bool
    end_censored_tokens: int | None  # an interval without a further access lasts until the end of the run
    closed_tokens: int | None  # only intervals that a read or a write ended
    fair_clock_tokens: int | None  # every interval stops at the run's last write of any file


class ClippedView(Struct, frozen=True, gc=False):
    """One observation that the scaffold truncated."""

    turn: int
    call: int  # its position among the turn's calls, from 1
    paths: tuple[str, ...]  # files that it showed in part
    on_goal: bool
    later_modified: bool  # the run wrote one of them in this turn or later
    later_viewed: bool  # a later turn showed one of them again, in whole or in part
    shown_characters: int
    hidden_characters: int | None  # None: the log gives neither the number nor the full text


class HiddenLine(Struct, frozen=True, gc=False):
    """One old line of a goal file that a clipped view was asked for but hid, and that the reference patch changes."""

    path: str
    line: int
    turn: int  # of the first clipped view that hid it
    outcome: LineOutcome
    recovered_turn: int | None
    shown_before: bool  # an earlier view showed it


class Anomaly(Struct, frozen=True, gc=False):
    """One event; the texts are excerpts for a reviewer."""

    turn: int
    signature: Signature
    earlier_turn: int | None  # the turn that it repeats, or the turn of the failed test
    command: str
    output: str


class BreakCost(Struct, frozen=True, gc=False):
    """One break, summed over the live states of which something was still in the context."""

    cut: int
    kind: Break
    carried_tokens: int  # of the text that replaced the context
    live_files: int
    live_tokens: int  # of these states, still in the context
    dropped_tokens: int
    reread_files: int
    reread_tokens: int
    reread_turns: int  # turns that reread at least one of them
    overwritten_files: int
    never_reread_files: int
    never_reread_tokens: int  # dropped tokens that were neither shown again nor edited unread
    reread_dropped_tokens: int  # dropped tokens that were shown again; the three fields sum to dropped_tokens
    overwritten_tokens: int  # dropped tokens of states, and of lines of other states, edited without rereading
    unknown_tokens: int  # tokens of which the log does not show whether they stayed
    evidence: BreakEvidence  # what shows what stayed
    shrunk_tokens: int | None  # by how much the whole context shrank, if the log states it
    measured: bool  # False: the run used no file that shows what it needed
    compactions: int  # just before the turn, of which the last one is the break
    clears: int
    trigger: Trigger  # who started the break
    manual_compactions: int  # of the compactions, those that the user started
    automatic_compactions: int  # those that the agent started; of the others the log does not say


class DroppedState(Struct, frozen=True, gc=False):
    """One live state at a break."""

    cut: int  # the break came just before this turn
    kind: Break
    path: str
    tokens: int  # of the state, as far as it had been shown or put back before the break
    carried_share: float  # of its distinctive lines, those in the context afterwards
    named: bool  # the carried-over text names the file
    held_share: float  # share of these lines still in the context: shown or carried since the last break
    dropped_tokens: int  # tokens that were in the context before the break and not after it
    unknown_tokens: int  # tokens of which the log does not show whether they stayed
    fate: Fate  # overwritten: the agent edited the file, which needs its content, without rereading it
    reread_turn: int | None
    reread_tokens: int  # tokens of rereads that showed dropped lines again
    reread_dropped_tokens: int  # part of the dropped tokens that they showed
    edited_tokens: int  # part of them in lines that an edit replaced before any read showed them again
    turns_until: int | None  # turns from the break to the one that reread it, inclusive
    tokens_until: int | None  # tokens of the run in these turns


class InstructionFate(Struct, frozen=True, gc=False):
    """One instruction at one break; a row of `instructions`."""

    cut: int  # the break came just before this turn
    kind: InstructionKind
    text: str
    given_turn: int  # the turn that followed the prompt, or that wrote the to-do list
    survival: Survival
    broken_turn: int | None  # the first later turn that did what the rule forbids, if the rule was gone
    broken_by: str  # the file that it wrote, or the command that it ran


class EntityDemand(Struct, frozen=True, gc=False):
    """The largest number of entities that a run had seen, shown or named, and used later."""

    tool_turns: int
    entities: int  # distinct, named or shown
    peak_named_entities: int  # counting as uses that a call names or changes the entity
    peak_shown_entities: int  # counting outputs that show the entity as uses too
    task_entities: int | None  # named by the task's reference actions; None if the log lacks them


TABLES: Mapping[str, type[Struct]] = {
    "runs": RunRow,
    "calls": ToolCoverage,
    "cuts": CutRow,
    "states": StateRow,
    "files": FileUse,
    "actions": ActionRow,
    "rereads": RereadInterval,
    "exposures": RereadBin,
    "gaps": Gaps,
    "clips": ClippedView,
    "hidden_lines": HiddenLine,
    "anomalies": Anomaly,
    "breaks": BreakCost,
    "dropped": DroppedState,
    "instructions": InstructionFate,
    "entities": EntityDemand,
}


class LiveState(Struct, frozen=True):
    """One version of one file that was live at a run's peak."""

    path: str
    version: int
    tokens: int
    first_seen: int
    last_used: int | None


class RunDetails(RunRow, frozen=True, kw_only=True):
    """One analyzed run with its rows of the smaller tables; the document of `show`."""

    visibility: Visibility
    cuts: tuple[CutRow, ...]
    live_at_peak: tuple[LiveState, ...]  # the largest first
    calls_by_tool: tuple[ToolCoverage, ...]
    files: tuple[FileUse, ...]
    clips: tuple[ClippedView, ...]
    hidden_lines: tuple[HiddenLine, ...]
    anomalies: tuple[Anomaly, ...]
    breaks: tuple[BreakCost, ...]
    dropped: tuple[DroppedState, ...]
    gaps: tuple[Gaps, ...]
    entities: tuple[EntityDemand, ...]
    instructions: tuple[InstructionFate, ...]


class LogSources(Struct, frozen=True):
    """What identifies the corpus of an analysis."""

    names: tuple[str, ...]  # names of the given paths
    digest: str  # digest of their locations


class AnalysisClaim(Struct, frozen=True):
    """What `analysis.json` says of any analysis: whether it is finished, and of which logs it is."""

    complete: bool = False
    logs: LogSources | None = None


class SkippedInput(Struct, frozen=True):
    """A part of the input that is not in an analysis, and why."""

    source: str
    reason: str


class MeasuringOptions(Struct, frozen=True):
    """How runs were measured."""

    visibility: Visibility
    goal_tests: bool
    own_edits: OwnEdits
    rule: DemandRule
    windows_dated: str = ""  # date of the table of context windows


class UnknownTool(Struct, frozen=True):
    """A tool with calls that were not understood."""

    tool: str
    calls: int


class FormatCoverage(Struct, frozen=True):
    """How many calls in the logs of one format and version were understood."""

    format: str
    agent_version: str
    runs: int
    calls: int
    understood: int
    silent_runs: int  # runs with calls of which none was understood: what they read and wrote is unknown
    unknown: tuple[UnknownTool, ...]  # those with most calls


class SubAgentTotals(Struct, frozen=True, kw_only=True):
    """Sums over sub-agents."""

    runs: int
    turns: int
    calls: int
    reads: int
    writes: int
    trajectory_tokens: int


class StartedSubAgents(SubAgentTotals, frozen=True, kw_only=True):
    """The sub-agents that one run started."""

    parent_run: str


class SubAgents(SubAgentTotals, frozen=True, kw_only=True):
    """All sub-agents of an analysis; its other totals count each of them once."""

    parents: int  # runs that started any
    by_parent: tuple[StartedSubAgents, ...]  # those whose sub-agents took most tokens


class OutcomeCounts(Struct, frozen=True):
    """Runs by outcome."""

    resolved: int
    failed: int
    unknown: int


class BreakCounts(Struct, frozen=True):
    """How often contexts were compacted or cleared."""

    compactions: int
    clears: int
    manual_compactions: int
    automatic_compactions: int


class BreakTotals(BreakCounts, frozen=True):
    """Sums over all compactions and clears of an analysis, in tokens of files unless named otherwise."""

    live_tokens: int
    dropped_tokens: int
    reread_tokens: int
    never_reread_tokens: int
    reread_dropped_tokens: int
    overwritten_tokens: int
    unknown_tokens: int
    unmeasured: int  # compactions and clears of runs that used no file


class RunBreak(BreakCost, frozen=True, kw_only=True):
    """One break, with its run."""

    run_id: str


class LaterUse(Struct, frozen=True):
    """Quantiles of what runs held at the peak for later use, in one unit, and in files or entities."""

    runs: int
    peak_p50: float
    peak_p90: float
    peak_p99: float
    files_p50: float
    files_p90: float
    files_p99: float


class ListedRun(Struct, frozen=True):
    """What a summary lists of the runs with the largest demand."""

    run_id: str
    unit: Unit
    turns: int
    peak_demand_tokens: int | None
    peak_cut: int | None
    later_used_peak: int
    later_used_peak_cut: int | None
    goal_source: GoalSource | None
    goal_files: tuple[str, ...]
    goal_accessed: bool
    read_tokens: int | None
    repeat_tokens: int | None
    dead_read_tokens: int | None
    peak_context_tokens: int | None


class RepeatedFile(Struct, frozen=True):
    """One file that was shown again although unchanged, over all runs."""

    path: str
    repeat_tokens: int
    repeat_reads: int
    runs: int
    run_id: str  # run and turn of the reading that showed most of it again
    turn: int


class InstructionCounts(Struct, frozen=True, omit_defaults=True):
    """What became of instructions, or of open to-dos, at compactions and clears."""

    verbatim: int = 0
    substance: int = 0
    gone: int = 0
    unknown: int = 0
    broken: int = 0  # of those that were gone


class Advice(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One thing to act on: a file shown again, a compaction, a lost rule, a clipped view, or an expired cache."""

    kind: Literal["file", "compaction", "instruction", "clip", "expired"]
    run_id: str
    model: str = ""
    turn: int  # to look at; 0 if it is about a whole session
    subject: str  # the file, the kind of break, the rule, or the files of the view
    tokens: int | None = None  # shown again, dropped, or hidden
    count: int = 0  # of a file: readings; of a compaction: tokens that reading again took; of a cache: requests
    runs: int = 0  # of a file
    trigger: Trigger = "unknown"  # of a compaction
    cut: int = 0  # of a rule: the turn after the compaction
    by: str = ""  # of a rule: what broke it
    usd: float | None = None  # what it cost; None if that depends on prices, or is unknown


class AnalysisSummary(Struct, frozen=True, kw_only=True):
    """The summary of an analysis, as `analysis.json` stores it; a share of nothing is None."""

    complete: bool = True
    logs: LogSources | None = None
    eirkit: str = ""  # version
    options: MeasuringOptions
    runs: int
    skipped: tuple[SkippedInput, ...]
    goal_access: float | None  # share of runs over files that touched any goal file
    mean_peak_tokens: float | None  # over all runs over files, no coverage as 0
    mean_peak_covered_tokens: float | None
    mean_peak_seen_tokens: float | None
    mean_peak_environment_tokens: float | None
    mean_peak_paper_tokens: float | None
    judged_read_tokens: int  # of covered runs, in segments whose goal is known
    covered_runs: int
    goal_runs: int  # runs over files, which can have a goal
    goal_sources: Mapping[str, int]
    formats: Mapping[str, int]
    coverage: tuple[FormatCoverage, ...]
    sub_agents: SubAgents
    outcomes: OutcomeCounts
    turns: int
    reads: int
    writes: int
    trajectory_tokens: int
    undivided_reads: int
    read_tokens: int
    repeat_tokens: int
    dead_read_tokens: int
    clipped_views: int
    clipped_goal_views: int
    clipped_modified_views: int
    lines_recovered: int
    lines_never_recovered: int
    lines_ambiguous: int
    edit_failures: int
    repeated_commands: int
    repeated_edits: int
    submits_after_failed_test: int
    overflow_errors: int
    dead_read_covered_tokens: int
    dead_read_share: float | None  # of covered runs
    repeat_share: float | None
    breaks: BreakTotals
    later_used: Mapping[str, LaterUse]  # by unit
    mean_peak_context_share: float | None
    costliest_breaks: tuple[RunBreak, ...]
    largest: tuple[ListedRun, ...]
    repeated_files: tuple[RepeatedFile, ...]
    instructions: InstructionCounts
    todos: InstructionCounts
    advice: tuple[Advice, ...]


class Excluded(Struct, frozen=True):
    """Rows that were not used, and why."""

    reason: str
    rows: int

    def __str__(self) -> str:
        return f"{self.rows} {'row' if self.rows == 1 else 'rows'} left out: {self.reason}"


class CohortRow(Struct, frozen=True, kw_only=True):
    """A cohort of runs; a figure that does not exist is None and `note` says why."""

    cohort: str
    unit: Unit | None
    runs: int
    resolved: int
    failed: int
    unknown: int
    tasks: int
    models: int
    goal_access: float | None
    goal_sources: Mapping[str, int]
    covered_runs: int
    mean_peak_tokens: float | None
    mean_peak_covered_tokens: float | None
    mean_peak_entities: float | None
    failure_auc: float | None  # over all runs, with demand 0 where no goal file was touched
    auc_low: float | None
    auc_high: float | None
    auc_p: float | None
    auc_n: int
    auc_clustered_low: float | None
    auc_clustered_high: float | None
    covered_failure_auc: float | None  # over covered runs
    covered_auc_low: float | None
    covered_auc_high: float | None
    covered_auc_n: int | None
    note: str


class DistanceBin(Struct, frozen=True):
    """Exposure and rereads in one bin of distance over all runs of a cohort."""

    needed: bool
    midpoint_tokens: int
    exposure_tokens: int
    rereads: int
    entered: bool  # it is fitted


class FindingDetails(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Further figures of a test; which of them exist depends on its method."""

    clusters: int | None = None
    uncovered: int | None = None  # runs that touched no goal file and enter with demand 0
    bins: tuple[DistanceBin, ...] = ()
    tasks: int | None = None
    resamples: int | None = None
    draws: int | None = None
    priors: str = ""
    r_hat: float | None = None
    effective_draws: float | None = None
    total: float | None = None  # difference, of which the estimate is the indirect part
    median_failed_tokens: float | None = None  # gaps
    median_resolved_tokens: float | None = None
    never_runs: int | None = None  # clipping groups
    recovered_runs: int | None = None
    never_share: float | None = None
    recovered_share: float | None = None
    independent_low: float | None = None  # interval that takes runs for independent
    independent_high: float | None = None


class CohortTest(Struct, frozen=True, kw_only=True):
    """The result of one test on one cohort; a number that does not exist is None and `note` says why."""

    cohort: str
    name: str
    estimate: float | None
    low: float | None
    high: float | None
    p: float | None
    n: int  # rows used; these are runs unless the scale says otherwise
    scale: str  # of the estimate
    interval: str  # its method
    excluded: tuple[Excluded, ...]
    shows: str
    does_not_show: str
    note: str
    details: FindingDetails
    planned: bool = False
    p_holm: float | None = None


class PlannedTest(Struct, frozen=True):
    """A planned test without a result: not chosen, or meant for runs that are absent."""

    name: str
    cohort: str | None


class PlanUsed(Struct, frozen=True, kw_only=True):
    """The tests fixed in advance, and the settings of all."""

    planned: tuple[str, ...]
    recorded: str  # date, as given in the file
    digest: str  # SHA-256 of the file
    seed: int
    resamples: int
    mediation_resamples: int
    draws: int
    resampled: Literal["tasks", "runs"]
    not_run: tuple[PlannedTest, ...] = ()


class CohortStatistics(Struct, frozen=True):
    """The document of `vestige cohort`."""

    by: CohortKey
    cohorts: tuple[CohortRow, ...]
    tests: tuple[CohortTest, ...]
    repeated_runs: int  # runs that occur more than once
    plan: PlanUsed
