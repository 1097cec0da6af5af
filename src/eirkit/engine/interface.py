"""The engine protocol: maps a function over pieces of work and reports a result or a reason for each piece.

A piece that raises, hangs, runs out of memory or kills its worker is lost alone; the others are not affected. Results
arrive in any order and carry the number of their piece, so that callers can restore the order. The module of an engine
is imported when `make_engine` makes one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Generic, Protocol, TypeVar

from eirkit.engine import ENGINES
from eirkit.errors import UnknownNameError

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class PieceLimits:
    """Time and memory limits of one piece; None means no limit."""

    seconds: float | None = 300.0
    memory_bytes: int | None = 4 << 30  # in addition to what the worker uses at its start


@dataclass(frozen=True, slots=True)
class PieceResult(Generic[Value]):
    """The result of one piece."""

    number: int  # of the piece, from 0
    value: Value


@dataclass(frozen=True, slots=True)
class LostPiece:
    """A piece without a result."""

    number: int
    reason: str
    is_death: bool = False  # its worker died, perhaps because of another piece or the machine


class Engine(Protocol):
    """Runs a function over pieces.

    The function must be defined at module level, and pieces and values must be picklable. A piece whose function raises
    is reported as lost.
    """

    def map(self, function: Callable[[Any], Any], pieces: Iterable[Any]) -> Iterator[PieceResult[Any] | LostPiece]:
        """Yield one outcome per piece; pieces are drawn from the iterator as workers become free."""
        ...

    def close(self) -> None: ...


def make_engine(name: str, *, workers: int | None = None, bounds: PieceLimits | None = None) -> Engine:
    """Return an engine; nothing is started yet.

    Args:
        workers: number of local workers; one per core by default.
    """
    if name not in ENGINES:
        raise UnknownNameError("engine", name, ENGINES)
    module, _, kind = ENGINES[name].partition(":")
    engine: Engine = getattr(import_module(module), kind)(workers=workers, bounds=bounds)
    return engine


def reason_of(error: BaseException, bounds: PieceLimits) -> str:
    """Return in one line why a piece was lost."""
    if isinstance(error, MemoryError) and bounds.memory_bytes is not None:
        return f"needs more than {bounds.memory_bytes >> 20} MiB of memory; raise the limit or leave it out"
    words = " ".join(str(error).split())[:500]
    return f"{type(error).__name__}: {words}" if words else type(error).__name__


def reason_of_death(how: str, bounds: PieceLimits, used_bytes: int | None = None) -> str:
    """Return in one line that a worker died with a piece, and what is known of its memory.

    A library that does not check what it allocates crashes where Python would raise MemoryError; from outside this
    looks like any other crash, so the limit and the use are stated, and no cause.

    Args:
        how: what the piece did to its worker.
        used_bytes: the most that was seen in use within the limit.
    """
    if bounds.memory_bytes is None:
        return f"{how}; leave it out or investigate it"
    limit = f"at a limit of {bounds.memory_bytes >> 20} MiB of memory"
    used = "" if used_bytes is None else f", of which {used_bytes >> 20} or more were in use"
    return f"{how} {limit}{used}; raise the limit, leave it out or investigate it"
