"""Native APIs beside chat completions, each through its SDK: OpenAI's Responses, Anthropic's Messages, Google's Gemini.

They state what chat completions of these providers leave out: thinking blocks, refusals, blocked prompts, tokens of
reasoning. The SDKs send the requests; the replies are read here, as strictly as chat completions are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.metadata import requires
from typing import Any

from eirkit.errors import ModelError, UsageError
from eirkit.lacuna.models.batches import POLL_SECONDS, Body, Texts, anthropic_batch, google_batch
from eirkit.lacuna.models.chat_completion import SCHEMA_NAME, clean, counts_of, finish_of, malformed, read_arguments
from eirkit.lacuna.models.chat_server import ChatServer, bound_body
from eirkit.lacuna.models.message import Message
from eirkit.lacuna.models.model import FILTER, LENGTH, REFUSAL, STOP, TOOLS, UNREPORTED, Reply, Request, ToolCall, Usage
from eirkit.lacuna.models.scrubber import Scrubber
from eirkit.packages import load_vendor

Document = Mapping[str, Any]
_BOUNDS = ("minimum", "maximum", "minItems", "maxItems", "maxLength")
COMPACTION_BETA = "compact-2026-01-12"  # of Anthropic's API; without it the field is refused


def _system(request: Request) -> str:
    return clean("\n\n".join(message.content for message in request.messages if message.role == "system"))


def _turns(request: Request) -> list[Message]:
    return [message for message in request.messages if message.role != "system"] or [Message("user", "")]


def _objects(document: Any, name: str) -> Iterator[Document]:
    """Yield the objects in a list of a document; anything else in its place is ignored."""
    listed = document.get(name) if isinstance(document, Mapping) else None
    return (one for one in listed if isinstance(one, Mapping)) if isinstance(listed, list) else iter(())


def _texts(parts: Iterator[Document], name: str) -> str:
    return "".join([part[name] for part in parts if isinstance(part.get(name), str)])


def _call(name: Any, arguments: Any, scrub: Scrubber, what: str) -> ToolCall:
    if not isinstance(name, str):
        raise malformed("a tool call without a name", what)
    return ToolCall(scrub.text(name), read_arguments(arguments, scrub))


def _compacted(parts: list[Document], content: str, scrub: Scrubber) -> tuple[Document, ...]:
    """Return what stands for everything before it: the last part that a server compacted; none if it failed to."""
    found = [one for one in parts if one.get("type") == "compaction" and isinstance(one.get(content), str)]
    return tuple(scrub.value(dict(one)) for one in found[-1:])  # it is recorded, so no key may be in it


def _unbounded(schema: Any) -> Any:
    """Return a schema without bounds on numbers and lengths, which Anthropic's API refuses."""
    if isinstance(schema, Mapping):
        return {name: _unbounded(value) for name, value in schema.items() if name not in _BOUNDS}
    return [_unbounded(item) for item in schema] if isinstance(schema, list) else schema


class ResponsesServer(ChatServer):
    """One model behind OpenAI's Responses API; nothing is stored at the provider."""

    api, path, sampling, compacts = "responses", "/responses", ("temperature",), True
    what = "a response of the Responses API"

    def _encode(self, request: Request) -> dict[str, Any]:
        turns = [{"role": turn.role, "content": clean(turn.content)} for turn in _turns(request)]
        items = [*map(dict, request.carried), *turns]
        body = {"model": self.name, "input": items, "max_output_tokens": self.options.limit(request), "store": False}
        if (asked := request.compaction) is not None:
            if asked.instructions:
                raise UsageError("the compaction of the Responses API takes no prompt; leave out the summary prompt")
            body["context_management"] = [{"type": "compaction", "compact_threshold": asked.trigger_tokens}]
        if system := _system(request):
            body["instructions"] = system
        if request.tools:
            body["tools"] = [
                {
                    "type": "function",
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": dict(tool.parameters),
                    "strict": False,
                }
                for tool in request.tools
            ]
        if request.must_call:
            body["tool_choice"] = "required"
        if request.schema is not None:
            form = {"type": "json_schema", "name": SCHEMA_NAME, "strict": True, "schema": dict(request.schema)}
            body["text"] = {"format": form}
        return body

    def _decode(self, document: Document) -> Reply:
        if not isinstance(document.get("output"), list):
            raise malformed("no output", self.what)
        items = list(_objects(document, "output"))
        contents = [part for item in items if item.get("type") == "message" for part in _objects(item, "content")]
        refused = _texts(iter(contents), "refusal")
        text = _texts((part for part in contents if part.get("type") == "output_text"), "text")
        thought = [part for item in items if item.get("type") == "reasoning" for part in _objects(item, "summary")]
        calls = [item for item in items if item.get("type") == "function_call"]
        return Reply(
            text=self._scrub.text(text or refused),
            calls=tuple(_call(item.get("name"), item.get("arguments"), self._scrub, self.what) for item in calls),
            usage=self._usage(document.get("usage")),
            finish=REFUSAL if refused and not text else self._finish(document, bool(calls)),
            reasoning=self._scrub.text(_texts(iter(thought), "text")),
            carried=_compacted(items, "encrypted_content", self._scrub),
        )

    def _finish(self, document: Document, has_calls: bool) -> str:
        status, why = document.get("status"), document.get("incomplete_details")
        if status == "failed":
            stated = document.get("error")
            words = stated.get("message") if isinstance(stated, Mapping) else None
            raise ModelError(f"the response failed ({self._scrub.excerpt(str(words))}); try again later", "server")
        if status == "incomplete":
            return finish_of(why.get("reason") if isinstance(why, Mapping) else LENGTH, self._scrub)
        return TOOLS if has_calls else finish_of(status, self._scrub)

    @staticmethod
    def _usage(stated: Any) -> Usage:
        details = ("input_tokens_details.cached_tokens", "output_tokens_details.reasoning_tokens")
        counts = counts_of(stated, ("input_tokens", "output_tokens"), details)
        if counts is None:
            return UNREPORTED
        inputs, outputs, cached, reasoning = counts
        return Usage(inputs, outputs, min(inputs, cached), cost_usd=None, reasoning_tokens=min(outputs, reasoning))


