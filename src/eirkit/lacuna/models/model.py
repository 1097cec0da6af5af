"""The model protocol: requests, replies, tools, usage, and options such as `max_tokens` with their defaults.

A model is made from the name after its provider (`openai/gpt-5` → provider `openai`, name `gpt-5`) and receives text
only; it has no access to tasks, answers and telemetry.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from functools import lru_cache
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, runtime_checkable

import msgspec
from msgspec import Struct, structs

from eirkit.lacuna.models.message import Message
from eirkit.records.settings import TEXT, ModelSettings
from eirkit.registry import Registry, attribute

if TYPE_CHECKING:  # whoever reads recorded replies needs no tasks
    from eirkit.lacuna.tasks.view import ProbeView, Visible


class Tool(Struct, frozen=True, gc=False):
    """An action offered as a tool call."""

    name: str
    description: str
    parameters: Mapping[str, Any]  # JSON schema


class ToolCall(Struct, frozen=True, gc=False):
    """An action that the model requested as a tool call."""

    name: str
    arguments: Mapping[str, Any]  # text that is not a JSON object is kept as {"": text}, which fits no schema


class ServerCompaction(Struct, frozen=True, gc=False):
    """That the server of a model compacts what it is sent, by the field that its own API has for this."""

    trigger_tokens: int  # as the server counts the request
    pause: bool = False  # where the API can: return what was compacted, without a reply
    instructions: str = ""  # what the summary should contain, where the API takes that


class NumberForm(Struct, frozen=True, gc=False):
    """The form of an answer of numbers: the values of one step."""

    t: int
    width: int  # how many values
    q: int  # every value is below it


class TextForm(Struct, frozen=True, gc=False):
    """The form of an answer that is a text."""


class ActionForm(Struct, frozen=True, gc=False):
    """The form of a reply that is a list of actions."""

    commands: tuple[str, ...]  # that may be used
    width: int  # values of an answer
    q: int


Form = NumberForm | TextForm | ActionForm


class Request(Struct, frozen=True, gc=False):
    """Everything a model sees for one reply.

    What is asked for (`form`) and shown (`visible`) is also there as objects, for models in this process. They are
    never sent, recorded or hashed: everything that they say is in the messages.
    """

    messages: tuple[Message, ...]
    tools: tuple[Tool, ...] = ()
    max_tokens: int | None = None  # of one reply, thinking included; None: what the options of the model say
    compaction: ServerCompaction | None = None
    carried: tuple[Mapping[str, Any], ...] = ()  # what a server compacted before, unread; comes before the messages
    schema: Mapping[str, Any] | None = None  # JSON schema that the reply must follow; None: none is asked for
    form: Form | None = None  # None: anything, as a summary
    visible: Visible | ProbeView | None = None

    @property
    def must_call(self) -> bool:
        """Whether the reply must be a tool call."""
        return bool(self.tools) and self.form is not None


class Usage(Struct, frozen=True, gc=False):
    """Tokens and cost of one reply. Tokens as the provider counts them; all 0 if it does not report them."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0  # part of input_tokens that the provider billed as cached
    cost_usd: float | None = 0.0  # None: the price is unknown; 0 for a reply from our own cache
    from_cache: bool = False
    reasoning_tokens: int = 0  # part of output_tokens that the provider counts as reasoning

    @property
    def is_reported(self) -> bool:
        """Whether the tokens are known: no prompt has none."""
        return self.input_tokens + self.output_tokens > 0

    def __add__(self, other: Usage) -> Usage:
        """Return the usage of two calls that gave one reply; the cost is unknown if one of theirs is."""
        costs = self.cost_usd, other.cost_usd
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cached_tokens + other.cached_tokens,
            None if None in costs else float(sum(Decimal(str(cost)) for cost in costs)),  # as they are written
            self.from_cache and other.from_cache,
            self.reasoning_tokens + other.reasoning_tokens,
        )


UNREPORTED = Usage(cost_usd=None)  # of a reply whose server states no tokens, or something else in their place
NO_USAGE = Usage()  # of every reply that costs nothing, such as those of reference agents
STOP, LENGTH, FILTER, REFUSAL, TOOLS = "stop", "length", "content-filter", "refusal", "tool-calls"
# Why a reply ended, in the words of the chat-completions, Responses, Messages and Gemini APIs and of their imitations.
_FINISHES = {
    STOP: ("stop", "end_turn", "stop_sequence", "completed", "eos", "eos_token", "finished"),
    LENGTH: ("length", "max_tokens", "max_output_tokens", "model_length", "model_context_window_exceeded"),
    FILTER: (
        *("content_filter", "content-filter", "safety", "recitation", "blocklist", "prohibited_content", "spii"),
        *("language", "image_safety", "blocked", "guardrail_intervened", "sensitive"),
    ),
    REFUSAL: ("refusal",),
    TOOLS: ("tool_calls", "tool-calls", "tool_use", "tool_call", "function_call"),
}
_FINISH = {word: ours for ours, words in _FINISHES.items() for word in words}


