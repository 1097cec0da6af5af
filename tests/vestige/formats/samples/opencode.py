"""opencode 1.18 (November 2026): a database and an export of the same session; the files of 1.3."""

from __future__ import annotations

import json
import sqlite3
from typing import Any

from tests.vestige.formats.samples import as_json


def called(id: str, tool: str, output: str, exit: int | None = None, **arguments: Any) -> dict[str, Any]:
    """Return the part of a call with its result."""
    state = {
        "status": "completed",
        "input": arguments,
        "output": output,
        "metadata": {} if exit is None else {"exit": exit},
    }
    return {"type": "tool", "tool": tool, "callID": id, "state": state}


def text(words: str, **more: Any) -> dict[str, Any]:
    """Return the part of a text."""
    return {"type": "text", "text": words, **more}


VIEW = (
    "<path>/repo/a.py</path>\n<type>file</type>\n<content>\n2: x = 1\n3: y = 2\n\n"
    "(Showing lines 2-3 of 9. Use offset=4 to continue.)\n</content>"
)
AGENT = {
    "role": "assistant",
    "modelID": "m",
    "tokens": {"input": 900, "output": 20, "cache": {"read": 1100, "write": 0}},
}
TOLD: list[tuple[dict[str, Any], list[dict[str, Any]]]] = [
    ({"role": "user"}, [text("Mend a.py")]),
    (AGENT, [called("c1", "read", VIEW, filePath="/repo/a.py", offset=2, limit=2)]),
    (AGENT, [called("c2", "edit", "Edit applied.", filePath="/repo/a.py", oldString="x = 1", newString="x = 2")]),
    ({"role": "user"}, [{"type": "compaction", "auto": True}]),
    ({"role": "assistant", "summary": True, "mode": "compaction"}, [text("a.py was mended.")]),
    ({"role": "user"}, [text("Continue if you have next steps.", synthetic=True)]),
    (AGENT, [called("c3", "bash", "AssertionError", 1, command="python3 t.py")]),
    (AGENT, [text("Done.")]),
]
SESSION = {"id": "ses_1", "slug": "eager-panda", "projectID": "p", "directory": "/repo", "version": "1.18.33"}
CHILD = {**SESSION, "id": "ses_2", "parentID": "ses_1"}


def database() -> bytes:
    """Return the database with a session and one of its sub-agents."""
    connection = sqlite3.connect(":memory:")
    connection.executescript(
        "PRAGMA page_size = 512; VACUUM;"
        "CREATE TABLE session (id TEXT, parent_id TEXT, directory TEXT, version TEXT);"
        "CREATE TABLE message (id TEXT, session_id TEXT, time_created INTEGER, data TEXT);"
        "CREATE TABLE part (id TEXT, message_id TEXT, session_id TEXT, data TEXT);"
    )
    for session, told in ((SESSION, TOLD), (CHILD, TOLD[:2])):
        id = session["id"]
        connection.execute("INSERT INTO session VALUES (?, ?, '/repo', '1.18.33')", (id, session.get("parentID")))
        for number, (message, parts) in enumerate(told):
            own = f"{id}-msg_{number}"
            connection.execute("INSERT INTO message VALUES (?, ?, ?, ?)", (own, id, number, json.dumps(message)))
            for place, part in enumerate(parts):
                connection.execute(
                    "INSERT INTO part VALUES (?, ?, ?, ?)", (f"{own}-{place}", own, id, json.dumps(part))
                )
    connection.commit()
    return connection.serialize()


EXPORT = {"info": SESSION, "messages": [{"info": message, "parts": parts} for message, parts in TOLD]}
STORED = {
    "storage/session/p/ses_3.json": {**SESSION, "id": "ses_3", "version": "1.3.17"},
    "storage/message/ses_3/msg_1.json": {"id": "msg_1", "role": "user", "time": {"created": 1}},
    "storage/message/ses_3/msg_2.json": {"id": "msg_2", **AGENT, "time": {"created": 2}},
    "storage/part/msg_1/prt_1.json": {"messageID": "msg_1", **TOLD[0][1][0]},
    "storage/part/msg_2/prt_2.json": {"messageID": "msg_2", **TOLD[1][1][0]},
}

FILES = {"export.json": as_json(EXPORT), "opencode.db": database()} | {
    name: as_json(one) for name, one in STORED.items()
}
BESIDE = tuple(name for name in STORED if "/session/" not in name)
