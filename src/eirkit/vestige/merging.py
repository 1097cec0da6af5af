"""Parts put together: folders in the corpus's order come in, the tables and the summary of the whole go out.

Rows are copied as they are, except that a run whose name an earlier part has taken gets one of its own. Row groups are
cut at the same rows whatever the parts were, so that the bytes do not tell how the work was divided.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from eirkit.records import read_document
from eirkit.vestige.analysis import Analysis
from eirkit.vestige.corpus import Names
from eirkit.vestige.rows import RunRow
from eirkit.vestige.summary import Summary
from eirkit.vestige.tables import FILE, RUN, SCHEMA, TableWriter, arrow, read_table

_SUMMED = ("breaks", "files")  # the tables that a summary looks into


def merge_parts(folders: Sequence[Path], writer: TableWriter, summary: Summary) -> None:
    """Copy the rows of all parts into the writer's tables, and sum them up."""
    names = Names()
    for folder in folders:
        tables = {name: read_table(folder, name) for name in writer.rows}
        renamed = _renamed(tables["runs"], read_document(folder / FILE, SCHEMA)["renamed"], names)
        if renamed:
            tables = {name: _with_names(table, renamed) for name, table in tables.items()}
        for name, table in tables.items():
            writer.copy(name, table)
        for analysis in _analyses(tables):
            summary.add(analysis)


def _renamed(runs: Any, before: Mapping[str, str], names: Names) -> dict[str, str]:
    """Return the new names of runs whose own is taken; those that were renamed in their part are named anew."""
    pairs = zip(runs[RUN].to_pylist(), runs["source"].to_pylist(), strict=True)
    unique = {run: names.unique(before.get(run, run), source) for run, source in pairs}
    return {run: name for run, name in unique.items() if name != run}


def _with_names(table: Any, renamed: dict[str, str]) -> Any:
    values = [renamed.get(run, run) for run in table[RUN].to_pylist()]
    return table.set_column(0, table.schema.field(0), arrow().array(values, arrow().string()))


def _analyses(tables: dict[str, Any]) -> Iterator[Analysis]:
    """Yield what a summary needs of each run, in order."""
    columns = {name: tables[name].to_pydict() for name in _SUMMED}
    ends = {name: _ends(columns[name][RUN]) for name in _SUMMED}
    for row in tables["runs"].to_pylist():
        run = RunRow(**{**row, "goal_files": tuple(row["goal_files"])})
        yield Analysis(run, {name: _rows_of(columns[name], ends[name].get(run.run_id)) for name in _SUMMED})


def _ends(runs: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Return where the rows of each run begin and end; the rows of a run stand together."""
    found: dict[str, tuple[int, int]] = {}
    for position, run in enumerate(runs):
        found[run] = (found[run][0] if run in found else position, position + 1)
    return found


def _rows_of(columns: dict[str, list[Any]], ends: tuple[int, int] | None) -> dict[str, list[Any]]:
    first, last = ends or (0, 0)
    return {name: values[first:last] for name, values in columns.items() if name != RUN}
