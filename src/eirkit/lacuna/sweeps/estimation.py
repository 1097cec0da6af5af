"""What a sweep would take: each cell is tried once with a reference agent, and its prompts are counted.

Real models write more than reference agents do, and managed ones act as often as they like; `most_usd` bounds only the
former.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from eirkit.lacuna.conditions import make_memory, make_session
from eirkit.lacuna.driver import drive, wait_for
from eirkit.lacuna.generation import generate, prepare
from eirkit.lacuna.model import ModelOptions
from eirkit.lacuna.models.reference import make_reference
from eirkit.lacuna.serving.making import make_model
from eirkit.lacuna.serving.prices import Estimate, PriceList, estimate, load_prices
from eirkit.lacuna.sweeps.cells import Cell
from eirkit.lacuna.sweeps.suite import Suite
from eirkit.lacuna.sweeps.summary import coordinates
from eirkit.lacuna.telemetry import Exchange


@dataclass(frozen=True, slots=True)
class CellEstimate:
    """What the runs of one cell would take together."""

    cell: Cell
    seeds: int
    expected: Estimate

    def as_json(self) -> dict[str, Any]:
        return {**coordinates(self.cell, self.seeds), **asdict(self.expected)}


def estimate_suite(suite: Suite, prices: Path | None = None) -> list[CellEstimate]:
    """Return an estimate for each cell; models are made, but nobody is asked and nothing is written."""
    listed = load_prices(prices)
    for cell in {(cell.model, repr(cell.options)): cell for cell, _ in suite.plan()}.values():
        make_model(cell.model, cell.options)
    return [CellEstimate(cell, len(seeds), _estimate(cell, seeds, listed)) for cell, seeds in suite.plan()]


def total(estimates: Sequence[CellEstimate]) -> Estimate:
    """Return the sums; a cost is unknown where one of its parts is."""
    parts = [one.expected for one in estimates]
    costs = [part.cost_usd for part in parts if part.cost_usd is not None]
    most = [part.most_usd for part in parts if part.most_usd is not None]
    known = len(costs) == len(parts)
    return Estimate(
        sum(part.calls for part in parts),
        sum(part.input_tokens for part in parts),
        sum(part.output_tokens for part in parts),
        sum(costs) if known else None,
        sum(most) if known else None,
    )


def _estimate(cell: Cell, seeds: Sequence[int], prices: PriceList) -> Estimate:
    exchanges = wait_for(_try(cell, seeds[0]))
    prompts = sum(len(m.content) for exchange in exchanges for m in exchange.request.messages)
    replies = sum(len(exchange.reply.text) for exchange in exchanges)
    runs = len(seeds)
    price = prices.find(cell.model, cell.options.base_url)
    return estimate(len(exchanges) * runs, prompts * runs, replies * runs, cell.options.max_tokens, price)


async def _try(cell: Cell, seed: int) -> list[Exchange]:
    """Return the exchanges of one run with an agent that recovers what it can; no memory of the user's is touched."""
    spec = cell.task.with_seed(seed)
    session = make_session(cell.access, generate(spec), prepare(spec))
    memory = make_memory("null") if cell.access.memory is not None else None
    trace = await drive(session, make_reference("recoverer", ModelOptions()), memory)
    return trace.exchanges
