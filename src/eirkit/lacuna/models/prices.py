"""Reads token prices (prices.toml, or the file of `--prices`); what a call costs, and characters counted as one token.

A model without a price has an unknown cost, `None`, never 0. Prices are decimals, exactly as the file has them.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from difflib import get_close_matches
from math import ceil
from pathlib import Path
from typing import Any

from eirkit.errors import InputFileError
from eirkit.folders import read_small

BUILT_IN = Path(__file__).with_name("prices.toml")
MILLION = 1_000_000
CHARS_PER_TOKEN = 4  # a rule of thumb: 17 % too few tokens on numbered listings, up to 26 % off on prose
_FIELDS = ("input", "output", "cached", "cache_write", "cache_write_1h", "up_to_tokens", "as_of")


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per million tokens."""

    input: Decimal
    output: Decimal
    cached: Decimal  # input that the provider billed as cached
    as_of: date
    up_to_tokens: int | None = None  # longest prompt that this price holds for
    cache_write: Decimal | None = None  # input that the provider stores in a cache for minutes; None: as input
    cache_write_1h: Decimal | None = None  # the same for an hour; None: as for minutes

    def batched(self) -> Price:
        """Return the price of calls over a batch API, which cost half."""
        return replace(self, input=self.input / 2, output=self.output / 2, cached=self.cached / 2)

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
        document = tomllib.loads(read_small(path), parse_float=Decimal)
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
    return Price(
        input=full,
        output=_dollars(entry, "output", where),
        cached=cached,
        as_of=entry["as_of"],
        up_to_tokens=limit,
        cache_write=_dollars(entry, "cache_write", where) if "cache_write" in entry else None,
        cache_write_1h=_dollars(entry, "cache_write_1h", where) if "cache_write_1h" in entry else None,
    )


def _dollars(entry: Mapping[str, Any], name: str, where: str) -> Decimal:
    value = entry.get(name)
    if isinstance(value, bool) or not isinstance(value, (int, Decimal)) or not Decimal(value).is_finite() or value < 0:
        said = value if isinstance(value, Decimal) else repr(value)
        raise InputFileError(f"{where}: {name} is {said}; give dollars per million tokens")
    return Decimal(value)


@dataclass(frozen=True, slots=True)
class Estimate:
    """The estimated calls, tokens and cost of a run."""

    calls: int
    input_tokens: int  # by characters; the provider's count will differ
    output_tokens: int
    cost_usd: float | None  # at these counts, without retries and without cache hits; None: the price is unknown
    most_usd: float | None  # if every byte were a token, every reply as long as allowed and without an answer


def estimate(
    calls: int,
    prompt_chars: int,
    reply_chars: int,
    max_tokens: int,
    price: Price | None,
    again: tuple[int, int] = (0, 0),
) -> Estimate:
    """Return tokens and cost of a run.

    Args:
        prompt_chars: characters of all prompts together.
        reply_chars: characters expected of all replies together.
        max_tokens: the bound on one reply.
        again: calls that are possible and not expected, and the characters of their prompts.
    """
    inputs, outputs = ceil(prompt_chars / CHARS_PER_TOKEN), ceil(reply_chars / CHARS_PER_TOKEN)
    if price is None:
        return Estimate(calls, inputs, outputs, None, None)
    expected = (inputs * price.input + outputs * price.output) / MILLION
    most = ((prompt_chars + again[1]) * price.input + (calls + again[0]) * max_tokens * price.output) / MILLION
    return Estimate(
        calls,
        inputs,
        outputs,
        float(expected) if price.covers(inputs / max(1, calls)) else None,
        float(max(most, expected)) if price.covers(prompt_chars / max(1, calls)) else None,
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
