"""The live line of an analysis on stderr: runs, rate, time left; silent without a terminal."""

from __future__ import annotations

import os
from collections.abc import Iterable
from time import monotonic

from eirkit.cli.live_line import LiveLine, is_watched
from eirkit.vestige.corpus import LOG_ENDINGS
from eirkit.vestige.remote import Location, Remote

_ENDINGS = tuple(ending + packed for ending in LOG_ENDINGS for packed in ("", ".gz", ".zst"))
_EVERY_SECONDS = 0.1


class CorpusProgress(LiveLine):
    """Shows an analysis as it goes; use it in a with statement."""

    def __init__(self, paths: Iterable[Location]) -> None:
        total = sum(map(_logs, paths)) if is_watched() else None
        # One file with many runs in it tells nothing about how many are left.
        super().__init__("reading", total if total != 1 else None)
        self._shown = self.started
        self._source, self._files = "", 0

    def __call__(self, source: str, runs: int, skipped: int) -> None:
        file = source.partition(":")[0]
        self._files += file != self._source
        self._source, now = file, monotonic()
        if now - self._shown >= _EVERY_SECONDS:
            self._shown = now
            rate = f"{runs:,} runs  {self.rate(runs):,.0f}/s"
            self.show(self._files, f"{rate}  {skipped} skipped" if skipped else rate)


def _logs(path: Location) -> int:
    """Return how many files look like logs by their names."""
    if isinstance(path, Remote):
        return sum(name.endswith(_ENDINGS) for name, _ in path.files()) if path.is_dir() else 1
    if not path.is_dir():
        return 1
    return sum(name.endswith(_ENDINGS) for _, _, names in os.walk(path) for name in names)
