"""Recovery cones: the steps that must be evaluated again to rebuild a missing result, and surveys of their sizes.

`cone_of` is the readable definition for one graph; `measure_cones` computes all cones of many graphs from arrays. The
cone of a step contains the step itself; the published table leaves it out (study `recovery-cones`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt, sqrt
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from eirkit.errors import SpecError, TooLargeError
from eirkit.lacuna.tasks.task import TaskSpec
from eirkit.lacuna.tasks.workload import Graph, References, draw_references

LARGEST_GRAPH = 4096  # steps; ancestor sets grow with the square, naive costs to more than a thousand digits
CHUNK_WORDS = 1 << 20  # words of ancestor sets held at once; 8 MiB stay in cache
_WORD = 64
_LARGEST_WORD = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class Cone:
    """What one missing result needs, given the resident records."""

    nodes: tuple[int, ...]  # steps to evaluate, references before the steps that need them; the target last
    depth: int  # nodes on the longest chain
    naive: int  # evaluations if no result is kept: every path is walked again

    @property
    def size(self) -> int:
        """Evaluations if every result is kept: the minimal recomputation."""
        return len(self.nodes)


def cone_of(graph: Graph, target: int, resident: Collection[int] = ()) -> Cone:
    """Return the cone of a target cut at resident records, which are excluded; empty if the target is resident."""
    if not 1 <= target <= len(graph):
        raise SpecError(f"step {target} is outside 1 … {len(graph)}; choose a step of the graph")
    kept = frozenset(resident)
    nodes = ancestors(graph, (target,), kept)
    depth: dict[int, int] = {}
    naive: dict[int, int] = {}
    for t in nodes:
        inner = [r for r in graph[t - 1] if r not in kept]
        depth[t] = 1 + max((depth[r] for r in inner), default=0)
        naive[t] = 1 + sum(naive[r] for r in inner)
    return Cone(nodes, depth.get(target, 0), naive.get(target, 0))


def ancestors(graph: Graph, wanted: Collection[int], resident: Collection[int] = ()) -> tuple[int, ...]:
    """Return every step needed to recompute the wanted ones, ascending, which is a valid order of evaluation."""
    kept = frozenset(resident)
    found = set(wanted) - kept
    open_nodes = list(found)
    while open_nodes:
        fresh = {r for r in graph[open_nodes.pop() - 1] if r not in found and r not in kept}
        found |= fresh
        open_nodes.extend(fresh)
    return tuple(sorted(found))


@dataclass(frozen=True, slots=True)
class ConeArrays:
    """The cones of all steps of many graphs; every array has shape (graphs, n)."""

    size: NDArray[np.int32]
    depth: NDArray[np.int32]
    naive: NDArray[Any]  # exact: uint64, or Python integers where those are too narrow


def measure_cones(references: References) -> ConeArrays:
    """Return size, depth and naive cost of every cone of many graphs, given as (graphs, n, fan_in), zero-padded."""
    graphs, n, _ = references.shape
    if n > LARGEST_GRAPH:
        raise TooLargeError(f"cones of {n} steps, the limit is {LARGEST_GRAPH}; use a smaller --n")
    rows = max(1, CHUNK_WORDS // (n * _words(n)))
    parts = [_measure(references[start : start + rows]) for start in range(0, graphs, rows)] or [_measure(references)]
    return ConeArrays(
        np.concatenate([part.size for part in parts]),
        np.concatenate([part.depth for part in parts]),
        np.concatenate([part.naive for part in parts]),
    )


def _measure(references: References) -> ConeArrays:
    graphs, n, fan_in = references.shape
    # Step-major, and row 0 stands for "no reference": no ancestors, depth 0, cost 0. So padding needs no mask.
    by_step = np.ascontiguousarray(references.transpose(1, 2, 0))
    ancestors = np.zeros((n + 1, graphs, _words(n)), dtype=np.uint64)
    depth = np.zeros((n + 1, graphs), dtype=np.int32)
    naive: NDArray[Any] = np.zeros((n + 1, graphs), dtype=np.uint64)
    column = np.arange(graphs)
    largest = 0  # naive cost so far
    for t in range(1, n + 1):
        if naive.dtype != object and 1 + fan_in * largest > _LARGEST_WORD:
            naive = naive.astype(object)
        for refs in by_step[t - 1]:
            ancestors[t] |= ancestors[refs, column]
            np.maximum(depth[t], depth[refs, column], out=depth[t])
            naive[t] += naive[refs, column]
        word, bit = divmod(t - 1, _WORD)
        ancestors[t, :, word] |= np.uint64(1 << bit)
        depth[t] += 1
        naive[t] += naive.dtype.type(1) if naive.dtype != object else 1
        largest = max(largest, int(naive[t].max(initial=0)))
    size = _ones(ancestors[1:])
    return ConeArrays(size.T, depth[1:].T, naive[1:].T)


def _words(n: int) -> int:
    return -(-n // _WORD)


def _ones(sets: NDArray[np.uint64]) -> NDArray[np.int32]:
    """Return the number of elements of each set, summed over the last axis."""
    if hasattr(np, "bitwise_count"):
        counts: NDArray[np.int32] = np.bitwise_count(sets).sum(axis=-1, dtype=np.int32)
    else:  # numpy 1 cannot count bits
        counts = np.unpackbits(sets.view(np.uint8), axis=-1).sum(axis=-1, dtype=np.int32)
    return counts


CHUNK_CELLS = 1 << 18  # references of graphs held at once
GROUP = 3  # seeds per published mean
LARGE_CONE = 30  # ancestor evaluations; the threshold of the published growth paragraph


@dataclass(frozen=True, slots=True)
class ConeEstimate:
    """A mean over all cones, and the spread of means over three graphs."""

    mean: float | int  # an integer only where no float is large enough
    spread: float | int | None  # standard deviation of the means of consecutive threes; None below six graphs


@dataclass(frozen=True, slots=True)
class Growth:
    """Cone sizes at one step, or over all steps."""

    median: float
    largest: int
    share_large: float  # of cones above LARGE_CONE


@dataclass(frozen=True, slots=True)
class ConeSurvey:
    """The cones of one graph type. Costs are averaged over the cones of steps from_step … n."""

    spec: TaskSpec
    seeds: Sequence[int]
    cones: int  # averaged over
    size: ConeEstimate  # evaluations if every result is kept
    depth: ConeEstimate
    naive: ConeEstimate  # evaluations if no result is kept
    speedup: float | int  # mean naive cost over mean size, as the published table divides them
    sizes: NDArray[np.int64]  # [t, size]: how many graphs have a cone of that size at step t
    first_seen: NDArray[np.int64]  # [size, depth]: position of the seed · n + t − 1 of the first such cone; −1: none

    def growth(self, t: int) -> Growth:
        """Return the cone sizes at step t over all graphs."""
        return _growth(self.sizes[t])

    def distribution(self) -> Growth:
        """Return the cone sizes of all steps together."""
        return _growth(self.sizes.sum(axis=0))


def survey_cones(spec: TaskSpec, seeds: Sequence[int], from_step: int = 1) -> ConeSurvey:
    """Draw the base graph of every seed and measure all its cones."""
    _check(spec, seeds, from_step)
    n, steps = spec.n, spec.n - from_step + 1
    size, depth, naive = _Tally(), _Tally(), _Tally()
    sizes = np.zeros((n + 1, n + 1), dtype=np.int64)
    first_seen = np.full((n + 1, n + 1), -1, dtype=np.int64)
    for start, cones in _chunks(spec, seeds):
        size.add(cones.size[:, from_step - 1 :].sum(axis=1, dtype=np.int64).tolist())
        depth.add(cones.depth[:, from_step - 1 :].sum(axis=1, dtype=np.int64).tolist())
        naive.add(_exact_sums(cones.naive[:, from_step - 1 :]))
        np.add.at(sizes, (np.arange(1, n + 1), cones.size), 1)
        _remember_first(first_seen, cones, start)
    return ConeSurvey(
        spec,
        seeds,
        cones=len(seeds) * steps,
        size=size.estimate(steps),
        depth=depth.estimate(steps),
        naive=naive.estimate(steps),
        speedup=_number(Fraction(naive.total, size.total)),
        sizes=sizes,
        first_seen=first_seen,
    )


class _Tally:
    """Exact sums of one measure, from which the mean and the spread of means over threes follow without rounding."""

    def __init__(self) -> None:
        self.graphs = self.total = self.groups = self.group_total = self.group_squares = 0

    def add(self, sums: Sequence[int]) -> None:
        """Add one number per graph, in the order of the seeds; only the last call may leave an incomplete three."""
        self.graphs += len(sums)
        self.total += sum(sums)
        for start in range(0, len(sums) - GROUP + 1, GROUP):
            group = sum(sums[start : start + GROUP])
            self.groups += 1
            self.group_total += group
            self.group_squares += group * group

    def estimate(self, steps: int) -> ConeEstimate:
        mean = _number(Fraction(self.total, self.graphs * steps))
        if self.groups < 2:
            return ConeEstimate(mean, None)
        variance = Fraction(self.group_squares, self.groups) - Fraction(self.group_total, self.groups) ** 2
        return ConeEstimate(mean, _root(variance / (GROUP * steps) ** 2))


@dataclass(frozen=True, slots=True)
class Site:
    """One cone and where it was found."""

    fan_in: int
    seed: int
    t: int
    size: int
    depth: int


@dataclass(frozen=True, slots=True)
class ConePair:
    """Two cones that agree in one measure and differ in the other as far as any two of the surveys do."""

    matched: Literal["size", "depth"]
    low: Site
    high: Site


def matched_pairs(surveys: Sequence[ConeSurvey], matched: Literal["size", "depth"]) -> list[ConePair]:
    """Return the widest pair for every value of the matched measure at which cones differ, ascending."""
    other = "depth" if matched == "size" else "size"
    found: dict[int, list[Site]] = {}
    for survey in surveys:
        for site in _sites(survey):
            found.setdefault(getattr(site, matched), []).append(site)
    pairs = []
    for _, sites in sorted(found.items()):
        ordered = sorted(sites, key=lambda site: getattr(site, other))
        if getattr(ordered[0], other) != getattr(ordered[-1], other):
            pairs.append(ConePair(matched, ordered[0], ordered[-1]))
    return pairs


def _sites(survey: ConeSurvey) -> Iterator[Site]:
    for size, depth in np.argwhere(survey.first_seen >= 0).tolist():
        position, step = divmod(int(survey.first_seen[size, depth]), survey.spec.n)
        yield Site(survey.spec.fan_in, int(survey.seeds[position]), step + 1, size, depth)


def _check(spec: TaskSpec, seeds: Sequence[int], from_step: int) -> None:
    if not 1 <= from_step <= spec.n:
        raise SpecError(f"from_step = {from_step} is out of range; choose 1 … n = {spec.n}")
    if spec.n > LARGEST_GRAPH:
        raise TooLargeError(f"cones of {spec.n} steps, the limit is {LARGEST_GRAPH}; use a smaller --n")
    if not len(seeds):
        raise SpecError("no seeds are given; give at least one")
    for end in (min(seeds), max(seeds)):
        spec.with_seed(end)  # raises SpecError for an invalid seed


def _chunks(spec: TaskSpec, seeds: Sequence[int]) -> Iterator[tuple[int, ConeArrays]]:
    rows = max(1, CHUNK_CELLS // (spec.n * spec.fan_in * GROUP)) * GROUP  # groups of three are never split
    for start in range(0, len(seeds), rows):
        chosen = np.array(seeds[start : start + rows], dtype=np.uint64)
        yield start, measure_cones(draw_references(chosen, spec.n, spec.reach, spec.fan_in))


def _remember_first(first_seen: NDArray[np.int64], cones: ConeArrays, start: int) -> None:
    graphs, n = cones.size.shape
    here = np.full_like(first_seen, -1)
    places = np.arange(start * n, (start + graphs) * n).reshape(graphs, n)
    # Later writes overwrite earlier ones, so going backwards keeps the first.
    here[cones.size[::-1], cones.depth[::-1]] = places[::-1]
    np.copyto(first_seen, here, where=first_seen < 0)


def _exact_sums(naive: NDArray[np.uint64]) -> list[int]:
    if naive.dtype == object:
        return [sum(row) for row in naive.tolist()]
    high, low = naive >> np.uint64(32), naive & np.uint64(0xFFFFFFFF)
    return [(a << 32) + b for a, b in zip(high.sum(axis=1).tolist(), low.sum(axis=1).tolist(), strict=True)]


def _growth(counts: NDArray[np.int64]) -> Growth:
    total = int(counts.sum())
    cumulative = np.cumsum(counts)
    middle = [int(np.searchsorted(cumulative, rank, side="right")) for rank in ((total - 1) // 2, total // 2)]
    return Growth(sum(middle) / 2, int(np.flatnonzero(counts)[-1]), int(counts[LARGE_CONE + 1 :].sum()) / total)


def _number(value: Fraction) -> float | int:
    try:
        return float(value)
    except OverflowError:
        return round(value)


def _root(value: Fraction) -> float | int:
    try:
        return sqrt(value)
    except OverflowError:
        return isqrt(round(value))
