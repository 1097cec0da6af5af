"""Decodes requests and encodes responses of OpenAI's HTTP API, for the endpoint that memory systems call.

Supports what memory systems use: chat completions, complete or streamed, and embeddings. Anything else is refused.
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from eirkit.lacuna.memories.embeddings import Vectors
from eirkit.lacuna.models.message import Message
from eirkit.lacuna.models.model import Reply, Request, Tool

MODEL_NAME = "eirkit"  # model name that systems use; the endpoint decides which model answers
SCHEMA_WORDS = "Reply with one JSON object that fits this schema: "
JSON_WORDS = "Reply with one JSON object."
USUAL_MAX_TOKENS = 4096  # where neither the memory system nor the options of the run state a limit
_ROLES = {"system": "system", "developer": "system", "assistant": "assistant"}


class RefusedRequest(Exception):  # noqa: N818 - an HTTP status for the client
    """A request that is refused with an HTTP status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def read_request(body: Mapping[str, Any]) -> Request:
    """Return a chat-completions body as a Request; a required JSON schema becomes a further system message."""
    if body.get("n") not in (None, 1):
        raise RefusedRequest(400, "only one choice is supported; leave n out")
    messages = [_message(one) for one in _objects(body, "messages")]
    if not messages:
        raise RefusedRequest(400, "messages is empty; send at least one")
    wanted = body.get("response_format") or {}
    if not isinstance(wanted, Mapping):
        raise RefusedRequest(400, "response_format is not an object; send one")
    if (schema := _schema(wanted)) is not None:
        messages.append(Message("system", SCHEMA_WORDS + json.dumps(schema)))
    elif wanted.get("type") in ("json_object", "json_schema"):
        messages.append(Message("system", JSON_WORDS))
    return Request(tuple(messages), tuple(_tools(body)), _limit(body))


def _message(one: Mapping[str, Any]) -> Message:
    content = _content(one.get("content"))
    if calls := one.get("tool_calls"):  # earlier tool calls are part of the conversation
        content = f"{content}\n{json.dumps(calls)}".strip()
    return Message(_ROLES.get(str(one.get("role")), "user"), content)  # type: ignore[arg-type]


def _content(content: Any) -> str:
    if isinstance(content, Sequence) and not isinstance(content, str):
        return "\n".join(str(part.get("text", "")) for part in content if isinstance(part, Mapping))
    return "" if content is None else str(content)


def _schema(wanted: Mapping[str, Any]) -> Any:
    stated = wanted.get("json_schema")
    return stated.get("schema") if wanted.get("type") == "json_schema" and isinstance(stated, Mapping) else None


def _tools(body: Mapping[str, Any]) -> Iterator[Tool]:
    for tool in _objects(body, "tools"):
        function = tool.get("function")
        if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
            raise RefusedRequest(400, "a tool has no named function; other kinds of tools are not supported")
        parameters = function.get("parameters")
        yield Tool(
            function["name"],
            str(function.get("description") or ""),
            parameters if isinstance(parameters, Mapping) else {},
        )


def _limit(body: Mapping[str, Any]) -> int | None:
    """Return the limit that a system states; None: that of the options."""
    limit = body.get("max_completion_tokens") or body.get("max_tokens") or None
    if limit is not None and (not isinstance(limit, int) or limit < 1):
        raise RefusedRequest(400, "max_tokens must be a whole number above 0")
    return limit


def _objects(body: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    given = body.get(name)
    if given is None:
        return []
    if not isinstance(given, list) or not all(isinstance(one, Mapping) for one in given):
        raise RefusedRequest(400, f"{name} must be a list of objects")
    return given


def completion(reply: Reply) -> dict[str, Any]:
    """Return a reply as a chat-completions document."""
    choice = {"index": 0, "message": _said(reply), "finish_reason": _finish(reply)}
    return {**_head("chat.completion"), "choices": [choice], "usage": _usage(reply)}


def chunks(reply: Reply, with_usage: bool) -> Iterator[dict[str, Any]]:
    """Yield a reply as stream documents: the whole reply in one, then its usage if requested."""
    said = _said(reply)
    if calls := said.get("tool_calls"):
        said["tool_calls"] = [{"index": number, **call} for number, call in enumerate(calls)]
    head = _head("chat.completion.chunk")
    yield {**head, "choices": [{"index": 0, "delta": said, "finish_reason": _finish(reply)}]}
    if with_usage:
        yield {**head, "choices": [], "usage": _usage(reply)}


def _head(kind: str) -> dict[str, Any]:
    return {"id": "chatcmpl-eirkit", "object": kind, "created": int(time.time()), "model": MODEL_NAME}


def _said(reply: Reply) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": reply.text}
    if reply.calls:
        message["tool_calls"] = [
            {
                "id": f"call_{number}",
                "type": "function",
                "function": {"name": call.name, "arguments": json.dumps(dict(call.arguments))},
            }
            for number, call in enumerate(reply.calls)
        ]
    return message


def _finish(reply: Reply) -> str:
    return "tool_calls" if reply.calls else "length" if reply.finish == "length" else "stop"


def _usage(reply: Reply) -> dict[str, int]:
    taken, given = reply.usage.input_tokens, reply.usage.output_tokens
    return {"prompt_tokens": taken, "completion_tokens": given, "total_tokens": taken + given}


def read_texts(body: Mapping[str, Any]) -> list[str]:
    """Return the texts of an embeddings body."""
    given = body.get("input")
    texts = [given] if isinstance(given, str) else given
    if not isinstance(texts, list) or not texts or not all(isinstance(text, str) for text in texts):
        # Token ids belong to a vocabulary that this embedding does not have.
        raise RefusedRequest(400, "input is neither a string nor a list of strings; send text, not tokens")
    return texts


def embeddings(body: Mapping[str, Any], vectors: Vectors) -> dict[str, Any]:
    """Return vectors as an embeddings document, as numbers or in base64, as the body requests."""
    wanted = body.get("dimensions")
    if wanted is not None and wanted != vectors.shape[1]:
        raise RefusedRequest(400, f"the embedding has {vectors.shape[1]} dimensions, not {wanted}; request that number")
    packed = body.get("encoding_format") == "base64"
    rows = np.ascontiguousarray(vectors, dtype="<f4")
    data = [
        {
            "object": "embedding",
            "index": number,
            "embedding": base64.b64encode(row.tobytes()).decode("ascii") if packed else row.tolist(),
        }
        for number, row in enumerate(rows)
    ]
    return {"object": "list", "data": data, "model": MODEL_NAME, "usage": {"prompt_tokens": 0, "total_tokens": 0}}


def model_list() -> dict[str, Any]:
    """Return the list of models, which has one entry."""
    return {"object": "list", "data": [{"id": MODEL_NAME, "object": "model", "owned_by": "eirkit"}]}
