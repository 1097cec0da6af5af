"""Memory systems behind their own endpoint: what they asked is counted, and what failed there fails the run by name."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from eirkit.errors import ModelError, PluginError, SpendCapReached, StoreError, UnknownNameError, UsageError
from eirkit.lacuna.agents.driver import consult
from eirkit.lacuna.agents.reference import Reference
from eirkit.lacuna.memories.embeddings import embed_ngrams
from eirkit.lacuna.memories.endpoint import MeteredMemory, ModelEndpoint
from eirkit.lacuna.memories.factory import check_plan, make_memory
from eirkit.lacuna.memories.memory import Item, MemoryCall, MemoryUsage, memories
from eirkit.lacuna.memories.plan import MemoryPlan
from eirkit.lacuna.models.model import ModelOptions, Reply, Request, Usage
from eirkit.lacuna.runs.suite import read_suite
from eirkit.lacuna.runs.sweep import start_sweep
from eirkit.testing import check_memory
from tests.lacuna.asking import Asking, Careless, OnlyModel, name_of
from tests.lacuna.servers import ModelServer, Received, answers_as, fails, says
from tests.runs import failures

HERE = Path(__file__)


class Model(Reference):
    """Says the same to everybody, or raises."""

    def __init__(self, error: Exception | None = None) -> None:
        super().__init__(ModelOptions())
        self.error = error

    async def reply(self, request: Request) -> Reply:
        if self.error is not None:
            raise self.error
        return Reply("noted", usage=Usage(10, 3, cost_usd=0.25))


class Failing:
    """A factory of models that are not well, for suites."""

    def __call__(self, name: str, options: ModelOptions) -> Model:
        errors = {"busy": ModelError("the server is busy", "rate-limit"), "odd": ValueError("odd"), "well": None}
        return Model(errors[name])


failing = Failing()


def thinking(error: Exception | None = None, bears: bool = False) -> MeteredMemory:
    return MeteredMemory(
        ModelEndpoint(Model(error), embed_ngrams), lambda address: Asking(endpoint=address, bears=bears)
    )


def use(memory: MeteredMemory, *texts: str) -> tuple[MemoryUsage, Sequence[str]]:
    async def run() -> tuple[MemoryUsage, Sequence[str]]:
        await memory.setup()
        try:
            await memory.reset("one")
            for number, text in enumerate(texts):
                await memory.write(Item(f"A_{number}", text))
            await memory.flush()
            return await memory.usage(), await memory.search("A_1", 5)
        finally:
            await memory.teardown()

    return asyncio.run(run())


def test_it_conforms():
    assert len(check_memory(thinking, seconds=20, records=64).held) == 18


def test_what_the_system_asked_is_its_own_column():
    used, found = use(thinking(), "A_0 = 5", "A_1 = 6")
    assert found == ["A_1 = 6"]
    assert (used.records, used.model_calls, used.input_tokens, used.output_tokens, used.cost_usd) == (2, 2, 20, 6, 0.5)


def test_every_run_begins_with_nothing_counted():
    async def run() -> list[int]:
        memory, counts = thinking(), []
        await memory.setup()
        try:
            for scope in ("one", "two"):
                await memory.reset(scope)
                await memory.write(Item("A_1", "A_1 = 5"))
                counts.append((await memory.usage()).model_calls)
        finally:
            await memory.teardown()
        return counts

    assert asyncio.run(run()) == [1, 1]


@pytest.mark.parametrize("bears", [False, True])
def test_a_model_that_fails_is_the_reason_even_where_the_system_bears_it(bears):
    with pytest.raises(ModelError, match="the model that the memory system asks: busy") as caught:
        use(thinking(ModelError("busy", "rate-limit"), bears), "A_0 = 5")
    assert caught.value.kind == "rate-limit"


@pytest.mark.parametrize("error", [SpendCapReached("enough"), UsageError("no key; set one")])
def test_what_the_user_must_decide_reaches_the_user(error):
    with pytest.raises(type(error), match=str(error)):
        use(thinking(error, bears=True), "A_0 = 5")


def test_an_exception_of_a_models_own_is_put_down_to_the_model():
    async def run() -> None:
        memory = thinking(ValueError("odd"), bears=True)
        await memory.setup()
        try:
            await memory.reset("one")
            call = MemoryCall("write", "A_1 = 5", (1,))
            await consult(memory, 1, call, {1: (5,)}, lambda: 0.0)
        finally:
            await memory.teardown()

    with pytest.raises(PluginError, match="ValueError: odd") as caught:
        asyncio.run(run())
    assert (caught.value.side, caught.value.call) == ("model", "reply")


def test_a_failure_is_told_once_and_the_next_run_starts_afresh():
    async def run() -> list[int]:
        memory = thinking(ModelError("busy", "server"), bears=True)
        model = memory.endpoint.model
        await memory.setup()
        try:
            await memory.reset("one")
            with pytest.raises(ModelError):
                await memory.write(Item("A_1", "A_1 = 5"))
            model.error = None  # type: ignore[attr-defined]
            await memory.reset("two")
            await memory.write(Item("A_1", "A_1 = 5"))
            return [(await memory.usage()).model_calls]
        finally:
            await memory.teardown()

    assert asyncio.run(run()) == [1]


def test_before_setup_it_says_so():
    with pytest.raises(StoreError, match="not set up; call setup first"):
        asyncio.run(thinking().write(Item("A_1", "A_1 = 5")))


def test_the_endpoint_is_stopped_although_the_system_cannot_be():
    class Stubborn(Asking):
        async def teardown(self) -> None:
            raise OSError("will not go")

    async def run() -> Any:
        memory = MeteredMemory(ModelEndpoint(Model(), embed_ngrams), lambda address: Stubborn(endpoint=address))
        await memory.setup()
        with pytest.raises(OSError, match="will not go"):
            await memory.teardown()
        return memory.endpoint._server

    assert asyncio.run(run()) is None


# Through the harness: settings, and a run's failure by its kind.


def test_the_model_and_the_embedding_are_settings_where_they_are_asked_for():
    check_plan(MemoryPlan(name_of(Asking), {"embedding": "ngrams", "model": "run"}))
    check_plan(MemoryPlan(name_of(OnlyModel), {"model": "run"}))
    with pytest.raises(UnknownNameError, match=r"no setting of memory .* named 'embedding'"):
        check_plan(MemoryPlan(name_of(OnlyModel), {"embedding": "ngrams"}))
    with pytest.raises(UnknownNameError, match="'endpoint'"):
        check_plan(MemoryPlan(name_of(Asking), {"endpoint": "http://127.0.0.1:1", "embedding": "ngrams"}))
    assert "langmem" in memories.names()
    assert isinstance(make_memory(MemoryPlan(name_of(Asking), {"embedding": "ngrams"})), MeteredMemory)


@pytest.mark.parametrize(("model", "kind"), [("busy", "rate-limit"), ("odd", "model"), ("well", None)])
@pytest.mark.parametrize("memory", [Asking, Careless])
def test_a_run_whose_memory_lost_its_model_is_a_failure_of_that_kind_and_no_score(tmp_path, memory, model, kind):
    suite = {
        "workload": ["store-recall"],
        "n": [8],
        "m": [4],
        "h": [1],
        "seeds": "0:1",
        "model": ["reference/recoverer"],
        "memory": [name_of(memory)],
        "memory_options": {name_of(memory): {"model": f"{HERE}:failing/{model}", "embedding": "ngrams"}},
    }
    summary = start_sweep(read_suite(suite), tmp_path / "run")
    row = summary.rows[0]
    if kind is None:
        asked = row.memory_system
        assert (row.scored, row.accuracy) == (1, 1.0)
        assert asked.model_calls == asked.writes > 0  # it asks once for each
        assert asked.input_tokens == 10 * asked.model_calls
    else:
        assert (row.scored, row.attempted) == (0, 1)
        assert [failure.kind for failure in failures(tmp_path / "run")] == [kind]


@pytest.mark.parametrize("named", ["run", "openai/another", "anthropic/another"])
def test_no_call_of_a_memorys_own_model_goes_to_another_server(tmp_path, monkeypatch, named):
    """The second server is the proxy of this process, so that it sees every call that leaves the machine."""
    for variable in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(variable, "sk-test-0123456789")
    agent = answers_as("recoverer")

    def script(received: Received):
        from_memory = len(received.body["messages"]) == 1  # the memory asks with the record alone
        return says("noted") if from_memory else agent(received)

    with ModelServer(script) as given, ModelServer([fails(502, "no way out")]) as elsewhere:
        for variable in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"):
            monkeypatch.setenv(variable, elsewhere.url.removesuffix("/v1"))
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        suite = {
            "workload": ["store-recall"],
            "n": [8],
            "m": [4],
            "h": [1],
            "seeds": "0:1",
            "model": ["openai/any"],
            "memory": [name_of(Asking)],
            "memory_options": {name_of(Asking): {"model": named, "embedding": "ngrams"}},
            "model_options": {"base_url": given.url, "retries": 0, "temperature": 0.25, "max_tokens": 321},
        }
        summary = start_sweep(read_suite(suite), tmp_path / "run")
    (row,) = summary.rows
    assert elsewhere.received == []
    assert row.scored == 1, summary.failures
    assert len(given.received) == row.calls + row.memory_system.model_calls
    assert row.memory_system.model_calls > 0
    sent = {(r.body["model"], r.body["temperature"], r.body["max_tokens"]) for r in given.received}
    name = "any" if named == "run" else "another"
    assert sent == {("any", 0.25, 321), (name, 0.25, 321)}


def test_retries_reach_a_memorys_own_model(tmp_path):
    tried: list[int] = []

    def script(received: Received):
        tried.append(1)
        return fails(500, "busy", headers=(("Retry-After-Ms", "1"),))

    with ModelServer(script) as server:
        suite = {
            "workload": ["store-recall"],
            "n": [4],
            "m": [2],
            "h": [1],
            "seeds": "0:1",
            "model": ["reference/recoverer"],
            "memory": [name_of(Asking)],
            "memory_options": {name_of(Asking): {"model": "openai/any", "embedding": "ngrams"}},
            "model_options": {"base_url": server.url, "retries": 2},
        }
        summary = start_sweep(read_suite(suite), tmp_path / "run")
    assert (summary.scored, len(tried)) == (0, 3)
