"""Requests and replies as JSON documents, and their hashes: for event records, the reply cache and replay."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from hashlib import sha256
from typing import Any

from eirkit.agents.model import Reply, Request, ToolCall, Usage


def prompt_hash(request: Request) -> str:
    """Return SHA-256 of the messages, a line break between them; events carry it, `replay/` finds replies by it."""
    first, *rest = [message.content for message in request.messages] or [""]
    digest = _begun(first).copy()  # the system message comes first and is the same throughout a run
    for content in rest:
        digest.update(f"\n{content}".encode("utf-8", "surrogatepass"))
    return str(digest.hexdigest())


def text_hash(text: str) -> str:
    """Return SHA-256 of a text."""
    return str(_digest(text).hexdigest())


def _digest(text: str) -> Any:
    return sha256(text.encode("utf-8", "surrogatepass"))


_begun = lru_cache(maxsize=64)(_digest)


def reply_key(model: str, settings: Mapping[str, Any], request: Request) -> str:
    """Return the key of the reply cache, from the model, its settings and the request."""
    return sha256(canonical({"model": model, "settings": settings, "request": request_record(request)})).hexdigest()


def canonical(document: Mapping[str, Any]) -> bytes:
    """Return the canonical form of a JSON document: sorted keys, no spaces, ASCII only."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False, default=_plain).encode("ascii")


def _plain(value: object) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is not allowed in a request; use JSON values")


def request_record(request: Request) -> dict[str, Any]:
    """Return everything in a request that can change the reply."""
    return {
        "messages": [[message.role, message.content] for message in request.messages],
        "tools": [[tool.name, tool.description, tool.parameters] for tool in request.tools],
        "max_tokens": request.max_tokens,
    }


def reply_record(reply: Reply) -> dict[str, Any]:
    """Return a reply as a document for a file; `read_reply_record` inverts it."""
    usage = reply.usage
    return {
        "text": reply.text,
        "calls": [{"name": call.name, "arguments": dict(call.arguments)} for call in reply.calls],
        "finish": reply.finish,
        "latency_seconds": reply.latency_seconds,
        "usage": {
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
            "cached_tokens": usage.cached_tokens,
            "cost_usd": usage.cost_usd,
            "from_cache": usage.from_cache,
        },
    }


def read_reply_record(record: Mapping[str, Any]) -> Reply:
    """Return the reply from its document; raises KeyError or TypeError if the document is malformed."""
    calls = tuple(ToolCall(str(call["name"]), dict(call["arguments"])) for call in record["calls"])
    return Reply(
        text=str(record["text"]),
        calls=calls,
        usage=Usage(**record["usage"]),
        latency_seconds=float(record["latency_seconds"]),
        finish=str(record["finish"]),
    )
