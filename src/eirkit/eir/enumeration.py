"""Counts the classes of a finite contract: Algorithm 1 of the paper, and a faster refinement with equal results.

`tests/eir/test_enumeration.py` compares the two.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from eirkit.eir.contract import LIMIT, ContractCount, FiniteContract, ask, check_repeats, check_value, collect, look_up
from eirkit.errors import TooLargeError

Blocks = list[list[int]]
PROBES = 8  # histories besides the first that are evaluated twice, to detect functions that are not deterministic


def count_signatures(contract: FiniteContract, *, limit: int = LIMIT) -> int:
    """Return the classes by Algorithm 1: one signature of all responses per history, and how many differ."""
    histories, futures = collect_both(contract, limit)
    signatures = {tuple(_response(contract.respond, x, u) for u in futures) for x in histories}
    return len(signatures)


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
    alone: Blocks = []
    together: Blocks = [list(range(len(histories)))]
    for u in futures:
        evaluations += sum(map(len, together))
        together = [part for block in together for part in _split(block, histories, u, respond)]
        alone += [part for part in together if len(part) == 1]
        together = [part for part in together if len(part) > 1]
        if not together:
            break
    evaluations += _probe(histories, futures, respond)
    groups = tuple(tuple(histories[i] for i in block) for block in sorted(alone + together))
    return ContractCount(
        classes=len(groups),
        groups=groups,
        futures=len(futures),
        horizon=None,
        evaluations=evaluations,
        method="finite contract: histories refined by every future",
    )


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
