"""Batch APIs of OpenAI, Anthropic and Google, spoken by a loopback server to the SDKs; the last two need theirs."""

from __future__ import annotations

import asyncio
import json
from datetime import date
from decimal import Decimal
from importlib.util import find_spec
from typing import Any

import pytest

from eirkit.cli import run as command_line
from eirkit.errors import ModelError, UsageError
from eirkit.lacuna.models.factory import make_model
from eirkit.lacuna.models.message import Message
from eirkit.lacuna.models.metered import Metered, make_metered
from eirkit.lacuna.models.model import ModelOptions, Request
from eirkit.lacuna.models.prices import Price
from eirkit.records.runs import RunRecord
from tests.lacuna.batch_server import BatchServer
from tests.lacuna.servers import answers_as
from tests.runs import records

PRICES = '[prices]\n"openai/any" = { input = 100, output = 400, as_of = 2026-01-01 }\n'


def sweep(server: BatchServer, tmp_path: Any, *more: str, model: str = "openai/any") -> list[RunRecord]:
    (prices := tmp_path / "prices.toml").write_text(PRICES.replace("openai/any", model))
    task = ["stepwise-sum", "--n", "6", "--m", "4", "--h", "2", "--seeds", "0:5", "--model", model]
    words = ["lacuna", "run", *task, "--base-url", server.url, "--prices", str(prices), "--set", "connections=2"]
    folder = tmp_path / f"out-{len(more)}"
    assert command_line([*words, "--out", str(folder), "--json", *more]) == 0
    return records(folder)


def test_a_batch_holds_the_next_step_of_every_run_and_costs_half(tmp_path):
    with BatchServer() as server:
        batched = sweep(server, tmp_path, "--set", "batch=0.05")
        assert (server.direct, [len(one) for one in server.batches]) == (0, [5] * 6)
        plain = sweep(server, tmp_path)
        assert server.direct == 30
    assert {run.seed: run.score for run in batched} == {run.seed: run.score for run in plain}
    full = 6 * (100 * 100 + 10 * 400) / 1e6  # dollars a run
    assert [run.usage.cost_usd for run in plain] == pytest.approx([full] * 5)
    assert [run.usage.cost_usd for run in batched] == pytest.approx([full / 2] * 5)


@pytest.mark.skipif(find_spec("anthropic") is None, reason="needs the anthropic SDK; `make session NAME=native`")
def test_message_batches_are_read_like_messages(tmp_path):
    with BatchServer() as server:
        found = sweep(server, tmp_path, "--set", "batch=0.05", "--set", "api=messages", model="anthropic/any")
        assert (server.direct, [len(one) for one in server.batches]) == (0, [5] * 6)
    assert {run.score.answered for run in found} == {6}
    assert [run.usage.cost_usd for run in found] == pytest.approx([6 * 14_000 / 2e6] * 5)


def is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


needs_google = pytest.mark.skipif(
    not is_installed("google.genai"), reason="needs Google's SDK; `make session NAME=native`"
)


@needs_google
def test_jobs_of_google_are_read_like_its_responses(tmp_path):
    body = '{"generationConfig": {"thinkingConfig": {"thinkingBudget": 64}}}'
    with BatchServer() as server:
        chosen = ("--set", "batch=0.05", "--set", "api=gemini", "--set", f"body={body}")
        found = sweep(server, tmp_path, *chosen, model="google/any")
        assert (server.direct, [len(one) for one in server.batches]) == (0, [5] * 6)
    sent = server.batches[0][0]["request"]
    assert sent["model"] == "models/any"
    assert list(sent["generationConfig"]["thinkingConfig"].values()) == [64]  # the SDK has its own spelling of names
    assert {run.score.answered for run in found} == {6}
    assert [run.usage.cost_usd for run in found] == pytest.approx([6 * 14_000 / 2e6] * 5)
    assert {run.usage.reasoning_tokens for run in found} == {12}


@needs_google
def test_jobs_of_google_are_split_by_size_and_adapt_to_refusals(monkeypatch):
    monkeypatch.setattr("eirkit.lacuna.models.batches._LARGEST_INLINE", 1)
    with BatchServer(refuse="seed", busy=1) as server:
        server.completion = lambda body: json.loads(PLAIN)  # type: ignore[method-assign]
        assert ask(server, "google/any", times=2, api="gemini") == "ok ok"
    assert sorted("seed" in one["request"]["generationConfig"] for (one,) in server.batches) == [False] * 2 + [True] * 2


