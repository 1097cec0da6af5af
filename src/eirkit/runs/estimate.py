"""Estimates the tokens and cost of a plan by running it with a reference agent in place of the model.

No model is called. Real models write more than reference agents and may take more actions in managed runs; `most_usd`
bounds only the former.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from eirkit.agents.driver import drive, wait_for
from eirkit.agents.memories.in_process import Null
from eirkit.agents.model import ModelOptions
from eirkit.agents.models.reference import make_reference
from eirkit.agents.serving.model_factory import make_model, renderer_of
from eirkit.agents.serving.prices import Estimate, Price, add_up, estimate, load_prices
from eirkit.agents.telemetry import Exchange, Trace
from eirkit.runs.cells import Cell, RunPlan, Unrecovered, coordinates, unrecovered_in
from eirkit.runs.sessions import make_session
from eirkit.tasks.generation import generate, prepare

_UnrecoveredByRun = dict[str, Unrecovered]  # by run, of control arms that other arms depend on


@dataclass(frozen=True, slots=True)
class CellEstimate:
    """The estimate for all runs of one cell."""

    cell: Cell
    seeds: int
    expected: Estimate

    def as_json(self) -> dict[str, Any]:
        return {**coordinates(self.cell, self.seeds), **asdict(self.expected)}


def estimate_plan(plan: RunPlan, prices: Path | None = None, *, every_seed: bool = False) -> list[CellEstimate]:
    """Return an estimate for each cell; models are made but not called, and nothing is written.

    Args:
        every_seed: simulate every run instead of the first of each cell.
    """
    listed = load_prices(prices)
    for cell in {(cell.model, repr(cell.options)): cell for cell, _ in plan.plan()}.values():
        make_model(cell.model, cell.options)
    unrecovered_by_run: _UnrecoveredByRun = {}
    found = []
    for cell, seeds in plan.plan():
        price = listed.find(cell.model, cell.options.base_url)
        tried = seeds if every_seed else seeds[:1]
        exchanges = [one for seed in tried for one in _exchanges(cell, seed, unrecovered_by_run)]
        found.append(CellEstimate(cell, len(seeds), _expected(exchanges, len(seeds) // len(tried), cell, price)))
    return found


def by_model(estimates: Sequence[CellEstimate]) -> list[dict[str, Any]]:
    """Return the sums of each model."""
    parts: dict[str, list[Estimate]] = {}
    for one in estimates:
        parts.setdefault(one.cell.model, []).append(one.expected)
    return [{"model": model, **asdict(add_up(own))} for model, own in parts.items()]


def estimate_run(cell: Cell, seed: int, unrecovered: Unrecovered | None, price: Price | None) -> Estimate:
    """Return an estimate for one run.

    Args:
        unrecovered: what its control arm did not recover, for a cell that depends on the runs of another.
    """
    trace = wait_for(_try(cell, seed, unrecovered))
    return _expected(trace.exchanges, 1, cell, price)


def _expected(exchanges: Sequence[Exchange], times: int, cell: Cell, price: Price | None) -> Estimate:
    prompts = sum(len(m.content) for exchange in exchanges for m in exchange.request.messages)
    replies = sum(len(exchange.reply.text) for exchange in exchanges)
    return estimate(len(exchanges) * times, prompts * times, replies * times, cell.options.max_tokens, price)


def _exchanges(cell: Cell, seed: int, unrecovered_by_run: _UnrecoveredByRun) -> list[Exchange]:
    unrecovered = None if cell.follows is None else unrecovered_by_run.get(cell.follows.run_id(seed))
    trace = wait_for(_try(cell, seed, unrecovered))
    unrecovered_by_run[cell.run_id(seed)] = unrecovered_in(trace.decisions)
    return trace.exchanges


async def _try(cell: Cell, seed: int, unrecovered: Unrecovered | None) -> Trace:
    """Simulate one run with an agent that recovers what it can, without the memory system of the cell."""
    spec = cell.task.with_seed(seed)
    session = make_session(
        cell.access, generate(spec), prepare(spec), intervention=cell.intervention, unrecovered=unrecovered
    )
    session.renderer = renderer_of(cell.model, cell.options)
    memory = Null() if cell.access.memory is not None else None
    return await drive(session, make_reference("recoverer", ModelOptions()), memory)
