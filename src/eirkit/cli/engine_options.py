"""The options that choose an engine; a command gets the engine itself, or None where nothing was said."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import click

from eirkit.engine.engine_factory import ENGINES, make_engine
from eirkit.engine.mapping import Bounds

Command = TypeVar("Command", bound=Callable[..., Any])

SECONDS, MIB = 300.0, 4096


def engine_options(command: Command) -> Command:
    """Add --engine, --workers, --address and the bounds of one piece of work; they arrive as `engine`."""
    return bounded_engine_options(SECONDS, MIB)(command)


def bounded_engine_options(seconds: float, mib: int) -> Callable[[Command], Command]:
    """Return what adds the same, with bounds that are not the usual ones."""

    def decorate(command: Command) -> Command:
        @wraps(command)
        def with_engine(
            *arguments: Any,
            engine: str | None,
            workers: int | None,
            address: str | None,
            record_seconds: float | None,
            record_mib: int | None,
            **options: Any,
        ) -> Any:
            bounds = Bounds(record_seconds or seconds, (record_mib or mib) << 20)
            said = workers or record_seconds or record_mib  # bounds hold in workers alone
            chosen = engine or ("ray" if address else "local" if said else None)
            made = make_engine(chosen, workers=workers, address=address, bounds=bounds) if chosen else None
            return command(*arguments, engine=made, **options)

        decorated: Any = with_engine
        for option in reversed(_options(seconds, mib)):
            decorated = option(decorated)
        return decorated  # type: ignore[no-any-return]

    return decorate


def _options(seconds: float, mib: int) -> tuple[Callable[[Any], Any], ...]:
    return (
        click.option("--engine", type=click.Choice(ENGINES), help="Processes of this machine, or Ray."),
        click.option("--workers", type=click.IntRange(1), help="How many.  [default: the cores of this machine]"),
        click.option("--address", help="Of a Ray cluster that exists."),
        click.option(
            "--record-seconds",
            type=click.FloatRange(0, min_open=True),
            help=f"Time of one piece of work.  [default: {seconds:g}]",
        ),
        click.option("--record-mib", type=click.IntRange(64), help=f"Memory of one piece of work.  [default: {mib}]"),
    )
