"""`check_model`: the conformance suite of models, with real requests, also concurrent ones."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import msgspec

from eirkit.errors import ModelError, PluginError, UsageError, describe
from eirkit.lacuna.agents.prompt import render
from eirkit.lacuna.agents.protocol import ask
from eirkit.lacuna.memories.calls import wait_for
from eirkit.lacuna.models.factory import make_model
from eirkit.lacuna.models.message import Message
from eirkit.lacuna.models.model import (
    Model,
    ModelFactory,
    ModelOptions,
    NumberForm,
    Reply,
    Request,
    ask_model,
    close_model,
    read_reply,
    reply_text,
)
from eirkit.lacuna.models.scrubber import Scrubber
from eirkit.lacuna.tasks.generation import generate, prepare
from eirkit.lacuna.tasks.task import TaskSpec
from eirkit.lacuna.tasks.view import Visible, publish
from eirkit.registry import call
from eirkit.testing.conformance import Conformance, try_all

AT_ONCE = 6  # requests
NOWHERE = "http://127.0.0.1:9"  # a port where no server listens
TASKS_ONLY = "it answers prompts of a task and no other"
_OPENING = ("socket.connect", "socket.bind", "subprocess.Popen")  # audit events that Python raises before they happen

T = TypeVar("T")


def check_model(
    model: str | ModelFactory,
    options: ModelOptions | None = None,
    *,
    deterministic: bool = True,
    any_prompt: bool = True,
) -> Conformance:
    """Run the conformance suite on a model and return what held, with about 20 short requests.

    Args:
        model: `provider/name`, `path/file.py:Factory/name`, or the factory itself.
        deterministic: False for a model that may reply differently to the same request.
        any_prompt: False for a model that answers prompts of tasks only.

    Raises:
        AssertionError: a requirement does not hold; the message names each of them, and one mistake once.
    """
    return try_all(_Subject(model, options or ModelOptions(), deterministic, any_prompt), REQUIREMENTS)


def first_request() -> Request:
    """Return the first request of a small task."""
    spec = TaskSpec("stepwise-sum", n=4, m=2)
    task = publish(generate(spec), prepare(spec))
    step = task.steps[0]
    visible = Visible(task, step, answered=False, records=())
    form = NumberForm(step.t, task.width, spec.q)
    return msgspec.structs.replace(ask(render(visible), form, visible=visible), max_tokens=12)


@dataclass(frozen=True, slots=True)
class _Subject:
    model: str | ModelFactory
    options: ModelOptions
    deterministic: bool
    any_prompt: bool

    def make(self, options: ModelOptions | None = None) -> Model:
        given = options or self.options
        return make_model(self.model, given) if isinstance(self.model, str) else call("model", self.model, "any", given)

    def ask(self, *requests: Request) -> list[Reply]:
        async def work(model: Model) -> list[Reply]:
            return list(await asyncio.gather(*(ask_model(model, request) for request in requests)))

        return self.use(work)

    def use(self, work: Callable[[Model], Awaitable[T]], options: ModelOptions | None = None) -> T:
        """Return what is done with a new model, which is closed afterwards."""

        async def run() -> T:
            model = self.make(options)
            try:
                return await work(model)
            finally:
                await close_model(model)

        return wait_for(run())


def _replies(subject: _Subject) -> None:
    """A reply is text, calls and counts, and survives being written down."""
    (reply,) = subject.ask(first_request())
    assert isinstance(reply, Reply), f"it replied with a {type(reply).__name__}; return a Reply"
    assert isinstance(reply.text, str), f"the text of its reply is a {type(reply.text).__name__}"
    assert isinstance(reply.calls, tuple), "the calls of its reply are no tuple"
    again = read_reply(reply_text(reply))
    assert again == reply, "its reply is another one when it is read back from a record"


def _counts(subject: _Subject) -> None:
    """Usage has no negative numbers; a price is a number, or None where it is not known."""
    usage = subject.ask(first_request())[0].usage
    counts = (usage.input_tokens, usage.output_tokens, usage.cached_tokens)
    assert min(counts) >= 0, f"it counts {counts} tokens"
    assert usage.cached_tokens <= usage.input_tokens, "more input tokens are cached than there are"
    assert usage.cost_usd is None or usage.cost_usd >= 0, f"its reply costs {usage.cost_usd}"


def _repeats(subject: _Subject) -> str | None:
    """The same question gets the same answer, at once and from a new model."""
    if not subject.deterministic:
        return "it may answer the same question differently, so that was not tried"
    first, second = subject.ask(first_request(), first_request())
    (third,) = subject.ask(first_request())
    answers = {reply.text for reply in (first, second, third)}
    assert len(answers) == 1, f"it gave {len(answers)} answers to one question; pass deterministic=False if it may"
    return None


def _serves_many(subject: _Subject) -> None:
    """Several may ask at the same time."""
    replies = subject.ask(*[first_request()] * AT_ONCE)
    assert len(replies) == AT_ONCE
    if subject.deterministic:
        assert len({reply.text for reply in replies}) == 1, "who asks at the same time gets another answer"


def _changes_nothing(subject: _Subject) -> None:
    """A request is not changed."""
    request = first_request()
    subject.ask(request)
    assert request == first_request(), "the request is another one after it was answered"


def _is_recorded(subject: _Subject) -> None:
    """Its settings are plain JSON, the same for every model made in this way, and hold no secret."""
    settings = call("model", subject.make().settings)
    plain: Any = json.loads(json.dumps(settings, allow_nan=False))
    assert plain == subject.make().settings(), "settings() differs from one model to the next"
    secrets = Scrubber.of_environment(os.environ).secrets
    assert not any(secret in repr(settings) for secret in secrets), "settings() repeats a secret of the environment"


def _closes(subject: _Subject) -> None:
    """It can be closed at once and twice, and asked again afterwards."""

    async def work(model: Model) -> None:
        await close_model(model)
        await ask_model(model, first_request())
        await close_model(model)
        await close_model(model)
        await ask_model(model, first_request())

    subject.use(work)


def _opens_nothing(subject: _Subject) -> None:
    """Making it opens no connection and starts no process."""
    with _Watch() as watch:
        call("model", subject.make().settings)
    assert not watch.seen, f"making it led to {', '.join(sorted(set(watch.seen)))}; wait for the first request"


def _fails_typed(subject: _Subject) -> str | None:
    """Where nobody answers at its address it raises ModelError."""
    nowhere = replace(subject.options, base_url=NOWHERE, timeout_seconds=5.0, retries=0)
    try:
        subject.use(lambda model: ask_model(model, first_request()), nowhere)
    except (ModelError, UsageError):
        return None
    except PluginError as error:
        raise AssertionError(f"{describe(error)}; raise ModelError with a kind when the world failed") from error
    return "it uses no address"


def _bears_oddities(subject: _Subject) -> str | None:
    """An odd conversation is answered."""
    if not subject.any_prompt:
        return TASKS_ONLY
    odd = [
        Request((Message("user", ""),), max_tokens=4),
        Request((Message("user", "lone \ud800 surrogate \x00 \u202e"),), max_tokens=4),
        Request((Message("user", "a"), Message("assistant", "b"), Message("user", "c")), max_tokens=1),
    ]
    assert all(isinstance(reply, Reply) for reply in subject.ask(*odd)), "what came back is no Reply"
    return None


class _Watch:
    """Records audit events of connections and processes; an audit hook cannot be removed, so there is one."""

    _current: _Watch | None = None
    _hooked = False

    def __init__(self) -> None:
        self.seen: list[str] = []

    def __enter__(self) -> _Watch:
        if not _Watch._hooked:
            sys.addaudithook(_Watch._note)
            _Watch._hooked = True
        _Watch._current = self
        return self

    def __exit__(self, *error: object) -> None:
        _Watch._current = None

    @staticmethod
    def _note(event: str, arguments: object) -> None:
        if _Watch._current is not None and event in _OPENING:
            _Watch._current.seen.append(event)


REQUIREMENTS = (
    _replies,
    _counts,
    _repeats,
    _serves_many,
    _changes_nothing,
    _is_recorded,
    _closes,
    _opens_nothing,
    _fails_typed,
    _bears_oddities,
)