def read_finish(word: str) -> str:
    """Return a provider's finish reason in our words; one that is unknown as it is."""
    return _FINISH.get(word.lower(), word)


class Reply(Struct, frozen=True, gc=False):
    """The reply of a model."""

    text: str
    calls: tuple[ToolCall, ...] = ()
    usage: Usage = NO_USAGE
    latency_seconds: float = 0.0
    finish: str = ""  # stop, length, content-filter, refusal or tool-calls; "" if not reported
    reasoning: str = ""  # what the model thought before it replied, where a server shows it; never read for commands
    max_tokens: int = 0  # the limit under which it was written; 0 if unknown
    carried: tuple[Mapping[str, Any], ...] = ()  # what the server compacted, to be sent back as it is


class Model(Protocol):
    """One model under test. `reply` raises ModelError if the server or network failed."""

    async def reply(self, request: Request) -> Reply: ...

    async def close(self) -> None: ...

    def settings(self) -> Mapping[str, Any]:
        """What the manifest records about this model; never a key."""
        ...


class ModelWrapper:
    """Base of eirkit's wrappers around models; errors of the wrapped model are attributed to that model."""


async def ask_model(model: Model, request: Request) -> Reply:
    """Return a model's reply; its errors are raised as ModelError or PluginError."""
    try:
        return await model.reply(request)
    except BaseException as error:  # noqa: BLE001 - plug-ins may raise anything
        attribute_to(model, "reply", error)


async def close_model(model: Model) -> None:
    """Close a model; its errors are raised as PluginError."""
    try:
        await model.close()
    except BaseException as error:  # noqa: BLE001 - plug-ins may raise anything
        attribute_to(model, "close", error)


def attribute_to(model: Model, verb: str, error: BaseException) -> NoReturn:
    """Raise an error of a model as a PluginError of that model, unless the model is a wrapper of ours."""
    if isinstance(model, ModelWrapper):
        raise error
    attribute("model", type(model).__name__, verb, error)


@runtime_checkable
class Preflight(Protocol):
    """A model that can check its requirements before a run."""

    def preflight(self) -> None:
        """Raise UsageError if a key, a package or a file is missing; no server is contacted."""
        ...


@runtime_checkable
class Batching(Protocol):
    """A free model in this process that is faster when it answers many requests together."""

    @property
    def at_once(self) -> int:
        """How many concurrent runs are worthwhile."""
        ...


USUAL_TOKENS = 1024  # of one reply, unless the options say otherwise
RAISED_TOKENS = 16_384  # after a reply was cut while the model was still reasoning
BATCH_SECONDS = 25 * 3600.0  # for a reply from a batch API, which answers within a day
MOST_AT_ONCE = 1_000  # runs, and so requests of a batch; providers allow 50,000 and more
_RAISED_TIMES = 5  # times the usual time limit for a reply under the raised limit


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """The options of a model, from the command line or a suite."""

    base_url: str | None = None
    temperature: float | None = 0.0  # None: the provider's default
    max_tokens: int = USUAL_TOKENS  # of one reply; the usual limit is raised for a model that reasons
    timeout_seconds: float = 60.0
    retries: int = 4
    connections: int = 8
    seed: int = 0  # for models that sample
    dialect: str | None = None  # prompt format, full or compact; None: the model's own
    protocol: str | None = None  # how the model answers: schema, tools or text; None: the first that its provider takes
    reask: bool = True  # ask once more where a reply has no usable answer
    extra: Mapping[str, Any] = field(default_factory=dict)

    def asked(self, protocol: str | None) -> ModelSettings:
        """Return the options that can change a reply, without those that only concern the connection.

        Args:
            protocol: that is in force; None if it differs between the models that have these options.
        """
        return ModelSettings(
            self.base_url,
            self.temperature,
            self.max_tokens,
            self.seed,
            dict(self.extra),
            self.dialect,
            TEXT if protocol == TEXT else protocol,  # a default is left out only if it is the same object
            self.reask,
        )

    @classmethod
    def of(cls, asked: ModelSettings) -> ModelOptions:
        """Return options that ask for the same; what only concerns the connection has its default."""
        return cls(**structs.asdict(asked))

    @property
    def batched(self) -> bool:
        """Whether requests go to the provider's batch API, with a setting of its servers."""
        return str(self.extra.get("batch", False)).lower() != "false"

    def limit(self, request: Request) -> int:
        """Return the limit on the tokens of the reply to a request."""
        return request.max_tokens or self.max_tokens

    def seconds(self, limit: int) -> float:
        """Return the time limit of a reply that may have this many tokens."""
        if self.batched:
            return BATCH_SECONDS
        raised = self.max_tokens == USUAL_TOKENS and limit == RAISED_TOKENS
        return self.timeout_seconds * (_RAISED_TIMES if raised else 1)


