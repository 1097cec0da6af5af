"""Every model provider of the registry conforms to `check_model`; what is wrong is found out.

A provider that needs something to talk to says in `SUBJECTS` how a test gives it that; see docs/extend.md.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import socket
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import pytest

from eirkit.errors import UsageError
from eirkit.lacuna.agents.reference import AGENTS
from eirkit.lacuna.agents.telemetry import Exchange, Trace, events_of
from eirkit.lacuna.models.factory import make_model, preflight
from eirkit.lacuna.models.model import ModelOptions, Reply, Request, Usage, models
from eirkit.records.events import encode_events, pack
from eirkit.records.export import EVENTS
from eirkit.testing import check_model
from eirkit.testing.models import first_request
from tests.lacuna.servers import GOOD, ModelServer

CANARY = "sk-canary-5f2e8b7c9d1a4e6f"
KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "LOOPBACK_API_KEY")
# Inspect's own code and that of its dependencies warns about things that are not ours to mend.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")


PROMPT = first_request()


def loopback(name: str) -> Callable[[Path], tuple[str, AbstractContextManager[ModelServer]]]:
    return lambda folder: (name, ModelServer([GOOD]))


def recorded(folder: Path) -> tuple[str, AbstractContextManager[None]]:
    trace = Trace([Exchange(1, PROMPT, Reply("ANSWER 1 0042"))])
    (folder / EVENTS).write_bytes(pack(encode_events(events_of(trace))))
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


# Agents that come by themselves cannot be asked; tests/bridges holds their records to those of everybody else.
ASKED = [name for name in models.names() if name not in ("agent", "reference")]


@pytest.fixture(params=[*ASKED, *REFERENCES])
def subject(request, tmp_path, monkeypatch):
    """Return a model string and the options to reach it with."""
    if request.param not in SUBJECTS and request.param not in REFERENCES:
        pytest.fail(f"say in SUBJECTS how a test can reach {request.param!r}")
    for name in KEYS:
        monkeypatch.setenv(name, CANARY)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    string, partner = SUBJECTS.get(request.param, lambda _: (request.param, nullcontext()))(tmp_path)
    with partner as server:
        options = ModelOptions(base_url=server.url if isinstance(server, ModelServer) else None, timeout_seconds=30)
        try:
            preflight(make_model(string, options))
        except UsageError as absent:
            if "pip install" not in str(absent):
                raise
            pytest.skip(str(absent))
        yield string, options


def test_a_provider_conforms(subject):
    string, options = subject
    result = check_model(string, options, any_prompt=not string.startswith(("reference/", "replay/")))
    assert len(result.held) == 10


def test_making_a_model_needs_no_key(subject, monkeypatch):
    for name in KEYS:
        monkeypatch.delenv(name)
    assert isinstance(make_model(*subject).settings(), dict)


class Sound:
    """Answers the same to everything."""

    def __init__(self, name: str, options: ModelOptions) -> None:
        self.options = options

    async def reply(self, request: Request) -> Reply:
        return Reply("ANSWER 1 0042")

    async def close(self) -> None:
        pass

    def settings(self) -> Mapping[str, Any]:
        return {"model": "sound"}


class Speechless(Sound):
    async def reply(self, request: Request) -> Reply:
        return "ANSWER 1 0042"  # type: ignore[return-value]


class Moody(Sound):
    told = itertools.count()

    async def reply(self, request: Request) -> Reply:
        return Reply(f"ANSWER 1 {next(self.told)}")


class Owing(Sound):
    async def reply(self, request: Request) -> Reply:
        return Reply("ANSWER 1 0042", usage=Usage(input_tokens=-1))


class Unreachable(Sound):
    async def reply(self, request: Request) -> Reply:
        if self.options.base_url:
            raise ConnectionRefusedError("nobody is there")
        return await super().reply(request)


class Indiscreet(Sound):
    def settings(self) -> Mapping[str, Any]:
        return {"key": os.environ["OPENAI_API_KEY"]}


class Hasty(Sound):
    def __init__(self, name: str, options: ModelOptions) -> None:
        super().__init__(name, options)
        with socket.socket() as opened, contextlib.suppress(OSError):
            opened.connect(("127.0.0.1", 9))


class OneWay(Sound):
    closed = False

    async def reply(self, request: Request) -> Reply:
        if self.closed:
            raise RuntimeError("it is closed")
        return await super().reply(request)

    async def close(self) -> None:
        self.closed = True


class Unclosable(Sound):
    async def close(self) -> None:
        raise OSError("still busy")


def test_a_factory_is_checked_without_a_name():
    result = check_model(Sound)
    assert len(result.held) == 10
    assert result.notes == ("it uses no address",)
    assert len(check_model(Moody, deterministic=False).held) == 10


@pytest.mark.parametrize(
    ("factory", "reason"),
    [
        (Speechless, "it replied with a str; return a Reply"),
        (Moody, "answers to one question; pass deterministic=False if it may"),
        (Owing, "it counts \\(-1, 0, 0\\) tokens"),
        (Unreachable, "ConnectionRefusedError: nobody is there .*; raise ModelError with a kind"),
        (Indiscreet, "repeats a secret of the environment"),
        (Hasty, "making it led to socket.connect"),
        (OneWay, "RuntimeError: it is closed \\(raised by reply\\)"),
        (Unclosable, "OSError: still busy \\(raised by close\\)"),
    ],
)
def test_what_is_wrong_is_named(factory, reason, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    with pytest.raises(AssertionError, match=reason):
        check_model(factory)
