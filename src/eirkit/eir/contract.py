"""Contracts that people write, in two forms: a finite contract (histories, futures, evaluator) and a process.

In comes a user's object or a `FILE.py:NAME`; out goes the same object, checked for its form, and later a
`ContractCount`. Whatever the user's code does wrong becomes one ContractError that says where.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from reprlib import repr as short
from typing import Any, Protocol, TypeVar, runtime_checkable

from eirkit.errors import ContractError, TooLargeError
from eirkit.registry import load_object

LIMIT = 20_000_000  # evaluations of the user's functions: about a minute of plain Python
_EVALUATIONS_PER_HELD = 10  # histories and states stay in memory, so fewer of them are allowed than evaluations
_ALWAYS_HELD = 100_000  # as many fit everywhere

_PLAIN = (int, str, bool, bytes, type(None))  # types whose values always equal themselves

T = TypeVar("T")


class FiniteContract(Protocol):
    """Algorithm 1's input. Histories and futures are collections, or methods without arguments that return one."""

    @property
    def histories(self) -> Iterable[Any] | Callable[[], Iterable[Any]]: ...

    @property
    def futures(self) -> Iterable[Any] | Callable[[], Iterable[Any]]: ...

    def respond(self, history: Any, future: Any) -> Any:
        """Return the required outputs; hashable, and equal exactly if they mean the same."""


@runtime_checkable
class Process(Protocol):
    """A system that goes on step by step. States, moves and outputs are hashable."""

    @property
    def states(self) -> Iterable[Any] | Callable[[], Iterable[Any]]:
        """The states in which a history may have left the system at the cut."""

    @property
    def horizon(self) -> int | None:
        """How many steps are left; None for ever."""

    def moves(self, state: Any) -> Iterable[Any]:
        """Return what may come next; the agent sees which moves are open."""

    def step(self, state: Any, move: Any) -> tuple[Any, Any]:
        """Return (output, next state)."""


FINITE = ("histories", "futures", "respond")
PROCESS = ("states", "moves", "step", "horizon")


@dataclass(frozen=True, slots=True)
class ContractCount:
    """How many continuation-equivalence classes a contract has, and what was done to find out."""

    classes: int
    groups: tuple[tuple[Any, ...], ...]  # the histories (or distinct states) of each class, in the user's order
    futures: int | None  # None for a process
    horizon: int | None  # None for a finite contract, and for a process without end
    evaluations: int  # of `respond` or `step`
    method: str

    @property
    def histories(self) -> int:
        """Histories, or distinct states at the cut."""
        return sum(map(len, self.groups))

    @property
    def bits(self) -> float:
        """The execution information requirement."""
        return math.log2(self.classes)

    @property
    def representation_bits(self) -> int:
        """The whole bits of the shortest fixed-length code: ⌈log2 classes⌉, by integer arithmetic."""
        return (self.classes - 1).bit_length()


def load_contract(reference: str) -> FiniteContract | Process:
    """Return the contract at `FILE.py:NAME` or `package.module:NAME`; a class is called without arguments."""
    found = load_object(reference, "contract")
    if isinstance(found, type):
        found = ask(found, origin=(f"{reference}()",))
    return check_form(found, reference)


def check_form(contract: Any, name: str = "the contract") -> FiniteContract | Process:
    """Return the contract if it has all that one of the two forms needs, and nothing of the other."""
    present = {form: [part for part in form if hasattr(contract, part)] for form in (FINITE, PROCESS)}
    if all(present.values()) or not any(present.values()):
        how = "mixes both forms" if any(present.values()) else "is no contract"
        raise ContractError(f"{name} {how}; give it {', '.join(FINITE)}, or else {', '.join(PROCESS)}")
    form = FINITE if present[FINITE] else PROCESS
    if missing := [part for part in form if part not in present[form]]:
        raise ContractError(f"{name} has {', '.join(present[form])} but no {', '.join(missing)}; add what is missing")
    for verb in {"respond", "moves", "step"} & set(form):
        if not callable(getattr(contract, verb)):
            raise ContractError(f"{name}: {verb} is {short(getattr(contract, verb))}; make it a function")
    if form is PROCESS:
        _check_horizon(contract.horizon, name)
    checked: FiniteContract | Process = contract
    return checked


