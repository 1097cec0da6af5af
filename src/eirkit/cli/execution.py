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


def engine_options(command: Command) -> Command:
    """Add --engine, --workers, --address and the bounds of one piece of work; they arrive as `engine`."""
    return bounded_engine_options(SECONDS, MIB)(command)


def bounded_engine_options(seconds: float, mib: int) -> Callable[[Command], Command]:
    """Return a decorator that adds the same options with other default bounds."""

    def decorate(command: Command) -> Command:
        @wraps(command)
        def with_engine(
            *arguments: Any,
            engine: str | None,
            workers: int | None,
            address: str | None,
            record_seconds: float | None,
            record_mib: int | None,
            **given: Any,
        ) -> Any:
            bounds = PieceLimits(record_seconds or seconds, (record_mib or mib) << 20)
            bounded = workers or record_seconds or record_mib  # bounds hold in worker processes only
            chosen = engine or ("ray" if address else "local" if bounded else None)
            made = make_engine(chosen, workers=workers, address=address, bounds=bounds) if chosen else None
            return command(*arguments, engine=made, **given)

        return options(*_options(seconds, mib))(with_engine)  # type: ignore[no-any-return]

    return decorate


def _options(seconds: float, mib: int) -> tuple[Callable[[Any], Any], ...]:
    return (
        option("--engine", type=click.Choice(list(ENGINES)), group="Engine", help="Processes of this machine, or Ray."),
        option("--workers", type=click.IntRange(1), group="Engine", help="Worker processes.  [default: all cores]"),
        option("--address", group="Engine", help="Address of an existing Ray cluster; implies --engine ray."),
        option(
            "--record-seconds",
            type=click.FloatRange(0, min_open=True),
            group="Engine",
            help=f"Longest time for one run, log or study, in seconds.  [default: {seconds:g}]",
        ),
        option(
            "--record-mib",
            type=click.IntRange(64),
            group="Engine",
            help=f"Most memory for one run, log or study, in MiB.  [default: {mib}]",
        ),
    )


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
