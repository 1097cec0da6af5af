"""A worker shares the fate of whoever started it: once its parent is gone, however it went, it ends by itself.

The parent's end of a pipe tells: every system closes it with the process, whether that was interrupted or killed. What
an interrupt means is the parent's to decide; a worker never hears of one, not even while it starts.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker
from multiprocessing.process import BaseProcess

ORPHANED = 1  # exit code, which nobody is left to read
_CAN_MASK = hasattr(signal, "pthread_sigmask")


@contextmanager
def deaf_to_interrupts() -> Iterator[None]:
    """Start processes that hear no interrupt until `share_fate`; one that comes meanwhile reaches us afterwards."""
    if not _CAN_MASK:
        yield
        return
    resource_tracker.ensure_running()  # a start of it inside would lift the mask
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def share_fate() -> None:
    """Ignore interrupts, and end this worker at once when its parent has ended, whatever it is doing."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if _CAN_MASK:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_after, args=(parent,), name="fate", daemon=True).start()


def _end_after(parent: BaseProcess) -> None:
    parent.join()
    os._exit(ORPHANED)  # no clean-up: a piece under way may never let go, and nobody wants its value
