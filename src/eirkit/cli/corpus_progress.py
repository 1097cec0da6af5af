"""Progress of an analysis on stderr: runs, rate and time left; without a terminal, a plain line every ten seconds."""

from __future__ import annotations

import os
from collections.abc import Sequence
from time import monotonic

import click

from eirkit.cli.live_line import LiveLine, is_watched
from eirkit.logs.corpus.reader import LOG_ENDINGS
from eirkit.logs.sources.remote import Location, Remote
from eirkit.show.phrases import counted

_ENDINGS = tuple(ending + packed for ending in LOG_ENDINGS for packed in ("", ".gz", ".zst"))
_EVERY_SECONDS = 0.1
_EVERY_LINE_SECONDS = 10.0  # without a terminal, as in the log of a job


class CorpusProgress(LiveLine):
    """Shows the progress of an analysis; use it in a with statement.

    Args:
        line_seconds: seconds between two lines where stderr is not a terminal.
    """

    def __init__(self, paths: Sequence[Location], line_seconds: float = _EVERY_LINE_SECONDS) -> None:
        self._paths, self._is_watched = paths, is_watched()
        self._total = self._count() if self._is_watched else None
        super().__init__("reading", self._total)
        self._every = _EVERY_SECONDS if self._is_watched else line_seconds
        self._shown = self.started
        self._source, self._files = "", 0

    def __call__(self, source: str, runs: int, skipped: int) -> None:
        file = source.partition(":")[0]
        self._files += file != self._source
        self._source, now = file, monotonic()
        if now - self._shown >= self._every:
            self._shown = now
            rate = f"{counted(runs, 'run')}  {self.rate(runs):,.0f}/s"
            state = f"{rate}  {skipped:,} skipped" if skipped else rate
            if self._is_watched:
                self.show(self._files, state)
            else:
                click.echo(f"reading: {state}{self._left()}", err=True)

    def _left(self) -> str:
        """Return how many files are read and how long the rest will take, if that is known."""
        if self._total is None:
            self._total = self._count() or 0
        if not self._total:
            return ""
        seconds = max(0.0, (self._total - self._files) / max(1e-9, self.rate(self._files)))
        files = f"  file {min(self._files, self._total):,} of {self._total:,}"
        return (
            f"{files}  about {seconds / 60:,.0f} min left" if seconds >= 60 else f"{files}  about {seconds:.0f} s left"
        )

    def _count(self) -> int | None:
        """Return how many logs there are; None for one file, which may hold any number of runs."""
        total = sum(map(_logs, self._paths))
        return total if total != 1 else None


def _logs(path: Location) -> int:
    """Return how many files look like logs by their names."""
    if isinstance(path, Remote):
        return sum(name.endswith(_ENDINGS) for name, _ in path.files()) if path.is_dir() else 1
    if not path.is_dir():
        return 1
    return sum(name.endswith(_ENDINGS) for _, _, names in os.walk(path) for name in names)
