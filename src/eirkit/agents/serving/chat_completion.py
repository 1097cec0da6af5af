"""Encodes requests and decodes replies of the chat-completions API.

An invalid response of the server becomes a `ModelError`; errors of the *model* (malformed arguments, an unknown tool)
stay in the reply for the session to judge.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import isfinite
from typing import Any

from eirkit.agents.model import Message, Reply, Request, Tool, ToolCall, Usage
from eirkit.agents.serving.scrubber import Scrubber
from eirkit.errors import ModelError

MOST_TOKENS = 10**9  # larger counts are invalid; the usage is then unknown
LONGEST_FINISH = 40  # characters


def request_body(model: str, request: Request, limit_name: str) -> dict[str, Any]:
    """Return the body of a request, without sampling parameters."""
    body: dict[str, Any] = {"model": model, "messages": [_message(m) for m in request.messages]}
    body[limit_name] = request.max_tokens
    if request.tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
    return body


def _message(message: Message) -> dict[str, str]:
    # A lone surrogate in a memory system's text must not make the request fail.
    return {"role": message.role, "content": message.content.encode("utf-8", "replace").decode("utf-8")}


def _tool(tool: Tool) -> dict[str, Any]:
    function = {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
    return {"type": "function", "function": function}


def read_body(body: str, scrub: Scrubber) -> Reply:
    """Return the reply in a body of text."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        raise _malformed(f"not JSON: {scrub.excerpt(body) or 'an empty body'}") from None
    return read_completion(document, scrub)


def read_completion(document: Any, scrub: Scrubber) -> Reply:
    """Return the reply in a decoded body: its first choice."""
    if not isinstance(document, dict):
        raise _malformed(f"a {type(document).__name__} instead of an object")
    choices = document.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise _malformed(f"no choices{_stated_error(document, scrub)}")
    message = choices[0].get("message")
    if not isinstance(message, dict):
        raise _malformed("a choice without a message")
    finish = choices[0].get("finish_reason")
    return Reply(
        text=scrub.text(_text(message)),
        calls=_calls(message.get("tool_calls"), scrub),
        usage=_usage(document.get("usage")),
        finish=scrub.text(finish)[:LONGEST_FINISH] if isinstance(finish, str) else "",
    )


def _malformed(what: str) -> ModelError:
    return ModelError(
        f"the server's reply is not a chat completion ({what}); check the base URL and the model", "malformed"
    )


def _stated_error(document: Mapping[str, Any], scrub: Scrubber) -> str:
    stated = document.get("error")
    words = stated.get("message") if isinstance(stated, dict) else stated
    return f", but an error: {scrub.excerpt(words)}" if isinstance(words, str) else ""


def _text(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, list):  # parts, as some servers send them
        parts = (part.get("text") for part in content if isinstance(part, dict))
        return "".join(part for part in parts if isinstance(part, str))
    if isinstance(content, str):
        return content
    refusal = message.get("refusal")
    return refusal if isinstance(refusal, str) else ""


def _calls(listed: Any, scrub: Scrubber) -> tuple[ToolCall, ...]:
    if listed is None:
        return ()
    if not isinstance(listed, list):
        raise _malformed("tool calls that are not a list")
    return tuple(_call(entry, scrub) for entry in listed)


def _call(entry: Any, scrub: Scrubber) -> ToolCall:
    function = entry.get("function") if isinstance(entry, dict) else None
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        raise _malformed("a tool call without a function name")
    return ToolCall(scrub.text(function["name"]), read_arguments(function.get("arguments"), scrub))


def read_arguments(given: Any, scrub: Scrubber) -> dict[str, Any]:
    """Return a tool call's arguments; text that is not a JSON object is kept as {"": text}."""
    if given is None or given == "":
        return {}
    try:
        # Objects are also parsed from text, so that one set of checks covers both.
        text = given if isinstance(given, str) else json.dumps(given)
        parsed = json.loads(text, parse_float=_finite, parse_constant=_finite)
        clean = scrub.value(parsed) if isinstance(parsed, dict) else None
    except (ValueError, RecursionError):
        clean = None
    return clean if clean is not None else {"": scrub.text(str(given))}


def _finite(literal: str) -> float:
    value = float(literal)
    if not isfinite(value):
        raise ValueError("not a finite number")  # records cannot store it
    return value


def _usage(stated: Any) -> Usage:
    """Return the reported token counts; the cost is computed elsewhere."""
    if not isinstance(stated, dict):
        return Usage(cost_usd=None)
    details = stated.get("prompt_tokens_details")
    inputs = _count(stated.get("prompt_tokens"))
    cached = _count(details.get("cached_tokens")) if isinstance(details, dict) else 0
    return Usage(inputs, _count(stated.get("completion_tokens")), min(cached, inputs), cost_usd=None)


def _count(value: Any) -> int:
    is_count = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_TOKENS
    return value if is_count else 0
