"""Reads sessions that are JSON lines of messages with blocks of text, calls and results: Cursor and Droid.

Cursor's calls have no id, so a result belongs to the last call. Of Droid, the stream that it prints is read, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from eirkit.vestige.formats.messages import arguments_of, take_reply, take_results, text_of
from eirkit.vestige.formats.run_builder import RunBuilder, items_of, mapping_of, string_of, take_lines
from eirkit.vestige.sources.documents import LogDocument, Skipped
from eirkit.vestige.trajectory import MARKED, SHAPE, Recording, formats
from eirkit_coding.sessions.appended import read_sessions

Line = Mapping[str, Any]


@formats.add("cursor")
class Cursor:
    """Transcripts of Cursor's agent: lines of a role and a message."""

    def recognizes(self, document: LogDocument) -> int:
        """Return whether the lines consist of a role and a message of blocks, a shape without any name."""
        records = [record for record in document.first_records if not _is_end(record)]
        return SHAPE if records and all(map(_is_bare, records)) else 0

    def read(self, document: LogDocument) -> Iterator[Recording | Skipped]:
        """Yield the transcript's one run."""
        builder = RunBuilder()

        def take(line: Line) -> None:
            _take_message(builder, string_of(line.get("role")), mapping_of(line.get("message")).get("content"))

        yield from take_lines(document, take)
        folder = document.parent
        parent = folder.parent.name if folder is not None and folder.name == "subagents" else ""
        yield builder.recording(document, "cursor", "", parent=parent)


def _is_bare(record: Line) -> bool:
    is_said = record.get("role") in ("user", "assistant") and isinstance(record.get("message"), dict)
    return is_said and isinstance(record["message"].get("content"), list) and "sessionId" not in record


def _is_end(record: Line) -> bool:
    """Return whether a line says how a turn ended."""
    return record.get("type") == "turn_ended" and "role" not in record


@formats.add("droid")
class Droid:
    """Sessions of Factory's Droid, and the stream that it prints."""

    def recognizes(self, document: LogDocument) -> int:
        """Return whether a session starts and messages follow, or calls are named as in its stream."""
        records = document.first_records
        is_session = any(record.get("type") == "session_start" and "cwd" in record for record in records)
        is_stream = any(record.get("type") == "tool_call" and "toolName" in record for record in records)
        return MARKED if is_session or (is_stream and any(map(_session, records))) else 0

    def read(self, document: LogDocument) -> Iterator[Recording | Skipped]:
        """Yield the session's one run, or those of sessions that were appended to one file."""
        yield from read_sessions(document, _DroidSession)


class _DroidSession:
    """The state while a session is read."""

    def __init__(self) -> None:
        self.builder = RunBuilder()
        self.start: Line = {}

    def session_of(self, line: Line) -> str:
        """Return the name of the session that a line starts or belongs to."""
        return _session(line) or (string_of(line.get("id")) if line.get("type") == "session_start" else "")

    def take(self, line: Line) -> None:
        """Process one line."""
        if line.get("type") in ("session_start", "system"):
            self.start = self.start or line
        _take_line(self.builder, line)

    def recording(self, document: LogDocument, place: str = "") -> Recording | Skipped:
        """Return the run."""
        return self.builder.recording(
            document,
            "droid",
            _session(self.start) or string_of(self.start.get("id")),
            place=place,
            model=string_of(self.start.get("model")),
            root=string_of(self.start.get("cwd")),
            agent_version=string_of(self.start.get("version")),
        )


def _session(record: Line) -> str:
    return string_of(record.get("session_id")) or string_of(record.get("sessionId"))


def _take_line(builder: RunBuilder, line: Line) -> None:
    kind, id = line.get("type"), string_of(line.get("toolCallId")) or string_of(line.get("id"))
    if kind == "message" and "message" in line:
        message = mapping_of(line.get("message"))
        _take_message(builder, string_of(message.get("role")), message.get("content"))
    elif kind == "message":
        _take_message(builder, string_of(line.get("role")), [{"type": "text", "text": string_of(line.get("text"))}])
    elif kind == "tool_call":
        builder.begin()
        arguments = arguments_of(line.get("parameters"))
        builder.ask(id, _tool(string_of(line.get("toolName")), arguments), arguments)
    elif kind == "tool_result":
        value = line.get("value")
        code = mapping_of(value).get("exitCode")
        shown = (
            string_of(mapping_of(value).get("stdout")) or text_of(mapping_of(value).get("content")) or text_of(value)
        )
        failed = line.get("isError") is True
        builder.answer(id, shown, failed=failed, exit_code=code)


def _take_message(builder: RunBuilder, role: str, content: object) -> None:
    if role == "assistant":
        builder.begin()
        take_reply(builder, [_named(block) for block in items_of(content)])
    elif role == "user":
        results = [block for block in items_of(content) if block.get("type") == "tool_result"]
        known = [block for block in results if builder.asked(string_of(block.get("tool_use_id"))) is not None]
        take_results(builder, known, {})
        for block in results:
            if block not in known:
                builder.answer_last(text_of(block.get("content")), failed=block.get("is_error") is True)
        if not results:
            builder.request(text_of(content))


def _named(block: Line) -> Line:
    if block.get("type") != "tool_use":
        return block
    return {**block, "name": _tool(string_of(block.get("name")), arguments_of(block.get("input")))}


def _tool(name: str, arguments: Line) -> str:
    is_command = name in ("Execute", "Shell", "Bash") and isinstance(arguments.get("command"), str)
    return "bash" if is_command else name
