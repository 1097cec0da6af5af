"""The contract of a world by enumeration, in the form of `eirkit eir count`: a second way to count its bits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from eirkit.lacuna.conversation.floor import Askable
from eirkit.lacuna.conversation.truth import Key, Knowledge
from eirkit.lacuna.conversation.world import ATTRIBUTES, Answer, Operation, Statement, Value, WorldQuestion


@dataclass(frozen=True, slots=True)
class WorldContract:
    """The contract of some facts after `cut` sessions, by enumeration: for small worlds, in the form of `eir count`."""

    asked: tuple[Askable, ...]
    sizes: tuple[int, ...]  # of each fact, as `classes` takes them
    cut: int

    @property
    def histories(self) -> list[tuple[tuple[tuple[int, Statement], ...], ...]]:
        each = [list(_histories(one.key, size, self.cut)) for one, size in zip(self.asked, self.sizes, strict=True)]
        return list(product(*each))

    @property
    def futures(self) -> list[WorldQuestion]:
        return [question for one in self.asked for question in _questions(one)]

    def respond(self, history: Sequence[Sequence[tuple[int, Statement]]], future: WorldQuestion) -> Answer:
        knowledge = Knowledge()
        for told in history:
            for session, statement in told:
                knowledge.hear(statement, session)
        return knowledge.answer(future)


def _questions(asked: Askable) -> Iterator[WorldQuestion]:
    attribute, subject = asked.key
    form = ATTRIBUTES[attribute]
    yield WorldQuestion("all" if form == "set" else "day" if form == "date" else "now", attribute, subject)
    if asked.before:
        yield WorldQuestion("before", attribute, subject)
    for time in sorted(asked.times):
        yield WorldQuestion("as_of", attribute, subject, time - 1)  # sessions are days here, counted from 0


def _histories(key: Key, size: int, cut: int) -> Iterator[tuple[tuple[int, Statement], ...]]:
    """Yield every way in which one fact can have been told in some sessions; of a set, each member by itself."""
    if ATTRIBUTES[key[0]] == "set":
        each = [list(_told(key, [("add", f"item {i}"), ("remove", f"item {i}")], size, cut)) for i in range(size)]
        yield from (tuple(sorted(told for one in chosen for told in one)) for chosen in product(*each))
    else:
        yield from _told(key, list(_moves(key[0], size)), size, cut)


def _told(
    key: Key, moves: Sequence[tuple[Operation, Value]], size: int, cut: int
) -> Iterator[tuple[tuple[int, Statement], ...]]:
    choices = [None, *moves]
    for chosen in product(choices, repeat=cut):
        told = [(n, Statement(move[0], *key, move[1])) for n, move in enumerate(chosen) if move is not None]
        if _is_possible(ATTRIBUTES[key[0]], [statement for _, statement in told], size):
            yield tuple(told)


def _moves(attribute: str, size: int) -> Iterator[tuple[Operation, Value]]:
    form = ATTRIBUTES[attribute]
    if form == "count":
        amounts = range(2, size // 2 + 2)
        yield from ((op, n) for op in ("set", "raise", "lower", "replace") for n in amounts)
    elif form == "date":
        yield from (("set", day) for day in range(size))
    else:
        yield from ((op, f"value {i}") for op in ("set", "replace") for i in range(size))
        yield ("forget", None)


def _is_possible(form: str, told: Sequence[Statement], size: int) -> bool:
    """Return whether a world can say this: what is first set is then replaced, and amounts stay within bounds."""
    if form == "set":
        held: set[Value] = set()
        for op, _, _, item in told:
            if (op == "add") == (item in held):
                return False
            held ^= {item}
        return True
    if form == "date":
        return len(told) <= 1
    if form == "count":
        total = None
        for op, _, _, amount in told:
            n = int(amount or 0)
            if (op == "set") != (total is None):
                return False
            total = n if total is None or op == "replace" else total + (n if op == "raise" else -n)
            if not 0 <= total <= size:
                return False
        return True
    seen: list[Value] = []
    for op, _, _, value in told:
        if op == "forget":
            if not seen:
                return False
            seen = []
            return told[-1].op == "forget"  # nothing is said of a withdrawn fact
        if (op == "set") == bool(seen) or value in seen:
            return False
        seen.append(value)
    return True
