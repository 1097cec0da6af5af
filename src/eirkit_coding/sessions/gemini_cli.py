"""Reads Gemini CLI sessions: one object with messages, or JSON lines of a head, messages and changes (`$set`).

In JSON lines a message that comes again under its id replaces the earlier version, and `$set.messages` is the history
as it is from then on: if calls are missing in it, the context was compacted, and it says exactly what stayed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from eirkit.vestige.formats.gemini_parts import answer, ask, call_ids, part_texts, response_text
from eirkit.vestige.formats.messages import text_of
from eirkit.vestige.formats.run_builder import (
    RunBuilder,
    items_of,
    logged_usage,
    mapping_of,
    seconds_of,
    string_of,
    whole_document,
)
from eirkit.vestige.sources.documents import LogDocument, Skipped
from eirkit.vestige.trajectory import MARKED, KeptContext, LoggedUsage, Recording, formats
from eirkit_coding.sessions.appended import read_sessions

Message = Mapping[str, Any]

_WORKSPACE = re.compile(
    r"(?:working in the directory: |Workspace Directories:\*{0,2}\s{1,4}(?:- )?)((?:/|[A-Za-z]:[\\/])[^\r\n]{1,500})"
)
_HEAD_KEYS = frozenset({b"sessionId", b"projectHash", b"messages"})
_FAILED = frozenset({"error", "cancelled"})
_WRITTEN = re.compile(
    r"\ASuccessfully [a-z ]{1,40} file: ([^\n]{1,500})"
)  # with the whole path, whatever the call named


@formats.add("gemini-cli")
class GeminiCli:
    """Session files of Gemini CLI."""

    def recognizes(self, document: LogDocument) -> int:
        """Return whether an object, or the first line, has a session and the project's hash."""
        if any(map(_is_head, document.first_records)):
            return MARKED
        is_object = document.head.lstrip().startswith(b"{")
        return MARKED if is_object and _HEAD_KEYS.issubset(document.quoted) else 0

    def read(self, document: LogDocument) -> Iterator[Recording | Skipped]:
        """Yield the session's one run, or those of sessions of JSON lines that were appended to one file."""
        if any(_is_head(record) and "messages" not in record for record in document.first_records):
            yield from read_sessions(document, _Session)
            return
        whole = whole_document(document)
        if isinstance(whole, Skipped):
            yield whole
            return
        session = _Session()
        session.take(whole)
        for message in items_of(whole.get("messages")):
            session.take_message(message)
        yield session.recording(document)


def _is_head(record: Message) -> bool:
    return "sessionId" in record and "projectHash" in record


