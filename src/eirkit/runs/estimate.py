"""What a sweep would take: each cell is tried once with a reference agent, and its prompts are counted.

Real models write more than reference agents do, and managed ones act as often as they like; `most_usd` bounds only the
former.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from eirkit.agents.driver import drive, wait_for
from eirkit.agents.memories.null import Null
from eirkit.agents.model import ModelOptions
from eirkit.agents.models.reference import make_reference
from eirkit.agents.serving.model_factory import make_model, renderer_of
from eirkit.agents.serving.prices import Estimate, PriceList, load_prices
from eirkit.agents.telemetry import Exchange
from eirkit.runs.cells import Cell
from eirkit.runs.rehearsal import estimate_exchanges
from eirkit.runs.sessions import make_session
from eirkit.runs.suite import Suite
from eirkit.runs.summary import coordinates
from eirkit.tasks.generation import generate, prepare


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


def _estimate(cell: Cell, seeds: Sequence[int], prices: PriceList) -> Estimate:
    exchanges = wait_for(_try(cell, seeds[0]))
    price = prices.find(cell.model, cell.options.base_url)
    return estimate_exchanges(exchanges, len(seeds), cell.options.max_tokens, price)


async def _try(cell: Cell, seed: int) -> list[Exchange]:
    """Return the exchanges of one run with an agent that recovers what it can; no memory of the user's is touched."""
    spec = cell.task.with_seed(seed)
    session = make_session(cell.access, generate(spec), prepare(spec))
    session.renderer = renderer_of(cell.model, cell.options)
    memory = Null() if cell.access.memory is not None else None
    trace = await drive(session, make_reference("recoverer", ModelOptions()), memory)
    return trace.exchanges
