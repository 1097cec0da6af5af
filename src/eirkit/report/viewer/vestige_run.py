"""Reads the tables of a `vestige analyze` folder for the viewer: the list of runs, and all rows of one run.

The rows of a run are contiguous and in the order of `runs`, so they are found by binary search over the row groups
instead of reading a table of millions of rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import asdict

from eirkit.errors import InputFileError
from eirkit.records.analysis import (
    ActionRow,
    AnalysisSummary,
    Anomaly,
    BreakCost,
    ClippedView,
    CutRow,
    DroppedState,
    EntityDemand,
    FileUse,
    HiddenLine,
    InstructionFate,
    RunRow,
    StateRow,
    Visibility,
)
from eirkit.report.logs.break_sentences import break_line
from eirkit.report.table import counted
from eirkit.report.viewer.tables import ArrowColumns, Field, RowTable, telling
from eirkit.vestige.demand.gold_patches import GoldPatches, old_lines
from eirkit.vestige.measures import LOG_MEASURES, READING_MEASURES
from eirkit.vestige.tables import RUN, T, arrow, read_analysis, read_rows, read_table, rows_of, table_of

FIELDS: tuple[Field, ...] = (
    Field("run_id", "run", "text"),
    Field("task_id", "task", "text", shown=False, part="replicate"),
    Field("model", "model", "text", facet=True, part="setting"),
    Field("format", "format", "text", facet=True, part="setting"),
    Field("agent_version", "version", "text", "Of the agent", facet=True, shown=False, part="setting"),
    Field("parent_run", "started by", "text", "The run that started this sub-agent", shown=False),
    Field("unit", "unit", "text", "In which demand is measured", facet=True, shown=False),
    Field("resolved", "resolved", "flag", facet=True),
    Field("turns", "turns"),
    Field("calls", "calls", shown=False),
    Field.of(LOG_MEASURES["calls_understood"], shown=False),
    Field("reads", "reads"),
    Field("writes", "writes"),
    Field.of(LOG_MEASURES["trajectory_tokens"]),
    Field("goal_source", "goal from", "text", "Who says what the goal was", facet=True, shown=False),
    Field("goal_accessed", LOG_MEASURES["goal_accessed"].label, "flag", LOG_MEASURES["goal_accessed"].meaning, True),
    *(Field.of(LOG_MEASURES[key]) for key in ("peak_demand_tokens", "peak_cut", "later_used_peak")),
    *(Field.of(READING_MEASURES[key]) for key in ("dead_read_tokens", "repeat_tokens")),
    Field.of(LOG_MEASURES["clipped_views"]),
    Field("clipping_group", "lost lines", "text", "What became of gold lines that a cut hid", facet=True),
    Field.of(LOG_MEASURES["summary_markers"]),
    *(Field.of(LOG_MEASURES[key], shown=False) for key in ("edit_failures", "repeated_commands")),
    Field("exit_status", "exit", "text", facet=True, shown=False),
)
OF_GOAL = ("peak_demand_tokens", "peak_cut", "dead_read_tokens")


class AnalysisTables:
    """The tables of one analysis, read on first use."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @cached_property
    def summary(self) -> AnalysisSummary:
        return read_analysis(self.folder)

    @cached_property
    def _runs(self) -> Any:
        return read_table(self.folder, "runs")

    @cached_property
    def places(self) -> Mapping[str, int]:
        """The row number of every run."""
        return {name: place for place, name in enumerate(self._runs[RUN].to_pylist())}

    @cached_property
    def table(self) -> RowTable:
        columns = ArrowColumns(_known(self._runs))
        return RowTable(telling(FIELDS, columns, (RUN,)), columns)

    def run(self, run_id: str) -> RunRow:
        """Return the row of a run in `runs`."""
        place = self.places.get(run_id)
        if place is None:
            raise InputFileError(f"no run named {run_id!r} here; go back to the table and choose one")
        return rows_of(self._runs.slice(place, 1), RunRow, self.folder)[0]

    def rows(self, row: type[T], run_id: str) -> tuple[T, ...]:
        """Return the rows of a run in the table of such rows."""
        found = _Groups(self.folder / f"{table_of(row)}.parquet", self.places).rows(run_id)
        return tuple(read_rows(self.folder, row, run_id) if found is None else rows_of(found, row, self.folder))


