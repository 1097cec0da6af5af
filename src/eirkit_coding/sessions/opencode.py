"""Reads opencode sessions: its SQLite database, its older storage of one JSON file a message, and `opencode export`.

A message of the agent is a turn, with a part for each call and its result. A compaction is a user's message with a part
of that type, followed by the summary; nothing before it is sent again. A sub-agent is a session that names its parent.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from eirkit.errors import InputFileError
from eirkit.vestige.formats.messages import arguments_of, shell_name
from eirkit.vestige.formats.run_builder import (
    RunBuilder,
    count_of,
    is_own_file,
    items_of,
    logged_usage,
    mapping_of,
    parsed,
    seconds_of,
    skipped,
    string_of,
    whole_document,
)
from eirkit.vestige.sources.databases import MAGIC, files_beside, has_columns, open_database, rows_of, sessions_of
from eirkit.vestige.sources.documents import LogDocument, Skipped, open_document
from eirkit.vestige.sources.members import Folder
from eirkit.vestige.trajectory import MARKED, KeptContext, LoggedUsage, Recording, formats

Object = Mapping[str, Any]

TABLES = {"session": ("id", "directory", "version"), "message": ("session_id", "data"), "part": ("message_id", "data")}
_STORAGE = ("message", "part")
_NAME = re.compile(r"[A-Za-z0-9_-]{1,200}")  # ids that name files; any other is hostile
_VIEW = re.compile(  # what the tool `read` puts around the lines of a file
    r"\A<path>[^\n]*</path>\n<type>file</type>\n<content>\n(.*?)"
    r"\n\n\((?:Showing lines|End of file|Output capped)[^\n]*\n</content>.*\Z",
    re.DOTALL,
)


@formats.add("opencode")
class Opencode:
    """Sessions of opencode."""

    def recognizes(self, document: LogDocument) -> int:
        """Return whether a database has its tables, or an object is a session of its storage or of an export."""
        head = document.head
        if head.startswith(MAGIC):
            return MARKED if has_columns(document, TABLES) else 0
        if b"projectID" not in document.quoted:
            return 0
        start = head.lstrip()
        is_export = start.startswith(b"{") and b'"info"' in start[:20] and b"slug" in document.quoted
        is_session = b"directory" in document.quoted and _storage(document) is not None
        return MARKED if is_export or is_session else 0

    def claims(self, folder: Folder, names: Sequence[str]) -> Collection[str]:
        """Return the messages and parts beside sessions, and the files that belong to a database."""
        stored = [name for name in names if name != "session"] if {"session", *_STORAGE} <= set(names) else []
        return [*stored, *files_beside(names)]

    def read(self, document: LogDocument) -> Iterator[Recording | Skipped]:
        """Yield the run of each session."""
        try:
            if document.head.startswith(MAGIC):
                yield from _read_database(document)
                return
            content = whole_document(document)
            if isinstance(content, Skipped):
                yield content
            elif "messages" in content:
                told = [
                    (mapping_of(one.get("info")), items_of(one.get("parts"))) for one in items_of(content["messages"])
                ]
                yield _recording(document, mapping_of(content.get("info")), told, "")
            else:
                yield _recording(document, content, list(_stored(document, content)), "")
        except InputFileError as error:
            yield skipped(document, error)


def _read_database(document: LogDocument) -> Iterator[Recording | Skipped]:
    with open_database(document) as connection:
        for session in sessions_of(connection, "session"):
            parts: dict[str, list[Object]] = {}
            query = "SELECT message_id, data FROM part WHERE session_id = ? ORDER BY id"
            for row in rows_of(connection, query, session["id"]):
                parts.setdefault(row["message_id"], []).append(mapping_of(parsed(row["data"])))
            query = "SELECT id, data FROM message WHERE session_id = ? ORDER BY time_created, id"
            rows = rows_of(connection, query, session["id"])
            told = [(mapping_of(parsed(row["data"])), parts.get(row["id"], [])) for row in rows]
            yield _recording(document, {**session, "parentID": session.get("parent_id")}, told, str(session["id"]))


def _storage(document: LogDocument) -> Folder | None:
    """Return the folder of the older storage, in which sessions are in `session/PROJECT`."""
    folder = None if document.parent is None else document.parent.parent
    if folder is None or folder.name != "session" or not (folder.parent / "message").is_dir():
        return None
    return folder.parent


def _stored(document: LogDocument, session: Object) -> Iterator[tuple[Object, list[Object]]]:
    storage, id = _storage(document), string_of(session.get("id"))
    if storage is None or not _NAME.fullmatch(id):
        return
    loose: dict[str, list[Object]] = {}  # by message; the oldest versions keep all parts in one folder
    for part in _objects(storage / "part", storage):
        loose.setdefault(string_of(part.get("messageID")), []).append(part)
    messages = sorted(_objects(storage / "message" / id, storage), key=_created)
    for message in messages:
        own = string_of(message.get("id"))
        parts = list(_objects(storage / "part" / own, storage)) if _NAME.fullmatch(own) else []
        yield message, parts or loose.get(own, [])


def stored_messages(document: LogDocument) -> Iterator[tuple[Object, str]]:
    """Yield the messages of an export or of the older storage, each with the folder of its session."""
    session = whole_document(document)
    if isinstance(session, Skipped):
        return
    if "messages" in session:
        folder = string_of(mapping_of(session.get("info")).get("directory"))
        yield from ((mapping_of(one.get("info")), folder) for one in items_of(session["messages"]))
    else:
        yield from ((message, string_of(session.get("directory"))) for message, _ in _stored(document, session))


def _created(message: Object) -> tuple[int, str]:
    return count_of(mapping_of(message.get("time")).get("created")), string_of(message.get("id"))


def _objects(folder: Folder, storage: Folder) -> Iterator[Object]:
    """Yield the objects in a folder's files, in the order of their names."""
    found: list[Folder] = [*folder.iterdir()] if folder.is_dir() else []
    for path in sorted(found, key=lambda one: one.name):
        if path.suffix == ".json" and is_own_file(path, storage):
            yield mapping_of(open_document(path).json())