def collect(contract: FiniteContract | Process, part: str, limit: int) -> Sequence[Any]:
    """Return histories, futures or states; refuse what is too long before it is read.

    A collection without a length is read no further than the limit.
    """
    source = getattr(contract, part)
    items = ask(source) if callable(source) else source
    most = most_held(limit)
    size = ask(_size, items, origin=(part,))
    if size is not None and size > most:
        raise TooLargeError(_too_many(f"{size:,} {part}", most, limit))
    found = ask(_first, items, most + 1, origin=(part,))
    if not found:
        raise ContractError(f"{part} is empty; give at least one")
    if len(found) > most:
        raise TooLargeError(_too_many(f"more than {most:,} {part}", most, limit))
    return found


def most_held(limit: int) -> int:
    """Return how many histories, futures or states may be in memory at a limit on evaluations."""
    return min(limit, max(limit // _EVALUATIONS_PER_HELD, _ALWAYS_HELD))


def ask(verb: Callable[..., T], *arguments: Any, origin: tuple[Any, ...] = ()) -> T:
    """Return what the user's function returns; what it raises becomes a ContractError that names its origin."""
    try:
        return verb(*arguments)
    except (Exception, SystemExit) as error:
        where = call(*(origin or (verb, *arguments)))
        told = f"{type(error).__name__}: {error}"
        raise ContractError(f"{where} raised {told}; fix the contract and run again") from error


def ask_all(most: int, verb: Callable[..., Iterable[Any]], *arguments: Any) -> list[Any]:
    """Return all that the user's function yields, or its first `most` + 1 items."""
    return ask(_first, ask(verb, *arguments), most + 1, origin=(verb, *arguments))


def check_value(value: Any, *origin: Any) -> None:
    """Refuse a value that cannot be told apart from others; `origin` is the call (or part) that it came from."""
    if type(value) in _PLAIN:
        return
    try:
        hash(value)
    except TypeError as error:
        raise ContractError(
            f"{call(*origin)} gave the non-hashable {short(value)} ({error}); "
            "give numbers, strings, or tuples and frozensets of them"
        ) from None
    if not ask(_equals_itself, value, origin=origin):
        raise ContractError(f"{call(*origin)} gave {short(value)}, which does not equal itself; give None instead")


def look_up(known: dict[Any, T], value: Any, *origin: Any) -> T | None:
    """Return what is known about a value; None if it is new, after it has passed `check_value`."""
    try:
        found = known.get(value)
    except TypeError:
        found = None
    if found is None:
        check_value(value, *origin)
    return found


def check_repeats(first: Any, second: Any, *origin: Any) -> None:
    """Refuse a function that answers the same question differently, or with objects compared by identity."""
    if first != second:
        raise ContractError(
            f"{call(*origin)} gave {short(first)}, then {short(second)}; make it depend on its arguments alone, "
            "with results that compare by value"
        )


def call(verb: Callable[..., Any] | str, *arguments: Any) -> str:
    """Return how a call, or a named part, reads in a message."""
    if isinstance(verb, str):
        return verb
    return f"{getattr(verb, '__name__', 'the function')}({', '.join(map(short, arguments))})"


def _equals_itself(value: Any) -> bool:
    if isinstance(value, (tuple, frozenset)):
        # Containers compare their members by identity first, which would hide a NaN.
        return all(map(_equals_itself, value))
    return bool(value == value)


def _first(items: Iterable[Any], most: int) -> list[Any]:
    return list(islice(items, most))


def _size(items: Any) -> int | None:
    if isinstance(items, range):  # len() fails beyond the machine's word
        return max(0, -((items.start - items.stop) // items.step))
    return len(items) if hasattr(items, "__len__") else None


def _too_many(what: str, most: int, limit: int) -> str:
    return (
        f"{what}, but at most {most:,} are held at a limit of {limit:,} evaluations; "
        "count smaller alphabets and lift, write a process instead, or raise the limit (--limit)"
    )


def _check_horizon(horizon: Any, name: str) -> None:
    if horizon is not None and (type(horizon) is not int or horizon < 0):
        raise ContractError(f"{name}: horizon is {short(horizon)}; give the steps left, 0 or more, or None for ever")
