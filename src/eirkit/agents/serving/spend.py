"""Counts the calls, tokens and cost of each model, and enforces the spending cap of a sweep.

All models of a sweep share one `Ledger`, which reserves the maximum cost before a call and settles it afterwards. Each
model has its own `ModelSpend`.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, fields

from eirkit.errors import SpendCapReached


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
