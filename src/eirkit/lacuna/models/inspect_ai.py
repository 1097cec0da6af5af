"""`inspect/<provider>/<name>`: models through Inspect's `get_model`.

Inspect reads its keys from the environment by its own rules. Its retries and cache are off; ours apply.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from typing import Any

from eirkit.errors import UsageError
from eirkit.lacuna.models.chat_completion import SCHEMA_NAME, model_error, refusal
from eirkit.lacuna.models.message import Message
from eirkit.lacuna.models.model import ModelOptions, Reply, Request, ToolCall, Usage, models, read_finish
from eirkit.lacuna.models.scrubber import Scrubber
from eirkit.packages import load_vendor, require_vendor
from eirkit.records.settings import SCHEMA, TEXT, TOOLS

FEATURE, EXTRA = "a model through Inspect", "inspect"
_WITH_SCHEMA = ("openai", "google", "mistral", "vllm", "sglang")  # providers to which Inspect passes a schema on
_SCRIPTED = ("eirkit", "mockllm", "none")


class InspectModel:
    """One model behind Inspect's interface."""

    def __init__(self, name: str, options: ModelOptions) -> None:
        self.name, self.options = name, options
        self._model: Any = None
        self._scrub = Scrubber()
        self._refused: set[str] = set()

    async def reply(self, request: Request) -> Reply:
        self._open()
        while True:
            # A separate task gives each call its own context, so that Inspect's transcript ends with it.
            task = asyncio.create_task(self._generate(request))
            try:
                return self._read(await task)
            except Exception as error:  # noqa: BLE001 - vendor code; any error becomes one ModelError
                failure = model_error(error, f"inspect/{self.name}", self._scrub, request)
                said = refusal(error, self._scrub)
            dislikes = said is not None and said.status in (400, 422) and "temperature" in said.words
            if not dislikes or self._temperature() is None:
                raise failure
            self._refused.add("temperature")

    async def close(self) -> None:
        model, self._model = self._model, None
        if model is not None:
            await model.__aexit__(None, None, None)

    def settings(self) -> Mapping[str, Any]:
        return {
            "provider": "inspect",
            "model": self.name,
            "base_url": self.options.base_url,
            "temperature": self.options.temperature,
            "model_args": dict(self.options.extra),
            "refused": sorted(self._refused),
        }

    def preflight(self) -> None:
        self._open()

    def _open(self) -> None:
        if self._model is not None:
            return
        inspect = load_vendor("inspect_ai.model", FEATURE, EXTRA)
        self._scrub = Scrubber.of_environment(os.environ)
        try:
            self._model = inspect.get_model(
                self.name, base_url=self.options.base_url, memoize=False, **self.options.extra
            )
        except Exception as error:  # noqa: BLE001 - unknown provider, missing key or package: repeat Inspect's message
            words = self._scrub.excerpt(str(getattr(error, "message", error)))
            raise UsageError(f"inspect/{self.name} cannot be opened ({words}); see Inspect's providers") from None
        client = getattr(self._model.api, "client", None)
        if client is not None and hasattr(client, "max_retries"):
            client.max_retries = 0  # the vendor's client inside Inspect would also retry
            http: Any = getattr(client, "_client", None)
            if hasattr(http, "follow_redirects"):
                http.follow_redirects = False  # a server may bill each of them, which nobody would count

    def _temperature(self) -> float | None:
        return None if "temperature" in self._refused else self.options.temperature

    async def _generate(self, request: Request) -> Any:
        inspect = load_vendor("inspect_ai.model", FEATURE, EXTRA)
        config = inspect.GenerateConfig(
            temperature=self._temperature(),
            max_tokens=self.options.limit(request),
            max_retries=0,
            max_connections=self.options.connections,
        )
        return await ask_inspect(self._model, request, config)

    def _read(self, output: Any) -> Reply:
        calls = tuple(self._call(call) for call in output.message.tool_calls or ())
        usage = _usage(output.usage) if output.usage is not None else Usage(cost_usd=None)
        finish, thought = read_finish(str(output.stop_reason)), self._scrub.text(_thought(output.message.content))
        return Reply(self._scrub.text(output.completion), calls, usage, finish=finish, reasoning=thought)

    def _call(self, call: Any) -> ToolCall:
        # Inspect drops arguments that it cannot parse; they must not be mistaken for an empty call.
        arguments = {"": call.parse_error} if call.parse_error else call.arguments
        return ToolCall(self._scrub.text(call.function), self._scrub.value(arguments))


@models.add("inspect")
def make_inspect(name: str, options: ModelOptions) -> InspectModel:
    """Return the model; Inspect is loaded on the first request."""
    if "/" not in name:
        raise UsageError(f"inspect/{name} has no provider; write inspect/PROVIDER/NAME")
    require_vendor("inspect_ai", FEATURE, EXTRA)
    return InspectModel(name, options)


def _protocols(name: str, options: ModelOptions) -> tuple[str, ...]:
    provider = name.partition("/")[0]
    return (SCHEMA,) if provider in _WITH_SCHEMA else (TEXT,) if provider in _SCRIPTED else (TOOLS,)


make_inspect.protocols = _protocols  # type: ignore[attr-defined]


async def ask_inspect(model: Any, request: Request, config: Any = None) -> Any:
    """Return the output of one of Inspect's models for a request; what a model is asked beside `config` is its own."""
    inspect = load_vendor("inspect_ai.model", FEATURE, EXTRA)
    config = inspect.GenerateConfig() if config is None else config
    if request.schema is not None:
        kinds = load_vendor("inspect_ai.util", FEATURE, EXTRA)
        schema = kinds.JSONSchema.model_validate(request.schema)
        config.response_schema = inspect.ResponseSchema(name=SCHEMA_NAME, json_schema=schema, strict=True)
    messages, tools = as_asked(request)
    choice = {"tool_choice": "any"} if request.must_call else {}
    return await model.generate(messages, tools, config=config, **choice)


def as_asked(request: Request) -> tuple[list[Any], list[Any]]:
    """Return the messages and tools of a request as Inspect's types."""
    inspect = load_vendor("inspect_ai.model", FEATURE, EXTRA)
    tools = load_vendor("inspect_ai.tool", FEATURE, EXTRA)
    offered = [
        tools.ToolInfo(name=t.name, description=t.description, parameters=tools.ToolParams(**t.parameters))
        for t in request.tools
    ]
    return [_message(inspect, message) for message in request.messages], offered


def _message(inspect: Any, message: Message) -> Any:
    kinds = {
        "system": inspect.ChatMessageSystem,
        "user": inspect.ChatMessageUser,
        "assistant": inspect.ChatMessageAssistant,
    }
    return kinds[message.role](content=message.content.encode("utf-8", "replace").decode("utf-8"))


def _thought(content: Any) -> str:
    """Return the reasoning that Inspect set apart from the text."""
    parts = () if isinstance(content, str) else content
    return "".join(part.reasoning for part in parts if getattr(part, "type", "") == "reasoning")


def _usage(stated: Any) -> Usage:
    """Return the token counts; unlike Inspect, our input tokens include cached ones."""
    cached = stated.input_tokens_cache_read or 0
    inputs = stated.input_tokens + cached + (stated.input_tokens_cache_write or 0)
    reasoning = min(stated.reasoning_tokens or 0, stated.output_tokens)
    return Usage(inputs, stated.output_tokens, cached, cost_usd=None, reasoning_tokens=reasoning)
