"""Counts the misses of many tasks at many capacities with the batch kernels; equal to `plain.py` on each task.

Policies that are neither `Ranked`, `Drawn` nor `Scored` are replayed one task at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eirkit.errors import SpecError
from eirkit.lacuna.tasks.policies import Scored, bucket, kind_numbers
from eirkit.lacuna.tasks.policy import NEVER, Drawn, Hindsight, Outlook, Policy, Ranked, Structure
from eirkit.lacuna.tasks.simulation.kernels import (
    FACTS,
    Rank,
    ScoreTables,
    Streams,
    fill_upcoming,
    missed_counts,
    needed_capacities,
    scored_counts,
)
from eirkit.lacuna.tasks.simulation.plain import Recovery, replay
from eirkit.lacuna.tasks.workload import References, as_tuples
from eirkit.packages import compiled
from eirkit.seeds import below

Counts = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Batch:
    """The request streams of many tasks that differ only in their seed."""

    structure: Structure
    seeds: NDArray[np.uint64]
    streams: Streams

    @classmethod
    def of(cls, structure: Structure, seeds: NDArray[np.uint64], references: References) -> Batch:
        tasks, n, width = references.shape
        requests = np.zeros((tasks, n, width + 1), np.int32)
        requests[:, :, :width] = references
        requests[:, :, width] = np.arange(1, n + 1) * np.array(structure.takes_slot)
        upcoming = np.empty_like(requests)
        compiled(fill_upcoming)(requests, upcoming)
        return cls(structure, seeds, Streams(requests, upcoming))

    @property
    def references(self) -> References:
        return self.streams.requests[:, :, :-1]

    @property
    def consuming_steps(self) -> Counts:
        """Steps with references, per task."""
        return np.asarray((self.references > 0).any(axis=2).sum(axis=1))

    @property
    def needed_references(self) -> Counts:
        return np.asarray((self.references > 0).sum(axis=(1, 2)))

    def outlook(self, row: int) -> Outlook:
        return Outlook(self.structure, int(self.seeds[row]), as_tuples(self.references[row]))


@dataclass(frozen=True, slots=True)
class Misses:
    """The misses of one policy, shape (tasks, capacities)."""

    steps: Counts  # with at least one missing reference
    references: Counts


def count_misses(
    batch: Batch, policy: type[Policy], capacities: Sequence[int], *, recovery: Recovery = "off"
) -> Misses:
    """Return the misses of every task of the batch under every capacity."""
    for h in capacities:
        if h < 1:
            raise SpecError(f"h = {h} is too small to hold a record; use h >= 1")
    example = policy.for_task(batch.outlook(0))
    n = batch.streams.requests.shape[1]
    held = [min(n, example.capacity(h)) for h in capacities]  # there are no more records than steps
    if isinstance(example, Drawn) and policy.victim is Drawn.victim:
        return _drawn(batch, example, held, recovery == "direct")
    if isinstance(example, Scored) and all(
        _method(policy, name) is _method(Scored, name) for name in ("victim", "score", "for_task")
    ):
        return _scored(batch, example, held, recovery == "direct")
    rank = _rank_of(example, n)
    if rank is None:
        return _one_by_one(batch, policy, capacities, recovery)
    # A store for all n records evicts nothing: replaying it is quicker than a stack of depth n.
    if recovery == "off" and max(held) < n:
        return _all_at_once(batch, rank, held)
    return _each(batch, rank, held, recovery == "direct")


def _rank_of(policy: Policy, n: int) -> Rank | None:
    """Return how the kernels rank for this policy; None if each choice must be asked of the policy."""
    kind = type(policy)
    if not isinstance(policy, Ranked) or kind.victim is not Ranked.victim:
        return None
    # A policy that overrides these methods may differ from task to task, which the kernels do not support.
    home = Hindsight if isinstance(policy, Hindsight) else Ranked
    if any(_method(kind, name) is not _method(home, name) for name in ("fact", "for_task", "next_use")):
        return None
    facts = _facts(n)
    if policy.lowest == "worth":
        worth = np.asarray(policy.worth)
        if worth.dtype.kind not in "biu" or np.abs(worth).max() > NEVER:
            return None
        facts[1:, FACTS.index("worth")] = worth
    return Rank(FACTS.index(policy.lowest), FACTS.index(policy.ties), facts)


def _method(kind: type[Policy], name: str) -> object:
    found = getattr(kind, name, None)
    return getattr(found, "__func__", found)


def _facts(n: int) -> NDArray[np.int64]:
    facts = np.zeros((n + 1, len(FACTS)), np.int64)
    facts[:, FACTS.index("id")] = np.arange(n + 1)
    return facts


def _all_at_once(batch: Batch, rank: Rank, capacities: Sequence[int]) -> Misses:
    shape = (len(batch.seeds), max(capacities) + 1)
    by_step, by_reference = np.zeros(shape, np.int32), np.zeros(shape, np.int32)
    compiled(needed_capacities)(batch.streams, rank, by_step, by_reference)
    return Misses(_beyond(by_step, capacities), _beyond(by_reference, capacities))


def _beyond(counts: NDArray[np.int32], capacities: Sequence[int]) -> Counts:
    """Return how many needs exceed each capacity; column p counts the needs of capacity p + 1."""
    return np.stack([counts[:, h:].sum(axis=1, dtype=np.int64) for h in capacities], axis=1)


def _each(batch: Batch, rank: Rank, capacities: Sequence[int], direct: bool) -> Misses:
    undrawn = np.empty((len(batch.seeds), 0), np.int64)
    return _stacked([_missed(batch, rank, h, direct, undrawn) for h in capacities])


def _drawn(batch: Batch, policy: Drawn, capacities: Sequence[int], direct: bool) -> Misses:
    _, n, width = batch.streams.requests.shape
    rank = Rank(0, 0, _facts(n))
    drawn = policy.draw(batch.seeds, n * width)
    return _stacked([_missed(batch, rank, h, direct, below(drawn, h + 1)) for h in capacities])


def _scored(batch: Batch, policy: Scored, capacities: Sequence[int], direct: bool) -> Misses:
    _, n, width = batch.streams.requests.shape
    tables = policy.tables
    longest = max(n * width, *policy.last_use)
    buckets = np.array([bucket(distance) for distance in range(longest + 1)])
    kinds = np.array(kind_numbers(batch.structure.kinds))
    lookups = ScoreTables(kinds, np.array(policy.last_use), buckets, tables.left, tables.idle, tables.uses)
    columns = []
    for h in capacities:
        missed = np.zeros((len(batch.seeds), 2), np.int64)
        compiled(scored_counts)(batch.streams.requests, lookups, h, direct, missed)
        columns.append(missed)
    return _stacked(columns)


def _missed(batch: Batch, rank: Rank, capacity: int, direct: bool, choices: Counts) -> Counts:
    missed = np.zeros((len(batch.seeds), 2), np.int64)
    compiled(missed_counts)(batch.streams, rank, capacity, direct, choices, missed)
    return missed


def _one_by_one(batch: Batch, policy: type[Policy], capacities: Sequence[int], recovery: Recovery) -> Misses:
    columns = []
    for h in capacities:
        outlooks = (batch.outlook(row) for row in range(len(batch.seeds)))
        outcomes = [replay(outlook, policy.for_task(outlook), h, recovery=recovery) for outlook in outlooks]
        columns.append(np.array([(o.missed_steps, o.missed_references) for o in outcomes], np.int64))
    return _stacked(columns)


def _stacked(columns: list[Counts]) -> Misses:
    """Join one (tasks, 2) array per capacity."""
    return Misses(*np.stack(columns, axis=2).transpose(1, 0, 2))
