"""What trials would take: a bench on which a reference agent stands in for every model, so that prompts are counted.

Trials come in, traces of the stand-in and an estimate a model go out; nobody is asked and nothing is spent.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from eirkit.agents.driver import drive, wait_for
from eirkit.agents.memories.null import Null
from eirkit.agents.model import ModelOptions
from eirkit.agents.models.reference import make_reference
from eirkit.agents.serving.model_factory import make_model, renderer_of
from eirkit.agents.serving.prices import Estimate, Price, estimate, load_prices
from eirkit.agents.telemetry import Exchange, Trace
from eirkit.runs.trial import Result, Trial


class Rehearsal:
    """Runs trials with an agent that recovers what it can, and counts."""

    def __init__(self, prices: Path | None = None) -> None:
        self._prices = load_prices(prices)
        self.estimates: list[tuple[str, Estimate]] = []  # model, what its trials would take; as they were run
        self.runs = 0

    def run(self, model: str, options: ModelOptions, trials: Sequence[Trial]) -> list[Result]:
        make_model(model, options)  # an unknown one is refused here as it would be then
        for trial in trials:
            trial.session.renderer = renderer_of(model, options)
        traces = wait_for(_try_all(trials))
        price = self._prices.find(model, options.base_url)
        exchanges = [exchange for trace in traces for exchange in trace.exchanges]
        self.estimates.append((model, estimate_exchanges(exchanges, 1, options.max_tokens, price)))
        self.runs += len(trials)
        return list(traces)


def estimate_exchanges(exchanges: Sequence[Exchange], runs: int, max_tokens: int, price: Price | None) -> Estimate:
    """Return what so many runs would take, if each went as these exchanges did."""
    prompts = sum(len(m.content) for exchange in exchanges for m in exchange.request.messages)
    replies = sum(len(exchange.reply.text) for exchange in exchanges)
    return estimate(len(exchanges) * runs, prompts * runs, replies * runs, max_tokens, price)


async def _try_all(trials: Sequence[Trial]) -> list[Trace]:
    agent = make_reference("recoverer", ModelOptions())
    # No memory of the user's is touched: one that never finds anything stands in for it.
    return [await drive(trial.session, agent, None if trial.memory is None else Null()) for trial in trials]
