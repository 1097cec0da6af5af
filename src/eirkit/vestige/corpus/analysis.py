"""Measures one run: turns its recording into its rows of every table.

Pure functions; inputs and results can be sent to another process. Runs over files are measured in tokens against a
goal; runs over typed entities have no goal files and are measured in entities that later calls used.
"""

from __future__ import annotations

import gc
from collections import Counter as Tally
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache

from msgspec import Struct, structs

from eirkit.errors import EirkitError, MissingExtraError
from eirkit.limits import RECORD_SECONDS, check_time, time_limit
from eirkit.records.analysis import (
    Anomaly,
    BreakCost,
    ClippedView,
    DemandRule,
    DroppedState,
    EntityDemand,
    FileUse,
    Gaps,
    HiddenLine,
    InstructionFate,
    OwnEdits,
    RereadBin,
    RereadInterval,
    RunRow,
    ToolCoverage,
    Visibility,
)
from eirkit.vestige.actions.touches import coverage_of, interpret
from eirkit.vestige.audits.anomalies import anomalies
from eirkit.vestige.audits.clipping import clipped_views, clipping_group, hidden_lines
from eirkit.vestige.audits.compaction import break_costs, break_cuts, dropped_states
from eirkit.vestige.audits.instructions import instruction_fates
from eirkit.vestige.audits.occupancy import ContextWindows, occupancy
from eirkit.vestige.audits.reread import cells, gaps, intervals
from eirkit.vestige.demand.entities import entity_demand, entity_touches, first_shown
from eirkit.vestige.demand.gold_patches import GoldPatches, Patch, old_lines
from eirkit.vestige.demand.graph import Goal, goal_of, session_goal
from eirkit.vestige.demand.live_states import MeasuredRun, graph_tables, live_at, measure_touches
from eirkit.vestige.sources.documents import Skipped
from eirkit.vestige.tables import Columns, columns_of
from eirkit.vestige.tokens import CachedCounter, Counter
from eirkit.vestige.trajectory import Recording, Trajectory


@dataclass(frozen=True, slots=True)
class AnalysisOptions:
    """How runs are measured; equal options and equal input give equal tables."""

    windows: ContextWindows  # context windows of models
    visibility: Visibility = "seen"
    goal_tests: bool = False  # count test files of a reference patch as goal files
    own_edits: OwnEdits = "last"  # by the paper's rule, the goal where neither a patch nor the log names one
    rule: DemandRule = "edit-aware"  # what an edit uses, and the goal of a session for which nobody named one


class AnalyzedRun(Struct, frozen=True):
    """The rows of one run: those that a summary needs, and of all other tables the columns by name."""

    run: RunRow
    tables: Mapping[str, Columns]
    calls: Sequence[ToolCoverage] = ()
    files: Sequence[FileUse] = ()
    clips: Sequence[ClippedView] = ()
    breaks: Sequence[BreakCost] = ()
    instructions: Sequence[InstructionFate] = ()

    def columns(self) -> Mapping[str, Columns]:
        """Return the rows of every table as columns."""
        return {
            "runs": columns_of(RunRow, [self.run]),
            "calls": columns_of(ToolCoverage, self.calls),
            "files": columns_of(FileUse, self.files),
            "clips": columns_of(ClippedView, self.clips),
            "breaks": columns_of(BreakCost, self.breaks),
            "instructions": columns_of(InstructionFate, self.instructions),
            **self.tables,
        }


def measure(recording: Recording, patch: Patch | None, options: AnalysisOptions, count: Counter) -> AnalyzedRun:
    """Return the analysis of a recorded run."""
    count = CachedCounter(count)
    trajectory = interpret(recording, count)
    if recording.domain == "entities":
        return analyze_entities(trajectory, options, count)
    return analyze(trajectory, patch, options, count)


