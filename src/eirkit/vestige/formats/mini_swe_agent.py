"""Reads mini-SWE-agent trajectories, v1 (a fenced bash block in the text) and v2 (native tool calls), one run per file.

A reply that does not have exactly one block was rejected by the scaffold and is a rejected turn. The final message,
with role `exit` or with the submitted diff, is not an observation. The tags around an observation are removed; the
marker of an elided middle stays.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from eirkit.errors import InputFileError
from eirkit.vestige.formats.messages import arguments_of, content_of, native_calls, shell_name, text_of, usage_of
from eirkit.vestige.formats.run_builder import items_of, mapping_of, read_one_run, string_of
from eirkit.vestige.sources.documents import LogDocument, Skipped
from eirkit.vestige.trajectory import NAMED, Call, RecordedTurn, Recording, formats

Message = Mapping[str, Any]

_FIRST_KEY = re.compile(rb'\s*\{\s*"info"\s*:\s*\{\s*"(?:exit_status|model_stats|submission|config|mini_version)"')
_MARKS = (b'"mini_version":', b'"minisweagent.', b'"submission":', b'"model_stats":')
_RESULT = re.compile(r"\s*(?:<returncode>(-?\d{1,9})</returncode>\s*)?")
_SUCCESS = "<returncode>0</returncode>\n<output>"
_JSON_BEGINNING = 200  # characters within which an observation in JSON names the exit code
_TIMED_OUT = "The last command <command>"
_OBSERVATIONS = ("<returncode>", "<exception>", _TIMED_OUT)


@formats.add("mini-swe-agent")
class MiniSweAgent:
    """Files `*.traj.json` of mini-SWE-agent 1 and 2."""

    def recognizes(self, document: LogDocument) -> int:
        """Return whether the object begins with the `info` of this scaffold."""
        head = document.head
        return NAMED if _FIRST_KEY.match(head) is not None and any(mark in head for mark in _MARKS) else 0

    def read(self, document: LogDocument) -> Iterator[Recording | Skipped]:
        """Yield the file's one run."""
        return read_one_run(document, _recording)


def _recording(content: Mapping[str, Any], document: LogDocument) -> Recording:
    messages = content.get("messages")
    if not isinstance(messages, list):
        raise InputFileError("has no list of messages; restore the file")
    info = mapping_of(content.get("info"))
    config = mapping_of(info.get("config"))
    prompt, turns = read_turns(messages)
    task = string_of(content.get("instance_id")) or document.name.removesuffix(".json").removesuffix(".traj") or "run"
    return Recording(
        run_id=task,
        task_id=task,
        format="mini-swe-agent",
        source=document.source,
        turns=turns,
        model=string_of(mapping_of(config.get("model")).get("model_name")),
        prompt=prompt,
        submission=string_of(info.get("submission")) or None,
        root=string_of(mapping_of(config.get("environment")).get("cwd")) or None,
        exit_status=string_of(info.get("exit_status")),
    )


def read_turns(messages: Sequence[object]) -> tuple[str, tuple[RecordedTurn, ...]]:
    """Return the prompt and the turns of this scaffold's messages."""
    prompt: list[str] = []
    exchanges: list[tuple[Message, list[Message]]] = []
    answers: list[Message] | None = None
    for number, message in enumerate(messages, 1):
        if not isinstance(message, dict):
            raise InputFileError(f"message {number} is not a JSON object; repair it or leave the run out")
        if message.get("role") == "assistant" or message.get("object") == "response" or _is_refusal(message):
            answers = []
            exchanges.append((message, answers))
        elif answers is None:
            prompt.append(text_of(content_of(message)))
        else:
            answers.append(message)
    turns = [_turn(reply, given, is_last=given is answers) for reply, given in exchanges]
    return "\n\n".join(filter(None, prompt)), tuple(turns)


def _is_refusal(message: Message) -> bool:
    # v2 records a rejected reply only in the message that rejects it.
    extra = message.get("extra")
    return isinstance(extra, dict) and extra.get("interrupt_type") == "FormatError"


def _turn(reply: Message, answers: Sequence[Message], is_last: bool) -> RecordedTurn:
    extra = mapping_of(reply.get("extra"))
    if "interrupt_type" in extra:
        return RecordedTurn(text=string_of(extra.get("model_response")), rejected=True)
    usage = usage_of(mapping_of(extra.get("response") or reply).get("usage"))
    if reply.get("tool_calls") or "output" in reply:
        return RecordedTurn(_answered(_native_calls(reply), answers), _reply_text(reply), usage)
    text = text_of(content_of(reply))
    found, command, beside = fenced_command(text)
    if found == 1:
        return RecordedTurn((_only_call(command, answers, is_last),), beside, usage)
    return RecordedTurn((), text, usage, rejected=bool(answers))


