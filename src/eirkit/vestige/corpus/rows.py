"""Row types of the tables `runs`, `cuts`, `states` and `actions`, and the computation of a run's row.

`run_id` is the first column of every table.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from eirkit.records.facts import fact
from eirkit.vestige.actions.touches import ToolCoverage
from eirkit.vestige.audits.anomalies import Anomaly, Signature
from eirkit.vestige.audits.clipping import ClippedView, Group, HiddenLine, clipping_group
from eirkit.vestige.audits.occupancy import Occupancy, WindowSource
from eirkit.vestige.demand.entities import EntityDemand
from eirkit.vestige.demand.graph import Goal, GoalSource
from eirkit.vestige.demand.live_states import MeasuredRun, Visibility
from eirkit.vestige.trajectory import Domain, Recording, Trajectory

Unit = Literal["tokens", "entities"]


@fact
class RunRow:
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
    clipping_group: Group
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


@dataclass(frozen=True, slots=True)
class CutRow:
    """The moment before one turn; a row of `cuts`."""

    cut: int
    demand_tokens: int | None  # None in other units
    live_files: int  # files, or entities
    later_used: int  # in the run's unit
    later_used_files: int


@dataclass(frozen=True, slots=True)
class StateRow:
    """One version of one file; a row of `states`."""

    path: str
    version: int
    made_at: int  # the turn that wrote it; 0 if it existed before the run
    first_seen: int
    last_used: int | None  # the last turn in the slice that uses it
    tokens: int  # 1 for an entity
    in_slice: bool
    later_used: int | None  # the last turn that uses it for any purpose


@dataclass(frozen=True, slots=True)
class ActionRow:
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


_COLUMN_OF: Mapping[Signature, str] = {
    "edit_failure": "edit_failures",
    "repeated_command": "repeated_commands",
    "repeated_edit": "repeated_edits",
    "submit_after_failed_test": "submits_after_failed_test",
}
# Columns that only runs over files have.
_OF_FILES = (
    "goal_source",
    "peak_demand_tokens",
    "peak_cut",
    "peak_seen_tokens",
    "peak_environment_tokens",
    "peak_paper_tokens",
    "segments",
    "gold_files",
    "gold_additions",
    "gold_deletions",
    "read_tokens",
    "repeat_tokens",
    "dead_read_tokens",
    "judged_read_tokens",
)


def identity(recording: Recording) -> dict[str, Any]:
    """Return what identifies a run."""
    names = ("run_id", "task_id", "model", "format", "source", "agent_version", "domain", "resolved", "reward")
    parent = recording.details.get("parent_run")
    known = {name: getattr(recording, name) for name in (*names, "exit_status")}
    return {**known, "parent_run": parent if isinstance(parent, str) else ""}


def needs(goal: Goal, run: MeasuredRun, visibility: Visibility) -> dict[str, Any]:
    """Return what a run over files needed for its goal."""
    shown = run.under(visibility)
    return {
        "unit": "tokens",
        "goal_source": goal.source,
        "goal_files": goal.files,
        "goal_accessed": run.needed.sinks > 0,
        "peak_demand_tokens": shown.peak,
        "peak_cut": shown.peak_cut,
        "peak_seen_tokens": run.seen.peak,
        "peak_environment_tokens": run.environment.peak,
        "peak_paper_tokens": run.paper_peak,
        "segments": len(goal.segments) or None,
        "gold_files": None if goal.patch is None else len(goal.files),
        "gold_additions": None if goal.patch is None else goal.patch.additions,
        "gold_deletions": None if goal.patch is None else goal.patch.deletions,
        "task_entities": None,
    }


def entity_needs(found: EntityDemand) -> dict[str, Any]:
    """Return the same columns for a run over entities, which has no goal files."""
    return {
        **dict.fromkeys(_OF_FILES),
        "unit": "entities",
        "goal_files": (),
        "goal_accessed": False,
        "task_entities": found.task_entities,
    }


def traffic(trajectory: Trajectory, run: MeasuredRun) -> dict[str, Any]:
    """Return how much a run read, reread and read in vain, and how much it used later for any purpose."""
    reads = sum(len(states) for states in run.graph.reads)
    actions = reads + sum(1 for made in run.graph.writes if made)
    needed_reads = sum(use.needed_reads for use in run.files)
    return {
        "turns": len(trajectory.turns),
        "tool_turns": sum(1 for turn in trajectory.turns if turn.recorded.calls or turn.reads or turn.writes),
        "reads": reads,
        "undivided_reads": sum(read.undivided for turn in trajectory.turns for read in turn.reads),
        "writes": sum(use.writes for use in run.files),
        "trajectory_tokens": sum(turn.tokens for turn in trajectory.turns),
        "later_used_peak": run.later_used.peak,
        "later_used_peak_cut": run.later_used.peak_cut,
        "later_used_peak_files": max(run.later_used.live, default=0),
        "read_tokens": sum(use.read_tokens for use in run.files),
        "repeat_tokens": sum(use.repeat_tokens for use in run.files),
        "dead_reads": sum(use.dead_reads for use in run.files),
        "dead_read_tokens": sum(use.dead_tokens for use in run.files),
        "judged_read_tokens": sum(
            sum(tokens) for tokens, is_judged in zip(run.shown.read_tokens, run.judged, strict=True) if is_judged
        ),
        "necessary_actions": needed_reads + sum(run.needed.needed_writes),
        "actions": actions,
    }


def context(found: Occupancy) -> dict[str, Any]:
    """Return how full the model's context window was."""
    return {
        "peak_context_tokens": found.peak_tokens,
        "context_measured": found.measured,
        "window_tokens": found.window_tokens,
        "window_source": found.window_source,
        "peak_context_share": found.peak_share,
        "prompt_monotone": found.prompt_monotone,
        "prompt_drops": found.prompt_drops,
        "overflow_errors": found.overflow_errors,
        "summary_markers": found.summary_markers,
        "clears": found.clears,
    }


def anomaly_counts(events: Iterable[Anomaly]) -> dict[str, int]:
    """Return how often each anomaly pattern was found."""
    tally = Tally(event.signature for event in events)
    return {column: tally[signature] for signature, column in _COLUMN_OF.items()}


def call_counts(tools: Iterable[ToolCoverage]) -> dict[str, int]:
    """Return how many calls a run made, and how many of them were understood."""
    tally: Tally[str] = Tally()
    for tool in tools:
        tally.update(calls=tool.calls, calls_understood=tool.understood)
    return {name: tally[name] for name in ("calls", "calls_understood")}


def clip_counts(clips: Sequence[ClippedView], hidden: Sequence[HiddenLine]) -> dict[str, Any]:
    """Return how often the scaffold truncated an output, and whether hidden lines that mattered were shown later."""
    tally = Tally(line.outcome for line in hidden)
    return {
        "clipped_views": len(clips),
        "clipped_goal_views": sum(clip.on_goal for clip in clips),
        "clipped_modified_views": sum(clip.later_modified for clip in clips),
        "clipping_group": clipping_group(hidden),
        "lines_recovered": tally["recovered"],
        "lines_never_recovered": tally["never"],
        "lines_ambiguous": tally["ambiguous"],
    }


def run_row(*parts: Mapping[str, Any]) -> RunRow:
    """Return the row assembled from its parts."""
    return RunRow(**{name: value for part in parts for name, value in part.items()})