def _known(runs: Any) -> Any:
    """Return `runs` with goal figures set to null for runs that touched no goal file, where zero would mislead."""
    if "goal_accessed" not in runs.column_names:
        return runs
    pyarrow = arrow()
    reached = pyarrow.compute.equal(runs["goal_accessed"], True)
    for name in (name for name in OF_GOAL if name in runs.column_names):
        figures = pyarrow.compute.if_else(reached, runs[name], pyarrow.scalar(None, runs[name].type))
        runs = runs.set_column(runs.column_names.index(name), name, figures)
    return runs


class _Groups:
    """The row groups of one table, in which runs are in the order of `runs`."""

    def __init__(self, path: Path, places: Mapping[str, int]) -> None:
        self.path, self.places = path, places

    def rows(self, run_id: str) -> Any | None:
        """Return the rows of a run as a pyarrow table; None if the table is not in the order of `runs`."""
        wanted = self.places[run_id]
        pyarrow = arrow()
        with pyarrow.parquet.ParquetFile(self.path) as stored:
            ends: dict[int, tuple[int, int]] = {}

            def end(group: int) -> tuple[int, int]:
                if group not in ends:
                    names: Sequence[str] = stored.read_row_group(group, columns=[RUN])[RUN]
                    ends[group] = self.places[str(names[0])], self.places[str(names[-1])]
                return ends[group]

            low, high = 0, stored.num_row_groups
            while low < high:  # the first group that ends with this run or a later one
                middle = (low + high) // 2
                first, last = end(middle)
                if first > last:
                    return None
                low, high = (middle + 1, high) if last < wanted else (low, middle)
            found = [stored.schema_arrow.empty_table()]
            while low < stored.num_row_groups and end(low)[0] <= wanted:
                group = stored.read_row_group(low)
                found.append(group.filter(pyarrow.compute.equal(group[RUN], run_id)))
                low += 1
            return pyarrow.concat_tables(found)


MOST_ACTIONS = 20_000  # actions that are drawn


class TurnCounts(Struct):
    """What one turn did."""

    turn: int
    reads: int = 0
    dead: int = 0  # reads that led nowhere
    writes: int = 0
    needed: bool = False
    events: list[str] = []


class ShownLine(HiddenLine, frozen=True, kw_only=True, omit_defaults=True):
    """A hidden line with its text, where reference patches are given."""

    text: str | None = None


class RunView(Struct, frozen=True, kw_only=True):
    """All rows of a run that the viewer draws."""

    kind: Literal["vestige"] = "vestige"
    run: RunRow
    answer: tuple[str, ...]  # sentences on what was dropped and needed
    visibility: Visibility
    turns: tuple[TurnCounts, ...]
    actions: tuple[ActionRow, ...]
    actions_left_out: int
    goal: tuple[str, ...]  # goal files that it touched
    cuts: tuple[CutRow, ...]
    states: tuple[StateRow, ...]
    files: tuple[FileUse, ...]
    clips: tuple[ClippedView, ...]
    hidden_lines: tuple[ShownLine, ...]
    anomalies: tuple[Anomaly, ...]
    breaks: tuple[BreakCost, ...]
    dropped: tuple[DroppedState, ...]
    entities: tuple[EntityDemand, ...]
    instructions: tuple[InstructionFate, ...]
    has_logs: bool  # its log can be read, too


