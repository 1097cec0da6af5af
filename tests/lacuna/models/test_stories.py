"""Whole sweeps with models behind a server, in this process and from a recording: the harness sees no difference."""

from __future__ import annotations

import asyncio
import logging
from importlib.util import find_spec
from threading import Thread

import pytest

from eirkit.lacuna.models.factory import make_model
from eirkit.lacuna.models.local import PACKAGE
from eirkit.lacuna.models.model import ModelOptions
from eirkit.lacuna.runs.budget import SpendingLimits
from eirkit.lacuna.runs.journal import read_journal
from eirkit.lacuna.runs.suite import read_suite
from eirkit.lacuna.runs.sweep import resume_sweep, start_sweep
from eirkit.records.events import ModelExchange
from tests.lacuna.prompt_reading import read_body
from tests.lacuna.servers import HOSTILE_TEXT, ModelServer, fails, says
from tests.runs import events, failures, records

CANARY = "sk-canary-5f2e8b7c9d1a4e6f"
GRID = {"workload": "stepwise-sum", "n": 8, "m": 4, "h": [4, 2], "seeds": "0:3"}
RUNS, STEPS = 6, 48
needs_sdk = pytest.mark.skipif(find_spec("openai") is None, reason="the extra `openai` is not installed")


@pytest.fixture(autouse=True)
def _key(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


def suite(model, **more):
    options = more.pop("model_options", {})
    return read_suite({**GRID, "model": model, "model_options": {"retries": 2, **options}, **more})


def sweep(folder, model, funds=None, **more):
    start_sweep(suite(model, **more), folder, funds)
    return outcome(folder)


def outcome(folder):
    """Return what was scored, by task and access: everything in it follows from the answers."""
    return {(run.setting.access.h, run.seed): (run.score, run.faults) for run in records(folder)}


def served(agent):
    """Return a script in which a reference agent sits behind the server."""
    model = make_model(agent, ModelOptions())

    def script(received):
        return says(asyncio.run_coroutine_threadsafe(model.reply(read_body(received.body)), loop).result().text)

    return script


loop = asyncio.new_event_loop()


@pytest.fixture(scope="module", autouse=True)
def _thinking():
    """A loop in a thread of its own: a server's script cannot wait inside the server's own loop."""
    thread = Thread(target=loop.run_forever, daemon=True)
    thread.start()
    yield
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


@needs_sdk
def test_an_agent_behind_a_server_scores_like_the_agent_itself(tmp_path):
    with ModelServer(served("reference/calculator")) as server:
        behind = sweep(tmp_path / "a", "openai/m", model_options={"base_url": server.url})
    assert behind == sweep(tmp_path / "b", "reference/calculator")
    assert len(server.received) == STEPS


@needs_sdk
def test_a_recorded_sweep_is_replayed_without_its_model(tmp_path):
    with ModelServer(served("reference/guesser")) as server:
        recorded = sweep(tmp_path / "a", "openai/m", model_options={"base_url": server.url})
    assert len(recorded) == RUNS
    assert sweep(tmp_path / "b", f"replay/{tmp_path / 'a'}") == recorded
    longer = suite(f"replay/{tmp_path / 'a'}", seeds="0:4")
    start_sweep(longer, tmp_path / "c")
    assert len(outcome(tmp_path / "c")) < 2 * 4  # the fourth seed was never recorded, and is lost rather than wrong
    assert {failure.kind for failure in failures(tmp_path / "c")} == {"unrecorded"}


@needs_sdk
def test_a_moody_server_changes_nothing_but_the_number_of_calls(tmp_path):
    calm = served("reference/calculator")
    count = iter(range(10**9))

    def script(received):
        return fails(503, headers=[("retry-after-ms", "1")]) if next(count) % 3 == 0 else calm(received)

    with ModelServer(script) as server:
        # One at a time, or one request could meet the bad mood of several.
        moody = sweep(tmp_path / "a", "openai/m", model_options={"base_url": server.url, "connections": 1})
    assert moody == sweep(tmp_path / "b", "reference/calculator")
    assert len(server.received) > STEPS


@needs_sdk
@pytest.mark.parametrize("text", [HOSTILE_TEXT, "", "ANSWER 1 1\n" * 50_000, "\ud800ANSWER"])
def test_hostile_words_are_wrong_answers_and_nothing_worse(tmp_path, text):
    with ModelServer([says(text)]) as server:
        scored = sweep(tmp_path, "openai/m", model_options={"base_url": server.url})
    assert len(scored) == RUNS


@needs_sdk
def test_the_cap_stops_a_sweep_and_a_higher_one_finishes_it(tmp_path):
    prices = tmp_path / "prices.toml"
    prices.write_text('[prices]\n"openai/*" = { input = 10, output = 10, as_of = 2026-11-01 }\n')
    with ModelServer(served("reference/calculator")) as server:
        asked = suite("openai/m", model_options={"base_url": server.url, "connections": 1})
        start_sweep(asked, tmp_path / "a", SpendingLimits(cap_usd=0.05, prices=prices))
        spent = read_journal(tmp_path / "a").spending.total_usd
        first = len(outcome(tmp_path / "a"))
        assert 0 < first < RUNS
        assert spent <= 0.05
        resume_sweep(tmp_path / "a", None, SpendingLimits(cap_usd=5.0, prices=prices))
    assert outcome(tmp_path / "a") == sweep(tmp_path / "b", "reference/calculator")


@needs_sdk
def test_a_second_sweep_from_the_cache_asks_nobody(tmp_path):
    funds = SpendingLimits(cache=tmp_path / "replies.sqlite")
    with ModelServer(served("reference/calculator")) as server:
        options = {"base_url": server.url}
        first = sweep(tmp_path / "a", "openai/m", funds, model_options=options)
        asked = len(server.received)
        assert sweep(tmp_path / "b", "openai/m", funds, model_options=options) == first
        assert len(server.received) == asked <= STEPS


@needs_sdk
@pytest.mark.parametrize("status", [200, 400, 401, 429, 500])
def test_a_key_appears_in_no_file_of_a_sweep(tmp_path, status, caplog, capfd):
    caplog.set_level(logging.DEBUG)

    def script(received):
        echoed = f"your key is {received.headers['authorization']}"
        quick = [("retry-after-ms", "1")]
        return says(f"ANSWER 1 1 {echoed}") if status == 200 else fails(status, echoed, headers=quick, code=echoed)

    with ModelServer(script) as server:
        sweep(tmp_path / "a", "openai/m", SpendingLimits(cache=tmp_path / "c"), model_options={"base_url": server.url})
    assert CANARY in server.received[0].headers["authorization"]  # or the test proves nothing
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) >= 3
    assert [path.name for path in files if CANARY.encode() in path.read_bytes()] == []
    assert CANARY not in caplog.text + "".join(capfd.readouterr())


@needs_sdk
def test_an_unreachable_server_loses_runs_and_scores_none(tmp_path):
    sweep(tmp_path, "openai/m", model_options={"base_url": "http://127.0.0.1:9/v1"}, seeds="0:1")
    assert {failure.kind for failure in failures(tmp_path)} == {"unreachable"}
    assert outcome(tmp_path) == {}


@pytest.mark.skipif(
    find_spec("xllamacpp") is None or find_spec(PACKAGE) is None,
    reason="no local model here; `make session NAME=local`",
)
def test_the_local_model_goes_through_a_whole_sweep_twice_alike(tmp_path):
    # Whatever it answers, it must be scored, and a second time the same: no network, no clock, no chance.
    grid = {"workload": "store-recall", "n": 2, "m": 1, "h": 1, "seeds": "0:2"}
    options = {"max_tokens": 16}
    first, second = (sweep(tmp_path / name, "local/smollm2", model_options=options, **grid) for name in "ab")
    assert first == second
    assert len(first) == 2
    assert {event.cost_usd for event in events(tmp_path / "a") if isinstance(event, ModelExchange)} == {0.0}
