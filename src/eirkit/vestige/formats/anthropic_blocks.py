"""Anthropic-style content to turns: blocks of text, tool_use and tool_result.

The content of one message comes in; what it says is added to a run in the making. A shell's own name becomes `bash`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from eirkit.vestige.formats.building import RunBuilder, items_of, string_of
from eirkit.vestige.formats.messages import arguments_of, shell_name, text_of

_SAVED = re.compile(r"(<persisted-output>\s{0,4}Output too large[^\n]{0,1200})\s{1,4}Preview \([^()\n]{1,40}\):\n")
_EXIT_CODE = re.compile(r"Exit code (\d{1,3})\b")


def take_reply(builder: RunBuilder, content: object, folder: str | None = None) -> None:
    """Add the text and the calls of a reply to the turn that was begun for it."""
    builder.say(text_of(content))
    for block in items_of(content):
        if block.get("type") in ("tool_use", "server_tool_use", "mcp_tool_use"):
            arguments = arguments_of(block.get("input"))
            tool = string_of(block.get("name"))
            builder.ask(string_of(block.get("id")), _tool_name(tool, arguments), arguments, folder)


def take_results(builder: RunBuilder, content: object, structured: Mapping[str, Any]) -> None:
    """Give the calls their answers out of the blocks of a user's message; `structured` is the scaffold's own record."""
    for block in items_of(content):
        if string_of(block.get("type")).endswith("tool_result"):
            output = _previewed(text_of(block.get("content")))
            failed = block.get("is_error") is True
            builder.answer(
                string_of(block.get("tool_use_id")),
                output,
                failed=failed,
                exit_code=_exit_code(output) if failed else None,
                full_output=_longer_output(structured, output),
            )


def _tool_name(tool: str, arguments: Mapping[str, Any]) -> str:
    return "bash" if tool == "Bash" and isinstance(arguments.get("command"), str) else shell_name(tool, arguments)


def _previewed(output: str) -> str:
    """Return the preview of a long output with the word about it behind, where the cut is, not before."""
    found = _SAVED.match(output) if output.startswith("<persisted-output>") else None
    if found is None:
        return output
    preview = output[found.end() :].removesuffix("</persisted-output>").removesuffix("...\n")
    return f"{preview}{found[1]}\n</persisted-output>"


def _exit_code(output: str) -> int | None:
    stated = _EXIT_CODE.match(output)
    return int(stated.group(1)) if stated else None


def _longer_output(structured: Mapping[str, Any], output: str) -> str | None:
    streams = [structured.get("stdout"), structured.get("stderr")]
    text = "\n".join(stream for stream in streams if isinstance(stream, str) and stream)
    return text if len(text) > len(output) + 1 else None