def fenced_command(text: str) -> tuple[int, str, str]:
    """Return the number of fenced bash blocks in a text, the first command, and the remaining text."""
    fence, start = "```bash", text.find("```bash")
    if start < 0:
        fence, start = "```mswea_bash_command", text.find("```mswea_bash_command")
    found, command, beside = 0, "", text
    while start >= 0:
        line_end = text.find("\n", start)
        end = text.find("\n```", line_end + 1)
        if line_end < 0 or end < 0:
            break
        named = start + len(fence)
        if line_end > named and not text[named:line_end].isspace():
            start = text.find(fence, line_end)
            continue
        found += 1
        if found == 1:
            command, beside = text[line_end:end].strip(), text[:start].rstrip() + text[end + 4 :]
        start = text.find(fence, end + 4)
    return found, command, beside


def _only_call(command: str, answers: Sequence[Message], is_last: bool) -> Call:
    answer = answers[0] if answers else {}
    text = text_of(content_of(answer))
    if not text.startswith(_OBSERVATIONS) and _told_in_json(text) is None:
        # The message after the last command is the submission or the exit reason, which the agent never saw.
        return Call("bash", {"command": command}, "" if is_last else text)
    return _call("bash", {"command": command}, text, answer.get("extra"))


def _native_calls(reply: Message) -> list[tuple[str, str, Mapping[str, Any]]]:
    if "output" not in reply:
        return native_calls(reply)
    items = [item for item in items_of(reply["output"]) if item.get("type") == "function_call"]
    return [(string_of(i.get("call_id")), string_of(i.get("name")), arguments_of(i.get("arguments"))) for i in items]


def _reply_text(reply: Message) -> str:
    parts = [reply, *(item for item in items_of(reply.get("output")) if item.get("type") == "message")]
    return "\n".join(filter(None, (text_of(part.get("content")) for part in parts)))


def _answered(asked: Sequence[tuple[str, str, Mapping[str, Any]]], answers: Sequence[Message]) -> tuple[Call, ...]:
    given = [answer for answer in answers if answer.get("role") != "exit"]
    by_id = {str(answer.get("tool_call_id") or answer.get("call_id")): answer for answer in given}
    calls = []
    for index, (id, tool, arguments) in enumerate(asked):
        nameless = given[index] if index < len(given) and not _names_a_call(given[index]) else {}
        answer = by_id.get(id) or nameless
        text = text_of(content_of(answer)) or string_of(answer.get("output"))
        calls.append(_call(shell_name(tool, arguments), arguments, text, answer.get("extra")))
    return tuple(calls)


def _names_a_call(answer: Message) -> bool:
    return bool(answer.get("tool_call_id") or answer.get("call_id"))


def _call(tool: str, arguments: Mapping[str, Any], text: str, extra: object) -> Call:
    output, code, failed = _observation(text)
    if not isinstance(extra, dict):
        return Call(tool, arguments, output, code, failed)
    given, raw = extra.get("returncode"), extra.get("raw_output")
    exit_code = given if isinstance(given, int) else code
    full = raw if isinstance(raw, str) and len(raw) > len(output) else None
    return Call(tool, arguments, output, exit_code, failed or bool(extra.get("exception_info")), full)


def _observation(text: str) -> tuple[str, int | None, bool]:
    """Return a command's output, its exit code, and whether it was stopped."""
    if text.startswith(_SUCCESS) and text.endswith("</output>"):  # the common case
        return text[len(_SUCCESS) + text.startswith("\n", len(_SUCCESS)) : -len("</output>")], 0, False
    if (told := _told_in_json(text)) is not None:
        code, failed = told.get("returncode"), bool(told.get("exception_info"))
        return _json_output(told), code if isinstance(code, int) else None, failed
    start = 0
    if text.startswith("<exception>"):
        start = text.find("</exception>") + len("</exception>")
    elif text.startswith(_TIMED_OUT):
        start = max(0, text.find("<output>", text.find("</command> timed out")))
    result = _RESULT.match(text, start)
    if result is None:
        return text, None, start > 0
    output = _inner_output(text, result.end())
    return output, int(result[1]) if result[1] else None, start > 0


def _told_in_json(text: str) -> Mapping[str, Any] | None:
    """Return an observation that is a JSON object, as version 2 writes it; its escapes are not part of the output."""
    if text[:1] != "{" or '"returncode"' not in text[:_JSON_BEGINNING]:
        return None
    try:
        told = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return told if isinstance(told, dict) and ("output" in told or "output_head" in told) else None


def _json_output(told: Mapping[str, Any]) -> str:
    if isinstance(told.get("output"), str):
        return string_of(told["output"])
    elided = f"<elided_chars>\n{told.get('elided_chars', 'some')} characters elided\n</elided_chars>"
    return f"{string_of(told.get('output_head'))}\n{elided}\n{string_of(told.get('output_tail'))}"


def _inner_output(text: str, start: int) -> str:
    if text.startswith("<output>", start):
        end = text.rfind("</output>", start)
        return text[start + 8 + text.startswith("\n", start + 8) : end if end >= 0 else len(text)]
    head, tail = text.find("<output_head>\n", start), text.find("\n<output_tail>\n", start)
    middle = text.find("</output_head>\n", head)
    if not 0 <= head < middle < tail:
        return text[start:]
    end = text.rfind("\n</output_tail>", tail)
    shown_first, shown_last = text[head + 14 : middle], text[tail + 15 : end if end >= 0 else len(text)]
    return f"{shown_first}{text[middle + 15 : tail]}\n{shown_last}"
