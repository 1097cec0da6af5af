"""Several acceptable responses and retrievals, against all partitions and orders of retrieval of small contracts."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations, product
from types import SimpleNamespace
from typing import Any

import pytest

from eirkit.eir import covering
from eirkit.eir.contract import count_contract, count_signatures
from eirkit.eir.covering import count_any
from eirkit.eir.demand import fetched_lookups, recallable
from eirkit.eir.lossy import EQUAL, Frontier
from eirkit.errors import ContractError, TooLargeError
from eirkit.lacuna.tasks.generation import prepare
from eirkit.lacuna.tasks.task import TaskSpec

NOTHING = 0  # atoms solved exactly, so that bounds and constructed encoders are tested


@dataclass
class Several:
    """A random contract: sets of acceptable responses, results that can be fetched, and weights."""

    sets: list[list[frozenset[int]]]
    shown: list[tuple[int, ...]]
    likely: list[float]
    asked: list[float]

    @property
    def histories(self) -> range:
        return range(len(self.sets))

    @property
    def futures(self) -> range:
        return range(len(self.sets[0]))

    def accept(self, history: int, future: int) -> frozenset[int]:
        return self.sets[history][future]

    def retrievable(self, history: int) -> tuple[int, ...]:
        return self.shown[history]

    def history_weight(self, history: int) -> float:
        return self.likely[history]

    def future_weight(self, future: int) -> float:
        return self.asked[future]


def draw(seed: int) -> Several:
    rng = random.Random(seed)
    histories, futures, answers = rng.randint(1, 5), rng.randint(1, 3), rng.randint(1, 4)
    sets = [
        [frozenset(rng.sample(range(answers), rng.randint(1, min(2, answers)))) for _ in range(futures)]
        for _ in range(histories)
    ]
    places = rng.randint(1, 3)
    shown = [tuple(rng.randrange(2) for _ in range(places)) for _ in range(histories)]
    likely = [rng.choice([0.0, 1.0, rng.random()]) for _ in range(histories)]
    asked = [rng.choice([0.0, 1.0, rng.random()]) for _ in range(futures)]
    likely[0] += 0.5
    asked[0] += 0.5
    return Several(sets, shown, likely, asked)


def partitions(items: Sequence[int]) -> Iterator[list[list[int]]]:
    if not items:
        yield []
        return
    for rest in partitions(items[1:]):
        yield [[items[0]], *rest]
        for place in range(len(rest)):
            yield [*rest[:place], [items[0], *rest[place]], *rest[place + 1 :]]


def earns(contract: Several, group: Sequence[int], future: int, left: int) -> float:
    """Return the most that a group earns at a future over all responses, or all places to look at first."""
    weights = {x: contract.likely[x] for x in group}
    best = max(
        (sum(weights[x] for x in group if answer in contract.sets[x][future]) for answer in range(4)), default=0.0
    )
    if left:
        for place in range(len(contract.shown[0])):
            values = {contract.shown[x][place] for x in group}
            parts = [[x for x in group if contract.shown[x][place] == value] for value in values]
            best = max(best, sum(earns(contract, part, future, left - 1) for part in parts))
    return best


def suits(contract: Several, group: Sequence[int], left: int) -> bool:
    alike = Several(contract.sets, contract.shown, [1.0] * len(contract.sets), contract.asked)
    return all(earns(alike, group, future, left) == len(group) for future in contract.futures)


def best_of_all(contract: Several, states: int, left: int) -> tuple[float, float]:
    """Return the best share of right responses, and of runs that are right throughout, over all partitions."""
    total, asked = math.fsum(contract.likely), math.fsum(contract.asked)
    share = whole = 0.0
    for parts in partitions(contract.histories):
        if len(parts) > states:
            continue
        found = sum(contract.asked[u] * earns(contract, part, u, left) for part in parts for u in contract.futures)
        share = max(share, found / total / asked)
        runs = 0.0
        for part in parts:
            subsets = (c for size in range(len(part) + 1) for c in combinations(part, size))
            runs += max(sum(contract.likely[x] for x in c) for c in subsets if suits(contract, c, left))
        whole = max(whole, runs / total)
    return share, whole


def violations(seeds: range) -> Iterator[tuple[object, ...]]:
    """Yield where a count, a frontier or an encoder differs from the best of all partitions."""
    for seed in seeds:
        contract = draw(seed)
        for left in (0, 1, 2):
            fewest = min(len(p) for p in partitions(contract.histories) if all(suits(contract, g, left) for g in p))
            counted = count_any(contract, retrievals=left)
            if not counted.classes == counted.at_least == fewest:
                yield "classes", seed, left, counted.classes, fewest
            if sorted(x for group in counted.groups for x in group) != list(contract.histories):
                yield "histories", seed, left
            if not all(suits(contract, group, left) for group in counted.groups):
                yield "groups", seed, left
            exact = Frontier(contract, retrievals=left)
            bounded = None if left else Frontier(contract, exact_atoms=NOTHING)
            for states in range(1, len(contract.sets) + 1):
                share, whole = best_of_all(contract, states, left)
                point = exact.point(states)
                found = point.lower, point.run, point.run_upper, score(contract, exact, states)
                if found != pytest.approx((share, whole, whole, share), abs=EQUAL):
                    yield "shares", seed, left, states, found, share, whole
                if bounded:
                    interval = bounded.point(states)
                    if not interval.lower - EQUAL <= share <= interval.upper + EQUAL:
                        yield "interval", seed, states, interval, share


def score(contract: Several, frontier: Frontier, states: int) -> float:
    """Return what an encoder earns, by asking the contract itself; each run fetches at most as often as it may."""
    encoder, total = frontier.encoder(states), math.fsum(contract.asked)
    earned = 0.0
    for x, p, code in zip(frontier.table.histories, frontier.table.weights, encoder.codes, strict=True):
        for u in contract.futures:
            fetched: list[int] = []

            def fetch(place: int, x: int = x, fetched: list[int] = fetched) -> int:
                fetched.append(place)
                return contract.shown[x][place]

            if contract.asked[u]:
                earned += p * contract.asked[u] / total * (encoder.decode(code, u, fetch) in contract.sets[x][u])
                assert len(fetched) <= frontier.count.retrievals
    return earned


def test_no_memory_of_a_random_contract_does_with_less() -> None:
    assert list(violations(range(40))) == []


@pytest.mark.slow
def test_no_memory_of_many_random_contracts_does_with_less() -> None:
    assert list(violations(range(40, 2040))) == []


def test_a_search_that_is_cut_short_leaves_an_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    wide = 0
    for seed in range(300):
        contract = draw(seed)
        fewest = count_any(contract).classes
        with monkeypatch.context() as patch:
            patch.setattr(covering, "MOST_SEARCHED", 0)
            patch.setattr(covering, "MOST_EXACT", 0)
            counted = count_any(contract)
            assert counted.at_least <= fewest <= counted.classes
            wide += not counted.exact
            bounded = Frontier(contract)
            for states in range(1, len(contract.sets) + 1):
                low, high = bounded.run_accuracy(states)
                assert low - EQUAL <= best_of_all(contract, states, 0)[1] <= high + EQUAL, (seed, states)
    assert wide < 30  # the bounds meet in nearly all cases without a search


def test_one_acceptable_response_is_counted_by_equality() -> None:
    for seed in range(100):
        rng = random.Random(seed)
        rows = [[rng.randrange(3) for _ in range(2)] for _ in range(rng.randint(1, 12))]
        plain = SimpleNamespace(histories=range(len(rows)), futures=(0, 1), respond=lambda x, u, rows=rows: rows[x][u])
        single = SimpleNamespace(histories=plain.histories, futures=(0, 1), accept=lambda x, u, rows=rows: [rows[x][u]])
        told = lambda x: x % 2  # noqa: E731 - one line is read more easily here
        assert count_any(single).classes == count_contract(plain).classes == count_signatures(plain)
        plain.given = single.given = told
        assert count_any(single).classes == count_contract(plain).classes
        for states in (1, 2, 3):
            one, other = (Frontier(c).point(states) for c in (single, plain))
            assert one.lower == pytest.approx(other.lower, abs=EQUAL)
            assert one.run == pytest.approx(other.run, abs=EQUAL)


def test_three_histories_of_which_any_two_agree_need_two_codes() -> None:
    # Pairs share a response and the three do not, so no equivalence of histories gives the count.
    right = {"a": {1, 2}, "b": {2, 3}, "c": {1, 3}}
    contract = SimpleNamespace(histories=tuple(right), futures=("ask",), accept=lambda x, u: right[x])
    counted = count_any(contract)
    assert (counted.classes, counted.exact) == (2, True)
    assert Frontier(contract).point(1).lower == pytest.approx(2 / 3)


@pytest.mark.parametrize(("m", "q"), [(2, 2), (3, 2), (2, 3)])
def test_retrievals_of_full_lookup_save_one_record_each(m: int, q: int) -> None:
    # Every partition of all stores, and every play of questions that come one after another.
    stores = list(product(range(q), repeat=m))
    for asking in range(1, m + 2):
        for left in range(m + 1):
            fewest = min(
                len(parts)
                for parts in partitions(range(len(stores)))
                if all(_survives(frozenset(stores[i] for i in part), asking, left, range(m)) for part in parts)
            )
            assert fewest == fetched_lookups(q, m, asking, left), (asking, left)


def test_retrievals_of_store_recall_save_one_record_each() -> None:
    spec = TaskSpec(workload="store-recall", n=8, m=6, lookback=6, digits=1)
    for t in range(spec.n):
        open_at = [len(recallable(spec.n, spec.reach, step - 1)) for step in range(t + 2 - t % 2, spec.n + 1, 2)]
        stored = list(recallable(spec.n, spec.reach, t))
        windows = tuple(
            tuple(i for i, s in enumerate(stored) if s >= step - spec.reach) for step in range(t + 2 - t % 2, 9, 2)
        )
        assert len(open_at) == len(windows)
        stores = list(product(range(2), repeat=len(stored)))
        for left in range(4):
            fewest = min(
                len(parts)
                for parts in partitions(range(len(stores)))
                if all(_survives_in(frozenset(stores[i] for i in part), windows, left) for part in parts)
            )
            found = prepare(spec).demand_with_retrievals(spec, left, [t]).counts[t]
            assert found is not None
            assert round(math.log(found.lower, spec.q)) == math.log2(fewest), (t, left)


@cache
def _survives(stores: frozenset[tuple[int, ...]], asking: int, left: int, labels: range) -> bool:
    return _survives_in(stores, (tuple(labels),) * asking, left)


@cache
def _survives_in(stores: frozenset[tuple[int, ...]], windows: tuple[tuple[int, ...], ...], left: int) -> bool:
    """True if whoever knows that one of these stores was made can answer every sequence of questions."""
    if not windows or len(stores) == 1:
        return True
    return all(_answers(stores, label, windows[1:], left) for label in windows[0])


@cache
def _answers(stores: frozenset[tuple[int, ...]], label: int, later: tuple[tuple[int, ...], ...], left: int) -> bool:
    if len({store[label] for store in stores}) == 1 and _survives_in(stores, later, left):
        return True
    if not left:
        return False
    for place in range(len(next(iter(stores)))):
        parts = [frozenset(s for s in stores if s[place] == v) for v in {s[place] for s in stores}]
        if len(parts) > 1 and all(_answers(part, label, later, left - 1) for part in parts):
            return True
    return False


@pytest.mark.parametrize(("m", "q"), [(2, 2), (3, 2), (2, 3), (3, 3)])
def test_a_contract_that_asks_for_everything_saves_one_record_each(m: int, q: int) -> None:
    contract: Any = SimpleNamespace(
        histories=list(product(range(q), repeat=m)), futures=("all",), respond=lambda x, u: x, retrievable=lambda x: x
    )
    for left in range(m + 1):
        counted = count_any(contract, retrievals=left)
        assert counted.exact
        assert counted.classes == q ** (m - left)


def test_more_retrievals_than_places_take_no_more() -> None:
    """Every place can be fetched once; a budget of a billion neither changes the value nor takes time."""
    contract: Any = SimpleNamespace(
        histories=list(product(range(2), repeat=3)), futures=("all",), respond=lambda x, u: x, retrievable=lambda x: x
    )
    enough, many = Frontier(contract, retrievals=3), Frontier(contract, retrievals=10**9)
    assert many.point(1) == enough.point(1)


def test_what_cannot_be_counted_is_said() -> None:
    plain = SimpleNamespace(histories=(1, 2), futures=(0,), respond=lambda x, u: x)
    with pytest.raises(ContractError, match="add retrievable"):
        count_any(plain, retrievals=1)
    for accept, told in (
        (lambda x, u: (), "at least one"),
        (lambda x, u: "yes", "as a set"),
        (lambda x, u: 3, "as a set"),
    ):
        with pytest.raises(ContractError, match=told):
            count_any(SimpleNamespace(histories=(1, 2), futures=(0,), accept=accept))
    uneven = SimpleNamespace(**vars(plain), retrievable=lambda x: (0,) * x)
    with pytest.raises(ContractError, match="as many each time"):
        count_any(uneven, retrievals=1)
    many = SimpleNamespace(histories=range(20), futures=(0,), respond=lambda x, u: x, retrievable=lambda x: (x % 2,))
    with pytest.raises(TooLargeError, match="use a smaller contract"):
        Frontier(many, retrievals=1)
    process = SimpleNamespace(states=(0,), moves=lambda s: (), step=lambda s, m: (0, s), horizon=1)
    with pytest.raises(ContractError, match="finite contracts only"):
        count_any(process, retrievals=1)
