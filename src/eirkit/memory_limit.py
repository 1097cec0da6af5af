"""A limit on the address space of a process, and how far below it a process is."""

from __future__ import annotations

from pathlib import Path

try:
    import resource
except ImportError:  # pragma: no cover - Windows has no such limits; only time is limited there
    resource = None  # type: ignore[assignment]


def limit_memory(extra_bytes: int | None) -> None:
    """Limit this process to this much more address space than it has now.

    Beyond it, Python raises MemoryError. A library that does not check what it allocates ends the process by a signal.
    """
    if resource is None or extra_bytes is None:
        return
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    wanted = (_address_space("self") or 0) + extra_bytes
    resource.setrlimit(resource.RLIMIT_AS, (wanted if hard == resource.RLIM_INFINITY else min(wanted, hard), hard))


def memory_left(pid: int | None = None) -> int | None:
    """Return by how many bytes this or another process is below its limit; None without a limit or if unknown."""
    if resource is None:
        return None
    try:
        if pid is None:
            soft, _ = resource.getrlimit(resource.RLIMIT_AS)
        else:
            soft, _ = resource.prlimit(pid, resource.RLIMIT_AS)
    except (AttributeError, OSError):  # only Linux tells of others; the process has ended
        return None
    used = None if soft == resource.RLIM_INFINITY else _address_space(str(pid or "self"))
    return None if used is None else soft - used


def _address_space(process: str) -> int | None:
    """Return the size of a process's address space in bytes."""
    try:
        pages = int(Path(f"/proc/{process}/statm").read_text("ascii").split()[0])
    except (OSError, ValueError, IndexError):
        return None
    return pages * resource.getpagesize()
