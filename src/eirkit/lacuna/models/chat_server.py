"""Calls chat-completions servers through the `openai` SDK: connection, key, size of a body, settings of servers.

The SDK sends the request; its retries are off, and `chat_completion` replaces its parser, because it is stricter and
faster. The size of responses is limited, and compressed responses are refused.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import re
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import urlsplit

from eirkit.errors import ModelError, UnknownNameError, UsageError
from eirkit.lacuna.models.batches import (
    LARGEST_RESULTS,
    POLL_SECONDS,
    BatchedCalls,
    Body,
    Texts,
    openai_batch,
)
from eirkit.lacuna.models.chat_completion import (
    COMPLETION,
    BodyTooLarge,
    Refusal,
    fold_system,
    model_error,
    read_completion,
    read_document,
    refusal,
    request_body,
)
from eirkit.lacuna.models.factory import refuse_settings
from eirkit.lacuna.models.model import ModelOptions, Reply, Request
from eirkit.lacuna.models.scrubber import Scrubber
from eirkit.packages import load_vendor, require_vendor
from eirkit.records.settings import SCHEMA, TEXT, TOOLS

LARGEST_BODY = 1 << 20  # bytes
CONNECT_SECONDS = 10.0  # longer means that no server is listening
LIMIT_NAMES = ("max_completion_tokens", "max_tokens")
SYSTEM = "system role"  # among what a server refused: the system message goes into the user's
# In the words of servers and of chat templates without a place for the system message.
NO_SYSTEM = re.compile(
    r"system (?:role|message|prompt|instruction)s? (?:is |are )?not (?:supported|enabled|allowed)"
    r"|developer instruction is not|(?:support|allow|unknown|unsupported|invalid|unexpected)[^.]{0,40}\bsystem\b"
    r"|roles must alternate",
    re.IGNORECASE,
)
_OURS = {
    "model",
    "messages",
    "tools",
    "stream",
    "n",
    "temperature",
    "input",
    "contents",
    "config",
    "response_format",
    *LIMIT_NAMES,
}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The address of a provider and the conventions of its API."""

    provider: str
    base_url: str
    key_variable: str  # the environment variable that holds the key
    limit_name: str = "max_tokens"  # its name of the limit on new tokens


_BATCHES = (
    ("openai", "chat"),
    ("openai", "responses"),
    ("anthropic", "messages"),
    ("google", "gemini"),
)  # providers and APIs


