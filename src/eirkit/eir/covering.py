"""Counts codes where histories need not have equal responses to share one: several are acceptable, or some are fetched.

Histories may share a code if, for every future, at most B retrievals lead to a response that is acceptable after all of
them that are left. Such groups stay such groups when histories are taken out, so the least memory is the least number
of groups that hold every history: a covering problem. It is solved by branch and bound while that is quick; otherwise
the count is an interval. docs/design/lossy-eir.md has definitions and proofs; `tests/eir/test_covering.py` compares
with every partition of thousands of small contracts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import zip_longest
from typing import Any

from eirkit.eir.bisimulation import count_process
from eirkit.eir.contract import (
    LIMIT,
    ContractCount,
    FiniteContract,
    Process,
    acceptable,
    ask,
    check_repeats,
    check_value,
    collect_both,
    count_contract,
    supplied,
)
from eirkit.errors import ContractError, TooLargeError

MOST_ROWS = 2_000  # histories that differ; every one is tried in every group
MOST_SEARCHED = 60  # rows whose partitions are searched, one level of recursion each
NODES = 100_000  # of that search: some seconds
MOST_EXACT = 12  # rows whose likeliest groups are found over all sets


@dataclass(frozen=True, slots=True)
class Row:
    """Histories that need the same: which answers each future accepts, and what can be fetched."""

    accepted: tuple[int, ...]  # for each future, the set of acceptable answers, as bits of a number
    fetched: tuple[Any, ...]  # what each place would show; empty without retrievals
    places: tuple[int, ...]  # of these histories in the contract
    mass: float = 0.0

    def eases(self, other: Row) -> bool:
        """True if whatever is right after `other` is right after this row too."""
        if self.fetched != other.fetched:
            return False
        return all(a & b == b for a, b in zip(self.accepted, other.accepted, strict=True))


@dataclass(frozen=True, slots=True)
class CodeGroup:
    """Rows that share a code, as bits of a number, and the answers that suit all of them."""

    rows: int = 0
    common: tuple[int, ...] = ()


@dataclass(eq=False)
class Cover:
    """The rows of one given value, and the groups that may share a code."""

    rows: list[Row]
    retrievals: int = 0
    limit: int = LIMIT
    exact: bool = field(default=False, init=False)  # whether fewer groups are excluded; known once `groups` is
    _known: dict[tuple[int, int, int], bool] = field(default_factory=dict, init=False)

    def join(self, group: CodeGroup, row: int) -> CodeGroup | None:
        """Return the group with one more row, or None if they cannot share a code."""
        own, bit = self.rows[row].accepted, 1 << row
        common = tuple(a & b for a, b in zip(group.common, own, strict=True)) if group.rows else own
        joined = CodeGroup(group.rows | bit, common)
        for future, answers in enumerate(common):
            if not answers and not self._found(joined.rows, future, self.retrievals):
                return None
        return joined

    def _found(self, rows: int, future: int, left: int) -> bool:
        """True if `left` retrievals lead to an answer that suits all rows that are then possible."""
        suits = -1
        for row in _members(rows):
            suits &= self.rows[row].accepted[future]
        if suits:
            return True
        if not left:
            return False
        key = rows, future, left
        if key not in self._known:
            if len(self._known) >= self.limit:
                raise TooLargeError(f"more than {self.limit:,} orders of retrieval; use fewer histories or retrievals")
            self._known[key] = any(
                len(parts) > 1 and all(self._found(part, future, left - 1) for part in parts)
                for parts in (self._split(rows, place) for place in range(self._fetchable))
            )
        return self._known[key]

    def _split(self, rows: int, place: int) -> list[int]:
        parts: dict[Any, int] = {}
        for row in _members(rows):
            shown = self.rows[row].fetched[place]
            parts[shown] = parts.get(shown, 0) | 1 << row
        return list(parts.values())

    @property
    def _fetchable(self) -> int:
        return len(self.rows[0].fetched)

    @cached_property
    def hardest(self) -> list[int]:
        """Rows that no other row makes superfluous; whoever is right about these can be right about all."""
        kept: list[int] = []
        for row in sorted(range(len(self.rows)), key=lambda row: sum(map(int.bit_count, self.rows[row].accepted))):
            if not any(self.rows[row].eases(self.rows[other]) for other in kept):
                kept.append(row)
        return sorted(kept)

    @cached_property
    def _apart(self) -> dict[int, set[int]]:
        """For each of the hardest rows, those that cannot share a code with it."""
        apart: dict[int, set[int]] = {row: set() for row in self.hardest}
        for place, row in enumerate(self.hardest):
            alone = self.join(CodeGroup(), row) or CodeGroup()
            for other in self.hardest[:place]:
                if self.join(alone, other) is None:
                    apart[row].add(other)
                    apart[other].add(row)
        return apart

    @cached_property
    def least(self) -> int:
        """A number of groups that every cover has at least: rows that exclude each other, or rows over the largest."""
        order = sorted(self.hardest, key=lambda row: -len(self._apart[row]))
        most = 1
        for first in order[:50]:
            clique = {first}
            candidates = [row for row in order if row in self._apart[first]]
            while candidates:
                clique.add(candidates[0])
                candidates = [row for row in candidates[1:] if row in self._apart[candidates[0]]]
            most = max(most, len(clique))
        sizes = (self.leaves * max(suits) for suits in self._suited([1.0] * len(self.rows), self.hardest))
        return max(most, math.ceil(len(self.hardest) / min(sizes, default=1) - 1e-9))

    @cached_property
    def leaves(self) -> int:
        """The most different outcomes that the retrievals can have."""
        shown = [len({row.fetched[place] for row in self.rows}) for place in range(self._fetchable)]
        return math.prod(sorted(shown, reverse=True)[: self.retrievals])

    def _suited(self, masses: Sequence[float], rows: Sequence[int]) -> Iterator[list[float]]:
        """Yield for each future how much each answer suits."""
        for future in range(len(self.rows[0].accepted)):
            suits: dict[int, float] = {}
            for row in rows:
                for answer in _members(self.rows[row].accepted[future]):
                    suits[answer] = suits.get(answer, 0.0) + masses[row]
            yield list(suits.values())

    @cached_property
    def groups(self) -> list[CodeGroup]:
        """The fewest groups that were found to hold all rows; no fewer exist if `exact`."""
        order = sorted(self.hardest, key=lambda row: -len(self._apart[row]))
        best = self._first_fit(order)
        self.exact = len(best) == self.least
        if not self.exact and len(order) <= MOST_SEARCHED:
            search = _Search(self.join, order, best, self.least)
            best, self.exact = search.best, search.complete
        for row in sorted(set(range(len(self.rows))) - set(self.hardest)):
            place, joined = next((i, g) for i, group in enumerate(best) if (g := self.join(group, row)))
            best[place] = joined
        return best

    def _first_fit(self, order: Sequence[int]) -> list[CodeGroup]:
        groups: list[CodeGroup] = []
        for row in order:
            for place, group in enumerate(groups):
                if joined := self.join(group, row):
                    groups[place] = joined
                    break
            else:
                groups.append(self.join(CodeGroup(), row) or CodeGroup())
        return groups

    @property
    def at_least(self) -> int:
        return len(self.groups) if self.exact else self.least

    def likeliest(self, states: int) -> tuple[float, float]:
        """Return bounds on the largest probability of the histories in `states` groups; equal for few rows."""
        if len(self.rows) <= MOST_EXACT:
            best = self._best_by_states[min(states, len(self.rows))]
            return best, best
        masses = [row.mass for row in self.rows]
        taken = sorted((math.fsum(masses[row] for row in _members(group.rows)) for group in self.groups), reverse=True)
        reached = math.fsum(taken[:states])
        if states >= len(self.groups):
            return math.fsum(masses), math.fsum(masses)
        named = (
            math.fsum(sorted(suits, reverse=True)[: states * self.leaves])
            for suits in self._suited(masses, range(len(self.rows)))
        )
        return reached, max(reached, min(math.fsum(masses), *named))

    @cached_property
    def _best_by_states(self) -> list[float]:
        """The largest probability of the rows in 0, 1, … groups, over all sets of rows."""
        count = len(self.rows)
        made: list[CodeGroup | None] = [CodeGroup()]
        mass = [0.0]
        for chosen in range(1, 1 << count):
            last = chosen.bit_length() - 1
            smaller = made[chosen ^ 1 << last]
            made.append(self.join(smaller, last) if smaller else None)
            mass.append(mass[chosen ^ 1 << last] + self.rows[last].mass)
        fitting = [chosen for chosen, group in enumerate(made) if group and chosen]
        maximal = [s for s in fitting if not any(made[s | 1 << r] for r in range(count) if not s >> r & 1)]
        reached = {0: 0.0}
        found = [0.0]
        for _ in range(count):
            if found[-1] == mass[-1]:
                found.append(found[-1])
                continue
            reached = {held | s: mass[held | s] for held in reached for s in maximal}
            found.append(max(reached.values()))
        return found


class _Search:
    """Branch and bound: each row joins a group that it fits, or opens a new one."""

    def __init__(
        self,
        join: Callable[[CodeGroup, int], CodeGroup | None],
        order: Sequence[int],
        best: list[CodeGroup],
        least: int,
    ) -> None:
        self.join, self.order, self.best, self.least = join, order, best, least
        self.nodes = 0
        self._place(0, [])
        self.complete = self.nodes <= NODES or len(self.best) == least

    def _place(self, number: int, groups: list[CodeGroup]) -> None:
        self.nodes += 1
        if self.nodes > NODES or len(groups) >= len(self.best) or len(self.best) == self.least:
            return
        if number == len(self.order):
            self.best = list(groups)
            return
        row = self.order[number]
        for place, group in enumerate(groups):
            if joined := self.join(group, row):
                self._place(number + 1, [*groups[:place], joined, *groups[place + 1 :]])
        self._place(number + 1, [*groups, self.join(CodeGroup(), row) or CodeGroup()])


def count_any(contract: FiniteContract | Process, *, limit: int = LIMIT, retrievals: int = 0) -> ContractCount:
    """Return the least number of codes of any contract, or an interval, if `retrievals` results may be fetched.

    Raises:
        ContractError: the contract raised an error, or says nothing of what is asked of it.
        TooLargeError: it is too large to be counted within the limit.
    """
    if isinstance(contract, Process):
        if retrievals:
            raise ContractError("retrievals are counted for finite contracts only; list the futures of the process")
        return count_process(contract, limit=limit)
    if not retrievals and not hasattr(contract, "accept"):
        return count_contract(contract, limit=limit)
    covers, histories, futures = covers_of(contract, limit=limit, retrievals=retrievals)
    parts = [[_places(cover, group) for group in cover.groups] for cover in covers]
    # Histories that what is given tells apart may share a code, so the n-th groups of all given values are one.
    joined = [sorted(place for group in tied for place in group) for tied in zip_longest(*parts, fillvalue=())]
    exact = max(cover.at_least for cover in covers) == len(joined)
    solved = "all partitions searched or excluded" if exact else "groups built from below, excluded from above"
    return ContractCount(
        classes=len(joined),
        groups=tuple(tuple(histories[place] for place in part) for part in joined),
        futures=futures,
        horizon=None,
        evaluations=len(histories) * futures,
        method=f"finite contract: least groups that share an answer to every future; {solved}",
        supplied=len(covers) > 1,
        least=max(cover.at_least for cover in covers),
        retrievals=retrievals,
    )


def covers_of(
    contract: FiniteContract, *, limit: int = LIMIT, retrievals: int = 0, weights: Sequence[float] = ()
) -> tuple[list[Cover], Sequence[Any], int]:
    """Return a cover for each given value, the histories, and the number of futures."""
    histories, futures = collect_both(contract, limit)
    answers: list[dict[Any, int]] = [{} for _ in futures]
    by_value: dict[Any, dict[tuple[tuple[int, ...], tuple[Any, ...]], list[int]]] = {}
    for place, history in enumerate(histories):
        sets = [acceptable(contract, history, future) for future in futures]
        if not place:
            for future, first in zip(futures, sets, strict=True):
                check_repeats(first, acceptable(contract, history, future), "the acceptable responses")
        accepted = tuple(
            sum(1 << known.setdefault(answer, len(known)) for answer in found)
            for known, found in zip(answers, sets, strict=True)
        )
        shown = retrievable(contract, history) if retrievals else ()
        by_value.setdefault(supplied(contract, history), {}).setdefault((accepted, shown), []).append(place)
    if (widths := {len(shown) for rows in by_value.values() for _, shown in rows}) and len(widths) > 1:
        raise ContractError(f"retrievable returned {min(widths)} to {max(widths)} results; return as many each time")
    if (most := max(map(len, by_value.values()))) > MOST_ROWS:
        raise TooLargeError(f"{most:,} histories that differ, the limit is {MOST_ROWS:,}; count smaller alphabets")
    return (
        [
            Cover(
                [
                    Row(accepted, shown, tuple(places), math.fsum(weights[i] for i in places) if len(weights) else 0.0)
                    for (accepted, shown), places in rows.items()
                ],
                retrievals,
                limit,
            )
            for rows in by_value.values()
        ],
        histories,
        len(futures),
    )


def retrievable(contract: FiniteContract, history: Any) -> tuple[Any, ...]:
    """Return the results that can be fetched one by one after a history, in the order of their places."""
    verb = getattr(contract, "retrievable", None)
    if verb is None:
        raise ContractError("nothing can be retrieved; add retrievable(history) to the contract, the results in order")
    found = tuple(ask(verb, history))
    for value in found:
        check_value(value, verb, history)
    return found


def _places(cover: Cover, group: CodeGroup) -> list[int]:
    return [place for row in _members(group.rows) for place in cover.rows[row].places]


def _members(bits: int) -> Iterator[int]:
    while bits:
        low = bits & -bits
        yield low.bit_length() - 1
        bits ^= low
