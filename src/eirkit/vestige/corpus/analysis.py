"""Measures one run: turns its recording into its rows of every table.

Pure functions; inputs and results can be sent to another process. Runs over files are measured in tokens against a
goal; runs over typed entities have no goal files and are measured in entities that later calls used.
"""

from __future__ import annotations

import gc
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
from eirkit.vestige.audits.clipping import clipped_views, hidden_lines
from eirkit.vestige.audits.compaction import break_costs, dropped_states
from eirkit.vestige.audits.instructions import instruction_fates
from eirkit.vestige.audits.occupancy import ContextWindows, Occupancy, occupancy
from eirkit.vestige.audits.reread import cells, gaps, intervals
from eirkit.vestige.corpus.rows import Audits, run_row
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
    dropped = dropped_states(trajectory, _live_at_breaks(goal, measured), count)
    tools = coverage_of(trajectory.recording, trajectory.unclear_calls)
    audits = Audits(_context(trajectory, options), tools, events, clips, hidden)
    check_time()
    return AnalyzedRun(
        run_row(trajectory, measured, goal, audits, options.visibility),
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
    audits = Audits(_context(trajectory, options), tools, events, clips)
    tables = {
        **graph_tables(measured, None, options.visibility),
        "anomalies": columns_of(Anomaly, events),
        "entities": columns_of(EntityDemand, [found]),
    }
    row = run_row(trajectory, measured, found, audits, options.visibility)
    return AnalyzedRun(row, tables, tools, measured.files, clips)


def _context(trajectory: Trajectory, options: AnalysisOptions) -> Occupancy:
    return occupancy(trajectory.recording, options.windows, sum(turn.tokens for turn in trajectory.turns))


def _tells_need(goal: Goal, run: MeasuredRun) -> bool:
    """Return whether a run used a file that shows what it needed at a break."""
    if goal.source == "own-edits":
        return any(run.graph.reads) or any(run.graph.writes)
    return run.needed.sinks > 0


def _live_at_breaks(goal: Goal, run: MeasuredRun) -> dict[int, dict[str, int]]:
    """Return what was live at each compaction, in tokens that had been shown before it.

    Where the goal is only what the run edited, every later use counts, because a long session serves many goals.
    """
    needed = run.used if goal.source == "own-edits" else run.needed
    return {
        cut: {run.graph.paths[state]: costs[state] for state in live_at(run.graph, needed, cut, "seen")}
        for cut, costs in run.shown.at_breaks.items()
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
