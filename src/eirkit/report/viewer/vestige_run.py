"""Reads the tables of a `vestige analyze` folder for the viewer: the list of runs, and all rows of one run.

The rows of a run are contiguous and in the order of `runs`, so they are found by binary search over the row groups
instead of reading a table of millions of rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from eirkit.errors import InputFileError
from eirkit.report.table import counted
from eirkit.report.viewer.tables import ArrowColumns, Field, RowTable, telling
from eirkit.vestige.audits.clipping import old_lines
from eirkit.vestige.demand.gold_patches import GoldPatches
from eirkit.vestige.measures import LOG_MEASURES, READING_MEASURES
from eirkit.vestige.tables import RUN, arrow, read_analysis, read_rows, read_table

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
# Tables with rows for each run, besides `runs`.
TABLES = (
    "cuts",
    "actions",
    "states",
    "files",
    "clips",
    "hidden_lines",
    "anomalies",
    "breaks",
    "dropped",
    "entities",
    "instructions",
)


class AnalysisTables:
    """The tables of one analysis, read on first use."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @cached_property
    def summary(self) -> dict[str, Any]:
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

    def run(self, run_id: str) -> dict[str, Any]:
        """Return the row of a run in `runs`."""
        place = self.places.get(run_id)
        if place is None:
            raise InputFileError(f"no run named {run_id!r} here; go back to the table and choose one")
        row: dict[str, Any] = self._runs.slice(place, 1).to_pylist()[0]
        return row

    def rows(self, name: str, run_id: str) -> list[dict[str, Any]]:
        """Return the rows of a run in a table, without the column of the run id."""
        found = _Groups(self.folder / f"{name}.parquet", self.places).rows(run_id)
        if found is None:
            found = read_rows(self.folder, name, run_id)
        return [{key: value for key, value in row.items() if key != RUN} for row in found]


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

    def rows(self, run_id: str) -> list[dict[str, Any]] | None:
        """Return the rows of a run; None if the table is not in the order of `runs`."""
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
            found = []
            while low < stored.num_row_groups and end(low)[0] <= wanted:
                group = stored.read_row_group(low)
                found += group.filter(pyarrow.compute.equal(group[RUN], run_id)).to_pylist()
                low += 1
            return found


MOST_ACTIONS = 20_000  # actions that are drawn


def run_document(tables: AnalysisTables, run_id: str, gold: GoldPatches | None = None) -> dict[str, Any]:
    """Return all rows of a run as JSON data; reference patches supply the text of hidden lines."""
    run = tables.run(run_id)
    rows = {name: tables.rows(name, run_id) for name in TABLES}
    if gold is not None and rows["hidden_lines"]:
        lost = old_lines(gold.get(run["task_id"]), {row["path"] for row in rows["hidden_lines"]})
        rows["hidden_lines"] = [
            {**row, "text": lost.get(row["path"], {}).get(row["line"])} for row in rows["hidden_lines"]
        ]
    actions = rows.pop("actions")
    return {
        "kind": "vestige",
        "run": run,
        "visibility": tables.summary["options"]["visibility"],
        "turns": turns_of(run["turns"], actions, rows),
        "actions": actions[:MOST_ACTIONS],
        "actions_left_out": max(0, len(actions) - MOST_ACTIONS),
        "goal": sorted({one["path"] for one in actions if one["sink"]}),
        **rows,
    }


def turns_of(turns: int, actions: Sequence[Mapping[str, Any]], rows: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return one entry for each turn: its reads, unneeded reads, writes and events."""
    found: list[dict[str, Any]] = [
        {"turn": turn, "reads": 0, "dead": 0, "writes": 0, "needed": False, "events": []}
        for turn in range(1, turns + 1)
    ]
    for action in actions:
        entry = found[action["turn"] - 1]
        entry["needed"] |= action["necessary"]
        if action["kind"] == "read":
            entry["reads"] += 1
            entry["dead"] += not action["necessary"] and action["judged"]
        else:
            entry["writes"] += 1
    for name, place, words in _EVENTS:
        for row in rows[name]:
            if row[place] <= turns:
                found[row[place] - 1]["events"].append(words(row))
    return found


def _clip(row: Mapping[str, Any]) -> str:
    hidden = row["hidden_characters"]
    return f"clipped: {'an unknown number of' if hidden is None else f'{hidden:,}'} characters hidden"


def _hidden(row: Mapping[str, Any]) -> str:
    later = {"recovered": f"shown in turn {row['recovered_turn']}", "never": "never shown before the file was edited"}
    return f"gold line {row['path']}:{row['line']} hidden, {later.get(row['outcome'], row['outcome'])}"


def _break(row: Mapping[str, Any]) -> str:
    if not row["measured"]:
        return f"{row['kind']}: what may have been needed is not measured, since no file was used"
    if not row["live_files"]:
        return f"{row['kind']}: nothing that may have been needed was in the context"
    needed = f"{counted(row['live_tokens'], 'token')} of {counted(row['live_files'], 'file')} may have been needed"
    unknown = f", {row['unknown_tokens']:,} unknown" if row["unknown_tokens"] else ""
    dropped = f"{row['dropped_tokens']:,}" if row["dropped_tokens"] or unknown else "none"
    return f"{row['kind']}: {needed}, {dropped} of these dropped{unknown}"


def _anomaly(row: Mapping[str, Any]) -> str:
    return str(row["signature"]).replace("_", " ")


_EVENTS = (
    ("breaks", "cut", _break),
    ("clips", "turn", _clip),
    ("hidden_lines", "turn", _hidden),
    ("anomalies", "turn", _anomaly),
)
