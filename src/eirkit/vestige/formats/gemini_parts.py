"""Messages made of Gemini's parts: texts, function calls and their responses; shared by Gemini CLI and Qwen Code."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from eirkit.vestige.formats.messages import arguments_of, shell_name, text_of
from eirkit.vestige.formats.run_builder import RunBuilder, items_of, mapping_of, prompted_usage, string_of
from eirkit.vestige.trajectory import LoggedUsage

_TRAILER = re.compile(
    r"(?:\nError: \(none\))?(?:\nExit Code: (?P<code>-?\d{1,9}|\(none\)))?(?P<signal>\nSignal: [^\n]{1,40})?"
    r"(?:\nBackground PIDs: [^\n]{0,1000})?\nProcess Group PGID: [^\n]{1,40}+\s*+\Z"
)
_TRAILER_CHARACTERS = 1400
_COMMAND, _FOLDER, _OUTPUT, _STDOUT, _STDERR = "Command: ", "\nDirectory: ", "Output: ", "Stdout: ", "\nStderr: "
_NOTHING = "(empty)"
_UNTRUSTED = "<untrusted_context>\n", "\n</untrusted_context>"


@dataclass(frozen=True, slots=True)
class ShellResult:
    """What a command printed, and how it ended."""

    text: str
    exit_code: int | None = None


def shell_result(output: str) -> ShellResult:
    """Return a command's result; an output without a wrapper is its own text."""
    output = output.removeprefix(_UNTRUSTED[0]).removesuffix(_UNTRUSTED[1])
    if not output.startswith((_COMMAND, _OUTPUT)):
        return ShellResult(output)
    trailer = _TRAILER.search(output, max(0, len(output) - _TRAILER_CHARACTERS))
    body = _without_heading(output[: trailer.start()] if trailer else output)
    if trailer is None or body is None:
        return ShellResult(output)
    return ShellResult(body, _exit_code(trailer))


def _without_heading(text: str) -> str | None:
    if text.startswith(_COMMAND):
        at = text.find(_FOLDER)
        text = text[text.find("\n", at + 1) + 1 :] if at >= 0 else ""
    if text.startswith(_OUTPUT):
        return _printed(text.removeprefix(_OUTPUT))
    if not text.startswith(_STDOUT):
        return None
    out, _, complaint = text.removeprefix(_STDOUT).rpartition(_STDERR)
    parts = [part for part in (_printed(out), _printed(complaint)) if part]
    return "\n".join(part.removesuffix("\n") for part in parts) if len(parts) > 1 else "".join(parts)


def _printed(text: str) -> str:
    return "" if text == _NOTHING else text


def _exit_code(trailer: re.Match[str]) -> int | None:
    if trailer["code"] is not None:
        return None if trailer["code"] == "(none)" else int(trailer["code"])
    return 0 if trailer["signal"] is None else None  # newer versions report an exit code only if it is not 0


def ask(builder: RunBuilder, call: Mapping[str, Any]) -> None:
    """Add a function call to the turn."""
    arguments = arguments_of(call.get("args"))
    folder = string_of(arguments.get("directory")) or string_of(arguments.get("dir_path"))
    tool = shell_name(string_of(call.get("name")), arguments)
    builder.ask(string_of(call.get("id")), tool, arguments, folder if folder and tool == "bash" else None)


def answer(builder: RunBuilder, id: str, output: str, *, failed: bool) -> None:
    """Set the result of a function call."""
    asked = builder.asked(id)
    result = shell_result(output) if asked is not None and asked[0] == "bash" else ShellResult(output)
    builder.answer(id, result.text, failed=failed, exit_code=result.exit_code)


def response_text(response: object) -> str:
    """Return what a response shows the model."""
    known = mapping_of(response)
    return text_of(known.get("output", known.get("error")))


def part_texts(parts: object) -> Iterator[str]:
    """Yield every text in a message's parts: its words, the arguments of calls, and results."""
    for part in items_of(parts):
        if isinstance(part.get("text"), str):
            yield part["text"]
        arguments = mapping_of(mapping_of(part.get("functionCall")).get("args"))
        yield from (value for value in arguments.values() if isinstance(value, str))
        yield response_text(mapping_of(part.get("functionResponse")).get("response"))


def call_ids(parts: object) -> Iterable[str]:
    """Return the ids of the calls and responses in a message's parts."""
    found = (mapping_of(part.get(kind)) for part in items_of(parts) for kind in ("functionCall", "functionResponse"))
    return filter(None, (string_of(one.get("id")) for one in found))


def usage_of_parts(counts: Mapping[str, Any]) -> LoggedUsage | None:
    """Return the usage that a response's metadata states."""
    written = map(counts.get, ("candidatesTokenCount", "thoughtsTokenCount"))
    return prompted_usage([counts.get("promptTokenCount")], written, counts.get("cachedContentTokenCount"))
