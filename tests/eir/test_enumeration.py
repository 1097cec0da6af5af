"""Algorithm 1 and its refinement agree on every contract; what cannot be counted is refused before it is evaluated."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eirkit.eir.contract import LIMIT, count_contract, count_signatures, most_held
from eirkit.errors import ContractError, TooLargeError


@dataclass
class Lookup:
    """A contract given as a table of responses, one row a history."""

    rows: list[list[Any]]
    asked: int = 0

    @property
    def histories(self) -> range:
        return range(len(self.rows))

    @property
    def futures(self) -> range:
        return range(len(self.rows[0]))

    def respond(self, history: int, future: int) -> Any:
        self.asked += 1
        return self.rows[history][future]


def contract(respond: Callable[[Any, Any], Any], histories: Any = (1, 2), futures: Any = (1, 2)) -> Any:
    return SimpleNamespace(histories=histories, futures=futures, respond=respond)


tables = st.integers(1, 5).flatmap(
    lambda width: st.lists(st.lists(st.integers(0, 2), min_size=width, max_size=width), min_size=1, max_size=40)
)


@given(tables)
def test_refinement_is_algorithm_one(rows: list[list[int]]) -> None:
    table = Lookup(rows)
    counted = count_contract(table)
    assert counted.evaluations == table.asked
    assert counted.classes == count_signatures(table) == len({tuple(row) for row in rows})
    assert counted.histories == len(rows)


@given(tables)
def test_groups_are_the_histories_with_equal_rows_in_order(rows: list[list[int]]) -> None:
    groups = count_contract(Lookup(rows)).groups
    assert sorted(h for group in groups for h in group) == list(range(len(rows)))
    assert len({tuple(rows[group[0]]) for group in groups}) == len(groups)
    assert all(rows[h] == rows[group[0]] for group in groups for h in group)
    assert list(groups) == sorted(groups)


@given(tables, st.randoms(use_true_random=False))
def test_the_order_of_histories_and_futures_does_not_matter(rows: list[list[int]], shuffled: Any) -> None:
    before = count_contract(Lookup(rows)).classes
    columns = list(zip(*rows, strict=True))
    shuffled.shuffle(columns)
    rows = [list(row) for row in zip(*columns, strict=True)]
    shuffled.shuffle(rows)
    assert count_contract(Lookup(rows)).classes == before


def test_settled_histories_are_not_asked_again() -> None:
    # 100 histories that the first future separates: 2 × (1000 + 8) evaluations to test for repeatability, then 100.
    counted = count_contract(contract(lambda h, u: (h, u), range(100), range(1000)))
    assert (counted.classes, counted.evaluations) == (100, 2116)


@pytest.mark.parametrize(("classes", "bits"), [(1, 0), (2, 1), (3, 2), (4, 2), (5, 3), (1024, 10), (1025, 11)])
def test_whole_bits_are_rounded_up_exactly(classes: int, bits: int) -> None:
    counted = count_contract(contract(lambda h, u: h, range(classes), (0,)))
    assert (counted.classes, counted.representation_bits) == (classes, bits)


def never(history: Any, future: Any) -> Any:
    raise AssertionError("a contract that is too large must not be evaluated")


@pytest.mark.parametrize("histories", [range(10**12), range(10**30), range(0, -(10**12), -3), count(), lambda: count()])
def test_too_many_histories_are_refused_unevaluated(histories: Any) -> None:
    with pytest.raises(TooLargeError, match=r"a limit of 20,000,000 evaluations allows 2,000,000; .*--limit"):
        count_contract(contract(never, histories))


def test_the_size_is_said() -> None:
    with pytest.raises(TooLargeError, match=r"^1,000,000,000,000 histories, "):
        count_contract(contract(never, range(10**12)))
    with pytest.raises(TooLargeError, match=r"^100,000 histories × 201 futures are 20,100,000 evaluations, above"):
        count_contract(contract(never, range(10**5), range(201)))


def test_an_unsized_collection_is_read_no_further_than_the_limit() -> None:
    read: list[int] = []

    def histories() -> Iterator[int]:
        for number in count(1):
            read.append(number)
            yield number

    with pytest.raises(TooLargeError, match="more than 300 histories"):
        count_contract(contract(never, histories), limit=300)
    assert len(read) == most_held(300) + 1 == 301


def test_the_limit_counts_evaluations() -> None:
    assert count_contract(contract(lambda h, u: h, range(10), range(10)), limit=100).classes == 10
    with pytest.raises(TooLargeError, match="limit of 99"):
        count_contract(contract(lambda h, u: h, range(10), range(10)), limit=99)
    assert most_held(LIMIT) == LIMIT // 10


class Uncomparable:
    """Compared by identity: two equal answers look different."""


def flaky_at(where: int) -> Callable[[Any, Any], int]:
    ticks = count()
    return lambda history, future: next(ticks) if history == where else 0


def flaky() -> Callable[[Any, Any], int]:
    ticks = count()
    return lambda history, future: next(ticks)


@pytest.mark.parametrize(
    ("broken", "complaint"),
    [
        (contract(lambda h, u: 1 / 0), r"\(1, 1\) raised ZeroDivisionError: division by zero; fix the contract"),
        (contract(lambda h, u: [h]), r"returned \[1\], which is not hashable \(unhashable type: 'list'\); return"),
        (contract(lambda h, u: (h, {u})), r"returned .*, which is not hashable \(unhashable type: 'set'\); return"),
        (contract(lambda h, u: float("nan")), r"returned nan, which differs from itself; return None"),
        (contract(lambda h, u: (0, (float("nan"),))), r"differs from itself; return None"),
        (contract(lambda h, u: Uncomparable()), r"returned <.*>, then <.*>; make it depend on its arguments alone"),
        (contract(flaky()), r"\(1, 1\) returned 0, then 1; make it depend on its arguments alone"),
        (contract(flaky_at(3), (1, 2, 3)), r"\(3, \d\) returned \d, then \d; make it depend on its arguments alone"),
        (contract(lambda h, u: h, histories=[]), r"histories is empty; give at least one"),
        (contract(lambda h, u: h, futures=iter(())), r"futures is empty; give at least one"),
        (contract(lambda h, u: h, histories=7), r"histories raised TypeError: .*not iterable; fix the contract"),
        (contract(lambda h, u: exit(0)), r"raised SystemExit: 0; fix the contract"),
    ],
)
def test_a_broken_contract_is_one_line_with_a_remedy(broken: Any, complaint: str) -> None:
    with pytest.raises(ContractError, match=complaint) as raised:
        count_contract(broken)
    assert "\n" not in str(raised.value)


def test_every_history_is_evaluated_even_if_it_is_the_only_one_left() -> None:
    def respond(history: int, future: int) -> int:
        if history == 3:
            raise KeyError(history)
        return history

    with pytest.raises(ContractError, match=r"respond\(3, 'a'\) raised KeyError: 3"):
        count_contract(contract(respond, [1, 2, 3], ["a", "b"]))


def test_histories_need_not_be_hashable() -> None:
    assert count_contract(contract(lambda h, u: h[u], [[0, 1], [0, 1], [0, 2]], [0, 1])).classes == 2
