"""Token prices from the built-in file and a user's file, cost estimates, and the spend and cap of a sweep.

A model without a price has an unknown cost, `None`, never 0.

All models of a sweep share one `Ledger`, which reserves the maximum cost before a call and settles it afterwards. Each
model has its own `ModelSpend`.
"""

from __future__ import annotations

import asyncio
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import date
from difflib import get_close_matches
from math import ceil, isfinite
from pathlib import Path
from typing import Any

from eirkit.agents.model import USUAL_TOKENS, Request, Usage
from eirkit.errors import InputFileError, SpendCapReached

BUILT_IN = Path(__file__).with_name("prices.toml")
MILLION = 1_000_000
CHARS_PER_TOKEN = 4  # a rule of thumb: 17 % too few tokens on numbered listings, up to 26 % off on prose
_FIELDS = ("input", "output", "cached", "up_to_tokens", "as_of")


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per million tokens."""

    input: float
    output: float
    cached: float  # input that the provider billed as cached
    as_of: date
    up_to_tokens: int | None = None  # longest prompt that this price holds for

    def cost_usd(self, usage: Usage) -> float | None:
        """Return the cost of a reply; None if its usage is unknown or its prompt is too long for the price."""
        if self.is_free():
            return 0.0
        if usage.input_tokens + usage.output_tokens == 0 or not self.covers(usage.input_tokens):
            return None
        fresh = usage.input_tokens - usage.cached_tokens
        return (fresh * self.input + usage.cached_tokens * self.cached + usage.output_tokens * self.output) / MILLION

    def most_usd(self, request: Request) -> float | None:
        """Return an upper bound on the cost of a request: one token per byte, plus a few per message.

        None if its prompt may be too long for the price.
        """
        texts = [
            *(m.content for m in request.messages),
            *(f"{t.name}{t.description}{t.parameters}" for t in request.tools),
        ]
        tokens = sum(len(text.encode("utf-8", "replace")) + 32 for text in texts)
        if not self.is_free() and not self.covers(tokens):
            return None
        limit = request.max_tokens or USUAL_TOKENS
        return (tokens * max(self.input, self.cached) + limit * self.output) / MILLION

    def is_free(self) -> bool:
        return self.input == self.output == self.cached == 0

    def covers(self, input_tokens: float) -> bool:
        """True if the price holds for a prompt of this length."""
        return self.up_to_tokens is None or input_tokens <= self.up_to_tokens


@dataclass(frozen=True, slots=True)
class PriceList:
    """Prices by `provider/name`, the user's before the built-in ones; `provider/*` covers other models."""

    built_in: Mapping[str, Price]
    own: Mapping[str, Price]

    def find(self, model: str, base_url: str | None = None) -> Price | None:
        """Return the price of a model; with a custom base URL only the user's file applies."""
        name = model.removeprefix("inspect/")
        lists = (self.own,) if base_url is not None else (self.own, self.built_in)
        for prices in lists:
            for key in (name, f"{name.partition('/')[0]}/*"):
                if key in prices:
                    return prices[key]
        return None


def load_prices(path: Path | None = None) -> PriceList:
    """Return the built-in prices and those of a file, which take precedence."""
    return PriceList(read_prices(BUILT_IN), read_prices(path) if path is not None else {})


def read_prices(path: Path) -> dict[str, Price]:
    """Return the prices in a file."""
    try:
        document = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise InputFileError(f"cannot read {path}: {error.strerror}; check the path") from error
    except ValueError as error:
        raise InputFileError(f"{path} is not TOML ({error}); see the layout in docs/models.md") from error
    table = document.get("prices")
    if not isinstance(table, dict):
        raise InputFileError(f"{path} has no table [prices]; see the layout in docs/models.md")
    return {name: _price(entry, f"{path}: {name!r}") for name, entry in table.items()}


def _price(entry: Any, where: str) -> Price:
    if not isinstance(entry, dict):
        raise InputFileError(f"{where} is not a table; write {{ input = …, output = …, as_of = … }}")
    for unknown in entry.keys() - set(_FIELDS):
        near = get_close_matches(unknown, _FIELDS, n=1)
        raise InputFileError(f"{where} has {unknown!r}; use {near[0] if near else ', '.join(_FIELDS)}")
    if not isinstance(entry.get("as_of"), date):
        raise InputFileError(f"{where} has no date; add as_of = 2026-01-31, the day you looked the price up")
    limit = entry.get("up_to_tokens")
    if limit is not None and not (isinstance(limit, int) and limit > 0):
        raise InputFileError(f"{where}: up_to_tokens is {limit!r}; give a number of tokens")
    full = _dollars(entry, "input", where)
    cached = _dollars(entry, "cached", where) if "cached" in entry else full
    return Price(full, _dollars(entry, "output", where), cached, entry["as_of"], limit)


