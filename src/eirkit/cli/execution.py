"""Options that choose an execution engine and its limits, and the live line of progress on stderr."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from time import monotonic
from types import TracebackType
from typing import Any, Self, TypeVar

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from eirkit.cli.command import option, options
from eirkit.engine import ENGINES
from eirkit.engine.interface import PieceLimits, make_engine

Command = TypeVar("Command", bound=Callable[..., Any])

SECONDS = 300.0
MIB = 4096
LINE_SECONDS = 10.0  # between two lines of progress without a terminal, as in the log of a job


def engine_options(command: Command) -> Command:
    """Add --engine and --workers; they arrive as `engine`."""
    return bounded_engine_options(SECONDS, MIB)(command)


def bounded_engine_options(seconds: float, mib: int) -> Callable[[Command], Command]:
    """Return a decorator that adds the same options where one piece of work has other bounds."""

    def decorate(command: Command) -> Command:
        @wraps(command)
        def with_engine(*arguments: Any, engine: str | None, workers: int | None, **given: Any) -> Any:
            chosen = engine or ("local" if workers else None)
            made = make_engine(chosen, workers=workers, bounds=PieceLimits(seconds, mib << 20)) if chosen else None
            return command(*arguments, engine=made, **given)

        return options(  # type: ignore[no-any-return]
            option(
                "--engine",
                type=click.Choice(list(ENGINES)),
                common=False,
                group="Engine",
                help="Processes of this machine, or Ray: here, or the cluster that RAY_ADDRESS names.",
            ),
            option(
                "--workers",
                type=click.IntRange(1),
                common=False,
                group="Engine",
                help="Worker processes.  [default: all cores]",
            ),
        )(with_engine)

    return decorate


class LiveLine:
    """Shows progress; use it in a with statement. Where stderr is no terminal, it prints a line now and then.

    Args:
        total: how much there is to do; None if unknown.
        line_seconds: seconds between two lines without a terminal.
    """

    def __init__(self, doing: str, total: int | None = None, line_seconds: float = LINE_SECONDS) -> None:
        self.doing, self.line_seconds, self.is_watched = doing, line_seconds, is_watched()
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[state]}"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
            disable=not self.is_watched,
        )
        self._task = self._bar.add_task(doing, total=total, state="")
        self.started = self._said = monotonic()

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
        if self.is_watched:
            self._bar.update(self._task, completed=completed, total=total, state=state)
        elif (now := monotonic()) - self._said >= self.line_seconds:
            self._said = now
            click.echo(f"{self.doing}: {state}", err=True)


def is_watched() -> bool:
    """True if stderr is a terminal."""
    return sys.stderr.isatty()
