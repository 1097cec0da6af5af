"""From a corpus to a folder of tables: every run is measured, written and summed up; what cannot be is named.

A corpus of any size is cut into pieces that an engine's workers measure side by side; their parts are then put
together. A small one is measured here and now. Either way gives the same bytes.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from itertools import chain, islice
from pathlib import Path
from typing import Any, TypeAlias

from eirkit.engine.mapping import Engine, Lost
from eirkit.errors import InfrastructureError, InputFileError
from eirkit.vestige.analysis import TABLES, Options
from eirkit.vestige.corpus import read_corpus
from eirkit.vestige.gold import Gold, open_gold
from eirkit.vestige.measurement import measured
from eirkit.vestige.merging import merge_parts
from eirkit.vestige.partition import Piece, plan_pieces
from eirkit.vestige.parts import Job, Part, Unwritable, make_part, prepare, state_of, tables_of
from eirkit.vestige.remote import Location, Remote
from eirkit.vestige.source import Limits, Skipped
from eirkit.vestige.summary import Summary
from eirkit.vestige.tables import TableWriter, claim, held
from eirkit.vestige.tokens import Counter, estimating_counter, exact_counter
from eirkit.vestige.trajectory import Recording

Progress = Callable[[str, int, int], None]  # source, runs, skipped
_Order: TypeAlias = tuple[int, ...]  # of a piece in the corpus; of a half of it, one number longer


@dataclass(frozen=True, slots=True)
class Corpus:
    """What is to be analysed, and what goes with it."""

    paths: tuple[Location, ...]
    gold: Path | None = None
    outcomes: Path | None = None
    format: str | None = None
    limits: Limits = field(default_factory=Limits)


def analyze_here(
    corpus: Corpus, out: Path, options: Options, *, estimate: bool = False, strict: bool = False, progress: Progress
) -> dict[str, Any]:
    """Measure a corpus in this process and return its summary."""
    count = estimating_counter() if estimate else exact_counter()
    gold = None if corpus.gold is None else open_gold(corpus.gold)
    items = read_corpus(corpus.paths, outcomes=corpus.outcomes, format=corpus.format, limits=corpus.limits)
    return analyze_corpus(items, out, options, count, gold=gold, strict=strict, progress=progress)


def analyze_in_parts(
    corpus: Corpus,
    out: Path,
    options: Options,
    engine: Engine,
    *,
    estimate: bool = False,
    strict: bool = False,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Measure a corpus on an engine and return its summary; what an earlier, broken run has done is not done again.

    Raises: as `analyze_corpus`.
    """
    state = state_of(options, estimate, corpus.format, corpus.limits, [corpus.gold, corpus.outcomes])
    where = (corpus.outcomes, corpus.format, corpus.gold)
    job = Job(out.resolve(), options, *where, estimate, corpus.limits, state)
    reader = prepare(job)  # before anything is written: what is wrong with it is wrong for every piece
    claim(out)
    with held(out):
        job.parts.mkdir(exist_ok=True)
        made = _make_all(job, plan_pieces(reader, corpus.paths), engine, strict, progress)
        summary = Summary()
        with TableWriter(out, TABLES) as writer:
            merge_parts([job.parts / part.key for part in made if part.runs], writer, summary)
            for part in made:
                summary.skipped.extend(part.skipped)
            _finish(writer, summary, options)
        shutil.rmtree(job.parts, ignore_errors=True)
    return {"out": str(out), **summary.as_json()}


def _make_all(job: Job, pieces: Iterable[Piece], engine: Engine, strict: bool, progress: Progress | None) -> list[Part]:
    """Return the parts of all pieces in their order; a piece that is lost is cut until what is lost is one record."""
    found: dict[_Order, Part] = {}
    work: Iterable[tuple[_Order, Piece]] = (((n,), piece) for n, piece in enumerate(pieces))
    tried: set[_Order] = set()
    runs = skipped = 0
    while True:
        lost: list[tuple[_Order, Piece]] = []
        given: list[tuple[_Order, Piece]] = []
        for outcome in engine.map(make_part, _told(job, work, given)):
            place, piece = given[outcome.number]
            if isinstance(outcome, Lost):
                left = _left(place, piece, outcome, tried)
                lost += left
                part = None if left else _given_up(piece, outcome.reason)
            elif isinstance(outcome.value, Unwritable):
                raise InfrastructureError(f"{job.out}: {outcome.value.reason}; make room and start it again to go on")
            else:
                part = outcome.value
            if part is not None:
                found[place] = part
                runs, skipped = runs + part.runs, skipped + len(part.skipped)
                _refuse(part.skipped, strict)
                if progress is not None:
                    for one in piece.places:
                        progress(one.source, runs, skipped)
        if not lost:
            return [found[place] for place in sorted(found)]
        work = lost


