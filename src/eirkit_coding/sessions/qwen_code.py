"""Reads Qwen Code sessions: JSON lines with the keys of Claude Code, whose messages consist of Gemini's parts.

A compression is recorded with the history that replaced the context, which says exactly what stayed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from eirkit.vestige.formats.gemini_parts import answer, ask, part_texts, response_text, usage_of_parts
from eirkit.vestige.formats.messages import text_of
from eirkit.vestige.formats.run_builder import (
    RunBuilder,
    count_of,
    items_of,
    mapping_of,
    string_of,
)
from eirkit.vestige.sources.documents import LogDocument, Skipped
from eirkit.vestige.trajectory import MARKED, KeptContext, Recording, formats
from eirkit_coding.sessions.appended import read_sessions

Entry = Mapping[str, Any]

_SHOWN = re.compile(r"\AShowing lines \d{1,9}-\d{1,9} of \d{1,9} total lines\.\n\n---\n\n")


@formats.add("qwen-code")
class QwenCode:
    """Session files of Qwen Code."""

    def recognizes(self, document: LogDocument) -> int:
        """Return whether the lines have session and parent, and messages of parts."""
        return MARKED if any(map(_is_entry, document.first_records)) else 0

    def read(self, document: LogDocument) -> Iterator[Recording | Skipped]:
        """Yield the session's one run, or those of sessions that were appended to one file."""
        yield from read_sessions(document, _Session)


class _Session:
    """The state while a session is read."""

    def __init__(self) -> None:
        self.builder = RunBuilder()
        self.facts: dict[str, Any] = {}

    def session_of(self, entry: Entry) -> str:
        """Return the name of the session that a line belongs to."""
        return string_of(entry.get("sessionId"))

    def take(self, entry: Entry) -> None:
        """Process one line."""
        for name in ("sessionId", "cwd", "version", "model", "contextWindowSize"):
            if entry.get(name):
                self.facts.setdefault(name, entry[name])
        _take(self.builder, entry)

    def recording(self, document: LogDocument, place: str = "") -> Recording | Skipped:
        """Return the run."""
        return self.builder.recording(
            document,
            "qwen-code",
            string_of(self.facts.get("sessionId")),
            place=place,
            model=string_of(self.facts.get("model")),
            root=string_of(self.facts.get("cwd")),
            agent_version=string_of(self.facts.get("version")),
            window=count_of(self.facts.get("contextWindowSize")),
        )


def _is_entry(entry: Entry) -> bool:
    own = "parts" in mapping_of(entry.get("message")) or "systemPayload" in entry
    return own and "sessionId" in entry and "uuid" in entry and "parentUuid" in entry


def _take(builder: RunBuilder, entry: Entry) -> None:
    kind, parts = entry.get("type"), mapping_of(entry.get("message")).get("parts")
    if kind == "assistant":
        builder.begin()
        builder.say(text_of(parts))
        builder.use(usage_of_parts(mapping_of(entry.get("usageMetadata"))))
        for part in items_of(parts):
            if "functionCall" in part:
                ask(builder, _from_one(mapping_of(part["functionCall"])))
    elif kind == "tool_result":
        failed = mapping_of(entry.get("toolCallResult")).get("status") in ("error", "cancelled")
        for part in items_of(parts):
            response = mapping_of(part.get("functionResponse"))
            text = _SHOWN.sub("", response_text(response.get("response")))
            answer(builder, string_of(response.get("id")), text, failed=failed)
    elif kind == "user":
        is_own = entry.get("provenance", "real_user") == "real_user"
        (builder.request if is_own else builder.hear)(text_of(parts))
    elif entry.get("subtype") == "chat_compression":
        _compress(builder, mapping_of(entry.get("systemPayload")))


def _from_one(call: Entry) -> Entry:
    """Return a call whose lines are counted from 1; this agent's `offset` is the number of lines before them."""
    arguments = mapping_of(call.get("args"))
    offset, limit = arguments.get("offset"), arguments.get("limit")
    if call.get("name") != "read_file" or type(offset) is not int:
        return call
    last = {"end_line": offset + limit} if type(limit) is int else {}
    rest = {name: value for name, value in arguments.items() if name not in ("offset", "limit")}
    return {**call, "args": {**rest, "start_line": offset + 1, **last}}


def _compress(builder: RunBuilder, payload: Entry) -> None:
    info, history = mapping_of(payload.get("info")), payload.get("compressedHistory")
    texts = [text for message in items_of(history) for text in part_texts(message.get("parts")) if text]
    # A context is compressed before a message is sent, so results that wait to be sent come after what stayed.
    waiting = (builder.turn_count,) if builder.is_waiting else ()
    builder.break_off("compaction")
    builder.carry("\n\n".join(text for text in texts if "<state_snapshot>" in text))
    builder.keep(
        KeptContext(
            "history" if texts else "size",
            tuple(texts),
            turns=waiting,
            is_complete=bool(texts),
            tokens_before=count_of(info.get("originalTokenCount")) or None,
            tokens_after=count_of(info.get("newTokenCount")) or None,
        )
    )