@needs_google
@pytest.mark.parametrize(("ends", "without", "kind"), [("failed", 0, "rejected"), ("completed", 1, "server")])
def test_what_google_does_not_answer_is_a_failure_with_its_kind(ends, without, kind):
    with BatchServer(ends=ends, without=without) as server, pytest.raises(ModelError) as failure:
        ask(server, "google/any", api="gemini")
    assert failure.value.kind == kind


def test_a_busy_server_does_not_lose_a_batch():
    with BatchServer(busy=3) as server:
        server.completion = lambda body: json.loads(PLAIN)  # type: ignore[method-assign]
        assert ask(server) == "ok"
    assert len(server.batches) == 1


def test_a_batch_whose_results_cannot_be_had_may_be_billed():
    """Its state gets a 503 for ever, which says nothing about the batch itself."""
    with BatchServer(busy=1_000_000) as server:
        options = ModelOptions(base_url=server.url, retries=0, extra={"batch": 0.01})
        price = Price(Decimal(100), Decimal(400), Decimal(100), as_of=date(2026, 1, 1))
        model = Metered(make_model("openai/any", options), "openai/any", options, price=price)

        async def once() -> None:
            try:
                await model.reply(Request((Message("user", "hello"),)))
            finally:
                await model.close()

        with pytest.raises(ModelError, match="a batch that was sent"):
            asyncio.run(once())
    assert len(server.batches) == 1
    assert model.ledger.spent_usd == model.tally.unconfirmed_usd > Decimal("0.4")  # 1,024 tokens of output


def ask(server: BatchServer, name: str = "openai/any", times: int = 1, **more: Any) -> str:
    options = ModelOptions(base_url=server.url, retries=0, extra={"batch": 0.02, **more})
    model = make_metered(name, options)
    prompt = "WORKLOAD stepwise-sum n=2 q=10\nRETAINED 0\nSTEP 01 add\nINPUT 3"

    async def once() -> str:
        try:
            replies = (model.reply(Request((Message("user", prompt),))) for _ in range(times))
            return " ".join([one.text for one in await asyncio.gather(*replies)])
        finally:
            await model.close()

    return asyncio.run(once())


def test_a_parameter_that_a_batch_refuses_is_left_out_of_the_next():
    with BatchServer(refuse="temperature") as server:
        server.answer = answers_as("calculator")
        server.completion = lambda body: json.loads(PLAIN)  # type: ignore[method-assign]
        assert ask(server) == "ok"
    assert [["temperature" in one["body"] for one in batch] for batch in server.batches] == [[True], [False]]


PLAIN = json.dumps(
    {"choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "ok"}}]}
)


@pytest.mark.parametrize(("ends", "without", "kind"), [("failed", 0, "rejected"), ("expired", 1, "server")])
def test_what_a_batch_does_not_answer_is_a_failure_with_its_kind(ends, without, kind):
    with BatchServer(ends=ends, without=without) as server:
        server.completion = lambda body: json.loads(PLAIN)  # type: ignore[method-assign]
        with pytest.raises(ModelError) as failure:
            ask(server)
    assert failure.value.kind == kind


@pytest.mark.parametrize(
    ("model", "extra"),
    [
        ("google/any", {"batch": True}),
        ("anthropic/any", {"batch": True}),
        ("openai/any", {"batch": "yes"}),
        ("openai/any", {"batch": -1}),
    ],
)
def test_batches_are_refused_where_there_are_none(model, extra):
    with pytest.raises(UsageError, match="batch"):
        make_model(model, ModelOptions(extra=extra))


def test_no_result_of_a_batch_costs_another():
    """A separator of lines within a string, a result nested without end, a status that is no number."""
    with BatchServer() as server:
        said = "ok\u2028\x85!"
        server.completion = lambda body: json.loads(PLAIN.replace("ok", said))  # type: ignore[method-assign]
        odd = json.dumps({"custom_id": "other", "response": {"status_code": "odd", "body": {}}}).encode()
        server.further = [b"[" * 100_000, odd]
        assert ask(server) == said