def _dollars(entry: Mapping[str, Any], name: str, where: str) -> float:
    value = entry.get(name)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not isfinite(value) or value < 0:
        raise InputFileError(f"{where}: {name} is {value!r}; give dollars per million tokens")
    return float(value)


@dataclass(frozen=True, slots=True)
class Estimate:
    """The estimated calls, tokens and cost of a run."""

    calls: int
    input_tokens: int  # by characters; the provider's count will differ
    output_tokens: int
    cost_usd: float | None  # at these counts, without retries and without cache hits; None: the price is unknown
    most_usd: float | None  # if every byte were a token and every reply as long as allowed


def estimate(calls: int, prompt_chars: int, reply_chars: int, max_tokens: int, price: Price | None) -> Estimate:
    """Return tokens and cost of a run.

    Args:
        prompt_chars: characters of all prompts together.
        reply_chars: characters expected of all replies together.
        max_tokens: the bound on one reply.
    """
    inputs, outputs = ceil(prompt_chars / CHARS_PER_TOKEN), ceil(reply_chars / CHARS_PER_TOKEN)
    if price is None:
        return Estimate(calls, inputs, outputs, None, None)
    expected = (inputs * price.input + outputs * price.output) / MILLION
    most = (prompt_chars * price.input + calls * max_tokens * price.output) / MILLION
    return Estimate(
        calls,
        inputs,
        outputs,
        expected if price.covers(inputs / max(1, calls)) else None,
        max(most, expected) if price.covers(prompt_chars / max(1, calls)) else None,
    )


def add_up(parts: Sequence[Estimate]) -> Estimate:
    """Return the sums; a cost is unknown if one of its parts is."""
    costs = [part.cost_usd for part in parts if part.cost_usd is not None]
    most = [part.most_usd for part in parts if part.most_usd is not None]
    return Estimate(
        sum(part.calls for part in parts),
        sum(part.input_tokens for part in parts),
        sum(part.output_tokens for part in parts),
        sum(costs) if len(costs) == len(parts) else None,
        sum(most) if len(most) == len(parts) else None,
    )


@dataclass(frozen=True, slots=True)
class ModelSpend:
    """Calls, tokens and cost of one model so far."""

    calls: int = 0  # replies that the model gave
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0  # part of input_tokens that the provider billed as cached
    cost_usd: float = 0.0  # of the calls with a known price
    unpriced_calls: int = 0  # replies whose cost is unknown; not in cost_usd
    unconfirmed_usd: float = 0.0  # most that calls without a usable reply may have cost; not in cost_usd
    retries: int = 0
    failures: int = 0  # requests given up
    cache_hits: int = 0  # replies from our own cache; none of the figures above counts them
    cache_input_tokens: int = 0  # what the hits would have sent and received
    cache_output_tokens: int = 0
    unsaved: int = 0  # replies that could not be written to the cache

    def __add__(self, other: ModelSpend) -> ModelSpend:
        return ModelSpend(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))


class Ledger:
    """The spending of one sweep.

    Args:
        cap_usd: what may be spent in all; None for no limit.
        spent_usd: what earlier parts of the sweep have spent, for a sweep that is resumed.
    """

    def __init__(self, cap_usd: float | None = None, spent_usd: float = 0.0) -> None:
        self.cap_usd, self.spent_usd = cap_usd, spent_usd
        self._held_usd = 0.0
        self._holders = 0
        self._settled = asyncio.Event()  # replaced each time it is set

    def read(self) -> None:
        """Read what earlier parts of the sweep have spent; nothing for a ledger in memory."""

    async def hold(self, most_usd: float) -> float:
        """Reserve the maximum cost of a call and return it; wait if calls in flight may free enough.

        Raises:
            SpendCapReached: the call could exceed the cap; nothing is reserved.
        """
        if self.cap_usd is None:
            return 0.0
        while self.spent_usd + self._held_usd + most_usd > self.cap_usd:
            if not self._holders:
                raise SpendCapReached(
                    f"${self.spent_usd:.4f} of ${self.cap_usd:.4f} is spent and the next call may cost "
                    f"${most_usd:.4f}; raise the cap and resume"
                )
            await self._settled.wait()
        self._holders += 1
        self._held_usd += most_usd
        return most_usd

    def settle(self, held_usd: float, spent_usd: float) -> None:
        """Release a reservation and record what was spent."""
        self.spent_usd += spent_usd
        if self.cap_usd is None:
            return
        self._holders -= 1
        # Without open reservations the sum is zero; remove rounding errors.
        self._held_usd = self._held_usd - held_usd if self._holders else 0.0
        self._settled.set()
        self._settled = asyncio.Event()
