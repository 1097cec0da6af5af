"""Gemini CLI: a session of commands in both wrappings, a view and a search."""

from __future__ import annotations

from typing import Any

from tests.vestige.formats.samples import as_json


def reply(id: str, tool: str, output: str, **arguments: Any) -> dict[str, Any]:
    """Return a message of the model with one call."""
    call = {
        "id": id,
        "name": tool,
        "args": arguments,
        "result": [{"functionResponse": {"id": id, "name": tool, "response": {"output": output}}}],
        "status": "success",
    }
    return {
        "id": f"m{id}",
        "type": "gemini",
        "content": "Look.",
        "toolCalls": [call],
        "tokens": {"input": 10, "output": 2},
    }


def old_output(command: str, folder: str, out: str, err: str = "(empty)", code: int = 0) -> str:
    """Return an output as versions of 2025 wrapped it."""
    return (
        f"Command: {command}\nDirectory: {folder}\nStdout: {out}\nStderr: {err}\nError: (none)\nExit Code: {code}\n"
        "Signal: (none)\nBackground PIDs: (none)\nProcess Group PGID: 7"
    )


SHELL = "run_shell_command"
CAT = old_output("cat m.py", "src", "def f():\n    return 1")
FOUND = old_output("grep -rn foo src", "(root)", "src/a.py:3:foo\nsrc/b.py:4:foo")
MISSING = old_output("sed -i s/a/b/ n.py", "(root)", "(empty)", "sed: can't read n.py: No such file or directory", 2)
VIEW = (
    "\nIMPORTANT: The file content has been truncated.\nStatus: Showing lines 11-12 of 100 total lines.\n"
    "Action: Ask for more.\n\n--- FILE CONTENT (truncated) ---\nl11\nl12"
)
MESSAGES = [
    {"id": "1", "type": "user", "content": "Solve it."},
    reply("c1", SHELL, "a.py", command="ls"),
    reply("c2", SHELL, CAT, command="cat m.py", directory="src"),
    reply("c3", SHELL, "Output: n = 1\nProcess Group PGID: 77", command="cat n.py", dir_path="src"),
    reply("c4", SHELL, "Output: x = 1\nProcess Group PGID: 78", command="cat top.py"),
    reply("c5", SHELL, FOUND, command="grep -rn foo src"),
    reply("c6", SHELL, MISSING, command="sed -i s/a/b/ n.py"),
    reply("c7", "read_file", VIEW, file_path="src/z.py", offset=10, limit=2),
]

FILES = {"session-1.json": as_json({"sessionId": "s1", "projectHash": "p1", "messages": MESSAGES})}