class MessagesServer(ChatServer):
    """One model behind Anthropic's Messages API."""

    api, path, sampling, compacts = "messages", "/v1/messages", ("temperature",), True
    package = extra = "anthropic"
    what = "a message of the Messages API"

    def _open(self, sdk: Any, key: str, timeout: Any, http: Any) -> Any:
        client = sdk.AsyncAnthropic(
            api_key=key,
            base_url=self._base_url(),
            max_retries=0,
            timeout=timeout,
            http_client=http,
            default_headers={"Accept-Encoding": "identity"},
        )
        client.auth_token = None  # some versions would also send what ANTHROPIC_AUTH_TOKEN holds
        return client

    async def _submit(self, asked: Mapping[str, Body]) -> Texts:
        return await anthropic_batch(self._client, asked, self._poll_seconds or POLL_SECONDS)

    async def _send(self, body: dict[str, Any], seconds: float) -> str:
        if "context_management" not in body:
            return await super()._send(body, seconds)
        options = {"timeout": seconds, "headers": {"anthropic-beta": COMPACTION_BETA}}
        return str(await self._client.post(self.path, cast_to=str, body=body, options=options))

    def _base_url(self) -> str:
        return super()._base_url().rstrip("/").removesuffix("/v1")  # the path begins with it

    def _encode(self, request: Request) -> dict[str, Any]:
        turns: list[dict[str, Any]] = [{"role": turn.role, "content": clean(turn.content)} for turn in _turns(request)]
        if request.carried:
            turns.insert(0, {"role": "assistant", "content": [dict(block) for block in request.carried]})
        body: dict[str, Any] = {"model": self.name, "max_tokens": self.options.limit(request), "messages": turns}
        if (asked := request.compaction) is not None:
            trigger = {"type": "input_tokens", "value": asked.trigger_tokens}
            edit = {"type": "compact_20260112", "trigger": trigger, "pause_after_compaction": asked.pause}
            body["context_management"] = {
                "edits": [edit | ({"instructions": asked.instructions} if asked.instructions else {})]
            }
        if system := _system(request):
            body["system"] = system
        if request.tools:
            body["tools"] = [
                {"name": tool.name, "description": tool.description, "input_schema": dict(tool.parameters)}
                for tool in request.tools
            ]
        if request.must_call:
            body["tool_choice"] = {"type": "any"}
        if request.schema is not None:
            body["output_config"] = {"format": {"type": "json_schema", "schema": _unbounded(request.schema)}}
        return body

    def _decode(self, document: Document) -> Reply:
        if not isinstance(document.get("content"), list):
            raise malformed("no content", self.what)
        blocks = list(_objects(document, "content"))
        calls = [block for block in blocks if block.get("type") == "tool_use"]
        return Reply(
            text=self._scrub.text(_texts((one for one in blocks if one.get("type") == "text"), "text")),
            calls=tuple(_call(block.get("name"), block.get("input"), self._scrub, self.what) for block in calls),
            usage=self._usage(document.get("usage")),
            finish=finish_of(document.get("stop_reason"), self._scrub),
            reasoning=self._scrub.text(_texts((one for one in blocks if one.get("type") == "thinking"), "thinking")),
            carried=_compacted(blocks, "content", self._scrub),
        )

    @staticmethod
    def _usage(stated: Any) -> Usage:
        """Return the token counts; unlike Anthropic's, our input tokens include those of the prompt cache."""
        optional = ("cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens_details.thinking_tokens")
        counts = counts_of(stated, ("input_tokens", "output_tokens"), optional)
        if counts is None:
            return UNREPORTED
        fresh, outputs, cached, stored, reasoning = counts
        own = Usage(fresh + cached + stored, outputs, cached, cost_usd=None, reasoning_tokens=min(outputs, reasoning))
        # Compactions are billed, and not part of the totals beside them.
        compactions = (one for one in _objects(stated, "iterations") if one.get("type") == "compaction")
        parts = [own, *map(MessagesServer._usage, compactions)]
        return UNREPORTED if UNREPORTED in parts else sum(parts[1:], own)