class _Session:
    """The state while a session is read."""

    def __init__(self) -> None:
        self.builder = RunBuilder()
        self.head: Message = {}
        self.model = ""
        self.folder: str | None = None
        self.turn_at: dict[str, int] = {}  # for each message, the number of turns before it
        self.told: Sequence[Message] | None = None  # the history that replaces the present one
        self.in_context: set[str] = set()  # calls whose results the model still sees

    def session_of(self, line: Message) -> str:
        """Return the name of the session that a head starts; a sub-agent's head names the session of its parent."""
        if not _is_head(line):
            return ""
        id, kind = string_of(line.get("sessionId")), string_of(line.get("kind")) or "main"
        return id if kind == "main" else f"{id}/{kind}/{string_of(line.get('startTime'))}"

    def take(self, line: Message) -> None:
        """Process one line of JSON lines."""
        if "$set" in line:
            history = mapping_of(line["$set"]).get("messages")
            if isinstance(history, list):
                self.told = items_of(history)  # several in a row retell one change: the last one counts
        elif "$rewindTo" in line:
            self.builder.drop_from(self.turn_at.get(string_of(line["$rewindTo"]), self.builder.turn_count))
        elif _is_head(line):
            self.head = self.head or line
        else:
            self.take_message(line)

    def take_message(self, message: Message) -> None:
        """Process a message."""
        told, self.told = self.told, None
        if told is not None:
            self._replace(told)
        id, kind = string_of(message.get("id")), message.get("type")
        is_new = not id or id not in self.turn_at
        if is_new:
            self.turn_at[id] = self.builder.turn_count
        if kind == "gemini":
            self._take_reply(message, is_new)
        elif kind == "user" and is_new:
            text = text_of(message.get("content"))
            is_own = not text.startswith("<session_context>")
            self.folder = self.folder or (None if is_own else _folder(text))
            (self.builder.request if is_own else self.builder.hear)(text)

    def _take_reply(self, message: Message, is_new: bool) -> None:
        self.model = self.model or string_of(message.get("model"))
        if is_new or not self.builder.turn_count:
            self.builder.begin(seconds_of(message.get("timestamp")))
            self.builder.say(text_of(message.get("content")))
        self.builder.use(_usage(mapping_of(message.get("tokens"))))
        for call in items_of(message.get("toolCalls")):
            ask(self.builder, call)
            id = string_of(call.get("id"))
            self.in_context.add(id)
            if call.get("result") is not None:
                failed = string_of(call.get("status")) in _FAILED
                output = _output(call.get("result"))
                self.folder = self.folder or _folder_of_write(call, output)
                answer(self.builder, id, output, failed=failed)

    def _replace(self, history: Sequence[Message]) -> None:
        """Take a history that replaces the present one."""
        if not self.builder.turn_count:
            for message in history:
                self.take_message(message)
            return
        kept = {id for message in history for id in _ids(message)}
        if self.in_context <= kept:
            return  # it is told again, as when a session is resumed
        texts = tuple(filter(None, (text for message in history for text in _texts(message))))
        self.builder.break_off("compaction")
        self.builder.carry("\n\n".join(text for text in texts if "<state_snapshot>" in text))
        self.builder.keep(KeptContext("history", texts, is_complete=True))
        self.in_context &= kept
        self.turn_at.update(dict.fromkeys((string_of(one.get("id")) for one in history), self.builder.turn_count))

    def recording(self, document: LogDocument, place: str = "") -> Recording | Skipped:
        """Return the run."""
        run_id, kind = string_of(self.head.get("sessionId")), string_of(self.head.get("kind")) or "main"
        parent = "" if kind == "main" else run_id
        return self.builder.recording(
            document,
            "gemini-cli",
            place or f"{run_id}/{document.name.removesuffix('.jsonl')}" if parent else run_id,
            place=place,
            parent=parent,
            model=self.model,
            root=self.folder,
            details={"agent": kind} if parent else {},
        )


def _folder(context: str) -> str | None:
    """Return the folder in which a session runs, as its context names it."""
    found = _WORKSPACE.search(context)
    return found[1] if found else None


def _folder_of_write(call: Message, output: str) -> str | None:
    """Return the folder in which a session runs, where a call named a file in it and the result the whole path."""
    name = string_of(mapping_of(call.get("args")).get("file_path")).removeprefix("./")
    told = _WRITTEN.match(output)
    if told is None or not name:
        return None
    folder, found, _ = told[1].replace("\\", "/").rpartition("/" + name.replace("\\", "/"))
    return (folder or "/") if found else None


def _texts(message: Message) -> Iterator[str]:
    """Yield what a message of a history shows the model, with the results of its calls."""
    content = message.get("content")
    if isinstance(content, str):
        yield content
    yield from part_texts(content)
    for call in items_of(message.get("toolCalls")):
        yield _output(call.get("result"))
        yield from (value for value in mapping_of(call.get("args")).values() if isinstance(value, str))


def _ids(message: Message) -> Iterator[str]:
    yield from call_ids(message.get("content"))
    yield from (string_of(call.get("id")) for call in items_of(message.get("toolCalls")))


def _output(result: object) -> str:
    if isinstance(result, str):
        return result
    responses = (mapping_of(part.get("functionResponse")).get("response") for part in items_of(result))
    return "\n".join(map(response_text, responses))


def _usage(tokens: Mapping[str, Any]) -> LoggedUsage | None:
    if not tokens:
        return None
    return logged_usage([tokens.get("input")], map(tokens.get, ("output", "thoughts")), tokens.get("cached"))