def _recording(
    document: LogDocument, session: Object, told: Sequence[tuple[Object, Sequence[Object]]], place: str
) -> Recording | Skipped:
    builder = RunBuilder()
    for message, parts in told:
        _take(builder, message, parts)
    return builder.recording(
        document,
        "opencode",
        string_of(session.get("id")),
        place=place,
        parent=string_of(session.get("parentID")),
        model=next(filter(None, (_model(message) for message, _ in told)), ""),
        root=string_of(session.get("directory")),
        agent_version=string_of(session.get("version")),
    )


def _model(message: Object) -> str:
    return string_of(message.get("modelID")) or string_of(mapping_of(message.get("model")).get("modelID"))


def _take(builder: RunBuilder, message: Object, parts: Sequence[Object]) -> None:
    text = "\n".join(string_of(part.get("text")) for part in parts if part.get("type") == "text")
    if message.get("role") == "user":
        if asked := next((part for part in parts if part.get("type") == "compaction"), None):
            is_automatic = asked.get("auto")
            builder.break_off("compaction", "auto" if is_automatic is True else is_automatic is False and "manual")
            builder.keep(KeptContext("history", is_complete=True))
        else:
            is_own = not any(part.get("synthetic") is True for part in parts)
            (builder.request if is_own else builder.hear)(text)
    elif message.get("summary") is True:
        if not builder.is_broken:
            builder.break_off("compaction")
        builder.carry(text)
    elif message.get("role") == "assistant":
        builder.begin(seconds_of(mapping_of(message.get("time")).get("created")))
        builder.say(text)
        builder.use(_usage(mapping_of(message.get("tokens"))))
        for part in parts:
            if part.get("type") == "tool":
                _take_call(builder, part)


def _take_call(builder: RunBuilder, part: Object) -> None:
    state, id = mapping_of(part.get("state")), string_of(part.get("callID"))
    arguments, more = arguments_of(state.get("input")), mapping_of(state.get("metadata"))
    folder = string_of(arguments.get("workdir")) or string_of(arguments.get("cwd"))
    builder.ask(id, shell_name(string_of(part.get("tool")), arguments), arguments, folder or None)
    failed = state.get("status") == "error"
    output = string_of(state.get("error")) if failed else _VIEW.sub(r"\1", string_of(state.get("output")))
    code = more.get("exit")
    builder.answer(id, output, failed=failed, exit_code=code)


def _usage(tokens: Object) -> LoggedUsage | None:
    if not tokens:
        return None
    cache = mapping_of(tokens.get("cache"))
    given = (tokens.get("input"), cache.get("read"), cache.get("write"))
    return logged_usage(given, map(tokens.get, ("output", "reasoning")), cache.get("read"))