class GeminiServer(ChatServer):
    """One model behind Google's Gemini API."""

    api, sampling = "gemini", ("temperature", "seed")
    package, extra = "google.genai", "google"
    what = "a response of the Gemini API"
    _http: Any = None

    def _connect(self) -> None:
        if self._client is not None:
            return
        named = (self.feature, self.extra)
        sdk, key = load_vendor(self.package, *named), self._unlock()
        required = requires("google-genai") or []  # which HTTP package it wants depends on its version
        web = load_vendor("httpx2" if any(line.startswith("httpx2") for line in required) else "httpx", *named)
        self._http = web.AsyncClient(event_hooks={"response": [bound_body]}, follow_redirects=False)
        options = {
            "base_url": self._base_url(),
            "headers": {"Accept-Encoding": "identity"},
            "httpx_async_client": self._http,
        }
        self._client = sdk.Client(api_key=key, vertexai=False, http_options=options)

    async def close(self) -> None:
        http, self._http, self._client = self._http, None, None
        if self._batched is not None:
            self._batched.close()
        if http is not None:
            await http.aclose()

    def _base_url(self) -> str:
        return self.options.base_url or self.endpoint.base_url.partition("/v1beta")[0]

    async def _send(self, body: dict[str, Any], seconds: float) -> str:
        options: dict[str, Any] = {"timeout": round(1000 * seconds)}
        if self.body:
            options["extra_body"] = dict(self.body)
        reply = await self._client.aio.models.generate_content(
            model=body["model"], contents=body["contents"], config={**self._config(body), "http_options": options}
        )
        return str(reply.model_dump_json(exclude_none=True, exclude={"sdk_http_response", "parsed"}))

    async def _submit(self, asked: Mapping[str, Body]) -> Texts:
        # In batches the SDK takes no fields beside its own, which bear the names of the API's.
        further = {name: value for name, value in self.body.items() if name != "generationConfig"}
        further |= self.body.get("generationConfig", {})
        requests = {
            name: {"contents": body["contents"], "config": {**self._config(body), **further}}
            for name, body in asked.items()
        }
        return await google_batch(self._client, self.name, requests, self._poll_seconds or POLL_SECONDS)

    def _config(self, body: Body) -> dict[str, Any]:
        return {**body["config"], **{name: body[name] for name in self.sampling if name in body}}

    def _encode(self, request: Request) -> dict[str, Any]:
        roles = {"assistant": "model"}
        turns = [
            {"role": roles.get(turn.role, "user"), "parts": [{"text": clean(turn.content)}]} for turn in _turns(request)
        ]
        config: dict[str, Any] = {
            "max_output_tokens": self.options.limit(request),
            "automatic_function_calling": {"disable": True},
        }
        if system := _system(request):
            config["system_instruction"] = system
        if request.tools:
            declared = [
                {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters_json_schema": dict(tool.parameters),
                }
                for tool in request.tools
            ]
            config["tools"] = [{"function_declarations": declared}]
        if request.must_call:
            config["tool_config"] = {"function_calling_config": {"mode": "ANY"}}
        if request.schema is not None:
            config |= {"response_mime_type": "application/json", "response_json_schema": dict(request.schema)}
        return {"model": self.name, "contents": turns, "config": config}

    def _decode(self, document: Document) -> Reply:
        usage, feedback = self._usage(document.get("usage_metadata")), document.get("prompt_feedback")
        first = next(_objects(document, "candidates"), None)
        if first is None:
            if isinstance(feedback, Mapping) and feedback.get("block_reason"):
                return Reply("", usage=usage, finish=FILTER)  # the prompt was blocked
            raise malformed("no candidates", self.what)
        parts = list(_objects(first.get("content"), "parts"))
        named = [part["function_call"] for part in parts if isinstance(part.get("function_call"), Mapping)]
        calls = tuple(_call(one.get("name"), one.get("args"), self._scrub, self.what) for one in named)
        finish = finish_of(first.get("finish_reason"), self._scrub)
        return Reply(
            text=self._scrub.text(_texts((part for part in parts if not part.get("thought")), "text")),
            calls=calls,
            usage=usage,
            finish=TOOLS if calls and finish == STOP else finish,
            reasoning=self._scrub.text(_texts((part for part in parts if part.get("thought")), "text")),
        )

    @staticmethod
    def _usage(stated: Any) -> Usage:
        """Return the token counts; unlike Gemini's, our output tokens include those of thoughts, which are billed."""
        optional = ("candidates_token_count", "thoughts_token_count", "cached_content_token_count")
        counts = counts_of(stated, ("prompt_token_count",), optional)
        if counts is None:
            return UNREPORTED
        inputs, written, thoughts, cached = counts
        return Usage(inputs, written + thoughts, min(inputs, cached), cost_usd=None, reasoning_tokens=thoughts)
