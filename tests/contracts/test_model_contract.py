"""What every model provider must do, whoever wrote it: one suite over the whole registry.

A provider that needs something to talk to says in `SUBJECTS` how a test gives it that; see docs/add-a-model.md.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from eirkit.agents.exchange import read_reply_record, reply_record
from eirkit.agents.model import Message, Model, ModelOptions, Reply, Request, models
from eirkit.agents.models.reference import AGENTS
from eirkit.agents.prompt import render
from eirkit.agents.serving.model_factory import make_model, preflight
from eirkit.agents.telemetry import SCHEMA, Exchange, Trace, event_records
from eirkit.errors import UsageError
from eirkit.records import append_records, encode
from eirkit.tasks.generation import generate, prepare
from eirkit.tasks.task import TaskSpec
from eirkit.tasks.view import Visible, publish
from tests.lacuna.servers import GOOD, ModelServer

CANARY = "sk-canary-5f2e8b7c9d1a4e6f"
KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "LOOPBACK_API_KEY")
# Inspect's own code and that of its dependencies warns about things that are not ours to mend.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")


def prompt() -> Request:
    """Return the first request of a real task."""
    spec = TaskSpec("stepwise-sum", n=4, m=2)
    task = publish(generate(spec), prepare(spec))
    return Request(render(Visible(task, task.steps[0], answered=False, records=())), max_tokens=12)


PROMPT = prompt()


def loopback(name: str) -> Callable[[Path], tuple[str, AbstractContextManager[ModelServer]]]:
    return lambda folder: (name, ModelServer([GOOD]))


def recorded(folder: Path) -> tuple[str, AbstractContextManager[None]]:
    trace = Trace([Exchange(1, PROMPT, Reply("ANSWER 1 0042"))])
    append_records(folder / "events.jsonl", SCHEMA, event_records(trace, "run"))
    return f"replay/{folder}", nullcontext()


# A model string and what it talks to, given a folder to write to.
SUBJECTS = {
    "anthropic": loopback("anthropic/m"),
    "bundled": lambda folder: ("bundled/lacuna-tiny", nullcontext()),
    "google": loopback("google/m"),
    "inspect": loopback("inspect/openai-api/loopback/m"),
    "local": lambda folder: ("local/smollm2", nullcontext()),
    "openai": loopback("openai/m"),
    "replay": recorded,
    "scripted": lambda folder: ("scripted/extractor", nullcontext()),
}


# One provider, many agents: each of them is held to the contract.
REFERENCES = [f"reference/{name}" for name in AGENTS]


@dataclass(frozen=True, slots=True)
class Subject:
    """One provider, ready to be asked."""

    string: str
    options: ModelOptions

    def make(self) -> Model:
        return make_model(self.string, self.options)

    def ask(self, *requests: Request) -> list[Reply]:
        async def run() -> list[Reply]:
            model = self.make()
            try:
                return list(await asyncio.gather(*map(model.reply, requests)))
            finally:
                await model.close()

        return asyncio.run(run())


# Agents that come by themselves cannot be asked; tests/bridges holds their records to those of everybody else.
ASKED = [name for name in models.names() if name not in ("agent", "reference")]


@pytest.fixture(params=[*ASKED, *REFERENCES])
def subject(request, tmp_path, monkeypatch):
    if request.param not in SUBJECTS and request.param not in REFERENCES:
        pytest.fail(f"say in SUBJECTS how a test can reach {request.param!r}")
    for name in KEYS:
        monkeypatch.setenv(name, CANARY)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    string, partner = SUBJECTS.get(request.param, lambda _: (request.param, nullcontext()))(tmp_path)
    with partner as server:
        url = server.url if isinstance(server, ModelServer) else None
        made = Subject(string, ModelOptions(base_url=url, timeout_seconds=30))
        try:
            preflight(made.make())
        except UsageError as absent:
            if "pip install" not in str(absent):
                raise
            pytest.skip(str(absent))
        yield made


def test_a_reply_is_text_calls_and_counts(subject):
    (reply,) = subject.ask(PROMPT)
    assert isinstance(reply, Reply)
    assert isinstance(reply.text, str)
    assert isinstance(reply.calls, tuple)
    assert min(reply.usage.input_tokens, reply.usage.output_tokens, reply.usage.cached_tokens) >= 0
    assert reply.usage.cost_usd is None or reply.usage.cost_usd >= 0
    line = encode("test/1", reply_record(reply))
    assert read_reply_record(json.loads(line)) == reply


def test_the_same_question_gets_the_same_answer(subject):
    first, second = subject.ask(PROMPT, PROMPT)
    assert (first.text, first.calls) == (second.text, second.calls)
    assert subject.ask(PROMPT)[0].text == first.text


def test_several_may_ask_at_once(subject):
    assert len({reply.text for reply in subject.ask(*[PROMPT] * 6)}) == 1


def test_a_request_is_not_changed(subject):
    before = replace(PROMPT)
    subject.ask(PROMPT)
    assert before == PROMPT


def test_settings_are_plain_stable_and_without_keys(subject):
    model = subject.make()
    settings = model.settings()
    assert json.loads(json.dumps(settings, allow_nan=False)) == model.settings() == subject.make().settings()
    assert CANARY not in repr(settings)


def test_closing_is_harmless_and_not_the_end(subject):
    async def run() -> list[str]:
        model = subject.make()
        await model.close()
        said = [(await model.reply(PROMPT)).text]
        await model.close()
        await model.close()
        said.append((await model.reply(PROMPT)).text)
        await model.close()
        return said

    first, second = asyncio.run(run())
    assert first == second


def test_making_a_model_opens_nothing_and_needs_no_key(subject, monkeypatch):
    for name in KEYS:
        monkeypatch.delenv(name)
    seen: list[str] = []
    watching = True

    def watch(event: str, arguments: object) -> None:
        if watching and event in ("socket.connect", "socket.bind", "subprocess.Popen"):
            seen.append(event)

    sys.addaudithook(watch)  # cannot be removed again, hence `watching`
    model = subject.make()
    model.settings()
    watching = False
    assert seen == []


def test_an_odd_conversation_does_not_stop_it(subject):
    if subject.string.startswith(("reference/", "replay/")):
        pytest.skip("answers the prompts of a task, and no other")
    odd = [
        Request((Message("user", ""),), max_tokens=4),
        Request((Message("user", "lone \ud800 surrogate \x00 \u202e"),), max_tokens=4),
        Request((Message("user", "a"), Message("assistant", "b"), Message("user", "c")), max_tokens=1),
    ]
    assert all(isinstance(reply, Reply) for reply in subject.ask(*odd))
