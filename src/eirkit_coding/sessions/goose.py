"""Reads goose sessions: its SQLite database, `goose session export`, and the JSON lines of older versions.

After a compaction the messages that the model no longer sees are marked (`agentVisible`), which says what stayed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from eirkit.errors import InputFileError
from eirkit.vestige.formats.messages import arguments_of, said_text, shell_name, text_of
from eirkit.vestige.formats.run_builder import (
    RunBuilder,
    items_of,
    mapping_of,
    parsed,
    skipped,
    string_of,
    take_lines,
    whole_document,
)
from eirkit.vestige.sources.databases import MAGIC, files_beside, has_columns, open_database, rows_of, sessions_of
from eirkit.vestige.sources.documents import LogDocument, Skipped
from eirkit.vestige.sources.members import Folder
from eirkit.vestige.trajectory import MARKED, KeptContext, Recording, formats

Object = Mapping[str, Any]

_TABLES = {"sessions": ("id", "working_dir"), "messages": ("session_id", "role", "content_json")}


@formats.add("goose")
class Goose:
    """Sessions of goose."""

    def recognizes(self, document: LogDocument) -> int:
        """Return whether a database has its tables, or an object or a first line has a working folder of a session."""
        head = document.head
        if head.startswith(MAGIC):
            return MARKED if has_columns(document, _TABLES) else 0
        if not head.lstrip().startswith(b"{") or b"working_dir" not in document.quoted:
            return 0
        is_export = b"conversation" in document.quoted and b"goose_mode" in document.quoted
        return MARKED if is_export or any(map(_is_header, document.first_records)) else 0

    def claims(self, folder: Folder, names: Sequence[str]) -> Collection[str]:
        """Return the files that belong to a database."""
        return files_beside(names)

    def read(self, document: LogDocument) -> Iterator[Recording | Skipped]:
        """Yield the run of each session."""
        try:
            if document.head.startswith(MAGIC):
                yield from _read_database(document)
            elif any(map(_is_header, document.first_records)):
                yield from _read_lines(document)
            else:
                session = whole_document(document)
                messages = [] if isinstance(session, Skipped) else items_of(session.get("conversation"))
                yield session if isinstance(session, Skipped) else _recording(document, session, messages, "")
        except InputFileError as error:
            yield skipped(document, error)


def _is_header(record: Object) -> bool:
    return "working_dir" in record and "role" not in record and "conversation" not in record


def _read_database(document: LogDocument) -> Iterator[Recording | Skipped]:
    with open_database(document) as connection:
        for session in sessions_of(connection, "sessions"):
            query = "SELECT role, content_json, metadata_json FROM messages WHERE session_id = ? ORDER BY id"
            rows = rows_of(connection, query, session["id"])
            messages = [
                {"role": row["role"], "content": parsed(row["content_json"]), "metadata": parsed(row["metadata_json"])}
                for row in rows
            ]
            yield _recording(document, session, messages, str(session["id"]))


def _read_lines(document: LogDocument) -> Iterator[Recording | Skipped]:
    lines: list[Object] = []
    yield from take_lines(document, lines.append)
    header = next(filter(_is_header, lines), {})
    messages = [line for line in lines if not _is_header(line)]
    yield _recording(document, {"id": document.name.removesuffix(".jsonl"), **header}, messages, "")


def _recording(document: LogDocument, session: Object, messages: Sequence[Object], place: str) -> Recording | Skipped:
    builder = RunBuilder()
    was_visible = True
    for number, message in enumerate(messages):
        is_visible = _is_visible(message)
        if is_visible and not was_visible:
            # A compaction: of what came before, the model sees what is still visible.
            later = next((n for n in range(number, len(messages)) if _is_reply(messages[n])), len(messages))
            kept = [text for message in messages[:later] if _is_visible(message) for text in _texts(message)]
            builder.break_off("compaction")
            builder.carry(next(iter(_texts(messages[number])), ""))
            builder.keep(KeptContext("history", tuple(kept), is_complete=True))
        was_visible = is_visible
        _take(builder, message)
    config = session.get("model_config", parsed(session.get("model_config_json")))
    return builder.recording(
        document,
        "goose",
        string_of(session.get("id")),
        place=place,
        model=string_of(mapping_of(config).get("model_name")),
        root=string_of(session.get("working_dir")),
    )


def _is_visible(message: Object) -> bool:
    return mapping_of(message.get("metadata")).get("agentVisible") is not False


def _is_reply(message: Object) -> bool:
    # The note about the compaction has the agent's role, too.
    is_shown = mapping_of(message.get("metadata")).get("userVisible") is not False
    return message.get("role") == "assistant" and is_shown


def _texts(message: Object) -> Iterator[str]:
    for block in items_of(message.get("content")):
        yield from filter(None, (string_of(block.get("text")), _result(block)))


def _result(block: Object) -> str:
    result = mapping_of(block.get("toolResult"))
    value = result.get("value")
    content = value.get("content") if isinstance(value, dict) else value
    return text_of(content) or string_of(result.get("error"))


def _take(builder: RunBuilder, message: Object) -> None:
    blocks = items_of(message.get("content"))
    if _is_reply(message):
        builder.begin()
        builder.say(said_text(blocks))
        for block in blocks:
            if block.get("type") == "toolRequest":
                call = mapping_of(mapping_of(block.get("toolCall")).get("value"))
                arguments = arguments_of(call.get("arguments"))
                tool = string_of(call.get("name")).rpartition("__")[2]
                builder.ask(string_of(block.get("id")), shell_name(tool, arguments), arguments)
    elif message.get("role") == "user":
        for block in blocks:
            if block.get("type") == "toolResponse":
                result = mapping_of(block.get("toolResult"))
                value = mapping_of(result.get("value"))
                code = mapping_of(value.get("structuredContent")).get("exit_code")
                failed = result.get("status") == "error" or value.get("isError") is True
                builder.answer(string_of(block.get("id")), _result(block), failed=failed, exit_code=code)
        is_own = mapping_of(message.get("metadata")).get("userVisible") is not False
        if is_own and any(block.get("type") == "text" for block in blocks):
            builder.request(said_text(blocks))