def analyze(trajectory: Trajectory, patch: Patch | None, options: AnalysisOptions, count: Counter) -> AnalyzedRun:
    """Return the analysis of a run over files."""
    check_time()
    by_paper = goal_of(trajectory, patch, tests=options.goal_tests, own_edits=options.own_edits)
    is_named = by_paper.source != "own-edits"
    goal = by_paper if is_named or options.rule == "paper" else session_goal(trajectory)
    measured = measure_touches(trajectory, goal, count, None if options.rule == "paper" else by_paper)
    check_time()
    waits = intervals(trajectory, goal.paths)
    events = anomalies(trajectory)
    clips = clipped_views(trajectory, goal.paths)
    hidden = hidden_lines(trajectory, old_lines(goal.patch, goal.paths))
    check_time()
    dropped = dropped_states(trajectory, _live_at_breaks(trajectory, goal, measured), count)
    tools = coverage_of(trajectory.recording, trajectory.unclear_calls)
    check_time()
    return AnalyzedRun(
        _run_row(trajectory, measured, goal, options, tools=tools, events=events, clips=clips, hidden=hidden),
        {
            **graph_tables(measured, goal, options.visibility),
            "rereads": columns_of(RereadInterval, waits),
            "exposures": columns_of(RereadBin, cells(waits)),
            "gaps": columns_of(Gaps, gaps(trajectory, waits)),
            "hidden_lines": columns_of(HiddenLine, hidden),
            "anomalies": columns_of(Anomaly, events),
            "dropped": columns_of(DroppedState, dropped),
        },
        tools,
        measured.files,
        clips,
        break_costs(trajectory, dropped, count, measured=_tells_need(goal, measured)),
        instruction_fates(trajectory),
    )


def analyze_entities(trajectory: Trajectory, options: AnalysisOptions, count: Counter) -> AnalyzedRun:
    """Return the analysis of a run over typed entities, each of which counts as one."""
    recording = trajectory.recording
    touched = zip(trajectory.turns, entity_touches(recording, "named"), strict=True)
    turns = tuple(structs.replace(turn, reads=touches.reads, writes=touches.writes) for turn, touches in touched)
    trajectory = replace(trajectory, turns=turns)
    measured = measure_touches(trajectory, None, count, shown_at=first_shown(recording))
    found = entity_demand(recording)
    events, clips = anomalies(trajectory), clipped_views(trajectory, ())
    tools = coverage_of(recording)
    tables = {
        **graph_tables(measured, None, options.visibility),
        "anomalies": columns_of(Anomaly, events),
        "entities": columns_of(EntityDemand, [found]),
    }
    row = _run_row(trajectory, measured, found, options, tools=tools, events=events, clips=clips)
    return AnalyzedRun(row, tables, tools, measured.files, clips)


def _run_row(
    trajectory: Trajectory,
    run: MeasuredRun,
    needed: Goal | EntityDemand,
    options: AnalysisOptions,
    *,
    tools: Sequence[ToolCoverage],
    events: Sequence[Anomaly],
    clips: Sequence[ClippedView],
    hidden: Sequence[HiddenLine] = (),
) -> RunRow:
    """Return the row of a run; one over entities has no goal files, and none of the columns about them."""
    recording = trajectory.recording
    goal = needed if isinstance(needed, Goal) else None
    patch = None if goal is None else goal.patch
    shown = run.under(options.visibility)
    reads = sum(len(states) for states in run.graph.reads)
    parent = recording.details.get("parent_run")
    length = sum(turn.tokens for turn in trajectory.turns)
    context = occupancy(recording, options.windows, length)
    signatures = Tally(event.signature for event in events)
    outcomes = Tally(line.outcome for line in hidden)
    judged = zip(run.shown.read_tokens, run.judged, strict=True)
    return RunRow(
        run_id=recording.run_id,
        task_id=recording.task_id,
        model=recording.model,
        format=recording.format,
        source=recording.source,
        agent_version=recording.agent_version,
        domain=recording.domain,
        unit="entities" if goal is None else "tokens",
        resolved=recording.resolved,
        reward=recording.reward,
        exit_status=recording.exit_status,
        turns=len(trajectory.turns),
        tool_turns=sum(1 for turn in trajectory.turns if turn.recorded.calls or turn.reads or turn.writes),
        calls=sum(tool.calls for tool in tools),
        calls_understood=sum(tool.understood for tool in tools),
        reads=reads,
        writes=sum(use.writes for use in run.files),
        trajectory_tokens=length,
        goal_source=None if goal is None else goal.source,
        goal_files=() if goal is None else goal.files,
        goal_accessed=goal is not None and run.needed.sinks > 0,
        peak_demand_tokens=None if goal is None else shown.peak,
        peak_cut=None if goal is None else shown.peak_cut,
        peak_seen_tokens=None if goal is None else run.seen.peak,
        peak_environment_tokens=None if goal is None else run.environment.peak,
        peak_paper_tokens=None if goal is None else run.paper_peak,
        segments=None if goal is None else len(goal.segments) or None,
        later_used_peak=run.later_used.peak,
        later_used_peak_cut=run.later_used.peak_cut,
        later_used_peak_files=max(run.later_used.live, default=0),
        read_tokens=None if goal is None else sum(use.read_tokens for use in run.files),
        repeat_tokens=None if goal is None else sum(use.repeat_tokens for use in run.files),
        dead_reads=sum(use.dead_reads for use in run.files),
        dead_read_tokens=None if goal is None else sum(use.dead_tokens for use in run.files),
        judged_read_tokens=None if goal is None else sum(sum(tokens) for tokens, is_judged in judged if is_judged),
        necessary_actions=sum(use.needed_reads for use in run.files) + sum(run.needed.needed_writes),
        actions=reads + sum(1 for made in run.graph.writes if made),
        peak_context_tokens=context.peak_tokens,
        context_measured=context.measured,
        window_tokens=context.window_tokens,
        window_source=context.window_source,
        peak_context_share=context.peak_share,
        prompt_monotone=context.prompt_monotone,
        prompt_drops=context.prompt_drops,
        overflow_errors=context.overflow_errors,
        summary_markers=context.summary_markers,
        clears=context.clears,
        gold_files=None if goal is None or patch is None else len(goal.files),
        gold_additions=None if patch is None else patch.additions,
        gold_deletions=None if patch is None else patch.deletions,
        clipped_views=len(clips),
        clipped_goal_views=sum(clip.on_goal for clip in clips),
        clipped_modified_views=sum(clip.later_modified for clip in clips),
        clipping_group=clipping_group(hidden),
        lines_recovered=outcomes["recovered"],
        lines_never_recovered=outcomes["never"],
        lines_ambiguous=outcomes["ambiguous"],
        edit_failures=signatures["edit_failure"],
        repeated_commands=signatures["repeated_command"],
        repeated_edits=signatures["repeated_edit"],
        submits_after_failed_test=signatures["submit_after_failed_test"],
        task_entities=needed.task_entities if isinstance(needed, EntityDemand) else None,
        parent_run=parent if isinstance(parent, str) else "",
        undivided_reads=sum(read.undivided for turn in trajectory.turns for read in turn.reads),
    )


