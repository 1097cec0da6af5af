"""Merges the parts of an analysis, in the order of the corpus, into the tables and the summary of the whole.

Rows are copied unchanged, except that a run whose name an earlier part uses is renamed. Row groups are cut at the same
rows whatever the parts were, so that the bytes do not depend on how the work was divided.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

from eirkit.logs.corpus.analysis import Analysis
from eirkit.logs.corpus.parts import CorpusPart
from eirkit.logs.corpus.reader import DocumentTally, UniqueNames, document_notes
from eirkit.logs.corpus.rows import RunRow
from eirkit.logs.corpus.summary import AnalysisSummary
from eirkit.logs.corpus.work_units import DocumentRange, WorkUnit
from eirkit.logs.sources.documents import NAMED
from eirkit.logs.tables import FILE, RUN, SCHEMA, TableWriter, arrow, read_table
from eirkit.records import read_document

_SUMMED = ("breaks", "files")  # the tables that the summary needs


def merge_parts(folders: Sequence[Path], writer: TableWriter, summary: AnalysisSummary) -> None:
    """Copy the rows of all parts into the writer's tables, and return their summary."""
    names = UniqueNames()
    for folder in folders:
        tables = {name: read_table(folder, name) for name in writer.rows}
        renamed = _renamed(tables["runs"], read_document(folder / FILE, SCHEMA)["renamed"], names)
        if renamed:
            tables = {name: _with_names(table, renamed) for name, table in tables.items()}
        for name, table in tables.items():
            writer.copy(name, table)
        for analysis in _analyses(tables):
            summary.add(analysis)


def _renamed(runs: Any, before: Mapping[str, str], names: UniqueNames) -> dict[str, str]:
    """Return the new names of runs whose name is taken; names given within a part are chosen again."""
    pairs = zip(runs[RUN].to_pylist(), runs["source"].to_pylist(), strict=True)
    unique = {run: names.unique(before.get(run, run), source) for run, source in pairs}
    return {run: name for run, name in unique.items() if name != run}


def _with_names(table: Any, renamed: dict[str, str]) -> Any:
    values = [renamed.get(run, run) for run in table[RUN].to_pylist()]
    return table.set_column(0, table.schema.field(0), arrow().array(values, arrow().string()))


def _analyses(tables: dict[str, Any]) -> Iterator[Analysis]:
    """Yield what the summary needs of each run, in order."""
    columns = {name: tables[name].to_pydict() for name in _SUMMED}
    ends = {name: _ends(columns[name][RUN]) for name in _SUMMED}
    for row in tables["runs"].to_pylist():
        run = RunRow(**{**row, "goal_files": tuple(row["goal_files"])})
        yield Analysis(run, {name: _rows_of(columns[name], ends[name].get(run.run_id)) for name in _SUMMED})


def _ends(runs: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Return where the rows of each run begin and end; the rows of a run are contiguous."""
    found: dict[str, tuple[int, int]] = {}
    for position, run in enumerate(runs):
        found[run] = (found[run][0] if run in found else position, position + 1)
    return found


def _rows_of(columns: dict[str, list[Any]], ends: tuple[int, int] | None) -> dict[str, list[Any]]:
    first, last = ends or (0, 0)
    return {name: values[first:last] for name, values in columns.items() if name != RUN}


def with_document_notes(made: Iterable[tuple[WorkUnit, CorpusPart]]) -> list[CorpusPart]:
    """Return the parts with the notes about their documents; a part that would not have been read has no runs."""
    done: list[CorpusPart] = []
    for document, group in groupby(made, lambda one: _document(one[0])):
        parts = [part for _, part in group]
        done += parts if document is None else _joined(document, parts)
    return done


def _document(piece: WorkUnit) -> DocumentRange | None:
    """Return the document of which a work unit is a section; None for anything else."""
    section = piece.section
    return None if section is None or section.format is None else replace(section, section=None)


def _joined(document: DocumentRange, parts: Sequence[CorpusPart]) -> list[CorpusPart]:
    tally, named, done = DocumentTally(), 0, list[CorpusPart]()
    for part in parts:
        own = part.tally or DocumentTally()
        tally.leading += 0 if tally.runs else own.leading
        tally.skipped += own.skipped
        keeps_runs = not tally.is_hopeless
        tally.runs += own.runs if keeps_runs else 0
        kept = []
        for place, skipped in enumerate(part.skipped):
            is_unmeasured = place in part.unmeasured
            named += not is_unmeasured
            if keeps_runs if is_unmeasured else named <= NAMED:
                kept.append(skipped)
        done.append(replace(part, runs=part.runs if keeps_runs else 0, skipped=tuple(kept)))
        if not keeps_runs:
            break
    words = tuple(document_notes(document.source, document.format or "", tally))
    return [*done[:-1], replace(done[-1], skipped=(*done[-1].skipped, *words))]
