"""What one log says about time, tokens and losses: its responses, and from its runs the reads, breaks and instructions.

The numbers about runs are those of `eirkit vestige analyze`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from msgspec import Struct

from eirkit.errors import InputFileError
from eirkit.limits import RECORD_SECONDS, time_limit
from eirkit.vestige.audits.occupancy import read_windows
from eirkit.vestige.corpus.analysis import AnalysisOptions, AnalyzedRun, fewer_collections, measured_or_skipped
from eirkit.vestige.corpus.reader import CorpusReader
from eirkit.vestige.sources.documents import ReadLimits, Skipped, StoredDocument, open_document
from eirkit.vestige.tokens import exact_counter
from eirkit.vestige.trajectory import Recording, Trigger
from eirkit_coding.week.responses import METERS, MeteredDocument, Response, UnknownResponse, take_messages


class FileReading(Struct, frozen=True, gc=False):
    """A read of a file in a turn."""

    at: float
    run_id: str
    turn: int
    project: str
    model: str
    path: str
    tokens: int
    repeat_tokens: int  # of these, shown before and unchanged


class ContextLoss(Struct, frozen=True, gc=False):
    """A compaction or a clear before a turn."""

    at: float
    run_id: str
    turn: int
    project: str
    model: str
    kind: str
    live_tokens: int  # of files in the context that the run used later
    dropped_tokens: int  # of these, not carried over
    reread_tokens: int  # that reading them again showed
    overwritten_tokens: int  # dropped ones of files that were edited without reading them again
    unknown_tokens: int  # of which the log does not say whether they stayed
    shrunk_tokens: int | None  # of the whole context, if the log says so
    reread_dropped_tokens: int  # part of the dropped tokens that this showed again
    measured: bool  # whether the run used a file later, so that the above is known
    compactions: int  # just before the turn
    clears: int
    trigger: Trigger  # who started it
    manual_compactions: int
    automatic_compactions: int
    file_tokens: int  # of all files that the run had read or written since the break before


class InstructionLoss(Struct, frozen=True, gc=False):
    """An instruction of the user that was not found in what a compaction or a clear left."""

    at: float
    run_id: str
    turn: int  # the turn after the break
    project: str
    model: str
    kind: str
    text: str
    broken_turn: int | None
    broken_by: str


class LogFacts(Struct, frozen=True):
    """One log."""

    agent: str  # the name of its format
    responses: tuple[Response, ...] = ()
    readings: tuple[FileReading, ...] = ()
    losses: tuple[ContextLoss, ...] = ()
    instructions: tuple[InstructionLoss, ...] = ()
    windows: dict[str, int] = {}  # context windows in tokens by model
    skipped: tuple[Skipped, ...] = ()
    unknown: tuple[UnknownResponse, ...] = ()


@dataclass(frozen=True, slots=True)
class LogPlace:
    """Where a log is."""

    path: Path
    root: Path  # the folder that was searched
    agent: str  # the name of its format


def read_log(place: LogPlace) -> LogFacts:
    """Return the facts of a log; what cannot be read is reported in them. A module-level function, for workers."""
    try:
        name = str(place.path.relative_to(place.root))
    except ValueError:
        name = place.path.name
    document = open_document(place.path, ReadLimits(), name)
    with fewer_collections():
        return _read(document, place)


def _read(document: StoredDocument, place: LogPlace) -> LogFacts:
    meter = METERS[place.agent]()
    runs, skipped = list[tuple[Recording, AnalyzedRun]](), list[Skipped]()
    metered: Any = MeteredDocument(document, meter)
    if place.agent == "opencode":
        try:
            with time_limit(RECORD_SECONDS, "counting its responses"):
                take_messages(meter, document)
        except InputFileError as error:
            skipped.append(Skipped(document.source, str(error)))
    for item in _reader().read(metered, place.root, place.agent):
        found = item if isinstance(item, Skipped) else measured_or_skipped(item, None, _options(), exact_counter())
        if isinstance(item, Recording) and isinstance(found, AnalyzedRun):
            runs.append((item, found))
        elif isinstance(found, Skipped):
            skipped.append(found)
    meter.project = meter.project or next((run.root for run, _ in runs if run.root), "")
    parts = [_RunFacts(run, analysis, meter.project) for run, analysis in runs]
    return LogFacts(
        place.agent,
        meter.responses(),
        tuple(reading for part in parts for reading in part.readings()),
        tuple(loss for part in parts for loss in part.losses()),
        tuple(instruction for part in parts for instruction in part.instructions()),
        {a.run.model: a.run.window_tokens for _, a in reversed(runs) if a.run.window_tokens},
        tuple(skipped),
        meter.unknown_responses(document.source),
    )


@cache
def _reader() -> CorpusReader:
    return CorpusReader(outcomes=None, format=None, limits=ReadLimits())


@cache
def _options() -> AnalysisOptions:
    return AnalysisOptions(read_windows())


class _RunFacts:
    """The rows of one run that have a time."""

    def __init__(self, recording: Recording, analysis: AnalyzedRun, project: str) -> None:
        self.analysis, self.columns = analysis, analysis.columns()
        self.times = list(_times(recording))
        self.project = recording.root or project  # a database, or a file, may hold sessions of many projects

    def readings(self) -> Iterator[FileReading]:
        names = ("turn", "path", "tokens", "repeat_tokens")
        for turn, path, tokens, again in self._rows("actions", names):
            if tokens and (about := self._about(turn)):
                yield FileReading(*about, path, tokens, again)

    def losses(self) -> Iterator[ContextLoss]:
        tokens = ("live", "dropped", "reread", "overwritten", "unknown", "shrunk", "reread_dropped")
        names = ("cut", "kind", *(f"{name}_tokens" for name in tokens), "measured", "compactions", "clears")
        names += ("trigger", "manual_compactions", "automatic_compactions")
        for turn, *counts in self._rows("breaks", names):
            if about := self._about(turn):
                yield ContextLoss(*about, *(*counts, self._file_tokens(turn)))

    def _file_tokens(self, cut: int) -> int:
        since = max((turn for (turn,) in self._rows("breaks", ("cut",)) if turn < cut), default=0)
        sizes: dict[str, int] = {}
        for turn, path, tokens in self._rows("actions", ("turn", "path", "tokens")):
            if since <= turn < cut and tokens:
                sizes[path] = max(tokens, sizes.get(path, 0))
        return sum(sizes.values())

    def instructions(self) -> Iterator[InstructionLoss]:
        names = ("cut", "survival", "kind", "text", "broken_turn", "broken_by")
        for turn, survival, kind, *said in self._rows("instructions", names):
            if survival == "gone" and kind != "todo" and (about := self._about(turn)):
                yield InstructionLoss(*about, kind, *said)

    def _about(self, turn: int) -> tuple[float, str, int, str, str] | None:
        at = self.times[turn - 1] if 0 < turn <= len(self.times) else None
        run = self.analysis.run
        return None if at is None else (at, run.run_id, turn, self.project, run.model)

    def _rows(self, table: str, names: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        columns = self.columns.get(table, {})
        return zip(*(columns.get(name, ()) for name in names), strict=True)


def _times(recording: Recording) -> Iterator[float | None]:
    """Yield when each turn came; one without a time has that of the turn before it."""
    known: float | None = None
    for turn in recording.turns:
        known = turn.at if turn.at is not None else known
        yield known
