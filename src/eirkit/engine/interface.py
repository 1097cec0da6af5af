"""The engine protocol: maps a function over pieces of work and reports a result or a reason for each piece.

A piece that raises, hangs, runs out of memory or kills its worker is lost alone; the others are not affected. Results
arrive in any order and carry the number of their piece, so that callers can restore the order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

Piece = TypeVar("Piece")
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


def reason_of(error: BaseException, bounds: PieceLimits) -> str:
    """Return in one line why a piece was lost."""
    if isinstance(error, MemoryError) and bounds.memory_bytes is not None:
        return f"needs more than {bounds.memory_bytes >> 20} MiB of memory; raise the limit or leave it out"
    words = " ".join(str(error).split())[:500]
    return f"{type(error).__name__}: {words}" if words else type(error).__name__


try:
    import resource
except ImportError:  # pragma: no cover - Windows has no such limits; only time is limited there
    resource = None  # type: ignore[assignment]


def limit_memory(extra_bytes: int | None) -> None:
    """Limit this process to this much more address space than it has now; beyond it, Python raises MemoryError."""
    if resource is None or extra_bytes is None:
        return
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    wanted = address_space() + extra_bytes
    resource.setrlimit(resource.RLIMIT_AS, (wanted if hard == resource.RLIM_INFINITY else min(wanted, hard), hard))


def address_space() -> int:
    """Return the size of this process's address space in bytes; 0 if unknown."""
    try:
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[0])
    except (OSError, ValueError):
        return 0
    return pages * (resource.getpagesize() if resource is not None else 4096)
