"""What an engine is: pieces of work come in, and for each of them what came of it goes out, or why nothing did.

A piece that raises, hangs, needs too much memory or kills its worker costs itself and nobody else. Results come in any
order and carry the number of their piece, so that whoever wants an order can restore it.
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
    """What one piece may take; None: no bound."""

    seconds: float | None = 300.0
    memory_bytes: int | None = 4 << 30  # beyond what the worker has when it begins


@dataclass(frozen=True, slots=True)
class PieceResult(Generic[Value]):
    """What a piece gave."""

    number: int  # of the piece, from 0
    value: Value


@dataclass(frozen=True, slots=True)
class LostPiece:
    """A piece that gave nothing."""

    number: int
    reason: str
    is_death: bool = False  # its worker died, which another piece or the machine may have caused


class Engine(Protocol):
    """Runs a function over pieces.

    The function is a module-level one, and pieces and values can be pickled. Exceptions of the function become losses.
    """

    def map(self, function: Callable[[Any], Any], pieces: Iterable[Any]) -> Iterator[PieceResult[Any] | LostPiece]:
        """Yield what came of each piece, once; pieces are taken from their iterator as workers get free."""
        ...

    def close(self) -> None: ...


def reason_of(error: BaseException, bounds: PieceLimits) -> str:
    """Return why a piece was lost, in one line."""
    if isinstance(error, MemoryError) and bounds.memory_bytes is not None:
        return f"needs more than {bounds.memory_bytes >> 20} MiB of memory; give it more or leave it out"
    words = " ".join(str(error).split())[:500]
    return f"{type(error).__name__}: {words}" if words else type(error).__name__


try:
    import resource
except ImportError:  # pragma: no cover - Windows has no such limits; pieces are bounded in time only
    resource = None  # type: ignore[assignment]


def limit_memory(extra_bytes: int | None) -> None:
    """Let this process have so much address space more than it has now; what needs more raises MemoryError."""
    if resource is None or extra_bytes is None:
        return
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    wanted = address_space() + extra_bytes
    resource.setrlimit(resource.RLIMIT_AS, (wanted if hard == resource.RLIM_INFINITY else min(wanted, hard), hard))


def address_space() -> int:
    """Return the bytes of address space of this process; 0 where the system does not say."""
    try:
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[0])
    except (OSError, ValueError):
        return 0
    return pages * (resource.getpagesize() if resource is not None else 4096)
