"""User-written contracts: finite contracts and processes, loading, checks, and the count of their classes.

Errors in a user's code are raised as one ContractError that names the call.

`tests/eir/test_enumeration.py` compares the two.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from reprlib import repr as short
from typing import Any, Protocol, TypeVar, runtime_checkable

from eirkit.errors import ContractError, TooLargeError, describe
from eirkit.registry import load_object

LIMIT = 20_000_000  # evaluations of the user's functions: about a minute of plain Python
_EVALUATIONS_PER_HELD = 10  # histories and states are held in memory, so fewer of them are allowed than evaluations
_ALWAYS_HELD = 100_000  # always allowed, whatever the limit

_PLAIN = (int, str, bool, bytes, type(None))  # types whose values always equal themselves

T = TypeVar("T")


class FiniteContract(Protocol):
    """The input of Algorithm 1. Histories and futures are collections, or methods that return one."""

    @property
    def histories(self) -> Iterable[Any] | Callable[[], Iterable[Any]]: ...

    @property
    def futures(self) -> Iterable[Any] | Callable[[], Iterable[Any]]: ...

    def respond(self, history: Any, future: Any) -> Any:
        """Return the required outputs; hashable, and equal exactly if they mean the same."""


@runtime_checkable
class Process(Protocol):
    """A system that evolves step by step. States, moves and outputs are hashable."""

    @property
    def states(self) -> Iterable[Any] | Callable[[], Iterable[Any]]:
        """The states in which a history may have left the system at the cut."""

    @property
    def horizon(self) -> int | None:
        """The number of remaining steps; None if the process never ends."""

    def moves(self, state: Any) -> Iterable[Any]:
        """Return the moves that are possible in a state; the agent sees which they are."""

    def step(self, state: Any, move: Any) -> tuple[Any, Any]:
        """Return (output, next state)."""


FINITE = ("histories", "futures", "respond")
SEVERAL = ("histories", "futures", "accept")  # accept(history, future) returns all responses that are right
PROCESS = ("states", "moves", "step", "horizon")


@dataclass(frozen=True, slots=True)
class ContractCount:
    """The number of continuation-equivalence classes of a contract and how it was counted."""

    classes: int
    groups: tuple[tuple[Any, ...], ...]  # the histories (or distinct states) of each class, in the user's order
    futures: int | None  # None for a process
    horizon: int | None  # None for a finite contract, and for a process without end
    evaluations: int  # of `respond` or `step`
    method: str
    supplied: bool = False  # whether something is given beside the memory; a class then may span several given values
    least: int | None = None  # a certified lower bound, where `classes` is an upper one; None if the count is exact
    retrievals: int = 0  # results that may be fetched when the future is known

    @property
    def histories(self) -> int:
        """Histories, or distinct states at the cut."""
        return sum(map(len, self.groups))

    @property
    def at_least(self) -> int:
        """Codes that every memory without error has."""
        return self.classes if self.least is None else self.least

    @property
    def exact(self) -> bool:
        return self.at_least == self.classes

    @property
    def bits(self) -> float:
        """The execution information requirement; bits that are enough for it, where the count is not exact."""
        return math.log2(self.classes)

    @property
    def bits_lower(self) -> float:
        """Bits that no memory without error does with less than."""
        return math.log2(self.at_least)

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
    """Return the contract if it has exactly the members of one of the two forms."""
    present = {form: [part for part in form if hasattr(contract, part)] for form in (FINITE, PROCESS)}
    if all(present.values()) or not any(present.values()):
        how = "mixes both forms" if any(present.values()) else "is not a contract"
        raise ContractError(f"{name} {how}; define either {', '.join(FINITE)} or {', '.join(PROCESS)}")
    form = FINITE if present[FINITE] else PROCESS
    if form is FINITE and hasattr(contract, "accept"):
        if hasattr(contract, "respond"):
            raise ContractError(f"{name} has respond and accept; keep accept if several responses are right")
        form = SEVERAL
    if missing := [part for part in form if not hasattr(contract, part)]:
        had = [part for part in form if part not in missing]
        raise ContractError(f"{name} has {', '.join(had)} but no {', '.join(missing)}; add what is missing")
    if form is PROCESS and hasattr(contract, "given"):
        raise ContractError(f"{name} is a process with `given`; make what is given a part of the moves instead")
    for verb in {"respond", "accept", "moves", "step"} & set(form):
        if not callable(getattr(contract, verb)):
            raise ContractError(f"{name}: {verb} is {short(getattr(contract, verb))}; make it a function")
    if form is PROCESS:
        _check_horizon(contract.horizon, name)
    checked: FiniteContract | Process = contract
    return checked


def collect(contract: FiniteContract | Process, part: str, limit: int) -> Sequence[Any]:
    """Return the histories, futures or states of a contract.

    A collection that is too long is refused before it is read; one without a length is read up to the limit.
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
    """Return how many histories, futures or states may be held in memory under a limit on evaluations."""
    return min(limit, max(limit // _EVALUATIONS_PER_HELD, _ALWAYS_HELD))


def ask(verb: Callable[..., T], *arguments: Any, origin: tuple[Any, ...] = ()) -> T:
    """Call a user's function; what it raises becomes a ContractError that names the call."""
    try:
        return verb(*arguments)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        where = call(*(origin or (verb, *arguments)))
        raise ContractError(f"{where} raised {describe(error)}; fix the contract and run again") from error


def ask_all(most: int, verb: Callable[..., Iterable[Any]], *arguments: Any) -> list[Any]:
    """Return the items that a user's function yields, at most `most` + 1 of them."""
    return ask(_first, ask(verb, *arguments), most + 1, origin=(verb, *arguments))


def check_value(value: Any, *origin: Any) -> None:
    """Refuse a value that cannot be compared; `origin` is the call or part that returned it."""
    if type(value) in _PLAIN:
        return
    try:
        hash(value)
    except TypeError as error:
        raise ContractError(
            f"{call(*origin)} returned {short(value)}, which is not hashable ({error}); "
            "return numbers, strings, or tuples and frozensets of them"
        ) from None
    if not ask(_equals_itself, value, origin=origin):
        raise ContractError(f"{call(*origin)} returned {short(value)}, which differs from itself; return None instead")


def look_up(known: dict[Any, T], value: Any, *origin: Any) -> T | None:
    """Return the entry of a value; for a new value, check it and return None."""
    try:
        found = known.get(value)
    except TypeError:
        found = None
    if found is None:
        check_value(value, *origin)
    return found


def check_repeats(first: Any, second: Any, *origin: Any) -> None:
    """Refuse a function that returns different results for equal arguments, or objects compared by identity."""
    if first != second:
        raise ContractError(
            f"{call(*origin)} returned {short(first)}, then {short(second)}; make it depend on its arguments alone, "
            "with results that compare by value"
        )


def call(verb: Callable[..., Any] | str, *arguments: Any) -> str:
    """Return a call, or a named part of a contract, as text for messages."""
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
    if isinstance(items, range):  # len() fails for ranges beyond sys.maxsize
        return max(0, -((items.start - items.stop) // items.step))
    return len(items) if hasattr(items, "__len__") else None


def _too_many(what: str, most: int, limit: int) -> str:
    return (
        f"{what}, but a limit of {limit:,} evaluations allows {most:,}; "
        "count smaller alphabets and lift, write a process instead, or raise the limit (--limit)"
    )


def _check_horizon(horizon: Any, name: str) -> None:
    if horizon is not None and (type(horizon) is not int or horizon < 0):
        raise ContractError(f"{name}: horizon is {short(horizon)}; give the remaining steps or None for no end")


Blocks = list[list[int]]
PROBES = 8  # histories besides the first that are evaluated twice, to detect functions that are not deterministic


def count_signatures(contract: FiniteContract) -> int:
    """Return the classes by Algorithm 1: one signature of all responses per history, and how many differ."""
    histories, futures = collect_both(contract, LIMIT)
    signatures = {(supplied(contract, x), tuple(_response(contract.respond, x, u) for u in futures)) for x in histories}
    return max(Counter(given for given, _ in signatures).values())


def count_contract(contract: FiniteContract, *, limit: int = LIMIT) -> ContractCount:
    """Return the classes by refinement: futures split blocks of histories, one future at a time.

    A history that is alone in its block is not evaluated again, and no signature is stored. Every history and every
    future is evaluated at least once, but not every pair.

    Raises:
        ContractError: the contract raised an error, is empty, or returned values that cannot be compared.
        TooLargeError: histories × futures exceed the limit; nothing has been evaluated.
    """
    histories, futures = collect_both(contract, limit)
    respond = contract.respond
    for u in futures:
        first, second = (_response(respond, histories[0], u) for _ in range(2))
        check_repeats(first, second, respond, histories[0], u)
    evaluations = 2 * len(futures)
    values = [supplied(contract, x) for x in histories]
    alone: Blocks = []
    by_value: dict[Any, list[int]] = {}
    for place, value in enumerate(values):
        by_value.setdefault(value, []).append(place)
    together: Blocks = list(by_value.values())
    for u in futures:
        evaluations += sum(map(len, together))
        together = [part for block in together for part in _split(block, histories, u, respond)]
        alone += [part for part in together if len(part) == 1]
        together = [part for part in together if len(part) > 1]
        if not together:
            break
    evaluations += _probe(histories, futures, respond)
    # Histories that what is given tells apart may share a code, so the n-th classes of all given values are one.
    shared: dict[int, list[int]] = {}
    seen: Counter[Any] = Counter()
    for block in sorted(alone + together):
        shared.setdefault(seen[values[block[0]]], []).extend(block)
        seen[values[block[0]]] += 1
    groups = tuple(tuple(histories[i] for i in sorted(block)) for block in shared.values())
    return ContractCount(
        classes=len(groups),
        groups=groups,
        futures=len(futures),
        horizon=None,
        evaluations=evaluations,
        method="finite contract: histories refined by every future",
        supplied=len(seen) > 1,
    )


def supplied(contract: FiniteContract, history: Any) -> Any:
    """Return what is given beside the memory after a history, such as a task description; None if nothing is."""
    verb = getattr(contract, "given", None)
    if verb is None:
        return None
    value = ask(verb, history)
    check_value(value, verb, history)
    return value


def acceptable(contract: FiniteContract, history: Any, future: Any) -> tuple[Any, ...]:
    """Return the responses that are right after a history, each once, in an order that is the same every time."""
    verb = getattr(contract, "accept", None)
    if verb is None:
        return (_response(contract.respond, history, future),)
    found = ask(verb, history, future)
    if isinstance(found, str) or not isinstance(found, Iterable):
        raise ContractError(
            f"{call(verb, history, future)} returned {short(found)}; return all right responses, as a set"
        )
    listed: list[Any] = ask(list, found, origin=(verb, history, future))
    for value in listed:
        check_value(value, verb, history, future)
    if not listed:
        raise ContractError(f"{call(verb, history, future)} returned no response; return at least one")
    return tuple(sorted(set(listed), key=repr) if isinstance(found, (set, frozenset)) else dict.fromkeys(listed))


def collect_both(contract: FiniteContract, limit: int) -> tuple[Sequence[Any], Sequence[Any]]:
    """Return histories and futures if their product is within the limit."""
    futures = collect(contract, "futures", limit)
    histories = collect(contract, "histories", limit)
    if (pairs := len(histories) * len(futures)) > limit:
        raise TooLargeError(
            f"{len(histories):,} histories × {len(futures):,} futures are {pairs:,} evaluations, above the limit of "
            f"{limit:,}; count smaller alphabets and lift, write a process instead, or raise the limit (--limit)"
        )
    return histories, futures


def _probe(histories: Sequence[Any], futures: Sequence[Any], respond: Callable[..., Any]) -> int:
    """Evaluate a few histories a second time, the last among them, and return the number of evaluations."""
    last = len(histories) - 1
    positions = {-(-number * last // PROBES): None for number in range(1, PROBES + 1) if last}
    for number, position in enumerate(positions):
        x, u = histories[position], futures[number % len(futures)]
        check_repeats(_response(respond, x, u), _response(respond, x, u), respond, x, u)
    return 2 * len(positions)


def _split(block: list[int], histories: Sequence[Any], future: Any, respond: Callable[..., Any]) -> Blocks:
    parts: dict[Any, list[int]] = {}
    for position in block:
        history = histories[position]
        output = ask(respond, history, future)
        part = look_up(parts, output, respond, history, future)
        if part is None:
            part = parts[output] = []
        part.append(position)
    return list(parts.values())


def _response(respond: Callable[..., Any], history: Any, future: Any) -> Any:
    output = ask(respond, history, future)
    check_value(output, respond, history, future)
    return output