class ChatServer:
    """One model behind a chat-completions server; base of those behind other APIs."""

    api, path = "chat", "/chat/completions"
    package = extra = "openai"
    feature = "a model behind a server"
    sampling: tuple[str, ...] = ("temperature", "seed")  # options that are sent
    what = COMPLETION  # that a reply should be
    compacts = False  # the API can compact what it is sent
    protocols: tuple[str, ...] = (SCHEMA, TOOLS, TEXT)  # that it takes, the best first

    def __init__(self, name: str, options: ModelOptions, endpoint: Endpoint, body: Mapping[str, Any]) -> None:
        self.name, self.options, self.endpoint, self.body = name, options, endpoint, body
        self._client: Any = None
        self._scrub = Scrubber()
        self._refused: set[str] = set()  # parameters that the server rejected
        self._limit_name = endpoint.limit_name if options.base_url is None else "max_tokens"
        self._poll_seconds = poll_seconds(options)
        self._batched = None if self._poll_seconds is None else BatchedCalls(self._submit, self._poll_seconds)

    async def reply(self, request: Request) -> Reply:
        if request.compaction is not None and (not self.compacts or self._batched is not None):
            raise UsageError(
                f"{self._where()} cannot compact what it is sent; use anthropic models with api=messages or openai "
                "models with api=responses, without batch"
            )
        self._connect()
        while True:
            body = self._body(request)
            failure, said = None, None
            try:
                async with asyncio.timeout(seconds := self.options.seconds(self.options.limit(request))):
                    text = await (self._batched.ask(body) if self._batched else self._send(body, seconds))
                return self._decode(read_document(text, self._scrub, self.what))
            except Exception as error:  # noqa: BLE001 - vendor code; any error becomes one ModelError
                failure, said = model_error(error, self._where(), self._scrub, request), refusal(error, self._scrub)
            if (task := asyncio.current_task()) is not None and task.cancelling():
                raise asyncio.CancelledError  # the SDK may have turned the cancellation into a timeout
            # Raised outside the handler, so that the vendor's exception, which holds the request, is not chained.
            if not self._adapt(body, said):
                raise failure
            if failure.may_be_billed:
                failure.is_adapted = True  # what it may have cost must be counted before the next request
                raise failure

    async def close(self) -> None:
        client, self._client = self._client, None
        if self._batched is not None:
            self._batched.close()
        if client is not None:
            await client.close()

    def settings(self) -> Mapping[str, Any]:
        return {
            "provider": self.endpoint.provider,
            "model": self.name,
            "base_url": self._base_url(),
            "temperature": self.options.temperature,
            "seed": self.options.seed,
            "body": dict(self.body),
            **({} if self.api == "chat" else {"api": self.api}),
            "refused": sorted(self._refused),
        }

    def preflight(self) -> None:
        require_vendor(self.package, self.feature, self.extra)
        self._key()

    def _connect(self) -> None:
        if self._client is not None:
            return
        sdk, key = load_vendor(self.package, self.feature, self.extra), self._unlock()
        timeout = sdk.Timeout(self.options.timeout_seconds, connect=min(CONNECT_SECONDS, self.options.timeout_seconds))
        http = sdk.DefaultAsyncHttpxClient(
            event_hooks={"response": [bound_body]}, follow_redirects=False, timeout=timeout
        )
        self._client = self._open(sdk, key, timeout, http)

    def _unlock(self) -> str:
        """Return the key; from now on it is removed from everything that is shown."""
        key = self._key()
        self._scrub = Scrubber.of_environment(os.environ).also(key)
        return key

    def _open(self, sdk: Any, key: str, timeout: Any, http: Any) -> Any:
        client = sdk.AsyncOpenAI(
            api_key=key,
            base_url=self._base_url(),
            max_retries=0,
            timeout=timeout,
            http_client=http,
            default_headers={"Accept-Encoding": "identity"},
        )
        if self.options.base_url is not None or self.endpoint.provider != "openai":
            client.organization = client.project = None  # do not send the SDK's own settings to this server
        return client

    async def _send(self, body: dict[str, Any], seconds: float) -> str:
        """Return the body of the response to a request."""
        return str(await self._client.post(self.path, cast_to=str, body=body, options={"timeout": seconds}))

    async def _submit(self, asked: Mapping[str, Body]) -> Texts:
        """Return the results of a batch of requests."""
        return await openai_batch(self._client, self.path, asked, self._poll_seconds or POLL_SECONDS)

    def _key(self) -> str:
        variable = str(self.options.extra.get("key_variable", self.endpoint.key_variable))
        key = os.environ.get(variable, "").strip()
        if not key and self.options.base_url is not None:
            return "none"  # self-hosted servers often need no key, but the SDK does
        if not key:
            own = f"set {variable}, the key of {self.endpoint.provider}'s own server, or give --base-url of another one"
            raise UsageError(f"{self.endpoint.provider} needs a key; {own}")
        if not (key.isascii() and key.isprintable() and " " not in key):
            raise UsageError(
                f"the key in {variable} contains characters that are not allowed in a header; copy it again"
            )
        return key

    def _base_url(self) -> str:
        return self.options.base_url or self.endpoint.base_url

    def _where(self) -> str:
        return f"{self.endpoint.provider}/{self.name} at {self._base_url()}"

    def _body(self, request: Request) -> dict[str, Any]:
        stated = ((name, getattr(self.options, name)) for name in self.sampling if name not in self._refused)
        sampling = {name: value for name, value in stated if value is not None}
        return {**self._encode(request), **sampling, **self.body}

    def _encode(self, request: Request) -> dict[str, Any]:
        """Return the body of a request, without sampling parameters and further fields."""
        if SYSTEM in self._refused:
            request = fold_system(request)
        return request_body(self.name, request, self._limit_name, self.options.limit(request))

    def _decode(self, document: dict[str, Any]) -> Reply:
        return read_completion(document, self._scrub)

    def _adapt(self, body: Mapping[str, Any], said: Refusal | None) -> bool:
        """Leave out or rename what the server rejected; True if the request should be sent again."""
        if said is None or said.status not in (400, 422, 500):
            return False
        complaint = f"{said.parameter} {said.words}"
        if self.api == "chat" and body["messages"][0]["role"] == "system" and NO_SYSTEM.search(complaint):
            self._refused.add(SYSTEM)
            return True
        if said.status == 500:  # servers report errors of chat templates so, but not those of parameters
            return False
        for name in ("temperature", "seed"):
            if name in body and name not in self.body and re.search(rf"\b{name}\b", complaint):
                self._refused.add(name)
                return True
        if self.api != "chat":
            return False
        (sent,) = (name for name in LIMIT_NAMES if name in body)
        (other,) = (name for name in LIMIT_NAMES if name != sent)
        if said.parameter == sent or other in said.words:
            if sent not in self._refused and other not in self._refused:
                self._refused.add(sent)
                self._limit_name = other
            return self._limit_name != sent
        return False


