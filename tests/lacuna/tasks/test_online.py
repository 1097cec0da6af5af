"""The bound on online policies: against every policy of small tasks by value iteration, and against simulated ones."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from itertools import combinations

import pytest

from eirkit.errors import UsageError
from eirkit.lacuna.tasks.generation import prepare
from eirkit.lacuna.tasks.policy import policies
from eirkit.lacuna.tasks.simulation.plain import Recovery
from eirkit.lacuna.tasks.simulation.table import hindsight, sweep
from eirkit.lacuna.tasks.task import TaskSpec
from eirkit.lacuna.tasks.workload import Draw, Workload, best_online, workloads

SPECS = [
    TaskSpec("stepwise-sum", n=6, m=3, fan_in=2),
    TaskSpec("stepwise-max", n=5, m=4, fan_in=2),
    TaskSpec("stepwise-topk", n=6, m=3, fan_in=1),
    TaskSpec("stepwise-sum", n=5, m=3, fan_in=3),
    TaskSpec("store-recall", n=8, m=6),
    TaskSpec("full-lookup", n=6, m=3),
    TaskSpec("full-lookup", n=6, m=4, queries="zipf"),
    TaskSpec("running-max", n=5, m=2),
]


def law(workload: Workload, spec: TaskSpec, t: int) -> list[tuple[float, tuple[int, ...]]]:
    """Return what step t may refer to, with probabilities, from the definition of each workload."""
    if spec.workload == "running-max":
        return [(1.0, (t - 1,))] if t > 1 else []
    if spec.workload == "full-lookup":
        weights = [1.0 if spec.queries == "uniform" else 1 / label for label in range(1, spec.m + 1)]
        return [(w / sum(weights), (label,)) for label, w in enumerate(weights, 1)] if t > spec.m else []
    window = range(max(1, t - spec.reach), t)
    if spec.workload == "store-recall":
        stored = [r for r in window if r % 2] if t % 2 == 0 else []
        return [(1 / len(stored), (r,)) for r in stored]
    sets = list(combinations(window, min(spec.fan_in, len(window)))) if t > 1 else []
    return [(1 / len(sets), refs) for refs in sets]


def best_of_all(spec: TaskSpec, h: int, recovery: Recovery, *, each: bool) -> float:
    """Return the fewest expected missed steps (or references, if `each`) of any policy, by value iteration."""
    workload = prepare(spec)

    @cache
    def fewest(t: int, held: frozenset[int]) -> float:
        if t > spec.n:
            return 0.0
        drawn = law(workload, spec, t) or [(1.0, ())]
        total = 0.0
        for chance, refs in drawn:
            missing = [r for r in refs if r not in held]
            offered = held | {t} if workload.stores(spec, t) else held
            offered |= set(missing) if recovery == "direct" else set()
            choices = combinations(sorted(offered), min(h, len(offered)))
            after = min(fewest(t + 1, frozenset(kept)) for kept in choices)
            total += chance * ((len(missing) if each else bool(missing)) + after)
        return total

    return fewest(1, frozenset())


@pytest.mark.parametrize("recovery", ["off", "direct"])
@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: f"{spec.workload}-{spec.fan_in}-{spec.queries}")
def test_the_bound_is_the_best_of_all_policies(spec: TaskSpec, recovery: Recovery) -> None:
    draws = prepare(spec).draws(spec)
    asking = sum(draw is not None for draw in draws)
    for h in (1, 2, 3):
        bound = best_online(draws, h)
        assert bound is not None
        assert bound.miss_rate * asking == pytest.approx(best_of_all(spec, h, recovery, each=False), abs=1e-9)
        assert bound.retrievals == pytest.approx(best_of_all(spec, h, recovery, each=True), abs=1e-9)


def violations(name: str, queries: str, recovery: Recovery, tasks: int) -> Iterator[tuple[object, ...]]:
    """Yield policies that miss less than the bound allows, and known ones that do not meet it."""
    spec = TaskSpec(name, queries=queries)
    online = [policy for policy in policies.names() if policy not in ("belady", "unbounded")]
    for row in sweep(spec, range(tasks), online, (12, 8, 4), recovery=recovery):
        error = 5 * row.miss_rate_sd / math.sqrt(row.seeds) + 1e-9  # five standard errors; the means are independent
        bound, meets = row.online_miss_rate, {("stepwise-sum", "fifo", "off"), ("store-recall", "fixed", "off")}
        if bound is None or row.miss_rate < bound - error:
            yield "below the bound", row.policy, row.h, row.miss_rate, bound
        elif (name, row.policy, recovery) in meets and row.miss_rate > bound + max(0.002, error):
            yield "above the bound", row.policy, row.h, row.miss_rate, bound


LAWS = [(name, "uniform") for name in workloads.names()] + [("full-lookup", "zipf"), ("full-lookup", "zipf-shuffled")]


@pytest.mark.parametrize("recovery", ["off", "direct"])
@pytest.mark.parametrize(("name", "queries"), LAWS)
def test_no_simulated_policy_misses_less(name: str, queries: str, recovery: Recovery) -> None:
    assert list(violations(name, queries, recovery, 400)) == []


@pytest.mark.slow
@pytest.mark.parametrize(("name", "queries"), LAWS)
def test_no_simulated_policy_misses_less_over_many_tasks(name: str, queries: str) -> None:
    assert list(violations(name, queries, "off", 100_000)) == []


def test_the_known_values_of_stepwise_sum() -> None:
    draws = prepare(TaskSpec("stepwise-sum")).draws(TaskSpec("stepwise-sum"))
    found = [best_online(draws, h) for h in (12, 8, 4)]
    # 1 − C(12, 2) / C(16, 2) = 0.45 once the window is full; the mean over 63 steps includes those while it fills.
    assert [bound.miss_rate for bound in found if bound] == pytest.approx([0.356, 0.643, 0.863], abs=0.0006)
    assert Draw(16, 2).most_held(12) == pytest.approx(0.55)


def test_what_of_the_gap_is_hindsight() -> None:
    assert hindsight(0.6, 0.6, 0.4) == 1.0  # FIFO is the best online policy: all of it
    assert hindsight(0.6, 0.4, 0.4) == 0.0
    assert hindsight(0.6, 0.5, 0.4) == pytest.approx(0.5)
    assert hindsight(0.4, 0.4, 0.4) is None


def test_references_of_a_workloads_own_are_not_guessed() -> None:
    class Mine(Workload):
        """A workload that draws its own references and does not say how."""

        def operate(self, spec, fresh, operands):  # type: ignore[no-untyped-def]
            return fresh

        def references(self, spec, seeds):  # type: ignore[no-untyped-def]
            return super().references(spec, seeds)

    with pytest.raises(UsageError, match="is not stated"):
        Mine().draws(TaskSpec("mine"))
    assert best_online([None], 3) is None