def _tells_need(goal: Goal, run: MeasuredRun) -> bool:
    """Return whether a run used a file that shows what it needed at a break."""
    if goal.source == "own-edits":
        return any(run.graph.reads) or any(run.graph.writes)
    return run.needed.sinks > 0


def _live_at_breaks(trajectory: Trajectory, goal: Goal, run: MeasuredRun) -> dict[int, dict[str, int]]:
    """Return what was live at each break, with the cost of its state.

    Where the goal is only what the run edited, every later use counts, because a long session serves many goals.
    """
    needed, costs = run.used if goal.source == "own-edits" else run.needed, run.shown.costs
    return {
        cut: {run.graph.paths[state]: costs[state] for state in live_at(run.graph, needed, cut, "seen")}
        for cut in break_cuts(trajectory)
    }


_PATCHES = 1 << 10  # parsed patches that are cached; runs of one task often follow each other
_YOUNG = 500_000  # allocations between two garbage collections


@contextmanager
def fewer_collections() -> Iterator[None]:
    """Collect garbage less often: a run has some hundred thousand small objects and no cycles."""
    before = gc.get_threshold()
    gc.set_threshold(max(_YOUNG, before[0]) if before[0] else 0, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def measured(
    items: Iterable[Recording | Skipped], options: AnalysisOptions, count: Counter, gold: GoldPatches | None
) -> Iterator[AnalyzedRun | Skipped]:
    """Yield the analysis of each run; skipped items pass unchanged."""
    patch_of = lru_cache(maxsize=_PATCHES)(_no_patch if gold is None else gold.get)
    for item in items:
        yield item if isinstance(item, Skipped) else measured_or_skipped(item, patch_of(item.task_id), options, count)
        del item


def measured_or_skipped(
    recording: Recording, patch: Patch | None, options: AnalysisOptions, count: Counter
) -> AnalyzedRun | Skipped:
    """Return a run's analysis, or the reason why it could not be measured."""
    try:
        with time_limit(RECORD_SECONDS, f"run {recording.run_id}"):
            return measure(recording, patch, options, count)
    except (MissingExtraError, MemoryError):
        raise
    except EirkitError as error:
        return Skipped(recording.source, str(error))
    except Exception as error:  # noqa: BLE001 - the one place where a run is driven
        cause = f"{type(error).__name__}: {error}"[:200]
        return Skipped(recording.source, f"run {recording.run_id} could not be measured ({cause}); report it")


def _no_patch(task_id: str) -> Patch | None:
    return None