class ModelFactory(Protocol):
    """Makes a model of one provider, without opening connections or reading the environment."""

    def __call__(self, name: str, options: ModelOptions) -> Model: ...


models: Registry[ModelFactory] = Registry("model provider", group="eirkit.models", package="eirkit.lacuna.models")


def prompt_hash(request: Request) -> str:
    """Return SHA-256 of the messages and of what is carried; events carry it, `replay/` finds replies by it."""
    messages = request.messages
    digest = _begun(messages[0].content if messages else "").copy()  # the system message, the same throughout a run
    for message in messages[1:]:
        digest.update(f"\n{message.content}".encode("utf-8", "surrogatepass"))
    for item in request.carried:
        digest.update(canonical(item))
    return digest.hexdigest()  # type: ignore[no-any-return]


def prompt_chars(request: Request) -> int:
    """Return the characters of everything that is sent."""
    more = [*(tool.parameters for tool in request.tools), *([] if request.schema is None else [request.schema])]
    return sum(len(message.content) for message in request.messages) + sum(len(json.dumps(dict(one))) for one in more)


def text_hash(text: str) -> str:
    """Return SHA-256 of a text."""
    return str(_digest(text).hexdigest())


def _digest(text: str) -> Any:
    return sha256(text.encode("utf-8", "surrogatepass"))


_begun = lru_cache(maxsize=64)(_digest)


def reply_key(model: str, settings: Mapping[str, Any], request: Request) -> str:
    """Return the key of the reply cache, from the model, its settings and the request."""
    return sha256(canonical({"model": model, "settings": settings, "request": request})).hexdigest()


def canonical(document: object) -> bytes:
    """Return the canonical form of a JSON document, or of a struct: sorted keys, no spaces, ASCII only."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False, default=_plain).encode("ascii")


def _plain(value: object) -> Any:
    if isinstance(value, Request):  # what is sent of it
        unsent = ("form", "visible") if value.schema is not None else ("schema", "form", "visible")
        return {name: getattr(value, name) for name in value.__struct_fields__ if name not in unsent}
    if isinstance(value, Struct):
        return msgspec.structs.asdict(value)
    if isinstance(value, Message):
        return asdict(value)
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is not allowed in a request; use JSON values")


def reply_text(reply: Reply) -> str:
    """Return a reply as JSON in ASCII, in which lone surrogates survive as escapes; `read_reply` inverts it."""
    return json.dumps(msgspec.to_builtins(reply, enc_hook=dict), allow_nan=False)


def read_reply(text: str) -> Reply:
    """Return a reply from its JSON; raise ValueError or msgspec.ValidationError if it is damaged."""
    return msgspec.convert(json.loads(text), Reply)


# Tags around what a model thinks aloud; those that servers and chat templates are known to leave in the content.
_TAG = re.compile(
    r"(?P<closing></(?:seed:)?(?:think(?:ing)?|thought|reasoning)>|\[/THINK\]|\u25c1/think\u25b7"
    r"|<\|channel\|>final<\|message\|>)"
    r"|<(?:seed:)?(?:think(?:ing)?|thought|reasoning)>|\[THINK\]|\u25c1think\u25b7"
    r"|<\|channel\|>(?:analysis|commentary)<\|message\|>",
    re.ASCII | re.IGNORECASE,
)


def set_aside(text: str) -> tuple[str, str]:
    """Return a reply without what the model thought aloud, and that.

    A tag that is never closed reaches to the end. What stands before a closing tag without an opening one is thought
    too: some chat templates put the opening tag into the prompt. A JSON object is left whole: its field for the work
    may hold anything.
    """
    if text.lstrip().startswith("{"):
        return text, ""
    spoken: list[str] = []
    thought: list[str] = []
    thinking, at = False, 0
    for tag in _TAG.finditer(text):
        (thought if thinking else spoken).append(text[at : tag.start()])
        at = tag.end()
        closing = tag.group("closing") is not None
        if closing and not thinking:
            thought.extend(spoken)
            spoken = []
        thinking = not closing
    (thought if thinking else spoken).append(text[at:])
    return "".join(spoken), "".join(thought)
