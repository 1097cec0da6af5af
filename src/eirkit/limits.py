"""Limits on the processor time that reading one foreign record may take, and on the memory of a process.

An analysis checks its time between its steps. Code that reaches no check is interrupted by a thread that looks twice a
second; only a single call of a compiled function ends first, and those take time proportional to their text.
"""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from eirkit.errors import InputFileError

RECORD_SECONDS = 60.0  # for one run in the process of the command: a thousand times what a usual run takes
LOOK_SECONDS = 0.5
GRACE_SECONDS = 1.0  # in which a check between two steps may end a record in order
Value = TypeVar("Value")


class _Interrupted(BaseException):
    """Raised in a thread whose limit has passed; not an Exception, so that no reader takes it for damage in a log."""


class _Limit(threading.local):
    end: float = float("inf")
    soonest: float = float("inf")  # on the clock: a thread cannot have used more time than has passed
    reason: str = ""


_limit = _Limit()
_ends: dict[int, tuple[int, float]] = {}  # by thread: its clock and when it is interrupted
_interrupted: set[int] = set()  # threads that an interrupt was sent to
_lock = threading.Lock()
_watcher: threading.Thread | None = None


@contextmanager
def time_limit(seconds: float, what: str) -> Iterator[None]:
    """Raise InputFileError in this thread after so many seconds of its processor time; an outer limit still holds."""
    before = _limit.end, _limit.soonest, _limit.reason
    end = time.thread_time() + seconds
    if end < before[0]:
        _limit.end, _limit.soonest = end, time.monotonic() + seconds
        _limit.reason = f"{what} takes more than {seconds:g} s of processor time; leave it out or shorten it"
    reason, outer = _limit.reason, _watch(_limit.end)
    try:
        yield
    except _Interrupted:
        raise InputFileError(reason) from None
    finally:
        _limit.end, _limit.soonest, _limit.reason = before
        _restore(outer)


def check_time() -> None:
    """Raise InputFileError if the limit of this thread has passed."""
    # The processor time of a thread is a system call away, the clock is not, and this is called for every command.
    if time.monotonic() > _limit.soonest and time.thread_time() > _limit.end:
        raise InputFileError(_limit.reason)


def limited(items: Iterable[Value], seconds: float, what: str) -> Iterator[Value]:
    """Yield items, each of which may take so many seconds of processor time to come."""
    iterator = iter(items)
    while True:
        with time_limit(seconds, what):
            try:
                item = next(iterator)
            except StopIteration:
                return
        yield item
        del item  # it may be large, and the next one need not wait for its memory


def _watch(end: float) -> tuple[int, float] | None:
    """Let this thread be interrupted at a time of its own clock; return what held before."""
    global _watcher
    if not hasattr(time, "pthread_getcpuclockid"):
        return None  # only checks between steps hold there
    thread = threading.get_ident()
    with _lock:
        outer = _ends.get(thread)
        _ends[thread] = time.pthread_getcpuclockid(thread), end
        if _watcher is None or not _watcher.is_alive():  # the first, or that of the process that this one is a copy of
            _watcher = threading.Thread(target=_interrupt_late_ones, name="time limits", daemon=True)
            _watcher.start()
    return outer


def _restore(outer: tuple[int, float] | None) -> None:
    """Take back what `_watch` did, also an interrupt that is on its way."""
    thread = threading.get_ident()
    while True:
        try:
            with _lock:
                if outer is None:
                    _ends.pop(thread, None)
                else:
                    _ends[thread] = outer
                if thread in _interrupted:
                    _interrupted.remove(thread)
                    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), None)
            return
        except _Interrupted:  # it arrived here
            continue


def _interrupt_late_ones() -> None:
    while True:
        time.sleep(LOOK_SECONDS)
        with _lock:
            for thread, (clock, end) in _ends.items():
                try:
                    is_late = time.clock_gettime(clock) > end + GRACE_SECONDS
                except OSError:  # the thread has ended
                    continue
                if is_late:
                    _interrupted.add(thread)
                    interrupt = ctypes.py_object(_Interrupted)
                    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), interrupt)


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
