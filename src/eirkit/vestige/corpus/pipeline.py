"""Analyses a corpus into a folder of tables, in this process or in parallel on an engine, and merges the parts.

Rows are copied unchanged, except that a run whose name an earlier part uses is renamed. Row groups are cut at the same
rows whatever the parts were, so that the bytes do not depend on how the work was divided.

A small corpus is measured in this process. A large one is divided into work units that an engine's workers measure in
parallel, and their parts are merged. Both ways give the same bytes. What cannot be measured is reported.
"""

from __future__ import annotations

import os
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from itertools import chain, groupby, islice
from pathlib import Path
from typing import Any, TypeAlias

from msgspec import structs

from eirkit.engine.interface import Engine, LostPiece
from eirkit.errors import InfrastructureError, InputFileError
from eirkit.folders import files_below
from eirkit.records.analysis import (
    TABLES,
    AnalysisSummary,
    BreakCost,
    ClippedView,
    FileUse,
    InstructionFate,
    LogSources,
    RunRow,
    ToolCoverage,
)
from eirkit.vestige.corpus.analysis import AnalysisOptions, AnalyzedRun, fewer_collections, measured
from eirkit.vestige.corpus.parts import (
    AnalysisJob,
    CorpusPart,
    PartNotWritten,
    make_part,
    open_reader,
    state_of,
)
from eirkit.vestige.corpus.reader import DocumentTally, UniqueNames, document_notes, read_corpus
from eirkit.vestige.corpus.summary import CorpusTotals
from eirkit.vestige.corpus.work_units import DocumentRange, WorkUnit, growth_of, name_of, plan_work_units
from eirkit.vestige.demand.gold_patches import GoldPatches, open_gold_patches
from eirkit.vestige.sources.documents import NAMED, ReadLimits, Skipped
from eirkit.vestige.sources.remote import Location, Remote
from eirkit.vestige.sources.streams import as_label
from eirkit.vestige.tables import RUN, T, TableWriter, arrow, claim, held, read_table, rows_of
from eirkit.vestige.tokens import Counter, estimating_counter, exact_counter
from eirkit.vestige.trajectory import Recording


def merge_parts(folder: Path, parts: Sequence[CorpusPart], writer: TableWriter, totals: CorpusTotals) -> None:
    """Copy the rows of all parts in a folder into the writer's tables, and add their runs to the totals."""
    names = UniqueNames()
    for part in parts:
        tables = {name: read_table(folder / part.key, name) for name in writer.rows}
        # The new names of runs whose name is taken; names given within a part are chosen again.
        runs = tables["runs"]
        pairs = zip(runs[RUN].to_pylist(), runs["source"].to_pylist(), strict=True)
        unique = {run: names.unique(part.renamed.get(run, run), source) for run, source in pairs}
        renamed = {run: name for run, name in unique.items() if name != run}
        if renamed:
            tables = {name: _with_names(table, renamed) for name, table in tables.items()}
        for name, table in tables.items():
            writer.copy(name, table)
        calls = _by_run(tables["calls"], ToolCoverage, folder)
        files = _by_run(tables["files"], FileUse, folder)
        clips = _by_run(tables["clips"], ClippedView, folder)
        breaks = _by_run(tables["breaks"], BreakCost, folder)
        told = _by_run(tables["instructions"], InstructionFate, folder)
        for run in rows_of(tables["runs"], RunRow, folder):
            name = run.run_id
            totals.add(AnalyzedRun(run, {}, calls[name], files[name], clips[name], breaks[name], told[name]))


def _with_names(table: Any, renamed: dict[str, str]) -> Any:
    values = [renamed.get(run, run) for run in table[RUN].to_pylist()]
    return table.set_column(0, table.schema.field(0), arrow().array(values, arrow().string()))


def _by_run(table: Any, row: type[T], folder: Path) -> Mapping[str, list[T]]:
    found: dict[str, list[T]] = defaultdict(list)
    for name, record in zip(table[RUN].to_pylist(), rows_of(table, row, folder), strict=True):
        found[name].append(record)
    return found


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
        done.append(structs.replace(part, runs=part.runs if keeps_runs else 0, skipped=tuple(kept)))
        if not keeps_runs:
            break
    words = tuple(document_notes(document.source, document.format or "", tally))
    return [*done[:-1], structs.replace(done[-1], skipped=(*done[-1].skipped, *words))]


