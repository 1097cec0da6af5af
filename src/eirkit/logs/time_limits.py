"""A limit on the processor time that one foreign record may take, in any thread.

It is checked between the steps of an analysis. Every step takes time proportional to its text, so that a check between
two steps comes soon enough.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic, thread_time

from eirkit.errors import InputFileError

RECORD_SECONDS = 60.0  # for one run in the process of the command: a thousand times what a usual run takes


class _Limit(threading.local):
    end: float = float("inf")
    soonest: float = float("inf")  # on the clock: a thread cannot have used more time than has passed
    reason: str = ""


_limit = _Limit()


@contextmanager
def time_limit(seconds: float, what: str) -> Iterator[None]:
    """Let `check_time` raise in this thread after so many seconds of its processor time; an outer limit still holds."""
    before = _limit.end, _limit.soonest, _limit.reason
    end = thread_time() + seconds
    if end < before[0]:
        _limit.end, _limit.soonest = end, monotonic() + seconds
        _limit.reason = f"{what} takes more than {seconds:g} s of processor time; leave it out or shorten it"
    try:
        yield
    finally:
        _limit.end, _limit.soonest, _limit.reason = before


def check_time() -> None:
    """Raise InputFileError if the limit of this thread has passed."""
    # The processor time of a thread is a system call away, the clock is not, and this is called for every command.
    if monotonic() > _limit.soonest and thread_time() > _limit.end:
        raise InputFileError(_limit.reason)
