"""Counting what calls took, and holding a sweep under its cap: money is set aside before a call and settled after it.

All models of a sweep share one `Ledger`; each keeps a `Tally` of its own.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, fields

from eirkit.errors import SpendCapReached


@dataclass(frozen=True, slots=True)
class ModelSpend:
    """What one model's calls took so far."""

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
    unsaved: int = 0  # replies that the cache could not keep

    def __add__(self, other: ModelSpend) -> ModelSpend:
        return ModelSpend(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))


class Ledger:
    """The money of one sweep.

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
        """Take in what earlier parts have spent; a ledger in memory knows of none."""

    async def hold(self, most_usd: float) -> float:
        """Set aside what a call could cost at most and return it; wait while only calls in flight stand in the way.

        Raises:
            SpendCapReached: the call could exceed the cap; nothing is set aside.
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
        """Release what was set aside and book what was spent."""
        self.spent_usd += spent_usd
        if self.cap_usd is None:
            return
        self._holders -= 1
        # With nobody holding it is nothing, whatever rounding left behind.
        self._held_usd = self._held_usd - held_usd if self._holders else 0.0
        self._settled.set()
        self._settled = asyncio.Event()
