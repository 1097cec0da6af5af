"""Gemini CLI sessions: one object with the messages of user and model, calls and their results beside the text.

A session file comes in; one run goes out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from eirkit.vestige.formats.building import (
    RunBuilder,
    begins_with_info,
    count_of,
    items_of,
    mapping_of,
    skipped,
    string_of,
    whole_document,
)
from eirkit.vestige.formats.gemini_outputs import ShellResult, shell_result
from eirkit.vestige.formats.messages import arguments_of, shell_name, text_of
from eirkit.vestige.source import Document, Skipped
from eirkit.vestige.trajectory import Recording, Usage, formats

_FAILED = frozenset({"error", "cancelled"})


@formats.add("gemini-cli")
class GeminiCli:
    """Session files of Gemini CLI."""

    def recognises(self, document: Document) -> bool:
        """True for an object with the session, the project's hash and messages."""
        head = document.head.lstrip()
        if begins_with_info(head):
            return False
        return head.startswith(b"{") and all(key in head for key in (b'"sessionId"', b'"projectHash"', b'"messages"'))

    def read(self, document: Document) -> Iterator[Recording | Skipped]:
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
                builder.hear(text_of(message.get("content")))
        if not builder.turn_count:
            yield skipped(document, "holds no reply of the agent; there is nothing to analyse")
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


def _usage(tokens: Mapping[str, Any]) -> Usage | None:
    if not tokens:
        return None
    given = count_of(tokens.get("input"))
    written = count_of(tokens.get("output")) + count_of(tokens.get("thoughts"))
    return Usage(given, written, min(given, count_of(tokens.get("cached"))))
