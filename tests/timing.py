"""How much work something is, on any machine: CPU time, in units of a fixed piece of work measured beside it.

A wall clock tells how busy the machine is and seconds tell how old it is; neither may fail a test.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter, process_time

UNITS_IN_A_SECOND = 100  # about, on a machine of 2024: limits are written as seconds * UNITS_IN_A_SECOND
_ROUNDS = 60_000
_TIMES = 30  # longer than a scheduler lets one process run while others wait


def cost(work: Callable[[], object], times: int = 1) -> float:
    """Return the least that a call took, in units of what the yardstick takes before and after it."""
    return min(_once(work) for _ in range(times))


def slowness() -> float:
    """Return how many times as long as on a quiet machine of 2024 things take here and now, at least 1.

    For the few bounds that are seconds of a wall clock: something must end within so many, times this.
    """
    start = perf_counter()
    for _ in range(_TIMES):
        _yardstick()
    return max(1.0, (perf_counter() - start) * UNITS_IN_A_SECOND / _TIMES)


def _once(work: Callable[[], object]) -> float:
    before = _seconds(_yardstick)
    spent = _seconds(work)
    # Of the two the longer, so that a machine which slows down between them is not held against the work.
    return spent / max(before, _seconds(_yardstick))


def _seconds(work: Callable[[], object]) -> float:
    start = process_time()
    work()
    return process_time() - start


def _yardstick() -> int:
    """Do what our code mostly does: look up, compare and put together small objects."""
    seen: dict[str, int] = {}
    for number in range(_ROUNDS):
        word = f"A_{number % 997}"
        seen[word] = seen.get(word, 0) + len(word)
    return len(seen)
