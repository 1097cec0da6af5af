"""EIR of Stepwise Maximum (k = 1) and Stepwise Top-k: exact counts where a theorem gives them, bounds elsewhere.

The results and their proofs are in docs/design/frontier-counting.md; `tests/eir/test_frontier.py` certifies them by
enumerating inputs and refining windows.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from contextlib import suppress
from itertools import combinations, islice
from math import comb

from eirkit.eir import windows as thresholds
from eirkit.eir.counting import Window, enumerate_vectors
from eirkit.eir.demand import ClassCount, DemandCurve, select_cuts
from eirkit.eir.two_references import count_two_references
from eirkit.eir.windows import count_reachable, count_visible, parts, reachable_coefficients, window_at, without
from eirkit.errors import TooLargeError

EXACT = "exact counting of threshold-vector chains"
REFINED = "exact refinement of threshold vectors"
EMPTIED_LIMIT = 12  # choices tried for the lower bound; more improve it little
QUICK_VECTORS = 50_000  # largest part counted for a bound: about a second
BOUNDED = "certified bounds: raised windows above, windows beside empty frontiers below"
NARROW = "certified bounds: chains of threshold vectors, with and without those in which no frontier is empty"


def demand_of_frontiers(
    graph: Sequence[Sequence[int]],
    reach: int,
    fan_in: int,
    k: int,
    q: int,
    cuts: Sequence[int] | None = None,
    *,
    copies: int = 1,
    backend: str = "auto",
) -> DemandCurve:
    """Return EIR after each step of a task over this graph; `copies` independent slots are referenced together."""
    n = len(graph)
    wanted = set(select_cuts(n, cuts))
    counts: list[ClassCount | None] = [None] * (n + 1)
    methods = set()
    for t in sorted(wanted):
        window = window_at(graph, reach, t) if t < n else ()
        count, method = count_cut(window, reach, fan_in, k, n - t, q, backend)
        counts[t] = count.power(copies)
        methods.add(method)
    order = (BOUNDED, NARROW, REFINED, EXACT)
    return DemandCurve(tuple(counts), "; ".join(method for method in order if method in methods))


def count_cut(
    window: Window, reach: int, fan_in: int, k: int, left: int, q: int, backend: str = "auto"
) -> tuple[ClassCount, str]:
    """Return the classes at one cut with `left` steps to go, and the result that gives them."""
    if not window or left == 0:
        return ClassCount.exactly(1), EXACT
    one_by_one = min(fan_in, len(window)) == 1  # the next step shows any single frontier completely
    try:
        if k == 1 or one_by_one:
            return ClassCount.exactly(count_visible(window, k, fan_in, q, backend)), EXACT
        if k == 2 and fan_in == 2:
            lost = _swapped_pairs(window, q, backend) if left == 1 else 0
            return ClassCount.exactly(count_visible(window, k, fan_in, q, backend) - lost), EXACT
        if k == 3 and fan_in == 2:
            return count_two_references(window, k, reach, left, q, backend), EXACT
        return ClassCount.exactly(thresholds.count_classes(window, k, fan_in, reach, left, q)), REFINED
    except TooLargeError:
        pass
    with suppress(TooLargeError):
        if k > 3 and fan_in == 2:
            return count_two_references(window, k, reach, left, q, backend), NARROW
    return _bounds(window, k, fan_in, q, backend), BOUNDED


def _swapped_pairs(window: Window, q: int, backend: str) -> int:
    """Return the pairs of visible windows of two-value frontiers that a single remaining step cannot tell apart.

    {(b, b), (a, b)} with a > b and every other value at least a looks like its swap. Both frontiers must be free of
    references inside the window. Over the choices of b < a, the others take any window over the q − a values from a up.
    """
    free = [step for step, refs in enumerate(window) if not refs]
    pairs = 0
    for pair in combinations(free, 2):
        rest = without(window, pair)
        if not rest:
            pairs += comb(q, 2)  # a is a value, so at most q − 1; the sum below would also count a = q
            continue
        # Σ_a a · C(q − a, K) = C(q + 1, K + 2)
        pairs += sum(r * comb(q + 1, K + 2) for K, r in enumerate(reachable_coefficients(rest, 2, backend)))
    return pairs


def _bounds(window: Window, k: int, fan_in: int, q: int, backend: str) -> ClassCount:
    """Return certified bounds for every k and fan-in.

    Above: windows that agree once every value is raised to the lowest visible one have equal futures. Below: beside
    g − 1 frontiers that hold only the lowest value, one reference set shows any other frontier whole.
    """
    upper = comb(q + k - 1, k) ** len(window)
    with suppress(TooLargeError):  # keep the coarse bound
        upper = min(upper, count_visible(window, k, fan_in, q, backend))
    lower = 1
    for empty in _emptied(window, min(fan_in, len(window)) - 1):
        beside = without(window, empty)
        lower = max(lower, _banded_windows(beside, k, q), _count_prefix(beside, k, q, backend))
    return ClassCount(lower, upper)


def _emptied(window: Window, size: int) -> list[tuple[int, ...]]:
    """Return sets of frontiers that may hold only the lowest value whatever the others hold."""
    free = [step for step, refs in enumerate(window) if not refs]
    oldest = tuple(range(size))  # refers to nothing in the window outside itself
    return [oldest, *islice(combinations(free, size), EMPTIED_LIMIT)]


def _count_prefix(window: Window, k: int, q: int, backend: str) -> int:
    """Return the reachable windows of the longest prefix that is quick to count; later steps can add nothing new."""

    def is_large(length: int) -> bool:
        try:
            for part in parts(window[:length]):
                enumerate_vectors(part, k, QUICK_VECTORS)
        except TooLargeError:
            return True
        return False

    longest = bisect_left(range(len(window) + 1), True, key=is_large) - 1
    return count_reachable(window[:longest], k, q, backend)


def _banded_windows(window: Window, k: int, q: int) -> int:
    """Return the windows in which every step lies in a band of values above those of the steps it refers to."""
    depth: list[int] = []
    for refs in window:
        depth.append(1 + max((depth[r] for r in refs), default=-1))
    band = q // (1 + max(depth, default=0))
    return comb(band + k - 1, k) ** len(window) if band else 1
