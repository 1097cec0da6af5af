"""The model family: whatever turns what is visible into the next reply.

A model is made from the name after its provider (`openai/gpt-5` → provider `openai`, name `gpt-5`) and receives only
text; tasks, truth and telemetry are out of its reach.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NoReturn, Protocol, runtime_checkable

from eirkit.boundary import attribute
from eirkit.facts import fact
from eirkit.registry import Registry


@fact
class Message:
    """One message of a conversation."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True)
class Tool:
    """An action offered as a tool call."""

    name: str
    description: str
    parameters: Mapping[str, Any]  # JSON schema


@dataclass(frozen=True, slots=True)
class ToolCall:
    """An action that the model asked for through the tool interface."""

    name: str
    arguments: Mapping[str, Any]  # text that is no JSON object arrives as {"": text}, which fits no schema


@fact
class Request:
    """Everything a model gets to see for one reply."""

    messages: tuple[Message, ...]
    tools: tuple[Tool, ...] = ()
    max_tokens: int = 1024


@dataclass(frozen=True, slots=True)
class Usage:
    """What one reply cost. Tokens as the provider counts them; 0 where it does not say."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0  # part of input_tokens that the provider billed as cached
    cost_usd: float | None = 0.0  # None: nobody knows its price; 0 for a reply from our own cache
    from_cache: bool = False


@fact
class Reply:
    """What a model said."""

    text: str
    calls: tuple[ToolCall, ...] = ()
    usage: Usage = Usage()
    latency_seconds: float = 0.0
    finish: str = ""  # why it ended, in the provider's word, such as `length`; "" where it does not say


class Model(Protocol):
    """One model under test. `reply` raises ModelError when the world, not the model, failed."""

    async def reply(self, request: Request) -> Reply: ...

    async def close(self) -> None: ...

    def settings(self) -> Mapping[str, Any]:
        """What the manifest records about this model: never a key."""
        ...


class ModelWrapper:
    """Base of our own wrappers around a model: they attribute what it raises, and answer for their own errors."""


async def ask_model(model: Model, request: Request) -> Reply:
    """Return a model's reply; what it raises arrives as a ModelError or a PluginError."""
    try:
        return await model.reply(request)
    except BaseException as error:  # noqa: BLE001 - plug-ins may raise anything
        attribute_to(model, "reply", error)


async def close_model(model: Model) -> None:
    """Close a model; what it raises arrives as a PluginError."""
    try:
        await model.close()
    except BaseException as error:  # noqa: BLE001 - plug-ins may raise anything
        attribute_to(model, "close", error)


def attribute_to(model: Model, verb: str, error: BaseException) -> NoReturn:
    """Raise what a verb of a model raised, as that model's failure unless it is a wrapper of ours."""
    if isinstance(model, ModelWrapper):
        raise error
    attribute("model", type(model).__name__, verb, error)


@runtime_checkable
class Preflight(Protocol):
    """A model that can say before a run that it lacks something."""

    def preflight(self) -> None:
        """Raise UsageError where a key, a package or a file is missing; contact nobody."""
        ...


@runtime_checkable
class Batching(Protocol):
    """A model in this process that answers many requests together faster than one after the other, and for nothing."""

    @property
    def at_once(self) -> int:
        """How many runs it is worth having under way."""
        ...


_OPERATIONAL = ("timeout_seconds", "retries", "connections")  # how a model is reached, not what it is asked


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """What the command line or a suite says about a model, besides its name."""

    base_url: str | None = None
    temperature: float | None = 0.0  # None: the provider's default
    max_tokens: int = 1024
    timeout_seconds: float = 60.0
    retries: int = 4
    connections: int = 8
    seed: int = 0  # for models that draw at random
    dialect: str | None = None  # in which prompts are written; None: the model's own
    extra: Mapping[str, Any] = field(default_factory=dict)

    def asked(self) -> dict[str, Any]:
        """Return what a model is asked with, without how it is reached: all that can change a reply."""
        given = {name: getattr(self, name) for name in ModelOptions.__slots__ if name not in _OPERATIONAL}
        if self.dialect is None:
            del given["dialect"]  # follows from the model
        return {**given, "extra": dict(self.extra)}


class ModelFactory(Protocol):
    """Makes a model of one provider; constructing opens nothing and reads no environment."""

    def __call__(self, name: str, options: ModelOptions) -> Model: ...


models: Registry[ModelFactory] = Registry("model provider", group="eirkit.models", package="eirkit.agents.models")
