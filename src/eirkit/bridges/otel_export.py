"""From a folder of runs to a file of traces, or to a collector: what `eirkit export otel` does.

A sweep of `eirkit lacuna run` is told with all it records; anything else that VESTIGE reads, as it is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from eirkit.bridges.otel import Span, otlp_line
from eirkit.bridges.otel_recordings import recording_trace
from eirkit.bridges.otel_runs import sweep_traces
from eirkit.errors import UsageError
from eirkit.lacuna.sweeps.manifest import FILE as MANIFEST
from eirkit.lacuna.sweeps.run_store import RUNS
from eirkit.vestige.corpus import read_corpus
from eirkit.vestige.source import Skipped

Sink = Callable[[Sequence[Span]], None]


@dataclass(frozen=True, slots=True)
class Exported:
    """What was exported."""

    runs: int
    spans: int
    skipped: tuple[Skipped, ...]


def traces_of(path: Path, start: int, *, texts: bool = True) -> Iterator[list[Span] | Skipped]:
    """Yield the trace of each run at a path, and what could not be read."""
    if (path / MANIFEST).is_file() and (path / RUNS).is_file():
        yield from sweep_traces(path, start, texts=texts)
        return
    for item in read_corpus([path]):
        if isinstance(item, Skipped):
            yield item
            continue
        spans = recording_trace(item, start, texts=texts)
        start = spans[0].end
        yield spans


def export_traces(path: Path, start: int, sinks: Iterable[Sink], *, texts: bool = True) -> Exported:
    """Hand every trace to each of the sinks, and return how many there were.

    Raises:
        UsageError: there was no run.
    """
    given, runs, total, skipped = list(sinks), 0, 0, []
    for item in traces_of(path, start, texts=texts):
        if isinstance(item, Skipped):
            skipped.append(item)
            continue
        for sink in given:
            sink(item)
        runs, total = runs + 1, total + len(item)
    if not runs:
        why = f": {skipped[0].source}: {skipped[0].reason}" if skipped else ""
        raise UsageError(f"{path} holds no finished run{why}; give a sweep's folder or logs that vestige reads")
    return Exported(runs, total, tuple(skipped))


class TraceFile:
    """A sink that writes one line of OTLP/JSON for each trace; use it in a with statement.

    The file has its name only once it is whole.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._unfinished = path.with_name(f".{path.name}.unfinished")

    def __enter__(self) -> TraceFile:
        if self.path.is_dir():
            raise UsageError(f"{self.path} is a folder; give --out a file")
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._stream = self._unfinished.open("wb")
        return self

    def __call__(self, spans: Sequence[Span]) -> None:
        self._stream.write(otlp_line(spans))

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        self._stream.close()
        try:
            if kind is None:
                self._unfinished.replace(self.path)
        finally:
            self._unfinished.unlink(missing_ok=True)
