"""The live line of an analysis on stderr: runs, rate, time left; silent without a terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from time import monotonic
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from eirkit.vestige.corpus import LOG_ENDINGS
from eirkit.vestige.remote import Location, Remote

_ENDINGS = tuple(ending + packed for ending in LOG_ENDINGS for packed in ("", ".gz", ".zst"))
_EVERY_SECONDS = 0.1


class CorpusProgress:
    """Shows an analysis as it goes; use it in a with statement."""

    def __init__(self, paths: Iterable[Location]) -> None:
        self._bar = Progress(
            TextColumn("reading"),
            BarColumn(),
            TextColumn("{task.fields[state]}"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
            disable=not sys.stderr.isatty(),
        )
        total = None if self._bar.disable else sum(map(_logs, paths))
        # One file with many runs in it tells nothing about how many are left.
        self._task = self._bar.add_task("reading", total=total if total != 1 else None, state="")
        self._started = self._shown = monotonic()
        self._source, self._files = "", 0

    def __enter__(self) -> CorpusProgress:
        self._bar.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.__exit__(kind, error, trace)

    def __call__(self, source: str, runs: int, skipped: int) -> None:
        if self._bar.disable:
            return
        file = source.partition(":")[0]
        self._files += file != self._source
        self._source, now = file, monotonic()
        if now - self._shown >= _EVERY_SECONDS:
            self._shown = now
            rate = f"{runs:,} runs  {runs / max(1e-9, now - self._started):,.0f}/s"
            state = f"{rate}  {skipped} skipped" if skipped else rate
            self._bar.update(self._task, completed=self._files, state=state)


def _logs(path: Location) -> int:
    """Return how many files look like logs by their names."""
    if isinstance(path, Remote):
        return sum(name.endswith(_ENDINGS) for name, _ in path.files()) if path.is_dir() else 1
    if not path.is_dir():
        return 1
    return sum(name.endswith(_ENDINGS) for _, _, names in os.walk(path) for name in names)