def _left(place: _Order, piece: Piece, lost: Lost, tried: set[_Order]) -> list[tuple[_Order, Piece]]:
    """Return what is to be tried of a lost piece: its halves, or itself once more if its worker just died."""
    halves = [((*place, n), half) for n, half in enumerate(piece.halves())]
    if halves or not lost.is_death or place in tried:
        return halves
    tried.add(place)  # the machine may have killed the worker, for want of memory or another reason of its own
    return [(place, piece)]


def _told(
    job: Job, work: Iterable[tuple[_Order, Piece]], given: list[tuple[_Order, Piece]]
) -> Iterator[tuple[Job, Piece]]:
    """Yield work for an engine and note what was given, under its number."""
    for place, piece in work:
        given.append((place, piece))
        yield job, piece


def _given_up(piece: Piece, reason: str) -> Part:
    source = piece.places[0].source if piece.places else "the corpus"
    span = piece.places[0].span if piece.places else None
    where = source if span is None else f"{source}:{span.lines_before + 1}"
    return Part("", 0, (*piece.skipped, Skipped(where, reason)))


def is_small(corpus: Corpus, bytes_limit: int) -> bool:
    """True if a corpus has few bytes, so that workers would cost more than they bring."""
    sizes = chain.from_iterable(_sizes(path) for path in corpus.paths)
    total = 0
    for size in islice(sizes, 10_000):
        total += size
        if total > bytes_limit:
            return False
    return next(sizes, None) is None


def _sizes(path: Location) -> Iterator[int]:
    if isinstance(path, Remote):
        yield from (file.size() for _, file in path.files()) if path.is_dir() else [path.size()]
        return
    files: Iterable[Path] = (one for one in path.rglob("*") if one.is_file()) if path.is_dir() else [path]
    for one in files:
        try:
            yield one.stat().st_size
        except OSError:
            yield 0


def analyze_corpus(
    items: Iterable[Recording | Skipped],
    out: Path,
    options: Options,
    count: Counter,
    *,
    gold: Gold | None = None,
    strict: bool = False,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Write the tables of some runs and return their summary.

    Raises:
        InputFileError: nothing could be read, or, if `strict`, anything could not.
        UsageError: `out` is not empty and no analysis of ours.
    """
    summary = Summary()
    with TableWriter(out, TABLES) as writer, held(out):
        for item in measured(items, options, count, gold):
            if isinstance(item, Skipped):
                _refuse([item], strict)
                summary.skipped.append(item)
                continue
            writer.add(item.run.run_id, tables_of(item))
            summary.add(item)
            if progress is not None:
                progress(item.run.source, summary.runs, len(summary.skipped))
        _finish(writer, summary, options)
    return {"out": str(out), **summary.as_json()}


def _finish(writer: TableWriter, summary: Summary, options: Options) -> None:
    if not summary.runs:
        raise InputFileError(_nothing(summary))
    writer.finish({"eirkit": version("eirkit"), "options": _options(options), **summary.as_json()})


def _refuse(skipped: Sequence[Skipped], strict: bool) -> None:
    if strict and skipped:
        raise InputFileError(f"{skipped[0].source}: {skipped[0].reason}, or leave out --strict")


def _nothing(summary: Summary) -> str:
    if not summary.skipped:
        return "no runs found; give files or folders of logs, see `eirkit vestige formats`"
    first = summary.skipped[0]
    return f"no run could be read; {len(summary.skipped)} skipped, the first is {first.source}: {first.reason}"


def _options(options: Options) -> dict[str, Any]:
    return {
        "visibility": options.visibility,
        "goal_tests": options.goal_tests,
        "own_edits": options.own_edits,
        "windows_dated": options.windows.dated,
    }
