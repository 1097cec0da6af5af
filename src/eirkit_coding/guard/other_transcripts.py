"""Lines of transcripts: prompts, the messages of Gemini CLI, which come again, and the rows of opencode's database."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eirkit.vestige.formats.messages import text_of
from eirkit.vestige.formats.run_builder import items_of, mapping_of, string_of
from eirkit.vestige.sources.json_parser import PARSER_NESTING, parse_line

if TYPE_CHECKING:
    import sqlite3

_SNAPSHOT = b"<state_snapshot"  # the summary with which Gemini CLI replaces a context
_MOST_MESSAGES = 20_000  # of opencode that are read at once


def prompt_in(line: bytes) -> str:
    """Return what the user wrote, if a line of a transcript is a prompt."""
    value = parse_line(line, PARSER_NESTING)
    entry = mapping_of(None if isinstance(value, Exception) else value)
    if entry.get("type") == "user" and entry.get("isMeta") is not True and entry.get("isCompactSummary") is not True:
        return text_of(mapping_of(entry.get("message")).get("content") or entry.get("content"))
    payload = mapping_of(entry.get("payload"))
    return string_of(payload.get("message")) if payload.get("type") == "user_message" else ""


def last_snapshot(content: bytes) -> str:
    """Return the id of the last summary in lines of a Gemini CLI session; "" without one.

    A resumed session tells its history again, with a summary of before under the same id.
    """
    found = ""
    place = content.find(_SNAPSHOT)
    while place >= 0:
        start, end = content.rfind(b"\n", 0, place) + 1, content.find(b"\n", place)
        end = len(content) if end < 0 else end
        if content.startswith(b'{"$set"', start):
            found = _snapshot_id(content[start:end]) or found
        place = content.find(_SNAPSHOT, end)
    return found


def _snapshot_id(line: bytes) -> str:
    value = parse_line(line, PARSER_NESTING)
    patch = mapping_of(mapping_of(value if isinstance(value, dict) else None).get("$set"))
    for message in items_of(patch.get("messages")):
        if message.get("type") == "user" and _SNAPSHOT.decode() in text_of(message.get("content")):
            return string_of(message.get("id"))
    return ""


def new_messages(content: bytes) -> bytes:
    """Return lines of a Gemini CLI session with every message once, as it was last told, and no history told again."""
    found: dict[object, bytes] = {}
    for number, line in enumerate(content.splitlines(keepends=True)):
        value = parse_line(line, PARSER_NESTING)
        if not isinstance(value, dict) or "$set" in value:
            continue
        if value.get("type") == "gemini" and not value.get("toolCalls") and not value.get("content"):
            continue  # it comes again with the results of its calls
        found[value.get("id") or number] = line
    return b"".join(found.values())


def new_rows(path: Path, session: str, after: int) -> tuple[bytes, int]:
    """Return the finished messages of an opencode session after a row, as `opencode export` writes them.

    Also returns the last row that was taken.
    """
    import sqlite3  # the hooks of other agents begin sooner without it

    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, timeout=2)) as database:
            known = database.execute("SELECT directory, version FROM session WHERE id = ?", (session,)).fetchone()
            if known is None:
                raise FileNotFoundError(f"{path} has no session {session}")
            messages, after = _messages(database, session, after)
    except sqlite3.Error as error:
        raise OSError(f"{path}: {error}") from error
    info = {"id": session, "slug": session, "projectID": "guard", "directory": known[0], "version": known[1]}
    return json.dumps({"info": info, "messages": messages}).encode(), after


def _messages(database: sqlite3.Connection, session: str, after: int) -> tuple[list[dict[str, Any]], int]:
    query = "SELECT rowid, id, data FROM message WHERE session_id = ? AND rowid > ? ORDER BY rowid LIMIT ?"
    messages = []
    for row, id, data in database.execute(query, (session, after, _MOST_MESSAGES)):
        info = _object(data)
        if info.get("role") == "assistant" and not mapping_of(info.get("time")).get("completed"):
            break
        parts = database.execute("SELECT id, data FROM part WHERE message_id = ? ORDER BY id", (id,))
        own = [_object(part) | {"id": name, "messageID": id} for name, part in parts]
        messages.append({"info": info | {"id": id, "sessionID": session}, "parts": own})
        after = row
    return messages, after


def _object(text: object) -> dict[str, Any]:
    try:
        return dict(mapping_of(json.loads(text))) if isinstance(text, str) else {}
    except (ValueError, RecursionError):
        return {}
