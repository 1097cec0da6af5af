"""Reads Gemini CLI sessions: one object with the messages of user and model, and calls with their results."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from eirkit.logs.formats.messages import arguments_of, shell_name, text_of
from eirkit.logs.formats.run_builder import (
    RunBuilder,
    begins_with_info,
    count_of,
    items_of,
    mapping_of,
    skipped,
    string_of,
    whole_document,
)
from eirkit.logs.sources.documents import LogDocument, Skipped
from eirkit.logs.trajectory import LoggedUsage, Recording, formats

_TRAILER = re.compile(
    r"(?:\nError: \(none\))?(?:\nExit Code: (?P<code>-?\d{1,9}|\(none\)))?(?P<signal>\nSignal: [^\n]{1,40})?"
    r"(?:\nBackground PIDs: [^\n]{0,1000})?\nProcess Group PGID: [^\n]{1,40}+\s*+\Z"
)
_TRAILER_CHARACTERS = 1400
_COMMAND, _FOLDER, _OUTPUT, _STDOUT, _STDERR = "Command: ", "\nDirectory: ", "Output: ", "Stdout: ", "\nStderr: "
_NOTHING = "(empty)"


@dataclass(frozen=True, slots=True)
class ShellResult:
    """What a command printed, and how it ended."""

    text: str
    exit_code: int | None = None


def shell_result(output: str) -> ShellResult:
    """Return a command's result; an output without a wrapper is its own text."""
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


_FAILED = frozenset({"error", "cancelled"})


@formats.add("gemini-cli")
class GeminiCli:
    """Session files of Gemini CLI."""

    def recognises(self, document: LogDocument) -> bool:
        """Return whether the object has a session, the project's hash and messages."""
        head = document.head.lstrip()
        if begins_with_info(head):
            return False
        return head.startswith(b"{") and all(key in head for key in (b'"sessionId"', b'"projectHash"', b'"messages"'))

    def read(self, document: LogDocument) -> Iterator[Recording | Skipped]:
        """Yield the session's one run."""
        session = whole_document(document)
        if isinstance(session, Skipped):
            yield session
            return
        builder, messages = RunBuilder(), items_of(session.get("messages"))
        for message in messages:
            if message.get("type") == "gemini":
                _take_reply(builder, message)
            elif message.get("type") == "user":
                builder.request(text_of(message.get("content")))
        if not builder.turn_count:
            yield skipped(document, "holds no reply of the agent; leave it out")
            return
        run_id = string_of(session.get("sessionId")) or document.name.removesuffix(".json")
        models = (string_of(message.get("model")) for message in messages)
        yield Recording(
            run_id=run_id,
            task_id=run_id,
            format="gemini-cli",
            source=document.source,
            turns=builder.turns(),
            model=next(filter(None, models), ""),
            prompt=builder.prompt,
        )


def _take_reply(builder: RunBuilder, message: Mapping[str, Any]) -> None:
    builder.begin()
    builder.say(text_of(message.get("content")))
    builder.use(_usage(mapping_of(message.get("tokens"))))
    for call in items_of(message.get("toolCalls")):
        arguments, id = arguments_of(call.get("args")), string_of(call.get("id"))
        folder = string_of(arguments.get("directory")) or string_of(arguments.get("dir_path"))
        tool = shell_name(string_of(call.get("name")), arguments)
        builder.ask(id, tool, arguments, folder if folder and tool == "bash" else None)
        result = ShellResult(_output(call.get("result")))
        if tool == "bash":
            result = shell_result(result.text)
        failed = string_of(call.get("status")) in _FAILED
        builder.answer(id, result.text, failed=failed, exit_code=result.exit_code)


def _output(result: object) -> str:
    if isinstance(result, str):
        return result
    responses = (mapping_of(mapping_of(part.get("functionResponse")).get("response")) for part in items_of(result))
    return "\n".join(text_of(response.get("output", response.get("error"))) for response in responses)


def _usage(tokens: Mapping[str, Any]) -> LoggedUsage | None:
    if not tokens:
        return None
    given = count_of(tokens.get("input"))
    written = count_of(tokens.get("output")) + count_of(tokens.get("thoughts"))
    return LoggedUsage(given, written, min(given, count_of(tokens.get("cached"))))
