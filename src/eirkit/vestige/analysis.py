"""One run measured: a recording comes in, its rows of every table go out.

Pure, and all that it takes and gives can be sent to another process. Runs over files are measured in tokens against a
goal; runs over typed entities in entities that later calls used, since they have no goal files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from eirkit.vestige.anomalies import Anomaly, anomalies
from eirkit.vestige.clipping import ClippedView, HiddenLine, clipped_views, hidden_lines, old_lines
from eirkit.vestige.compaction import BreakCost, DroppedState, break_costs, break_cuts, dropped_states
from eirkit.vestige.demand import Visibility, live_at
from eirkit.vestige.entities import EntityDemand, entity_demand, entity_touches
from eirkit.vestige.goal import Goal, OwnEdits, goal_of
from eirkit.vestige.gold import Patch
from eirkit.vestige.measuring import Measured, graph_tables, measure_touches
from eirkit.vestige.occupancy import Windows, occupancy
from eirkit.vestige.reread import Cell, Gaps, Interval, cells, gaps, intervals
from eirkit.vestige.reuse import FileUse
from eirkit.vestige.rows import ActionRow, CutRow, RunRow, StateRow
from eirkit.vestige.run_rows import (
    anomaly_counts,
    clip_counts,
    context,
    entity_needs,
    identity,
    needs,
    run_row,
    traffic,
)
from eirkit.vestige.tables import Columns, columns_of
from eirkit.vestige.tokens import Counter, Remembering
from eirkit.vestige.touches import interpret
from eirkit.vestige.trajectory import Recording, Trajectory

TABLES: Mapping[str, type] = {
    "runs": RunRow,
    "cuts": CutRow,
    "states": StateRow,
    "files": FileUse,
    "actions": ActionRow,
    "rereads": Interval,
    "exposures": Cell,
    "gaps": Gaps,
    "clips": ClippedView,
    "hidden_lines": HiddenLine,
    "anomalies": Anomaly,
    "breaks": BreakCost,
    "dropped": DroppedState,
    "entities": EntityDemand,
}


@dataclass(frozen=True, slots=True)
class Options:
    """How runs are measured; equal options and equal input give equal tables."""

    windows: Windows  # sizes of the models' context windows
    visibility: Visibility = "seen"
    goal_tests: bool = False  # test files of a reference patch are goal files too
    own_edits: OwnEdits = "last"  # what stands in where nobody says what the goal was


@dataclass(frozen=True, slots=True)
class Analysis:
    """One run's rows: its own, and columns by table and name."""

    run: RunRow
    tables: Mapping[str, Columns]


def measure(recording: Recording, patch: Patch | None, options: Options, count: Counter) -> Analysis:
    """Return the analysis of a run as it was recorded."""
    count = Remembering(count)
    trajectory = interpret(recording, count)
    if recording.domain == "entities":
        return analyze_entities(trajectory, options, count)
    goal = goal_of(trajectory, patch, tests=options.goal_tests, own_edits=options.own_edits)
    return analyze(trajectory, goal, options, count)


def analyze(trajectory: Trajectory, goal: Goal, options: Options, count: Counter) -> Analysis:
    """Return the analysis of a run over files."""
    measured = measure_touches(trajectory, goal, count)
    waits = intervals(trajectory, goal.paths)
    events = anomalies(trajectory)
    clips = clipped_views(trajectory, goal.paths)
    hidden = hidden_lines(trajectory, old_lines(goal.patch, goal.paths))
    dropped = dropped_states(trajectory, _live_at_breaks(trajectory, goal, measured), count)
    tables = {
        **graph_tables(measured, goal, options.visibility),
        "rereads": columns_of(Interval, waits),
        "exposures": columns_of(Cell, cells(trajectory.recording.run_id, waits)),
        "gaps": columns_of(Gaps, gaps(trajectory, waits)),
        "clips": columns_of(ClippedView, clips),
        "hidden_lines": columns_of(HiddenLine, hidden),
        "anomalies": columns_of(Anomaly, events),
        "breaks": columns_of(BreakCost, break_costs(trajectory, dropped, count, measured=_tells_need(goal, measured))),
        "dropped": columns_of(DroppedState, dropped),
    }
    audits = {**anomaly_counts(events), **clip_counts(clips, hidden)}
    return Analysis(_row(trajectory, measured, needs(goal, measured, options.visibility), audits, options), tables)


def analyze_entities(trajectory: Trajectory, options: Options, count: Counter) -> Analysis:
    """Return the analysis of a run over typed entities, each of which counts as one."""
    recording = trajectory.recording
    touched = zip(trajectory.turns, entity_touches(recording, "named"), strict=True)
    turns = tuple(replace(turn, reads=touches.reads, writes=touches.writes) for turn, touches in touched)
    trajectory = replace(trajectory, turns=turns)
    measured, found = measure_touches(trajectory, None, count), entity_demand(recording)
    events, clips = anomalies(trajectory), clipped_views(trajectory, ())
    tables = {
        **graph_tables(measured, None, options.visibility),
        "clips": columns_of(ClippedView, clips),
        "anomalies": columns_of(Anomaly, events),
        "entities": columns_of(EntityDemand, [found]),
    }
    audits = {**anomaly_counts(events), **clip_counts(clips, ())}
    return Analysis(_row(trajectory, measured, entity_needs(found), audits, options), tables)


def _row(
    trajectory: Trajectory, run: Measured, needed: Mapping[str, Any], audits: Mapping[str, Any], options: Options
) -> RunRow:
    flow = traffic(trajectory, run)
    filled = occupancy(trajectory.recording, options.windows, flow["trajectory_tokens"])
    return run_row(identity(trajectory.recording), flow, needed, context(filled), audits)


def _tells_need(goal: Goal, run: Measured) -> bool:
    """Tell whether a run used a file from which what it needed at a break can be told."""
    if goal.source == "own-edits":
        return any(run.graph.reads) or any(run.graph.writes)
    return run.needed.sinks > 0


def _live_at_breaks(trajectory: Trajectory, goal: Goal, run: Measured) -> dict[int, dict[str, int]]:
    """Return what was live at each compaction.

    Where the goal is only the run's last edit, whatever was used later counts: a long session serves many ends.
    """
    needed = run.used if goal.source == "own-edits" else run.needed
    return {
        cut: {run.graph.paths[state]: run.shown.costs[state] for state in live_at(run.graph, needed, cut, "seen")}
        for cut in break_cuts(trajectory)
    }
