"""Compares the learned policy with alternatives: paired differences in missed references over unseen seeds.

python -m studies.learned_contest [--json | --markdown]
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from eirkit.lacuna.tasks.policy import find_policy
from eirkit.lacuna.tasks.simulation.batch import Batch, count_misses
from eirkit.lacuna.tasks.simulation.plain import Recovery, structure_of
from eirkit.lacuna.tasks.simulation.table import batches
from eirkit.lacuna.tasks.task import TaskSpec
from eirkit.seeds import below, words

SEEDS = 1000
POLICIES = ("fifo", "lru", "lfu", "theory", "learned", "belady")
RIVALS = ("fifo", "lru", "lfu", "theory")
NORMAL = 1.96  # standard errors to each side of a mean over a thousand tasks
AGAIN = 0.7  # chance that a step of `revisits` asks for what the last one asked for

Rates = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Line:
    """One stream at one capacity: the share of references missed, and learned minus the best online rival, paired."""

    stream: str
    trained: bool  # a stream like those it learned from
    recovery: Recovery
    h: int
    rates: dict[str, float]
    rival: str
    difference: float
    low: float
    high: float


def recent(spec: TaskSpec, seeds: Sequence[int]) -> NDArray[np.int32]:
    """Return references that fall off with distance: the lag is geometric with mean 2, cut at the window."""
    steps = np.arange(1, spec.n + 1)
    halvings = np.zeros((len(seeds), spec.n), np.int64)
    drawn = words(seeds, spec.n, "recent")
    for bit in range(spec.reach - 1):
        halvings += (drawn & np.uint64((2 << bit) - 1)) == 0
    found = steps - 1 - halvings
    return np.where(found >= 1, found, 0).astype(np.int32)[:, :, None]


def revisits(spec: TaskSpec, seeds: Sequence[int]) -> NDArray[np.int32]:
    """Return references that often are those of the step before: one record is worked on until another is taken up."""
    fresh = below(words(seeds, spec.n, "fresh"), np.minimum(np.arange(spec.n), spec.reach)) + 1
    stays = words(seeds, spec.n, "again") < np.uint64(int(AGAIN * 2**64))
    found = np.zeros((len(seeds), spec.n), np.int32)
    for t in range(1, spec.n):
        before = found[:, t - 1]
        allowed = stays[:, t] & (before > 0) & (t + 1 - before <= spec.reach)
        found[:, t] = np.where(allowed, before, t + 1 - fresh[:, t])
    return found[:, :, None]


def of_workload(spec: TaskSpec, seeds: Sequence[int]) -> Iterator[Batch]:
    yield from batches(spec, seeds)


def drawn_by(references: Callable[[TaskSpec, Sequence[int]], NDArray[np.int32]]) -> Callable[..., Iterator[Batch]]:
    """Return a maker of batches with references that no workload has."""

    def made(spec: TaskSpec, seeds: Sequence[int]) -> Iterator[Batch]:
        yield Batch.of(structure_of(spec), np.array(seeds, np.uint64), references(spec, seeds))

    return made


SUM, MAX, TOPK = TaskSpec("stepwise-sum"), TaskSpec("stepwise-max", fan_in=1), TaskSpec("stepwise-topk")
# Name → (specification, maker of batches, whether the tables learned from such streams).
STREAMS = {
    "Stepwise Sum": (SUM, of_workload, True),
    "Stepwise Maximum, fan-in 1": (MAX, of_workload, True),
    "Stepwise Top-k": (TOPK, of_workload, True),
    "Running Maximum": (TaskSpec("running-max"), of_workload, False),
    "Store–Recall": (TaskSpec("store-recall"), of_workload, True),
    "Full Lookup, uniform": (TaskSpec("full-lookup"), of_workload, True),
    "Full Lookup, Zipf shuffled": (TaskSpec("full-lookup", queries="zipf-shuffled"), of_workload, True),
    "Full Lookup, Zipf": (TaskSpec("full-lookup", queries="zipf"), of_workload, False),
    "Stepwise Sum, m = 12": (TaskSpec("stepwise-sum", m=12), of_workload, False),
    "Stepwise Sum, m = 48, n = 256": (TaskSpec("stepwise-sum", m=48, n=256), of_workload, False),
    "Store–Recall, m = 24": (TaskSpec("store-recall", m=24), of_workload, False),
    "Full Lookup, Zipf shuffled, m = 48, n = 256": (
        TaskSpec("full-lookup", m=48, n=256, queries="zipf-shuffled"),
        of_workload,
        False,
    ),
    "recent references": (TaskSpec("stepwise-sum", fan_in=1), drawn_by(recent), False),
    "revisits": (TaskSpec("stepwise-sum", fan_in=1), drawn_by(revisits), False),
}


def contest(seeds: Sequence[int] = range(SEEDS)) -> Iterator[Line]:
    """Yield a line for each stream, with and without recovery, at three capacities."""
    for name, (spec, maker, trained) in STREAMS.items():
        made = list(maker(spec, seeds))
        ways: tuple[Recovery, ...] = ("off", "direct")
        for recovery in ways:
            for h in (spec.m * 3 // 4, spec.m // 2, spec.m // 4):
                rates = {policy: missed(made, policy, h, recovery) for policy in POLICIES}
                yield line(name, trained, recovery, h, rates)


def missed(made: Sequence[Batch], policy: str, h: int, recovery: Recovery) -> Rates:
    """Return the share of references missed, task by task."""
    return np.concatenate(
        [
            count_misses(b, find_policy(policy), [h], recovery=recovery).references[:, 0]
            / np.maximum(1, b.needed_references)
            for b in made
        ]
    )


def line(stream: str, trained: bool, recovery: Recovery, h: int, rates: dict[str, Rates]) -> Line:
    """Return one line; the rival is the online policy that misses least on average."""
    means = {name: float(rate.mean()) for name, rate in rates.items()}
    rival = min(RIVALS, key=lambda name: means[name])
    apart = rates["learned"] - rates[rival]
    error = NORMAL * float(apart.std(ddof=1)) / len(apart) ** 0.5
    middle = float(apart.mean())
    return Line(stream, trained, recovery, h, means, rival, middle, middle - error, middle + error)


def markdown(lines: Sequence[Line]) -> list[str]:
    """Return the rows of the comparison."""
    return [
        f"| {one.stream}{'' if one.trained else ' ✶'} | {one.recovery} | {one.h} | "
        f"{' | '.join(f'{one.rates[name]:.3f}' for name in POLICIES)} | "
        f"{one.difference:+.4f} ({one.low:+.4f} … {one.high:+.4f}) against {one.rival} |"
        for one in lines
    ]


def main(arguments: Sequence[str]) -> None:
    lines = list(contest())
    if "--json" in arguments:
        print(json.dumps({"lines": [asdict(one) for one in lines]}, ensure_ascii=False))
        return
    print("\n".join(markdown(lines)))


if __name__ == "__main__":
    main(sys.argv[1:])
