"""Sessions on macOS and Windows, written for the purpose, with what each of their actions read and wrote.

The commands and outputs in `written_sessions.jsonl` are of the kind that agents produce there: zsh with BSD's tools,
PowerShell, cmd, and Git Bash. The labels follow from the meaning of the commands and were written before the package
saw a session. Rules were changed on account of four sessions; two were written after that and measured once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.vestige.formats.samples import as_json, as_lines
from tests.vestige.formats.samples.copilot_cli import asked, event
from tests.vestige.formats.samples.gemini_cli import SHELL, old_output, reply

ACTIONS = Path(__file__).with_name("written_sessions.jsonl")


@dataclass(frozen=True)
class Action:
    """One call; a command has the tool `shell`. Paths are relative to the repository where they lie in it."""

    tool: str
    arguments: dict[str, Any]
    output: str
    reads: frozenset[str]
    writes: frozenset[str]
    exit_code: int = 0
    failed: bool = False


@dataclass(frozen=True)
class WrittenSession:
    """A session as the log of an agent."""

    name: str
    folder: str
    is_held_out: bool  # written after the last rule was changed
    write: Callable[[tuple[Action, ...], str], dict[str, bytes]]

    @property
    def actions(self) -> tuple[Action, ...]:
        """Its actions in order."""
        rows = map(json.loads, ACTIONS.read_text(encoding="utf-8").splitlines())
        return tuple(_action(row) for row in rows if row["session"] == self.name)

    @property
    def files(self) -> dict[str, bytes]:
        """The files of its log."""
        return self.write(self.actions, self.folder)


def _action(row: Mapping[str, Any]) -> Action:
    plain = {name: row[name] for name in ("tool", "arguments", "output", "exit_code", "failed") if name in row}
    return Action(**plain, reads=frozenset(row["reads"]), writes=frozenset(row["writes"]))


def _gemini(actions: tuple[Action, ...], folder: str) -> dict[str, bytes]:
    messages: list[dict[str, Any]] = [{"id": "1", "type": "user", "content": "Make the timeout adjustable."}]
    for number, one in enumerate(actions):
        text, tool = one.output, one.tool
        if one.tool == "shell":
            tool = SHELL
            text = old_output(one.arguments["command"], "(root)", text or "(empty)", code=one.exit_code)
        messages.append(reply(f"c{number}", tool, text, **one.arguments))
    return {"session-w.json": as_json({"sessionId": "w", "projectHash": "p1", "messages": messages})}


def _copilot(actions: tuple[Action, ...], folder: str) -> dict[str, bytes]:
    context = {"cwd": folder, "gitRoot": folder}
    events = [
        event("session.start", sessionId="w", producer="copilot-agent", copilotVersion="1.0.102", context=context),
        event("user.message", content="Use RATE."),
    ]
    for number, one in enumerate(actions):
        id = f"c{number}"
        events += asked(id, "powershell" if one.tool == "shell" else one.tool, **one.arguments)
        shell = {"shellExecution": {"exitCode": one.exit_code}} if one.tool == "shell" else {}
        done = event("tool.execution_complete", toolCallId=id, success=True, result={"content": one.output}, **shell)
        events.append(done)
    return {"w/events.jsonl": as_lines(*events)}


def _codex(actions: tuple[Action, ...], folder: str) -> dict[str, bytes]:
    def line(kind: str, **payload: Any) -> dict[str, Any]:
        return {"timestamp": "2025-11-02T10:00:00Z", "type": kind, "payload": payload}

    lines = [
        line("session_meta", id="w", cwd=folder, originator="codex_cli_rs", cli_version="0.60.0", source="cli"),
        line("turn_context", cwd=folder, model="model-1", approval_policy="never"),
        line("response_item", type="message", role="user", content=[{"type": "input_text", "text": "Rename it."}]),
    ]
    shell = ["powershell.exe", "-NoProfile", "-Command"] if folder[1] == ":" else ["zsh", "-lc"]
    for number, one in enumerate(actions):
        call = json.dumps({"command": [*shell, one.arguments["command"]], "workdir": folder})
        told = json.dumps({"output": one.output, "metadata": {"exit_code": one.exit_code, "duration_seconds": 0.1}})
        lines.append(line("response_item", type="function_call", call_id=f"c{number}", name="shell", arguments=call))
        lines.append(line("response_item", type="function_call_output", call_id=f"c{number}", output=told))
    return {"rollout-w.jsonl": as_lines(*lines)}


def claude_log(actions: tuple[Action, ...], folder: str) -> dict[str, bytes]:
    """Return a session as Claude Code logs it."""
    facts = {"sessionId": "w", "isSidechain": False, "cwd": folder, "version": "2.1.30"}

    def entry(uuid: str, parent: str | None, role: str, content: Any) -> dict[str, Any]:
        message = {"id": f"m{uuid}", "role": role, "model": "model-1", "content": content}
        return {"parentUuid": parent, "type": role, "uuid": uuid, "message": message, **facts}

    lines = [entry("r", None, "user", "Rename it.")]
    for number, one in enumerate(actions):
        id, tool = f"c{number}", "Bash" if one.tool == "shell" else one.tool
        text = f"Exit code {one.exit_code}\n{one.output}" if one.exit_code else one.output
        failed = one.failed or bool(one.exit_code)
        call = {"type": "tool_use", "id": id, "name": tool, "input": one.arguments}
        result = {"type": "tool_result", "tool_use_id": id, "content": text, "is_error": failed}
        before = f"r{number - 1}" if number else "r"
        lines += [entry(f"a{number}", before, "assistant", [call]), entry(f"r{number}", f"a{number}", "user", [result])]
    return {"w.jsonl": as_lines(*lines)}


SESSIONS = (
    WrittenSession("powershell-gemini-cli", "", False, _gemini),
    WrittenSession("powershell-copilot-cli", "C:\\src\\shop", False, _copilot),
    WrittenSession("zsh-codex", "/Users/ana/notes", False, _codex),
    WrittenSession("git-bash-claude-code", "C:\\Users\\lee\\api", False, claude_log),
    WrittenSession("powershell-codex", "C:\\work\\Orders", True, _codex),
    WrittenSession("zsh-claude-code", "/Users/mia/site", True, claude_log),
)