def run_view(
    tables: AnalysisTables, run_id: str, gold: GoldPatches | None = None, *, has_logs: bool = False
) -> RunView:
    """Return all rows of a run; reference patches supply the text of hidden lines."""
    run = tables.run(run_id)
    actions = tables.rows(ActionRow, run_id)
    hidden = tables.rows(HiddenLine, run_id)
    clips, breaks = tables.rows(ClippedView, run_id), tables.rows(BreakCost, run_id)
    anomalies, instructions = tables.rows(Anomaly, run_id), tables.rows(InstructionFate, run_id)
    lost = old_lines(gold.get(run.task_id), {line.path for line in hidden}) if gold is not None and hidden else {}
    events = [
        *((cost.cut, f"{cost.kind}: {break_line(cost)}") for cost in breaks),
        *((clip.turn, _clip(clip)) for clip in clips),
        *((line.turn, _hidden(line)) for line in hidden),
        *((anomaly.turn, anomaly.signature.replace("_", " ")) for anomaly in anomalies),
    ]
    return RunView(
        run=run,
        answer=tuple(answer_of(run, breaks, instructions)),
        visibility=tables.summary.options.visibility,
        turns=turns_of(run.turns, actions, events),
        actions=actions[:MOST_ACTIONS],
        actions_left_out=max(0, len(actions) - MOST_ACTIONS),
        goal=tuple(sorted({action.path for action in actions if action.sink})),
        cuts=tables.rows(CutRow, run_id),
        states=tables.rows(StateRow, run_id),
        files=tables.rows(FileUse, run_id),
        clips=clips,
        hidden_lines=tuple(ShownLine(**asdict(line), text=lost.get(line.path, {}).get(line.line)) for line in hidden),
        anomalies=anomalies,
        breaks=breaks,
        dropped=tables.rows(DroppedState, run_id),
        entities=tables.rows(EntityDemand, run_id),
        instructions=instructions,
        has_logs=has_logs,
    )


def answer_of(run: RunRow, breaks: Sequence[BreakCost], instructions: Sequence[InstructionFate]) -> Iterator[str]:
    """Yield what the compaction or clear that dropped most took, what was broken after one, and the peak of demand."""
    if measured := [cost for cost in breaks if cost.measured]:
        worst = max(measured, key=lambda cost: cost.dropped_tokens)
        others = f", the one of {len(breaks):,} that dropped most" if len(breaks) > 1 else ""
        yield f"The {worst.kind} before turn {worst.cut}{others}: {break_line(worst)}."
    for instruction in instructions:
        if instruction.broken_turn is not None:
            since = f"not in the context from turn {instruction.cut} on"
            yield f"“{instruction.text}” was {since}, and was broken in turn {instruction.broken_turn}."
    if run.peak_demand_tokens:
        yield f"Most was needed before turn {run.peak_cut}: {counted(run.peak_demand_tokens, 'token')} of files."


def turns_of(turns: int, actions: Sequence[ActionRow], events: Sequence[tuple[int, str]]) -> tuple[TurnCounts, ...]:
    """Return one entry for each turn: its reads, unneeded reads, writes and events."""
    found = tuple(TurnCounts(turn) for turn in range(1, turns + 1))
    for action in actions:
        entry = found[action.turn - 1]
        entry.needed |= action.necessary
        if action.kind == "read":
            entry.reads += 1
            entry.dead += not action.necessary and action.judged
        else:
            entry.writes += 1
    for turn, words in events:
        if turn <= turns:
            found[turn - 1].events.append(words)
    return found


def _clip(clip: ClippedView) -> str:
    hidden = clip.hidden_characters
    return f"clipped: {'an unknown number of' if hidden is None else f'{hidden:,}'} characters hidden"


def _hidden(line: HiddenLine) -> str:
    later = {"recovered": f"shown in turn {line.recovered_turn}", "never": "never shown before the file was edited"}
    return f"gold line {line.path}:{line.line} hidden, {later.get(line.outcome, line.outcome)}"
