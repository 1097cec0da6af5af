"""The tables of an analysis that are not an audit's own, and what each column means; `run_id` is the first of all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from eirkit.vestige.clipping import Group
from eirkit.vestige.goal import GoalSource
from eirkit.vestige.trajectory import Domain

Unit = Literal["tokens", "entities"]


@dataclass(frozen=True, slots=True)
class RunRow:
    """One run; a row of `runs`."""

    run_id: str
    task_id: str
    model: str
    format: str
    source: str
    domain: Domain
    unit: Unit  # in which demand is measured; runs of different units are never pooled
    resolved: bool | None
    reward: float | None
    exit_status: str
    turns: int
    tool_turns: int  # that called a tool or touched a file
    reads: int
    writes: int
    trajectory_tokens: int
    goal_source: GoalSource | None  # None: a domain without goal files
    goal_files: tuple[str, ...]
    goal_accessed: bool
    peak_demand_tokens: int | None  # under the chosen visibility; 0 where no goal file was touched; None: other unit
    peak_cut: int | None  # the first cut with the peak
    peak_seen_tokens: int | None
    peak_environment_tokens: int | None
    later_used_peak: int  # in the run's unit: the same with every later use counted, whatever it was for
    later_used_peak_cut: int | None
    later_used_peak_files: int  # files, or entities
    read_tokens: int | None  # None, as the next two, in runs over entities
    repeat_tokens: int | None  # shown again though unchanged and shown before
    dead_reads: int
    dead_read_tokens: int | None  # read, and used by nothing that leads to the goal
    necessary_actions: int
    actions: int
    peak_context_tokens: int | None  # the largest prompt with its reply
    context_measured: bool  # False: the log gives no prompt sizes, and the run's tokens stand for them
    window_tokens: int | None
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
    clipped_modified_views: int  # of files that the run modified later
    clipping_group: Group
    lines_recovered: int  # changed old lines that a clipped view left out and a later one showed
    lines_never_recovered: int
    lines_ambiguous: int
    edit_failures: int
    repeated_commands: int
    repeated_edits: int
    submits_after_failed_test: int
    task_entities: int | None  # that the task itself names


@dataclass(frozen=True, slots=True)
class CutRow:
    """The moment before one turn; a row of `cuts`."""

    cut: int
    demand_tokens: int | None  # None: another unit
    live_files: int  # or entities
    later_used: int  # in the run's unit
    later_used_files: int


@dataclass(frozen=True, slots=True)
class StateRow:
    """One version of one file; a row of `states`."""

    path: str
    version: int
    made_at: int  # the turn that wrote it; 0 for the start
    first_seen: int
    last_used: int | None  # the last turn in the slice that consumes it
    tokens: int  # 1 for an entity
    in_slice: bool
    later_used: int | None  # the last turn that consumes it, whatever for


@dataclass(frozen=True, slots=True)
class ActionRow:
    """One read, or one file of a turn's write action; a row of `actions`."""

    turn: int
    kind: Literal["read", "write"]
    path: str
    version: int  # that was consumed or made
    tokens: int | None  # that a read showed
    necessary: bool  # in the slice
    sink: bool  # of a goal file
    carried_to: int | None  # of a read: the turn of the write action that depends on it
