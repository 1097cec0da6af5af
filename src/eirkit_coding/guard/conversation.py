"""The messages of requests to models: those of OpenAI-like and Anthropic-like servers in one shape, as first seen.

A request carries the whole context, so that what one no longer has shows what left it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from eirkit.vestige.formats.messages import content_of, text_of
from eirkit.vestige.formats.run_builder import items_of, string_of

Message = Mapping[str, Any]
Key = tuple[str, ...]

_OPENING = ("system", "developer")
_PARTS = ("role", "content", "tool_calls", "function_call", "text", "value")


@dataclass(frozen=True, slots=True)
class ContextChange:
    """What one request changed compared with the previous one."""

    added: int  # messages never seen before
    gone: int  # messages of the previous request that are missing here or have another text


class Transcript:
    """One conversation, as far as its requests show it."""

    def __init__(self) -> None:
        self._texts: dict[Key, str] = {}  # of the last request
        self._messages: dict[Key, Message] = {}  # as first seen, in order of appearance

    @property
    def messages(self) -> list[Message]:
        """Every message ever sent, as first seen."""
        return list(self._messages.values())

    @property
    def visible(self) -> list[str]:
        """The texts of the last request."""
        return list(self._texts.values())

    def overlaps(self, messages: Sequence[object]) -> bool:
        """Return whether a context shares a message with this conversation, apart from common opening messages."""
        keys = [key for key, message in _keyed(openai_messages(messages)) if message.get("role") not in _OPENING]
        return any(key in self._messages for key in keys)

    def take(self, messages: Sequence[object]) -> ContextChange:
        """Add the context of one request."""
        now: dict[Key, str] = {}
        known = len(self._messages)
        for key, message in _keyed(openai_messages(messages)):
            now[key] = whole_text(message)
            self._messages.setdefault(key, message)
        gone = sum(1 for key, text in self._texts.items() if now.get(key) != text)
        self._texts = now
        return ContextChange(len(self._messages) - known, gone)


def openai_messages(messages: Sequence[object]) -> Iterator[Message]:
    """Yield messages of either kind of server in OpenAI's shape, with one message per tool result."""
    for message in messages:
        if not isinstance(message, dict):
            continue
        blocks = list(items_of(message.get("content"))) if isinstance(message.get("content"), list) else []
        if any(block.get("type") == "tool_use" for block in blocks):
            yield {"role": "assistant", "content": text_of(message["content"]), "tool_calls": list(_calls(blocks))}
        elif any(block.get("type") == "tool_result" for block in blocks):
            yield from _results(blocks)
        else:
            yield message


def _calls(blocks: Iterable[Message]) -> Iterator[Message]:
    for block in blocks:
        if block.get("type") == "tool_use":
            name, arguments = string_of(block.get("name")), block.get("input")
            function = {"name": "bash" if name == "Bash" else name, "arguments": arguments}
            yield {"id": string_of(block.get("id")), "function": function}


def _results(blocks: Iterable[Message]) -> Iterator[Message]:
    for block in blocks:
        if block.get("type") == "tool_result":
            content = text_of(block.get("content"))
            yield {"role": "tool", "tool_call_id": string_of(block.get("tool_use_id")), "content": content}
        elif text := string_of(block.get("text")):
            yield {"role": "user", "content": text}


def whole_text(message: Message) -> str:
    """Return the text that a message puts into the context, the arguments of its calls included."""
    calls = message.get("tool_calls")
    text = text_of(content_of(message))
    return text if not calls else "\n".join([text, *_strings(calls)])


def _strings(value: object, depth: int = 6) -> Iterator[str]:
    """Yield the strings in a value; JSON text in arguments is decoded, so that escaped line breaks are real ones."""
    if isinstance(value, str):
        opened = _opened(value) if value.lstrip().startswith("{") else None
        if opened is None or depth == 0:
            yield value
        else:
            yield from _strings(opened, depth - 1)
    elif isinstance(value, (dict, list)) and depth:
        for item in value.values() if isinstance(value, dict) else value:
            yield from _strings(item, depth - 1)


def _opened(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _keyed(messages: Iterable[Message]) -> Iterator[tuple[Key, Message]]:
    """Yield messages with a key that stays the same in the next request: the call that it answers, or its text."""
    seen: Counter[Key] = Counter()
    for message in messages:
        answered = string_of(message.get("tool_call_id"))
        key: Key = ("answer", answered) if answered else ("text", _digest(message))
        seen[key] += 1
        yield (*key, str(seen[key])), message


def _digest(message: Message) -> str:
    parts = {name: message.get(name) for name in _PARTS}
    parts["content"] = text_of(content_of(message))  # clients add keys such as cache_control to blocks later
    return sha256(json.dumps(parts, sort_keys=True, default=str).encode("utf-8", "replace")).hexdigest()
