"""goose 1.34 (November 2026): a database and an export of the same session, and the JSON lines of 1.0."""

from __future__ import annotations

import json
import sqlite3
from typing import Any

from tests.vestige.formats.samples import as_json, as_lines


def said(role: str, *blocks: dict[str, Any], seen: bool = True, shown: bool = True) -> dict[str, Any]:
    """Return a message; `seen` by the agent, `shown` to the user."""
    return {"role": role, "content": list(blocks), "metadata": {"userVisible": shown, "agentVisible": seen}}


def text(words: str) -> dict[str, Any]:
    """Return a block of text."""
    return {"type": "text", "text": words}


def asked(id: str, tool: str, **arguments: Any) -> dict[str, Any]:
    """Return a call."""
    return {
        "type": "toolRequest",
        "id": id,
        "toolCall": {"status": "success", "value": {"name": tool, "arguments": arguments}},
    }


def told(id: str, output: str, code: int | None = None) -> dict[str, Any]:
    """Return a result."""
    more = {} if code is None else {"structuredContent": {"exit_code": code}}
    value = {"content": [text(output)], "isError": bool(code), **more}
    return {"type": "toolResponse", "id": id, "toolResult": {"status": "success", "value": value}}


MESSAGES = [
    said("user", text("Mend a.py"), seen=False),
    said("assistant", asked("c1", "developer__shell", command="cat a.py"), seen=False),
    said("user", told("c1", "x = 1", 0), seen=False),
    said("assistant", asked("c2", "edit", path="a.py", before="x = 1", after="x = 2"), seen=False),
    said("user", told("c2", "Edited a.py (1 lines -> 1 lines)"), seen=False),
    said("user", text("a.py was mended."), shown=False),
    said("assistant", text("Your context was compacted."), shown=False),
    said("user", text("go on")),
    said("assistant", asked("c3", "shell", command="python3 t.py")),
    said("user", told("c3", "AssertionError", 1)),
    said("assistant", text("Done.")),
]


def database() -> bytes:
    """Return the database of the session."""
    connection = sqlite3.connect(":memory:")
    connection.executescript(
        "PRAGMA page_size = 512; VACUUM;"
        "CREATE TABLE sessions (id TEXT, working_dir TEXT, model_config_json TEXT);"
        "CREATE TABLE messages"
        " (id INTEGER PRIMARY KEY, session_id TEXT, role TEXT, content_json TEXT, metadata_json TEXT);"
    )
    connection.execute("INSERT INTO sessions VALUES ('g1', '/repo', '{\"model_name\": \"m\"}')")
    rows = [("g1", one["role"], json.dumps(one["content"]), json.dumps(one["metadata"])) for one in MESSAGES]
    connection.executemany(
        "INSERT INTO messages (session_id, role, content_json, metadata_json) VALUES (?, ?, ?, ?)", rows
    )
    connection.commit()
    return connection.serialize()


EXPORT = {"id": "g2", "working_dir": "/repo", "goose_mode": "auto", "conversation": MESSAGES}
HEADER = {"working_dir": "/repo", "description": "Mend", "message_count": 2}
OLDER = [HEADER, *({"role": one["role"], "content": one["content"], "created": 1} for one in MESSAGES[:3])]

FILES = {"export.json": as_json(EXPORT), "sessions.db": database(), "20250101_1.jsonl": as_lines(*OLDER)}
