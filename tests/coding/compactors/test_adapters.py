"""Adapters of other projects' compactors, through their own code, where their environments are installed."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from eirkit.cli import run
from eirkit.lacuna.memories.endpoint import ModelEndpoint
from eirkit.lacuna.memories.environments import python_of
from eirkit.lacuna.models.factory import make_model
from eirkit.lacuna.models.model import ModelOptions
from eirkit.vestige.corpus.reader import read_corpus
from eirkit.vestige.tokens import exact_counter
from eirkit_coding.compaction.context import ContextCall, ContextMessage, LineCounter
from eirkit_coding.compaction.cuts import ContextCut, CutPlan
from eirkit_coding.compactors.benchmark import CompactionBenchmark, run_benchmark
from eirkit_coding.compactors.compactor import TokenBudget
from eirkit_coding.compactors.records import read_runs
from eirkit_coding.compactors.trial import CompactorChoice, open_seat
from tests.coding.compactors import by_hand
from tests.coding.compactors.planted_sessions import write_sessions
from tests.lacuna.servers import Answer, ModelServer, document
from tests.processes import completed

ADAPTERS = ("langchain-clear-tool-uses", "inspect-edit", "inspect-trim")
BUDGET = 1500
EXAMPLE = Path(__file__).parents[3] / "examples" / "long_session.traj.json"


@pytest.mark.parametrize("name", ADAPTERS)
def test_an_adapter_gives_messages_that_can_be_measured(name, tmp_path: Path):
    if python_of(name) is None:
        pytest.skip(f"run eirkit doctor --install {name}")
    logs = write_sessions(tmp_path / "logs", ["ada"])
    choices = (CompactorChoice(name), CompactorChoice("clear-tool-results", {"placeholder": "[cleared]"}))
    run_benchmark(CompactionBenchmark((logs,), choices, (BUDGET,), CutPlan.parse("every:5")), tmp_path / "out")
    (record,) = read_runs(tmp_path / "out")
    own = [row for row in record.rows if row.compactor == name]
    assert own
    assert {row.status for row in own} <= {"ok", "over budget"}, own
    if name.startswith("langchain"):  # the same rule, written by somebody else
        ours = [row for row in record.rows if row.compactor != name]
        assert [(row.status, row.used_tokens, row.kept) for row in own] == [
            (row.status, row.used_tokens, row.kept) for row in ours
        ]


def test_an_adapter_that_is_not_installed_says_how_to_install_it(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("EIRKIT_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    write_sessions(tmp_path / "logs", ["ada"])
    words = "vestige compact logs --compactor langchain-clear-tool-uses --at every:5 --context-tokens 600 --out out"
    assert run(words.split(" ")) == 2
    assert "run eirkit doctor --install langchain-clear-tool-uses" in capsys.readouterr().err


SUMMARY = "They read a.py, which has value = 1."
SUMMARIES = {
    "langchain-summary": (by_hand.LANGCHAIN, {"keep": 4}),
    "strands-summary": (by_hand.STRANDS, {"preserve_recent_messages": 4}),
    "adk-compaction": (by_hand.ADK, {"event_retention_size": 4}),
    "openhands-condenser": (by_hand.OPENHANDS, {}),
}


def logged_turns() -> list[tuple[str, str, str, str]]:
    """The turns of a recorded session, as its log has them."""
    (recording,) = read_corpus([EXAMPLE])
    found = []
    for number, turn in enumerate(recording.turns):
        (call,) = turn.calls
        found.append(
            (f"c{number}", turn.text or f"Step {number}", call.arguments["command"], call.output or "(no output)")
        )
    return found


CONTEXTS = {"small": lambda: by_hand.TURNS, "recorded": logged_turns}


def context_of(turns) -> ContextCut:
    """The context that the scripts write out, with the task as its opening."""
    messages = [ContextMessage("system", by_hand.TASK)]
    for key, said, command, output in turns:
        messages.append(ContextMessage("assistant", said, (ContextCall(key, "bash", {"command": command}),)))
        messages.append(ContextMessage("tool", output, call_id=key, tool="bash"))
    return ContextCut("small", 1, tuple(messages), {}, {}, 1000, 0, (), (), (), {})


@pytest.mark.parametrize("context", CONTEXTS)
def test_a_vendors_window_is_what_its_own_api_gives_by_hand(context, tmp_path):
    name = "strands-sliding-window"
    if (python := python_of(name)) is None:
        pytest.skip(f"run eirkit doctor --install {name}")
    turns = CONTEXTS[context]()
    seat = open_seat(CompactorChoice(name, {"window_size": 4}))
    try:
        messages = seat.ask(context_of(turns), TokenBudget(800, LineCounter(exact_counter())))
    finally:
        seat.close()
    (tmp_path / "turns.json").write_text(json.dumps(turns))
    words = [python, "-c", by_hand.STRANDS_WINDOW, "http://127.0.0.1:9/v1", tmp_path / "turns.json"]
    printed = completed(words, check=True).stdout
    ours = [[one.role, one.text] for one in messages if one.role != "system"]
    assert ours == json.loads(printed.splitlines()[-1])
    assert len(ours) == 4 < 2 * len(turns)


@pytest.mark.parametrize("context", CONTEXTS)
@pytest.mark.parametrize("name", SUMMARIES)
def test_a_vendors_summary_is_what_its_own_api_gives_by_hand(name, context, monkeypatch, tmp_path):
    if (python := python_of(name)) is None:
        pytest.skip(f"run eirkit doctor --install {name}")
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    turns = CONTEXTS[context]()
    (tmp_path / "turns.json").write_text(json.dumps(turns))
    script, settings = SUMMARIES[name]
    spoken = Answer(json.dumps(document({"role": "assistant", "content": SUMMARY})).encode())
    with ModelServer([spoken]) as server:
        choice = CompactorChoice(name, {"model": "openai/m", "base_url": server.url, **settings})
        seat = open_seat(choice)
        try:
            messages = seat.ask(context_of(turns), TokenBudget(800, LineCounter(exact_counter())))
        finally:
            seat.close()
        printed = asyncio.run(run_by_hand(python, script, server.url, tmp_path / "turns.json"))
    ours = [[one.role, one.text] for one in messages if one.role != "system"]
    assert ours == json.loads(printed.splitlines()[-1])
    assert any(SUMMARY in text for _, text in ours)
    assert (seat.effort.usage.calls, seat.effort.usage.input_tokens) == (1, server_tokens(spoken))
    asked = [one.body["messages"] for one in server.received]
    assert asked[0] == asked[1], "the vendor asks the model the same"


async def run_by_hand(python: Path, script: str, server: str, turns: Path) -> str:
    """Return what a script prints; it asks the model at an address that streams, as the vendors' clients want."""
    endpoint = ModelEndpoint(make_model("openai/m", ModelOptions(base_url=server)), lambda texts: [])
    address = await endpoint.start()
    try:
        pipes = {"stdout": asyncio.subprocess.PIPE, "stderr": asyncio.subprocess.PIPE}
        process = await asyncio.create_subprocess_exec(python, "-c", script, address, turns, **pipes)
        printed, said = await process.communicate()
    finally:
        await endpoint.stop()
    assert process.returncode == 0, said.decode()[-2000:]
    return printed.decode()


def server_tokens(answer: Answer) -> int:
    return int(json.loads(answer.body)["usage"]["prompt_tokens"])


def test_a_vendors_summary_needs_a_model_and_says_so(tmp_path, monkeypatch, capsys):
    if python_of("langchain-summary") is None:
        pytest.skip("run eirkit doctor --install langchain-summary")
    monkeypatch.chdir(tmp_path)
    write_sessions(tmp_path / "logs", ["ada"])
    words = "vestige compact logs --compactor langchain-summary --at every:5 --context-tokens 600 --out out"
    assert run(words.split(" ")) == 2
    assert "give --set langchain-summary.model=PROVIDER/NAME" in capsys.readouterr().err