Apis = Mapping[str, type[ChatServer]]  # of a provider, by the names that the setting `api` has for them


def make_server(name: str, options: ModelOptions, endpoint: Endpoint, apis: Apis) -> ChatServer:
    """Return the model behind the API that the setting `api` names, by default chat completions.

    Raises:
        UsageError: the options are invalid.
    """
    refuse_settings(endpoint.provider, options, ("body", "key_variable", "api", "batch"))
    api = str(options.extra.get("api", ChatServer.api))
    if api not in apis:
        raise UnknownNameError(f"API of {endpoint.provider} models", api, apis)
    kind = apis[api]
    if poll_seconds(options) is not None and (endpoint.provider, api) not in _BATCHES:
        offered = " or ".join(f"{provider} with api={one}" for provider, one in _BATCHES)
        raise UsageError(f"{endpoint.provider} has no batch API here with api={api}; use {offered}, or leave out batch")
    require_vendor(kind.package, kind.feature, kind.extra)
    _check_base_url(options.base_url)
    return kind(name, options, endpoint, _further_fields(options.extra.get("body", {})))


def protocols_of(apis: Apis) -> Callable[[str, ModelOptions], tuple[str, ...]]:
    """Return what says which protocols a model behind one of these APIs takes."""
    return lambda name, options: apis.get(str(options.extra.get("api", ChatServer.api)), ChatServer).protocols


def poll_seconds(options: ModelOptions) -> float | None:
    """Return how often a batch is asked for its state; None if requests are sent one by one."""
    given = options.extra.get("batch", False)
    if str(given).lower() in ("true", "false"):  # the command line passes text
        return POLL_SECONDS if str(given).lower() == "true" else None
    try:
        seconds = float(given)
    except (TypeError, ValueError):
        seconds = 0.0
    if not 0 < seconds < math.inf:
        raise UsageError(f"batch = {given!r} is neither true nor a number of seconds between polls; choose one")
    return seconds


def _further_fields(given: Any) -> Mapping[str, Any]:
    try:
        fields = json.loads(given) if isinstance(given, str) else given  # the command line passes text
        json.dumps(fields, allow_nan=False)
    except (ValueError, TypeError, RecursionError):
        fields = None
    if not isinstance(fields, Mapping) or _OURS & set(fields):
        raise UsageError(f"`body` must be a table of further request fields; leave out {', '.join(sorted(_OURS))}")
    return fields


def _check_base_url(base_url: str | None) -> None:
    if base_url is None:
        return
    try:
        parts = urlsplit(base_url)
        parts.port  # noqa: B018 - reading it checks it
    except ValueError:
        raise UsageError("the base URL is invalid; use a form such as http://127.0.0.1:8000/v1") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError("the base URL has no scheme or host; use a form such as http://127.0.0.1:8000/v1")
    if "@" in parts.netloc or parts.query or parts.fragment:
        # It is written into manifests, so it must not contain secrets.
        raise UsageError("the base URL contains a password or a query; put the key into an environment variable")


async def bound_body(response: Any) -> None:
    """Limit the size of a response: reading raises BodyTooLarge beyond it."""
    if response.headers.get("content-encoding", "identity").lower() not in ("", "identity"):
        raise ModelError(
            "the server sent a compressed response although none was requested; disable compression", "malformed"
        )
    response.encoding = "utf-8"  # JSON is UTF-8; another codec in a header could inflate the text
    # The SDK requires its HTTP package's own stream class, which depends on its version.
    base = next(kind for kind in type(response.stream).__mro__ if kind.__name__ == "AsyncByteStream")
    path = response.request.url.path
    is_results = path.endswith(("/content", "/results")) or "/batches/" in path  # of a batch
    response.stream = _bounded_kind(base)(response.stream, LARGEST_RESULTS if is_results else LARGEST_BODY)


@cache
def _bounded_kind(base: type) -> type:
    class Bounded(base):  # type: ignore[misc]
        def __init__(self, stream: Any, most: int) -> None:
            self.stream, self.most = stream, most

        async def __aiter__(self) -> AsyncIterator[bytes]:
            size = 0
            async for chunk in self.stream:
                size += len(chunk)
                if size > self.most:
                    raise BodyTooLarge
                yield chunk

        async def aclose(self) -> None:
            await self.stream.aclose()

    return Bounded
