"""Bounds that a worker puts on itself before it takes up a piece of work."""

from __future__ import annotations

from pathlib import Path

try:
    import resource
except ImportError:  # pragma: no cover - Windows has no such limits; pieces are bounded in time only
    resource = None  # type: ignore[assignment]


def bound_memory(extra_bytes: int | None) -> None:
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
