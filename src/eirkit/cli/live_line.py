"""A live line on stderr with a bar, a state and the time left; nothing is printed without a terminal."""

from __future__ import annotations

import sys
from time import monotonic
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn


class LiveLine:
    """Shows progress; use it in a with statement.

    Args:
        total: how much there is to do; None if unknown.
    """

    def __init__(self, doing: str, total: int | None = None) -> None:
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[state]}"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
            disable=not is_watched(),
        )
        self._task = self._bar.add_task(doing, total=total, state="")
        self.started = monotonic()

    def __enter__(self) -> Self:
        self._bar.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.__exit__(kind, error, trace)

    def rate(self, done: float) -> float:
        """Return how much was done per second."""
        return done / max(1e-9, monotonic() - self.started)

    def show(self, completed: int, state: str, total: int | None = None) -> None:
        """Show the progress; a total of None leaves the total as it was."""
        self._bar.update(self._task, completed=completed, total=total, state=state)


def is_watched() -> bool:
    """True if stderr is a terminal."""
    return sys.stderr.isatty()
