"""Ceilings of workloads against every encoder of small sizes, enumerated luck, and rate–distortion theory."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import combinations, product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from eirkit.eir.demand import StepBound
from eirkit.eir.lossy import EQUAL, Frontier
from eirkit.eir.step_bounds import (
    ChainedMaximum,
    UniformRecords,
    WeightedRecords,
    pair_tails,
    rate_distortion,
    record_tails,
    weighted_tails,
)

RECORD_BITS = math.log2(10_000)
STANDARD = [fraction * 16 * RECORD_BITS for fraction in np.linspace(0, 1, 33)]


def sums(window: int, fan_in: int, q: int) -> Any:
    """The contract of one step: which records are added is drawn uniformly."""
    return SimpleNamespace(
        histories=list(product(range(q), repeat=window)),
        futures=list(combinations(range(window), fan_in)),
        respond=lambda x, refs: sum(x[r] for r in refs) % q,
    )


def shelf(law: tuple[float, ...], q: int) -> Any:
    return SimpleNamespace(
        histories=list(product(range(q), repeat=len(law))),
        futures=range(len(law)),
        future_weight=law.__getitem__,
        respond=lambda x, i: x[i],
    )


def chain(q: int, inputs: int, fresh: int) -> Any:
    return SimpleNamespace(
        histories=list(product(range(q), repeat=inputs)),
        futures=list(product(range(q), repeat=fresh)),
        respond=lambda x, w: max(*x, *w),
    )


SMALL_SUMS = [
    *((w, 1, q) for w, q in [(1, 2), (2, 2), (3, 2), (1, 5), (2, 3)]),
    *((w, 2, q) for w, q in [(2, 2), (2, 3), (3, 2), (2, 4), (2, 7), (3, 3), (4, 2)]),
    *((w, 3, q) for w, q in [(3, 2), (4, 2), (3, 3), (4, 3)]),
]
LAWS = [(0.5, 0.3, 0.2), (0.7, 0.3), (0.4, 0.3, 0.2, 0.1)]


def violations(frontier: Frontier, bound: StepBound) -> Iterator[tuple[object, ...]]:
    """Yield where a bound contradicts the frontier of a contract, for every number of states."""
    for k in range(1, min(frontier.atoms, 40) + 1):
        point, bits = frontier.point(k), math.log2(k)
        if bound.upper(bits) < point.lower - EQUAL:  # some encoder reaches `lower`
            yield "ceiling", k, bound.upper(bits), point.lower
        if bound.exists(bits) > point.upper + EQUAL:
            yield "exists", k, bound.exists(bits), point.upper
        if not bound.kept(bits) <= bound.exists(bits) + EQUAL <= bound.upper(bits) + 2 * EQUAL:
            yield "order", k, bound.kept(bits), bound.exists(bits), bound.upper(bits)
    if bound.upper(math.log2(frontier.atoms)) != pytest.approx(1):
        yield "all atoms", bound.upper(math.log2(frontier.atoms))


@pytest.mark.parametrize(("window", "fan_in", "q"), SMALL_SUMS)
def test_no_encoder_of_small_sums_exceeds_the_ceiling(window: int, fan_in: int, q: int) -> None:
    frontier = Frontier(sums(window, fan_in, q))
    assert list(violations(frontier, UniformRecords(window, fan_in, q))) == []
    assert frontier.solved or frontier.atoms > 14


@pytest.mark.parametrize("law", LAWS)
def test_no_encoder_of_unequal_records_exceeds_the_ceiling(law: tuple[float, ...]) -> None:
    for q in (2, 3) if len(law) < 4 else (2,):
        assert list(violations(Frontier(shelf(law, q)), WeightedRecords(law, q))) == []


@pytest.mark.parametrize(
    ("q", "inputs", "fresh"), [(2, 1, 1), (3, 2, 1), (4, 2, 1), (5, 3, 1), (4, 2, 2), (6, 1, 1), (7, 2, 1)]
)
def test_the_maximum_of_a_chain_is_exact(q: int, inputs: int, fresh: int) -> None:
    frontier = Frontier(chain(q, inputs, fresh))
    assert frontier.solved
    bound = ChainedMaximum(q, inputs, fresh)
    for k in range(1, q + 1):
        assert bound.upper(math.log2(k)) == pytest.approx(frontier.point(k).lower, abs=EQUAL), k


@pytest.mark.parametrize(("records", "q"), [(1, 2), (2, 3), (3, 2), (4, 3), (5, 2)])
def test_the_luck_of_guesses_is_that_of_all_records(records: int, q: int) -> None:
    right = sorted((sum(v == 0 for v in x) for x in product(range(q), repeat=records)), reverse=True)
    tails = record_tails(records, q)
    for k in range(1, q**records + 1):
        # The luckiest 1/k of all records, by hand: q^records / k of them, the last one perhaps in part.
        luckiest = np.interp(len(right) / k, range(len(right) + 1), [0, *np.cumsum(right)]) * k / len(right) / records
        assert tails.upper(math.log2(k)) == pytest.approx(min(1, luckiest), abs=1e-9)
        assert weighted_tails((1 / records,) * records, q).upper(math.log2(k)) == pytest.approx(
            min(1, luckiest), abs=1e-9
        )


@pytest.mark.parametrize(("records", "q"), [(3, 2), (3, 3), (4, 2), (4, 3), (3, 5), (4, 4)])
def test_pairs_are_no_luckier_than_their_bound(records: int, q: int) -> None:
    pairs = list(combinations(range(records), 2))
    tails = pair_tails(records, q, math.gcd(2, q))
    rng = np.random.default_rng(records * q)
    x = np.array(list(product(range(q), repeat=records)))
    sums = np.stack([(x[:, i] + x[:, j]) % q for i, j in pairs], axis=1)
    lists = [np.zeros(len(pairs), dtype=int), *sums[:: max(1, len(sums) // 40)], *rng.integers(0, q, (200, len(pairs)))]
    for guesses in lists:
        right = (sums == guesses).sum(axis=1)
        for place, e in enumerate(range(len(pairs), 0, -1)):
            assert (right >= e).mean() <= 2 ** tails.logs[place] * (1 + EQUAL)


def test_full_lookup_of_standard_size_is_known_to_two_hundredths() -> None:
    step = UniformRecords(16, 1, 10_000)
    for bits in STANDARD:
        assert step.kept(bits) <= step.exists(bits) <= step.upper(bits) <= step.exists(bits) + 0.0235
    whole = [step.upper(h * RECORD_BITS) - step.exists(h * RECORD_BITS) for h in range(17)]
    assert max(whole) < 0.02  # in between, where a further record is on the verge of being right, up to 1/e of 1/16
    assert step.kept(8 * RECORD_BITS) == pytest.approx(0.5 + 0.5e-4)
    assert step.exists(8 * RECORD_BITS) > 0.54  # keeping records is not the best


def test_luck_is_never_weaker_than_rate_distortion() -> None:
    for records, q in [(3, 2), (16, 10_000), (15, 10), (8, 3)]:
        for share in np.linspace(0, 1, 21):
            bits = share * records * math.log2(q)
            assert record_tails(records, q).upper(bits) <= rate_distortion((1 / records,) * records, q, bits) + EQUAL


def test_rate_distortion_is_the_textbook_curve() -> None:
    # R(D) = log2 q − h2(D) − D log2(q − 1) for a uniform source and Hamming distortion; here in reverse.
    for q, d in product([2, 5, 10_000], [0.05, 0.2, 0.4]):
        entropy = -d * math.log2(d) - (1 - d) * math.log2(1 - d)
        rate = math.log2(q) - entropy - d * math.log2(q - 1)
        assert rate_distortion((1 / 16,) * 16, q, 16 * rate) == pytest.approx(1 - d, abs=1e-6)


def test_fan_ins_of_three_have_as_many_independent_sums_as_stated() -> None:
    for window, fan_in, q in [(4, 3, 2), (4, 3, 3), (5, 3, 2), (5, 2, 3), (5, 2, 2), (5, 4, 2), (5, 3, 3)]:
        first = list(combinations(range(fan_in + 1), fan_in))
        rest = [(*range(fan_in - 1), j) for j in range(fan_in + 1, window)]
        stated = UniformRecords(window, fan_in, q).independent
        chosen = [*first, *rest] if stated == window else [*first[1:], *rest]
        assert len(chosen) == stated
        values = [tuple(sum(x[i] for i in s) % q for s in chosen) for x in product(range(q), repeat=window)]
        counts = {values.count(v) for v in set(values)}
        assert len(set(values)) == q**stated, (window, fan_in, q)
        assert len(counts) == 1, (window, fan_in, q)
