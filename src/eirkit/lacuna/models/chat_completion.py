"""Encodes requests and decodes replies of the chat-completions API; names failures of servers, with a remedy.

An invalid response of the server becomes a `ModelError`; errors of the *model* (malformed arguments, an unknown tool)
stay in the reply for the session to judge. Exceptions of SDKs are distinguished by status and class name, because the
SDK has changed its HTTP package; the error has a remedy and no secrets.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from math import isfinite
from typing import Any

from msgspec.structs import replace

from eirkit.errors import ModelError
from eirkit.lacuna.models.message import Message
from eirkit.lacuna.models.model import REFUSAL, UNREPORTED, Reply, Request, Tool, ToolCall, Usage, read_finish
from eirkit.lacuna.models.scrubber import Scrubber

MOST_TOKENS = 10**9  # larger counts are invalid; the usage is then unknown
LONGEST_FINISH = 40  # characters
_BROKEN_OFF = ("error", "abort")  # finish reasons of replies that are not whole because the server failed
COMPLETION = "a chat completion"
SCHEMA_NAME = "reply"  # servers want one
_NO_ROUTE = {
    "ConnectError",
    "ConnectTimeout",
    "ConnectionRefusedError",
    "gaierror",
    "UnsupportedProtocol",
    "InvalidURL",
}
_TOO_LATE = {"TimeoutError", "APITimeoutError", "ReadTimeout", "WriteTimeout", "PoolTimeout"}
_BUSY = {408, 409, 425, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529}
_OVERLOADED = {503, 529}
_REFUSES_FORM = {400, 404, 415, 422, 501}  # what servers answer to a field that they do not take
_BEGUN = {408, 409, 425, 499}  # a server gave up on a request, perhaps one that a model had begun to answer
_REMEDIES = {
    "rate-limit": "lower the number of connections or resume later",
    "server": "try again later or choose another model",
    "timeout": "raise the timeout or choose a faster model",
    "unreachable": "check the base URL and that the server is running",
    "dropped": "try again; check the server's log if it persists",
    "too-large": "lower max_tokens; a reply of this size is refused",
    "rejected": "check the model's name, the key and the base URL",
}


def request_body(model: str, request: Request, limit_name: str, limit: int) -> dict[str, Any]:
    """Return the body of a request, without sampling parameters; `limit` bounds the tokens of the reply."""
    body: dict[str, Any] = {
        "model": model,
        "messages": [{"role": m.role, "content": clean(m.content)} for m in request.messages],
    }
    body[limit_name] = limit
    if request.tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
    if request.must_call:
        body["tool_choice"] = "required"
    if request.schema is not None:
        asked = {"name": SCHEMA_NAME, "strict": True, "schema": dict(request.schema)}
        body["response_format"] = {"type": "json_schema", "json_schema": asked}
    return body


def fold_system(request: Request) -> Request:
    """Return a request whose system message is the beginning of the first message of the user."""
    system = [message.content for message in request.messages if message.role == "system"]
    first, *rest = [message for message in request.messages if message.role != "system"] or [Message("user", "")]
    return replace(request, messages=(Message(first.role, "\n\n".join([*system, first.content])), *rest))


def clean(text: str) -> str:
    """Return a text without lone surrogates, which a memory system may return and which would make a request fail."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _tool(tool: Tool) -> dict[str, Any]:
    function = {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
    return {"type": "function", "function": function}


def read_document(body: str, scrub: Scrubber, what: str = COMPLETION) -> dict[str, Any]:
    """Return the JSON object in a body of text."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        raise malformed(f"not JSON: {scrub.excerpt(body) or 'an empty body'}", what) from None
    if not isinstance(document, dict):
        raise malformed(f"a {type(document).__name__} instead of an object", what)
    return document


def read_completion(document: Any, scrub: Scrubber) -> Reply:
    """Return the reply in a decoded body: its first choice."""
    if not isinstance(document, dict):
        raise malformed(f"a {type(document).__name__} instead of an object")
    choices = document.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise malformed(f"no choices{_stated_error(document, scrub)}")
    first = next((one for one in choices if isinstance(one, dict) and one.get("index") == 0), choices[0])
    message = first.get("message")
    if not isinstance(message, dict):
        raise malformed("a choice without a message")
    finish = first.get("finish_reason")
    if finish in _BROKEN_OFF:
        raise ModelError("the server broke off its reply; try again, or check the server's log", "dropped")
    text, refused = _text(message.get("content")), message.get("refusal")
    if refused and isinstance(refused, str) and not text:
        text, finish = refused, REFUSAL
    return Reply(
        text=scrub.text(text),
        calls=_calls(message.get("tool_calls") or _legacy_call(message), scrub),
        usage=_usage(document.get("usage")),
        finish=finish_of(finish, scrub),
        reasoning=scrub.text(_reasoning(message)),
    )


def finish_of(stated: Any, scrub: Scrubber) -> str:
    """Return the finish reason that a server states."""
    return read_finish(scrub.text(stated)[:LONGEST_FINISH]) if isinstance(stated, str) else ""


def malformed(why: str, what: str = COMPLETION) -> ModelError:
    """Return the failure of a server whose reply is not what it should be."""
    return ModelError(f"the server's reply is not {what} ({why}); check the base URL and the model", "malformed")


def _stated_error(document: Mapping[str, Any], scrub: Scrubber) -> str:
    stated = document.get("error")
    words = stated.get("message") if isinstance(stated, dict) else stated
    return f", but an error: {scrub.excerpt(words)}" if isinstance(words, str) else ""


def _text(content: Any) -> str:
    """Return a content as text: itself, or the texts of its parts, as some servers send it."""
    if not isinstance(content, list):
        return content if isinstance(content, str) else ""
    parts = [part.get("text") for part in content if isinstance(part, dict) and part.get("type") != "thinking"]
    return "".join([part for part in parts if isinstance(part, str)])


def _reasoning(message: Mapping[str, Any]) -> str:
    """Return what a server shows of the model's reasoning; servers put it in different places."""
    shown = [message.get("reasoning_content"), message.get("reasoning")]
    if isinstance(content := message.get("content"), list):
        thoughts = [part.get("thinking") for part in content if isinstance(part, dict)]
        shown += [_text(thought) for thought in thoughts]
    return next((text for text in shown if text and isinstance(text, str)), "")


def _calls(listed: Any, scrub: Scrubber) -> tuple[ToolCall, ...]:
    if listed is None:
        return ()
    if not isinstance(listed, list):
        raise malformed("tool calls that are not a list")
    return tuple(_call(entry, scrub) for entry in listed)


def _legacy_call(message: Mapping[str, Any]) -> list[Any] | None:
    """Return the call in the field that `tool_calls` replaced, which some servers still send."""
    called = message.get("function_call")
    return [{"function": called}] if isinstance(called, dict) else None


def _call(entry: Any, scrub: Scrubber) -> ToolCall:
    function = entry.get("function") if isinstance(entry, dict) else None
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        raise malformed("a tool call without a function name")
    return ToolCall(scrub.text(function["name"]), read_arguments(function.get("arguments"), scrub))


def read_arguments(given: Any, scrub: Scrubber) -> dict[str, Any]:
    """Return a tool call's arguments; text that is not a JSON object is kept as {"": text}."""
    if given is None or given == "":
        return {}
    try:
        # Objects are also parsed from text, so that one set of checks covers both.
        text = given if isinstance(given, str) else json.dumps(given)
        parsed = json.loads(text, parse_float=_finite, parse_constant=_finite)
        if isinstance(parsed, str):  # encoded twice
            parsed = json.loads(parsed, parse_float=_finite, parse_constant=_finite)
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
    """Return the reported token counts; the cost is computed elsewhere.

    Some servers leave reasoning out of the tokens of the completion, which they bill all the same: what the total has
    beyond prompt and completion is output too.
    """
    counts = counts_of(
        stated,
        ("prompt_tokens", "completion_tokens"),
        ("total_tokens", "prompt_tokens_details.cached_tokens", "completion_tokens_details.reasoning_tokens"),
    )
    if counts is None:
        return UNREPORTED
    inputs, outputs, total, cached, reasoning = counts
    total = total or inputs + outputs + (reasoning if reasoning > outputs else 0)
    outputs = max(outputs, total - inputs)
    return Usage(inputs, outputs, min(cached, inputs), cost_usd=None, reasoning_tokens=min(reasoning, outputs))


def counts_of(stated: Any, needed: Sequence[str], more: Sequence[str]) -> list[int] | None:
    """Return stated numbers of tokens; None, which is unknown, if one of them is no such number.

    Args:
        stated: what a server says; None if it says nothing.
        needed: names of numbers that must be there.
        more: names, with a dot inside another object, of numbers that are 0 if they, or that object, are not there.
    """
    if not isinstance(stated, Mapping):
        return None
    found = [_count(stated.get(name)) for name in needed]
    for name in more:
        outer, _, inner = name.rpartition(".")
        part = stated.get(outer) if outer else stated
        value = part.get(inner) if isinstance(part, Mapping) else None
        found.append(0 if value is None else _count(value))
    known = [one for one in found if one is not None]
    return known if len(known) == len(found) else None


def _count(value: Any) -> int | None:
    """Return a number of tokens, which some servers write as 15.0; None if it is none."""
    is_whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    return int(value) if is_whole and not isinstance(value, bool) and 0 <= value <= MOST_TOKENS else None


class BodyTooLarge(Exception):  # noqa: N818 - raised inside the SDK's stream and turned into a ModelError here
    """The response is larger than the limit."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """An error response of a server."""

    status: int
    words: str  # scrubbed, one line
    parameter: str  # the rejected parameter, "" if not stated
    code: str
    retry_after_seconds: float | None


def refusal(error: BaseException, scrub: Scrubber) -> Refusal | None:
    """Return the error response behind an exception or its causes, if there is one."""
    stated = [cause for cause in causes(error) if _status(cause) is not None]
    if not stated:
        return None
    error = stated[-1]  # the innermost: wrappers repeat the status, but not the message
    status, body = _status(error) or 0, getattr(error, "body", getattr(error, "details", None))
    if isinstance(body, Mapping) and isinstance(body.get("error"), Mapping):
        body = body["error"]  # the `openai` SDK unpacks it, the others do not
    words = body.get("message", "") if isinstance(body, Mapping) else body
    headers = getattr(getattr(error, "response", None), "headers", {})
    parameter, code = (str(getattr(error, name, None) or "") for name in ("param", "code"))
    return Refusal(status, scrub.excerpt(str(words or "")), parameter, code, retry_after(headers))


def _status(error: BaseException) -> int | None:
    """Return the HTTP status of an error response; Google's SDK calls it the code."""
    named = (getattr(error, name, None) for name in ("status_code", "code"))
    return next((status for status in named if isinstance(status, int) and 300 <= status < 600), None)


def model_error(error: BaseException, where: str, scrub: Scrubber, request: Request | None = None) -> ModelError:
    """Return an exception of the SDK, raised by a request, as a ModelError."""
    for cause in causes(error):
        if isinstance(cause, ModelError):  # ours, perhaps wrapped by the SDK on its way out
            return ModelError(f"{where}: {cause}", cause.kind, cause.retry_after_seconds, cause.may_be_billed)
    said = refusal(error, scrub)
    if said is not None:
        kind = _kind_of_status(said)
        what = f"status {said.status}" + (f" ({said.words})" if said.words else "")
        billed = not _is_unbilled(said.status)
        remedy = _REMEDIES[kind]
        if said.status in _REFUSES_FORM and request is not None and (request.schema is not None or request.must_call):
            asked = "tool calls" if request.schema is None else "a JSON schema"
            remedy = f"if it does not take {asked}, use --protocol text; otherwise {remedy}"
        return ModelError(f"{where}: {what}; {remedy}", kind, said.retry_after_seconds, billed)
    names = [type(cause).__name__ for cause in causes(error)]
    kind = _kind_of_names(set(names))
    return ModelError(f"{where}: {kind} ({names[-1]}); {_REMEDIES[kind]}", kind)


def causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception and what led to it, outermost first."""
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__ or current.__context__


def _kind_of_status(said: Refusal) -> str:
    if said.status == 429:
        # An account without credit also answers 429, and waiting does not help.
        return "rejected" if said.code == "insufficient_quota" else "rate-limit"
    return "server" if said.status in _BUSY else "rejected"


def _is_unbilled(status: int) -> bool:
    """True if a status says that the request was refused before any work; a gateway may bill all others."""
    return status in _OVERLOADED or (400 <= status < 500 and status not in _BEGUN)


def _kind_of_names(names: set[str]) -> str:
    if "BodyTooLarge" in names:
        return "too-large"
    if names & _NO_ROUTE:
        return "unreachable"
    return "timeout" if names & _TOO_LATE else "dropped"


def retry_after(headers: Mapping[str, Any]) -> float | None:
    """Return the wait that a server asks for in its headers: milliseconds, seconds, or until a date."""
    try:
        if (milliseconds := headers.get("retry-after-ms")) is not None:
            seconds = float(milliseconds) / 1000
        elif (stated := headers.get("retry-after")) is None:
            return None
        elif str(stated).strip()[:1].isdigit():
            seconds = float(stated)
        else:
            seconds = (parsedate_to_datetime(stated) - parsedate_to_datetime(headers["date"])).total_seconds()
    except (ValueError, TypeError, KeyError, OverflowError):
        return None
    return max(0.0, seconds) if isfinite(seconds) else None
