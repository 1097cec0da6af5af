"""Times task generation on one core: batches against single tasks and a plain standard-library loop.

python -m benchmarks.generation
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from time import perf_counter

import msgspec

from eirkit.lacuna.tasks.generation import BATCH, generate, generate_batch
from eirkit.lacuna.tasks.task import TaskSpec
from eirkit.lacuna.tasks.workload import workloads
from eirkit.records.lines import encode

TARGET = 20_000  # tasks a second, 64 steps each, in batches
REPEATS = 5  # the best counts: other work on the machine only ever slows a run down


def rate(tasks: int, work: Callable[[], object]) -> float:
    """Return tasks a second in the best of several runs."""
    best = float("inf")
    for _ in range(REPEATS):
        start = perf_counter()
        work()
        best = min(best, perf_counter() - start)
    return tasks / best


def plain_task(n: int, m: int, fan_in: int, q: int, seed: int) -> list[tuple[int, list[int], int]]:
    """Return a Stepwise Sum task as one would write it in an afternoon: same shape, other numbers."""
    rng = random.Random(seed)
    answers: list[int] = []
    steps = []
    for t in range(1, n + 1):
        available = range(max(1, t - m), t)
        refs = sorted(rng.sample(available, min(fan_in, len(available))))
        fresh = rng.randrange(q)
        answers.append((fresh + sum(answers[r - 1] for r in refs)) % q)
        steps.append((fresh, refs, answers[-1]))
    return steps


def rates(name: str) -> dict[str, float]:
    """Return tasks a second for each way of making the tasks of one workload."""
    spec = TaskSpec(name)
    batch = generate_batch(spec, range(BATCH))
    few = range(100)
    return {
        "batch": rate(BATCH, lambda: generate_batch(spec, range(BATCH))),
        "objects": rate(len(few), lambda: [batch.task(row) for row in few]),
        "written": rate(
            len(few),
            lambda: [encode("task/1", msgspec.to_builtins(batch.task(row).document(lists=True))) for row in few],
        ),
        "one by one": rate(len(few), lambda: [generate(spec.with_seed(seed)) for seed in few]),
    }


def main() -> int:
    """Print the table; 1 if a workload's batches are slower than the target."""
    columns = ("batch", "objects", "written", "one by one")
    print(f"64-step tasks a second, one core (batches of {BATCH}; objects and lines are made from a batch)")
    print(f"{'':32}" + "".join(f"{column:>12}" for column in columns))
    slowest = float("inf")
    for name in workloads.names():
        found = rates(name)
        slowest = min(slowest, found["batch"])
        print(f"{name:32}" + "".join(f"{found[column]:>12,.0f}" for column in columns))
    spec = TaskSpec("stepwise-sum")
    loop = rate(100, lambda: [plain_task(spec.n, spec.m, spec.fan_in, spec.q, seed) for seed in range(100)])
    print(f"{'plain loop, standard library':32}{'':36}{loop:>12,.0f}")
    print(f"slowest batches {slowest:,.0f}, target {TARGET:,}: {'ok' if slowest >= TARGET else 'FALLS SHORT'}")
    return int(slowest < TARGET)


if __name__ == "__main__":
    sys.exit(main())
