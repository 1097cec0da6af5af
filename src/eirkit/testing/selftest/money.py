"""What eirkit says about money, beside the bill of a server that counted every token that it was sent and returned."""

from __future__ import annotations

import json
from collections.abc import Iterator

from eirkit.testing.selftest.behavior import PRICES, Check, Observed, PlantedBehavior
from eirkit.testing.selftest.models import Speech, refusing
from eirkit.testing.selftest.planted import Traits
from eirkit.testing.selftest.server import Said

_DOLLARS = 1e-9  # rows add up binary fractions; anything larger is a call that is missing
_PRICED = "--prices {parent}/prices.toml"


def bill(observed: Observed) -> float:
    """Return what the server charges for everything that it answered."""
    answered = [one for one in observed.log if one.said.status == 200]
    tokens = (sum(one.input_tokens for one in answered), sum(one.said.tokens for one in answered))
    return sum(count * price for count, price in zip(tokens, PRICES, strict=True)) / 1e6


def every_cent(observed: Observed) -> Iterator[str]:
    """Yield a difference between the rows and the bill."""
    rows = () if observed.summary is None else observed.summary.rows
    told = sum(row.cost_usd or 0.0 for row in rows)
    systems = [row.memory_system for row in rows if row.memory_system is not None]
    told += sum((system.cost_usd or 0.0) - (system.shared_usd or 0.0) for system in systems)
    if abs(told - bill(observed)) > _DOLLARS:
        yield f"the rows cost ${told:.6f}; the bill is ${bill(observed):.6f}"


def estimated(least: float, most: float) -> Check:
    """Return a check that the estimate before the run lies in a range of the bill."""

    def check(observed: Observed) -> Iterator[str]:
        told = json.loads(observed.before)["cost_usd"]
        ratio = told / bill(observed)
        if not least <= ratio <= most:
            yield f"the estimate is ${told:.4f}, {ratio:.2f} of the bill of ${bill(observed):.4f}"

    return check


def capped(cap: float, least_runs: int) -> Check:
    """Return a check that no more than a cap was spent before it was raised, and that it bought whole runs."""

    def check(observed: Observed) -> Iterator[str]:
        first = json.loads(observed.text)
        spent = sum(row["cost_usd"] or 0.0 for row in first["rows"])
        if spent > cap or observed.code != 1:
            yield f"a cap of ${cap} let ${spent:.4f} be spent, exit code {observed.code}"
        if first["scored"] < least_runs:
            yield f"a cap of ${cap} bought {first['scored']} finished runs; {least_runs} fit into it"

    return check


def _verbose(words: int) -> Speech:
    return lambda turn, lines: (Said("\n".join([*["I add the values one by one."] * words, *lines])), "plain")


def _reasoning(words: int, *, apart: bool = False) -> Speech:
    thought = "I add. " * words
    return lambda turn, lines: (Said("\n".join(lines), reasoning=thought, reasoning_apart=apart), "plain")


def _money(
    name: str, about: str, *checks: Check, options: str = "", traits: Traits | None = None, **more: object
) -> PlantedBehavior:
    given = f"--h 4 {_PRICED} {options}"
    return PlantedBehavior(name, about, traits or Traits(), given, checks=(every_cent, *checks), **more)  # type: ignore[arg-type]


_TASKS = "stepwise-sum --n 24 --m 4 --seeds 0:3 --h 4"
_DRY = f"lacuna run {_TASKS} --model openai/planted --protocol text {_PRICED} --dry-run --json"
_MORE = "lacuna run --resume {folder} --cap-usd 99 --base-url {url}"

BEHAVIORS = (
    _money("bill", "a model that says no more than it must", estimated(0.8, 1.2), before=_DRY, case=9),
    _money("bill-verbose", "a model that explains every answer", traits=Traits(speak=_verbose(20))),
    _money("bill-reasoning", "a model that reasons, and is paid for it", traits=Traits(speak=_reasoning(60))),
    _money(
        "bill-reasoning-apart",
        "a server that counts reasoning in the total alone",
        traits=Traits(speak=_reasoning(60, apart=True)),
    ),
    _money(
        "bill-retries", "requests that fail, which the server does not bill", traits=Traits(serve=refusing(500, 3, 20))
    ),
    _money(
        "bill-memory",
        "a memory that asks the model of the run",
        options="--h 2 --memory eirkit.testing.selftest.memories:ModeledMemory --set ModeledMemory.model=run",
    ),
    _money(
        "cap",
        "a cap for half of six runs at once, raised later",
        capped(1.5, 3),
        options="--cap-usd 1.5 --json --set connections=6 --set max_tokens=40",
        seeds="0:6",
        then=_MORE,
        steps=False,
        case=9,
    ),
    _money(
        "cap-small", "a cap that is too small for a call", capped(0.01, 0), options="--cap-usd 0.01 --json", then=_MORE
    ),
)
