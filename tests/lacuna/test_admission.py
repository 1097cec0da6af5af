"""Runs under a cap: those that have begun finish before others start, so a cap of any size wastes one run at most."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from eirkit.agents.serving.ledger import Ledger
from eirkit.errors import SpendCapReached
from eirkit.runs.budget import SpendingLimits
from eirkit.runs.journal import read_journal
from eirkit.runs.store import RUNS, scan_runs
from eirkit.runs.suite import read_suite
from eirkit.runs.sweep import resume_sweep, start_sweep
from tests.lacuna.servers import Answer, ModelServer, Received, answers_as

PRICES = '[prices]\n"openai/any" = { input = 1000, output = 1000, as_of = 2026-01-01 }\n'
SEEDS = 8


def uneven(received: Received) -> Answer:
    """Answer well and bill 60 to 180 tokens, by the value that is to be stored: runs differ, calls do too."""
    good = answers_as("calculator")(received)
    tokens = 60 + 40 * (sum(map(ord, received.body["messages"][-1]["content"])) % 4)
    body = {**json.loads(good.body), "usage": {"prompt_tokens": tokens - 10, "completion_tokens": 10}}
    return replace(good, body=json.dumps(body).encode())


def suite(url: str, connections: int) -> Any:
    options = {"base_url": url, "max_tokens": 20, "connections": connections}
    tasks = {"workload": "store-recall", "n": 8, "m": 4, "h": 2, "seeds": f"0:{SEEDS}"}
    return read_suite({"model": "openai/any", **tasks, "model_options": options})


def by_attempt(folder: Path) -> tuple[list[Decimal], list[Decimal]]:
    """Return what finished and unfinished attempts have cost."""
    finished = {record["usage"]["attempt"] for record, _ in scan_runs(folder / RUNS)}
    attempts = read_journal(folder).attempts
    costs = {number: sum(one.usd.values(), one.uncertain_usd) for number, one in attempts.items()}
    return [usd for n, usd in costs.items() if n in finished], [usd for n, usd in costs.items() if n not in finished]


@pytest.mark.parametrize("connections", [1, 4, 20])
def test_a_cap_of_any_size_wastes_at_most_one_run(tmp_path, connections):
    (prices := tmp_path / "prices.toml").write_text(PRICES)
    with ModelServer(uneven) as server:
        whole = start_sweep(suite(server.url, connections), tmp_path / "whole", SpendingLimits(prices=prices))
        runs, _ = by_attempt(tmp_path / "whole")
        total, dearest = sum(runs), max(runs)
        assert whole.complete
        assert dearest > Decimal("1.2") * min(runs), "they differ"
        for tenths in range(0, 11, 2):
            folder, cap = tmp_path / f"{tenths}", total * tenths / 10
            server.received.clear()
            found = start_sweep(suite(server.url, connections), folder, SpendingLimits(cap, prices))
            finished, cut = by_attempt(folder)
            assert sum(cut) <= dearest
            assert sum(finished) + sum(cut) == read_journal(folder).spending.total_usd <= cap
            assert found.scored >= (cap - dearest) // dearest - 2, "what is not wasted buys runs"
        assert resume_sweep(folder, funds=SpendingLimits(total * 9)).complete


def test_two_models_share_what_is_left_and_waste_one_run_between_them(tmp_path):
    (prices := tmp_path / "prices.toml").write_text(PRICES.replace("openai/any", "openai/*"))
    with ModelServer(uneven) as server:
        wanted = suite(server.url, 6)
        both = read_suite(
            {**wanted.as_json(), "grid": [{**wanted.as_json()["grid"][0], "model": ["openai/a", "openai/b"]}]}
        )
        start_sweep(both, tmp_path / "out", SpendingLimits(Decimal("6.5"), prices))
    finished, cut = by_attempt(tmp_path / "out")
    assert finished
    assert sum(cut) <= max(finished)


def test_older_runs_finish_before_younger_ones_take_what_is_set_aside():
    async def run() -> list[str]:
        ledger, told = Ledger(Decimal(10)), []

        async def older() -> None:
            async with ledger.admit("older", lambda: Decimal(6)):
                for _ in range(3):
                    hold = await ledger.hold(Decimal(2))
                    await asyncio.sleep(0)
                    ledger.settle(hold, Decimal(2))
                told.append("older")

        async def younger() -> None:
            async with ledger.admit("younger", lambda: Decimal(4)):
                for _ in range(3):  # costs 6, more than was set aside
                    hold = await ledger.hold(Decimal(2))
                    await asyncio.sleep(0)
                    ledger.settle(hold, Decimal(2))
                told.append("younger")

        async with asyncio.TaskGroup() as group:
            group.create_task(older())
            group.create_task(_refused(younger(), told))
        return told

    assert asyncio.run(run()) == ["older", "$10.0000 of $10.0000 is spent and the next call may cost $2.0000"]


async def _refused(work: Any, told: list[str]) -> None:
    with pytest.raises(SpendCapReached) as reached:
        await work
    told.append(str(reached.value).partition(";")[0])


def test_a_run_of_unknown_cost_runs_alone_and_nothing_starts_once_the_cap_is_used_up():
    async def run() -> list[str]:
        ledger, told = Ledger(Decimal(10)), []

        async def one(name: str, reserve: int, usd: int) -> None:
            async with ledger.admit(name, lambda: Decimal(reserve)):
                told.append(f"{name} begins")
                await asyncio.sleep(0)
                hold = await ledger.hold(Decimal(usd))
                ledger.settle(hold, Decimal(usd))
                told.append(f"{name} ends")

        async with asyncio.TaskGroup() as group:
            group.create_task(one("unknown", 0, 1))
            group.create_task(one("known", 2, 1))
        with pytest.raises(SpendCapReached):
            await one("dear", 1, 20)
        with pytest.raises(SpendCapReached):
            await one("another", 1, 1)
        return told

    assert asyncio.run(run()) == ["unknown begins", "unknown ends", "known begins", "known ends", "dear begins"]
