"""What Codex's calls asked for and what its tools returned, in one shape each, through all versions of the rollout."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from eirkit.vestige.formats.building import mapping_of, string_of
from eirkit.vestige.formats.messages import arguments_of, text_of

_SHELLS = frozenset({"bash", "sh", "zsh", "dash"})
_SHELL_TOOLS = frozenset({"shell", "shell_command", "exec_command", "container.exec", "local_shell", "unified_exec"})
_HEADER = re.compile(r"(?:Exit code: |Process exited with code )(-?[0-9]{1,10})$", re.MULTILINE)
_HEADER_CHARACTERS = 400
_FAILURES = ("apply_patch verification failed", "failed to parse", "unsupported call", "Error:")


@dataclass(frozen=True, slots=True)
class CodexCall:
    """One call: a shell command is `bash` with the argument `command`, a patch is `apply_patch` with `input`."""

    tool: str
    arguments: Mapping[str, Any]
    folder: str | None = None


@dataclass(frozen=True, slots=True)
class CodexOutput:
    """What a tool returned, without the header around it."""

    text: str
    exit_code: int | None = None
    failed: bool = False


def as_call(item: Mapping[str, Any]) -> CodexCall:
    """Return the call that a response item spells."""
    tool = string_of(item.get("name"))
    if item.get("type") == "local_shell_call":
        action = mapping_of(item.get("action"))
        return _shell_call(action.get("command"), string_of(action.get("working_directory")), action)
    if item.get("type") == "custom_tool_call":
        return CodexCall(tool, {"input": string_of(item.get("input"))})
    if item.get("type") == "web_search_call":
        return CodexCall("web_search", mapping_of(item.get("action")))
    arguments = arguments_of(item.get("arguments"))
    if tool in _SHELL_TOOLS:
        return _shell_call(
            arguments.get("command", arguments.get("cmd")), string_of(arguments.get("workdir")), arguments
        )
    return CodexCall(tool or string_of(item.get("type")), arguments)


def _shell_call(command: object, folder: str, arguments: Mapping[str, Any]) -> CodexCall:
    if isinstance(command, str):
        return CodexCall("bash", {**arguments, "command": command}, folder or None)
    words = [string_of(word) for word in command] if isinstance(command, list) else []
    if words[:1] == ["apply_patch"] and len(words) > 1:
        return CodexCall("apply_patch", {"input": words[1]}, folder or None)
    return CodexCall("bash", {**arguments, "command": _script(words)}, folder or None)


def _script(words: list[str]) -> str:
    """Return what a shell is told to run, or the words of a program that is started without one."""
    if len(words) == 3 and words[0].rpartition("/")[2] in _SHELLS and words[1] in ("-c", "-lc"):
        return words[2]
    return shlex.join(words)


def as_output(given: object) -> CodexOutput:
    """Return a tool's output from a text, a list of blocks, or an object that holds either."""
    if isinstance(given, dict):
        inner = as_output(given.get("content", given.get("output")))
        return CodexOutput(inner.text, inner.exit_code, inner.failed or given.get("success") is False)
    text = text_of(given)
    if text.startswith("{"):
        return _from_json(text) or CodexOutput(text)
    header, mark, body = text.partition("Output:\n")
    stated = _HEADER.search(header) if len(header) <= _HEADER_CHARACTERS else None
    if mark and stated:
        return CodexOutput(body, int(stated.group(1)))
    return CodexOutput(text, failed=text.startswith(_FAILURES))


def _from_json(text: str) -> CodexOutput | None:
    """Read the older output, a JSON text of `output` and `metadata`."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or not isinstance(value.get("output"), str):
        return None
    code = mapping_of(value.get("metadata")).get("exit_code")
    return CodexOutput(value["output"], code if isinstance(code, int) else None)