Progress = Callable[[str, int, int], None]  # source, runs, skipped
_Order: TypeAlias = tuple[int, ...]  # position of a work unit in the corpus; a half of it has one number more


@dataclass(frozen=True, slots=True)
class Corpus:
    """What is to be analyzed, and the files that belong to it."""

    paths: tuple[Location, ...]
    gold: Path | None = None
    outcomes: Path | None = None
    format: str | None = None
    limits: ReadLimits = field(default_factory=ReadLimits)

    @property
    def logs(self) -> LogSources:
        """What identifies the corpus: its location and not its content, since it may grow."""
        places = sorted({str(path) if isinstance(path, Remote) else os.path.realpath(path) for path in self.paths})
        digest = blake2b("\n".join(places).encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()
        return LogSources(tuple(as_label(path.name or str(path)) for path in self.paths), digest)


def analyze_here(
    corpus: Corpus,
    out: Path,
    options: AnalysisOptions,
    *,
    estimate: bool = False,
    strict: bool = False,
    progress: Progress | None = None,
) -> AnalysisSummary:
    """Measure a corpus in this process and return its summary."""
    count = estimating_counter() if estimate else exact_counter()
    gold = None if corpus.gold is None else open_gold_patches(corpus.gold)
    items = read_corpus(corpus.paths, outcomes=corpus.outcomes, format=corpus.format, limits=corpus.limits)
    return analyze_corpus(items, out, options, count, gold=gold, strict=strict, progress=progress, logs=corpus.logs)


def analyze_in_parts(
    corpus: Corpus,
    out: Path,
    options: AnalysisOptions,
    engine: Engine,
    *,
    estimate: bool = False,
    strict: bool = False,
    progress: Progress | None = None,
) -> AnalysisSummary:
    """Measure a corpus on an engine and return its summary; parts of an earlier or interrupted analysis are reused.

    Raises: as `analyze_corpus`.
    """
    state = state_of(options, estimate, corpus.format, corpus.limits, [corpus.gold, corpus.outcomes])
    where = (corpus.outcomes, corpus.format, corpus.gold)
    job = AnalysisJob(Path(os.path.realpath(out)), options, *where, estimate, corpus.limits, state)
    reader = open_reader(job)  # before anything is written: an error here would affect every work unit
    claim(out, corpus.logs)
    with held(out):
        job.parts.mkdir(exist_ok=True)
        made = _make_all(job, plan_work_units(reader, corpus.paths), engine, strict, progress)
        totals = CorpusTotals()
        with TableWriter(out, TABLES, corpus.logs) as writer:
            merge_parts(job.parts, [part for part in made if part.runs], writer, totals)
            for part in made:
                totals.skipped.extend(part.skipped)
            summary = _finish(writer, totals, options)
        _forget_others(job.parts, {part.key for part in made})
    return summary


def _forget_others(parts: Path, used: set[str]) -> None:
    """Remove parts that this analysis did not use; the others stay, so that only what changes is measured again."""
    for folder in parts.iterdir():
        if folder.name not in used:
            shutil.rmtree(folder, ignore_errors=True)


def _make_all(
    job: AnalysisJob, pieces: Iterable[WorkUnit], engine: Engine, strict: bool, progress: Progress | None
) -> list[CorpusPart]:
    """Return the parts of all work units in order; a lost unit is divided until only one record is lost."""
    found: dict[_Order, tuple[WorkUnit, CorpusPart]] = {}
    work: Iterable[tuple[_Order, WorkUnit]] = (((n,), piece) for n, piece in enumerate(pieces))
    tried: set[_Order] = set()
    runs = skipped = 0
    while True:
        lost: list[tuple[_Order, WorkUnit]] = []
        given: list[tuple[_Order, WorkUnit]] = []
        for outcome in engine.map(make_part, _told(job, work, given)):
            place, piece = given[outcome.number]
            if isinstance(outcome, LostPiece):
                left = _left(place, piece, outcome, tried, job)
                lost += left
                part = None if left else _given_up(piece, outcome.reason, job)
            elif isinstance(outcome.value, PartNotWritten):
                raise InfrastructureError(f"{job.out}: {outcome.value.reason}; make room and start it again to go on")
            else:
                part = outcome.value
            if part is not None:
                found[place] = piece, part
                runs, skipped = runs + part.runs, skipped + len(part.skipped)
                _refuse(part.skipped, strict)
                if progress is not None:
                    for one in piece.places:
                        progress(one.source, runs, skipped)
        if not lost:
            return with_document_notes(found[place] for place in sorted(found))
        work = lost


def _left(
    place: _Order, piece: WorkUnit, lost: LostPiece, tried: set[_Order], job: AnalysisJob
) -> list[tuple[_Order, WorkUnit]]:
    """Return what to retry of a lost work unit: its halves, or the unit itself once if its worker just died."""
    halves = [((*place, n), half) for n, half in enumerate(piece.halves(job.limits))]
    if halves or not lost.is_death or place in tried:
        return halves
    tried.add(place)  # the machine may have killed the worker for lack of memory or another reason
    return [(place, piece)]


def _told(
    job: AnalysisJob, work: Iterable[tuple[_Order, WorkUnit]], given: list[tuple[_Order, WorkUnit]]
) -> Iterator[tuple[AnalysisJob, WorkUnit]]:
    """Yield work for an engine and record each item under its number."""
    for place, piece in work:
        given.append((place, piece))
        yield job, piece


def _given_up(piece: WorkUnit, reason: str, job: AnalysisJob) -> CorpusPart:
    """Return a part that consists only of what was lost, which is always reported."""
    if not piece.places:
        return CorpusPart("", 0, tuple(item for item in piece.items if isinstance(item, Skipped)))
    place = piece.places[0]
    lost = Skipped(name_of(place.open(job.limits), place.section), reason)
    return CorpusPart("", 0, (lost,), frozenset({0}), DocumentTally(skipped=1, leading=1))


def is_small(corpus: Corpus, bytes_limit: int) -> bool:
    """Return whether a corpus is so small that starting workers would cost more than it saves."""
    sizes = chain.from_iterable(_sizes(path) for path in corpus.paths)
    total = 0
    for size in islice(sizes, 10_000):
        total += size
        if total > bytes_limit:
            return False
    return next(sizes, None) is None


def _sizes(path: Location) -> Iterator[int]:
    """Yield the unpacked size of each file, estimated from its name and size."""
    if isinstance(path, Remote):
        for file in (one for _, one in path.files()) if path.is_dir() else [path]:
            yield file.size() * growth_of(file.name)
        return
    files: Iterable[Path] = files_below(path) if path.is_dir() else [path]
    for one in files:
        try:
            yield one.stat().st_size * growth_of(one.name)
        except OSError:
            yield 0


def analyze_corpus(
    items: Iterable[Recording | Skipped],
    out: Path,
    options: AnalysisOptions,
    count: Counter,
    *,
    gold: GoldPatches | None = None,
    strict: bool = False,
    progress: Progress | None = None,
    logs: LogSources | None = None,
) -> AnalysisSummary:
    """Write the tables of some runs and return their summary.

    Raises:
        InputFileError: nothing could be read, or, if `strict`, anything could not.
        UsageError: `out` is not empty and no analysis of ours, or one of other logs.
    """
    totals = CorpusTotals()
    with TableWriter(out, TABLES, logs) as writer, held(out), fewer_collections():
        for item in measured(items, options, count, gold):
            if isinstance(item, Skipped):
                _refuse([item], strict)
                totals.skipped.append(item)
                continue
            writer.add(item.run.run_id, item.columns())
            totals.add(item)
            if progress is not None:
                progress(item.run.source, totals.runs, len(totals.skipped))
        return _finish(writer, totals, options)


def _finish(writer: TableWriter, totals: CorpusTotals, options: AnalysisOptions) -> AnalysisSummary:
    if not totals.runs:
        raise InputFileError(_nothing(totals.skipped))
    summary = totals.summary(options, writer.logs)
    writer.finish(summary)
    return summary


def _refuse(skipped: Sequence[Skipped], strict: bool) -> None:
    if strict and skipped:
        raise InputFileError(f"{skipped[0].source}: {skipped[0].reason}, or leave out --strict")


def _nothing(skipped: Sequence[Skipped]) -> str:
    if not skipped:
        return "no runs found; give files or folders of logs, see `eirkit vestige formats`"
    first = skipped[0]
    return f"no run could be read: {len(skipped)} skipped, the first one is {first.source}: {first.reason}"
