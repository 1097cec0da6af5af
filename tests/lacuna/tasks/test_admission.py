"""Runs under a cap: those that have begun finish before others start, so a cap of any size wastes one run at most."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from eirkit.errors import SpendCapReached
from eirkit.lacuna.models.ledger import Ledger
from eirkit.lacuna.runs.budget import SpendingLimits
from eirkit.lacuna.runs.journal import read_journal
from eirkit.lacuna.runs.suite import read_suite
from eirkit.lacuna.runs.sweep import resume_sweep, start_sweep
from tests.lacuna.servers import Answer, ModelServer, Received, answers_as
from tests.runs import records

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
    finished = {record.usage.attempt for record in records(folder)}
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


def _limit(received: Received) -> int:
    return int(received.body.get("max_completion_tokens") or received.body["max_tokens"])


def billed(tally: list[Decimal], received: Received) -> Answer:
    """Answer well with 5 to 65 tokens, or as many as allowed, count a token for four characters, and keep the bill."""
    good = answers_as("calculator")(received)
    messages, limit = received.body["messages"], _limit(received)
    wanted = 5 + 30 * (sum(map(ord, messages[-1]["content"])) % 3)
    tokens = sum(len(one["content"]) for one in messages) // 4 + 8, min(wanted, limit)
    body = {**json.loads(good.body), "usage": {"prompt_tokens": tokens[0], "completion_tokens": tokens[1]}}
    if wanted > limit:
        body["choices"][0] = {**body["choices"][0], "finish_reason": "length"}
    tally.append((tokens[0] * 100 + tokens[1] * 400) / Decimal(1_000_000))
    return replace(good, body=json.dumps(body).encode())


@pytest.mark.parametrize("connections", [1, 4])
def test_at_the_usual_limit_on_tokens_no_more_than_one_run_stays_unbought(tmp_path, connections):
    """A call may cost more than a whole run at most, so that the last of a cap buys calls with a lower limit."""
    (prices := tmp_path / "prices.toml").write_text(PRICES.replace("1000,", "100,", 1).replace("1000,", "400,"))
    tasks = {"workload": "stepwise-sum", "n": 12, "m": 4, "h": 4, "seeds": "0:4", "model": "openai/any"}
    tally: list[Decimal] = []
    with ModelServer(lambda received: billed(tally, received)) as server:
        wanted = read_suite({**tasks, "model_options": {"base_url": server.url, "connections": connections}})
        start_sweep(wanted, tmp_path / "whole", SpendingLimits(prices=prices))
        runs, _ = by_attempt(tmp_path / "whole")
        total, dearest = sum(runs), max(runs)
        assert dearest < Decimal(400 * 1024) / 1_000_000, "less than a reply of 1,024 tokens"
        for percent in (9, 23, 30, 52, 61, 77, 99):
            tally.clear()
            cap, folder = total * percent / 100, tmp_path / f"{percent}"
            start_sweep(wanted, folder, SpendingLimits(cap, prices))
            finished, _ = by_attempt(folder)
            assert sum(tally) == read_journal(folder).spending.total_usd <= cap
            assert cap - sum(finished) <= dearest
            right = {record.run: record.score for record in records(tmp_path / "whole")}
            assert all(record.score == right[record.run] for record in records(folder))


def test_a_reply_that_the_rest_of_a_cap_cuts_is_no_answer(tmp_path):
    """The first reply is longer than what the cap buys: it is paid for, and neither an answer nor a fault of a step."""
    (prices := tmp_path / "prices.toml").write_text(PRICES.replace("1000,", "100,", 1).replace("1000,", "400,"))
    tasks = {"workload": "stepwise-sum", "n": 12, "m": 4, "h": 4, "seeds": "0", "model": "openai/any"}
    tally: list[Decimal] = []

    def long(received: Received) -> Answer:
        answer = billed(tally, received)
        body = json.loads(answer.body)
        limit = _limit(received)
        body["usage"]["completion_tokens"], body["choices"][0]["finish_reason"] = limit, "length"
        tally[-1] = (body["usage"]["prompt_tokens"] * 100 + limit * 400) / Decimal(1_000_000)
        return replace(answer, body=json.dumps(body).encode())

    with ModelServer(long) as server:
        wanted = read_suite({**tasks, "model_options": {"base_url": server.url}})
        found = start_sweep(wanted, tmp_path / "out", SpendingLimits(Decimal("0.3"), prices))
    assert (len(tally), found.scored, found.failures) == (1, 0, ())
    assert 0 < sum(tally) == read_journal(tmp_path / "out").spending.total_usd <= Decimal("0.3")
    assert "raise the cap" in found.stopped[0]


def test_two_models_share_what_is_left_and_waste_one_run_between_them(tmp_path):
    (prices := tmp_path / "prices.toml").write_text(PRICES.replace("openai/any", "openai/*"))
    with ModelServer(uneven) as server:
        wanted = suite(server.url, 6)
        both = read_suite(
            {**wanted.settings, "grid": [{**wanted.settings["grid"][0], "model": ["openai/a", "openai/b"]}]}
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
