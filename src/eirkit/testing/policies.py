"""`check_policy`: the conformance suite of retention policies, which observes every choice on random tasks."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from eirkit.errors import ContractError
from eirkit.lacuna.tasks.generation import prepare
from eirkit.lacuna.tasks.policy import Hindsight, Outlook, Policy, Record, Retention, Structure, find_policy
from eirkit.lacuna.tasks.simulation.batch import Batch, count_misses
from eirkit.lacuna.tasks.simulation.plain import Recovery, replay, structure_of
from eirkit.lacuna.tasks.task import Kind, TaskSpec
from eirkit.lacuna.tasks.workload import Graph
from eirkit.testing.conformance import Conformance, try_all

TASKS = 60  # random graphs
KINDS: tuple[Kind, ...] = ("compute", "store", "recall")
RECOVERIES: tuple[Recovery, ...] = ("off", "direct")

Choice = tuple[tuple[Record, ...], int, int]  # candidates, step, who left


def check_policy(policy: type[Policy] | str) -> Conformance:
    """Run the conformance suite on a policy and return what held.

    Args:
        policy: the class, its registered name, or `path/file.py:Name`.

    Raises:
        AssertionError: a requirement does not hold; the message names each of them, and one mistake once.
        ContractError: it is not a policy.
    """
    return try_all(find_policy(policy) if isinstance(policy, str) else policy, REQUIREMENTS)


@dataclass(frozen=True, slots=True)
class _Trial:
    outlook: Outlook
    h: int
    recovery: Recovery


class _Watched(Policy):
    """Records every choice of another policy."""

    def __init__(self, inner: Policy) -> None:
        self.inner = inner
        self.choices: list[Choice] = []

    def victim(self, candidates: Sequence[Record], step: int) -> int:
        chosen = self.inner.victim(candidates, step)
        if chosen not in [record.id for record in candidates]:
            name = type(self.inner).__name__
            raise ContractError(f"policy {name} chose {chosen!r}, which is not a candidate; return a candidate's id")
        self.choices.append((tuple(candidates), step, chosen))
        return chosen

    def capacity(self, h: int) -> int:
        return self.inner.capacity(h)


def _trials() -> Iterator[_Trial]:
    """Yield random tasks, the same in every run of the suite."""
    draw = random.Random(1)
    for number in range(TASKS):
        n = draw.randint(1, 12)
        graph = _drawn_graph(draw, n)
        kinds = tuple(draw.choice(KINDS) for _ in range(n))
        last_use = tuple(draw.randint(0, n) for _ in range(n))
        outlook = Outlook(Structure(kinds, (True,) * n, last_use), draw.getrandbits(64), graph)
        yield _Trial(outlook, draw.randint(1, 6), RECOVERIES[number % 2])


def _drawn_graph(draw: random.Random, n: int, before: Graph = ()) -> Graph:
    """Return a graph of n steps that begins with the steps of another."""
    more = range(len(before) + 1, n + 1)
    return (*before, *(tuple(sorted(draw.sample(range(1, t), min(draw.randint(0, 4), t - 1)))) for t in more))


def _choices(policy: type[Policy], trial: _Trial) -> list[Choice]:
    watched = _Watched(policy.for_task(trial.outlook))
    replay(trial.outlook, watched, trial.h, recovery=trial.recovery)
    return watched.choices


def _says(policy: type[Policy]) -> None:
    """It says in its docstring what it does."""
    assert (policy.__doc__ or "").strip(), "it has no docstring; write one sentence, which listings show"


def _chooses(policy: type[Policy]) -> None:
    """Whoever leaves is one of the candidates: a record that is held, or the newcomer."""
    for trial in _trials():
        _choices(policy, trial)  # `_Watched` checks each choice


def _repeats(policy: type[Policy]) -> None:
    """The same candidates at the same step give the same victim, whatever was asked before."""
    for trial in _trials():
        for candidates, step, chosen in _choices(policy, trial):
            again = policy.for_task(trial.outlook).victim(candidates, step)
            assert again == chosen, f"at step {step} it chose {chosen}, and {again} when it was asked again"


def _fits(policy: type[Policy]) -> None:
    """A store never holds more than its capacity, and drops nothing but whom it names."""
    for trial in _trials():
        made = policy.for_task(trial.outlook)
        store = Retention(made, trial.h)
        assert store.capacity >= trial.h, f"its capacity is {store.capacity} where {trial.h} records are granted"
        for step, references in enumerate(trial.outlook.future, 1):
            absent = store.missing(references)
            store.touch(references)
            for record in (*absent, step):
                before = set(store.held())
                left = store.admit(record, step)
                assert set(store.held()) == (before | {record}) - {left}, f"the store lost more than {left}"
                assert len(store) <= store.capacity, f"{len(store)} records are held, {store.capacity} are allowed"


def _keeps(policy: type[Policy]) -> None:
    """Nothing is missed where everything fits."""
    for trial in _trials():
        made = policy.for_task(trial.outlook)
        missed = replay(trial.outlook, made, len(trial.outlook.future)).missed_references
        assert not missed, f"{missed} references were missed although every record fits"


def _sees_no_future(policy: type[Policy]) -> str | None:
    """What comes later does not change what it does now, unless it extends Hindsight."""
    if issubclass(policy, Hindsight):
        return "it extends Hindsight, so it was told the future on purpose"
    draw = random.Random(2)
    for trial in _trials():
        n, shared = len(trial.outlook.future), draw.randint(0, len(trial.outlook.future))
        other = _drawn_graph(draw, n, trial.outlook.future[:shared])
        both = [trial, replace(trial, outlook=replace(trial.outlook, future=other))]
        here, there = ([one for one in _choices(policy, each) if one[1] <= shared] for each in both)
        assert here == there, f"its choices up to step {shared} depend on later steps; extend Hindsight if they may"
    return None


def _simulates(policy: type[Policy]) -> None:
    """The batch simulator misses what the plain loop misses."""
    spec, seeds = TaskSpec("store-recall", n=20, m=8), np.arange(4, dtype=np.uint64)
    batch = Batch.of(structure_of(spec), seeds, prepare(spec).references(spec, seeds))
    capacities = [1, 3, 6]
    for recovery in RECOVERIES:
        found = count_misses(batch, policy, capacities, recovery=recovery)
        for row in range(len(seeds)):
            outlook = batch.outlook(row)
            plain = [replay(outlook, policy.for_task(outlook), h, recovery=recovery) for h in capacities]
            together = list(zip(found.steps[row].tolist(), found.references[row].tolist(), strict=True))
            alone = [(one.missed_steps, one.missed_references) for one in plain]
            assert together == alone, f"with recovery {recovery} a batch misses {together} and a single task {alone}"


REQUIREMENTS = (_says, _chooses, _repeats, _fits, _keeps, _sees_no_future, _simulates)
