"""Converts OpenAI-style messages to turns, for all formats that contain them.

Handles native tool calls, the older `function_call`, calls in the text as `<function=…><parameter=…>`, and content as a
string or a list of blocks. A malformed message raises InputFileError, which skips its run and no other.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from eirkit.errors import InputFileError
from eirkit.vestige.formats.run_builder import RunBuilder, items_of, logged_usage, string_of
from eirkit.vestige.trajectory import Call, LoggedUsage, RecordedTurn

SHELL_TOOLS = frozenset(
    {"bash", "execute_bash", "execute_command", "run_command", "run_shell_command", "shell", "terminal"}
)
_AGENTS = frozenset({"assistant", "ai", "gpt"})
_TOOLS = frozenset({"tool", "function"})
_PREAMBLE = frozenset({"system", "developer"})
# Parameters that are parsed as numbers or lists; all others stay text.
_NUMERIC = frozenset({"view_range", "insert_line", "line_number", "start_line", "end_line", "timeout"})
_TAG = re.compile(
    r"<function=(?P<function>[^<>\n]{1,100})>|<parameter=(?P<parameter>[^<>\n]{1,100})>|</(?:function|parameter)>"
)
_DECODER = json.JSONDecoder(strict=False)  # models put unescaped line breaks into strings
_RESULT_PREFIX = "EXECUTION RESULT of ["
_OBSERVATION_PREFIX = "OBSERVATION:\n"

CallMaker = Callable[[str, Mapping[str, Any], str, Mapping[str, Any]], Call]
"""Makes a call from its tool, its arguments, its output, and the message with the output ({} if none)."""
UsageReader = Callable[[Mapping[str, Any]], LoggedUsage | None]
"""Returns the usage recorded in a message of the agent."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """The prompt and turns of a list of messages."""

    prompt: str  # everything before the first reply
    turns: tuple[RecordedTurn, ...]
    heard: tuple[str, ...]  # for each turn, the user messages after it that are not tool results


def read_conversation(
    messages: Iterable[object], *, make_call: CallMaker | None = None, usage: UsageReader | None = None
) -> Conversation:
    """Return the prompt and the turns of a list of messages, one turn per message of the agent."""
    prompt: list[str] = []
    open_turns: list[_OpenTurn] = []
    for number, message in enumerate(messages, 1):
        if not isinstance(message, dict):
            raise InputFileError(f"message {number} is not a JSON object; repair it or leave the run out")
        role = str(message.get("role"))
        if role in _AGENTS:
            open_turns.append(_OpenTurn(message))
        elif not open_turns:
            prompt.append(text_of(content_of(message)))
        elif role not in _PREAMBLE:
            open_turns[-1].hear(message, is_tool=role in _TOOLS)
    make, count = make_call or plain_call, usage or message_usage
    turns = tuple(turn.close(make, count) for turn in open_turns)
    return Conversation("\n\n".join(filter(None, prompt)), turns, tuple("\n".join(turn.heard) for turn in open_turns))


class _Asked:
    """A call that waits for its result."""

    __slots__ = ("answer", "arguments", "id", "output", "tool")

    def __init__(self, id: str, tool: str, arguments: Mapping[str, Any]) -> None:
        self.id, self.tool, self.arguments = id, tool, arguments
        self.answer: Mapping[str, Any] | None = None
        self.output = ""


class _OpenTurn:
    """A reply whose results are still being read."""

    __slots__ = ("asked", "by_id", "heard", "in_text", "message", "next", "text")

    def __init__(self, message: Mapping[str, Any]) -> None:
        self.message = message
        self.text = text_of(content_of(message))
        self.heard: list[str] = []
        self.asked = [_Asked(*parts) for parts in native_calls(message)]
        self.in_text = False
        if not self.asked and "<function=" in self.text:
            self.text, found = textual_calls(self.text)
            self.asked = [_Asked("", tool, arguments) for tool, arguments in found]
            self.in_text = bool(found)
        self.by_id = {asked.id: asked for asked in self.asked if asked.id}
        self.next = 0  # the first call that may still wait for its result

    def hear(self, message: Mapping[str, Any], *, is_tool: bool) -> None:
        text = text_of(content_of(message))
        asked = self._answered_by(message) if is_tool or self.in_text else None
        if asked is None:
            self.heard.append(text)
        else:
            asked.answer, asked.output = message, _unwrapped(text)

    def _answered_by(self, message: Mapping[str, Any]) -> _Asked | None:
        named = self.by_id.get(str(message.get("tool_call_id")))
        if named is not None and named.answer is None:
            return named
        while self.next < len(self.asked) and self.asked[self.next].answer is not None:
            self.next += 1
        return self.asked[self.next] if self.next < len(self.asked) else None

    def close(self, make_call: CallMaker, usage: UsageReader) -> RecordedTurn:
        calls = tuple(make_call(asked.tool, asked.arguments, asked.output, asked.answer or {}) for asked in self.asked)
        return RecordedTurn(calls=calls, text=self.text, usage=usage(self.message))


def plain_call(tool: str, arguments: Mapping[str, Any], output: str, answer: Mapping[str, Any]) -> Call:
    """Make a call as recorded; a shell tool is renamed to `bash`."""
    return Call(shell_name(tool, arguments), arguments, output, failed=output.startswith(("ERROR:", "Error:")))


def shell_name(tool: str, arguments: Mapping[str, Any]) -> str:
    """Return `bash` for a tool that runs the shell command in its arguments, else the tool's own name."""
    return "bash" if tool in SHELL_TOOLS and isinstance(arguments.get("command"), str) else tool


def native_calls(message: Mapping[str, Any]) -> list[tuple[str, str, Mapping[str, Any]]]:
    """Return (id, tool, arguments) for each call that a message carries beside its text."""
    given = message.get("tool_calls") or ()
    if not given and isinstance(message.get("function_call"), dict):
        given = [{"function": message["function_call"]}]
    found = []
    for call in given if isinstance(given, (list, tuple)) else ():
        if not isinstance(call, dict):
            raise InputFileError("a tool call is not a JSON object; repair it or leave the run out")
        # tau2-bench and a few others leave out the level `function`.
        inner = call.get("function")
        function = inner if isinstance(inner, dict) else call
        tool = function.get("name")
        if isinstance(tool, str) and tool:
            found.append((str(call.get("id") or ""), tool, arguments_of(function.get("arguments"))))
    return found


def arguments_of(given: object) -> Mapping[str, Any]:
    """Return a call's arguments from an object or its JSON text; anything else is kept under `arguments`."""
    if isinstance(given, str):
        if not given.strip():
            return {}
        try:
            given = _DECODER.decode(given)
        except (ValueError, RecursionError):
            return {"arguments": given}
    if isinstance(given, dict):
        # In a table every call has all argument names that any call uses, with null for the rest.
        return {str(name): value for name, value in given.items() if value is not None}
    return {} if given is None else {"arguments": given}


def textual_calls(text: str) -> tuple[str, list[tuple[str, Mapping[str, Any]]]]:
    """Return the text before the first `<function=…>` call, and (tool, arguments) for each call.

    Inside a parameter only its own closing tag counts, since a value may contain function tags; an incomplete call ends
    with the text.
    """
    found: list[tuple[str, dict[str, Any]]] = []
    beside, name, start, inside = text, None, 0, False
    for tag in _TAG.finditer(text):
        if name is not None:
            if tag[0] == "</parameter>":
                found[-1][1][name] = _parameter_value(name, text[start : tag.start()])
                name = None
        elif tag["function"] is not None:
            beside = beside if found else text[: tag.start()].rstrip()
            found.append((tag["function"].strip(), {}))
            inside = True
        elif tag["parameter"] is not None and inside:
            name, start = tag["parameter"].strip(), tag.end()
        elif tag[0] == "</function>":
            inside = False
    if name is not None:
        found[-1][1][name] = _parameter_value(name, text[start:].removesuffix("\n</function>"))
    return beside, list(found)


def _parameter_value(name: str, text: str) -> Any:
    text = text.removeprefix("\n").removesuffix("\n")
    if name not in _NUMERIC or len(text) > 100:
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _unwrapped(text: str) -> str:
    """Return a result without the header that is added for models without tool calls."""
    if text.startswith(_RESULT_PREFIX):
        first, _, rest = text.partition("]:\n")
        return rest if "\n" not in first else text
    if text.startswith("<tool_response>\n"):
        return text.rstrip().removeprefix("<tool_response>\n").removesuffix("</tool_response>").removesuffix("\n")
    return text.removeprefix(_OBSERVATION_PREFIX)


def content_of(message: Mapping[str, Any]) -> object:
    """Return a message's content, whichever of the usual keys holds it."""
    content = message.get("content")
    return content if content is not None else message.get("text", message.get("value"))


def text_of(content: object) -> str:
    """Return the text of a message's content: a string, or a list of strings and of blocks with a text."""
    if isinstance(content, str):
        return content
    if isinstance(content, (list, tuple)):
        return "\n".join(filter(None, map(_block_text, content)))
    return ""


def said_text(blocks: Iterable[Mapping[str, Any]]) -> str:
    """Return the text of those blocks of a message that are text."""
    return text_of([block for block in blocks if block.get("type") == "text"])


def _block_text(block: object) -> str:
    text = block.get("text") if isinstance(block, dict) else block
    return text if isinstance(text, str) else ""


def message_usage(message: Mapping[str, Any]) -> LoggedUsage | None:
    """Return the usage recorded in a message."""
    return usage_of(message.get("usage"))


def usage_of(counts: object) -> LoggedUsage | None:
    """Return a response's usage from OpenAI-like or Anthropic-like counts; None if there are none.

    Anthropic-like counts exclude cached input from the rest; OpenAI-like ones include it.
    """
    if not isinstance(counts, dict):
        return None
    if "prompt_tokens" in counts or "completion_tokens" in counts:
        details = counts.get("prompt_tokens_details")
        cached = details.get("cached_tokens") if isinstance(details, dict) else None
        cached = cached or counts.get("cache_read_tokens") or counts.get("cache_read_input_tokens")
        return logged_usage([counts.get("prompt_tokens")], [counts.get("completion_tokens")], cached)
    if "input_tokens" in counts or "output_tokens" in counts:
        cached = counts.get("cache_read_input_tokens")
        given = (counts.get("input_tokens"), counts.get("cache_creation_input_tokens"), cached)
        return logged_usage(given, [counts.get("output_tokens")], cached)
    return None


def sequence_of(value: object) -> Sequence[Any]:
    """Return a list, or the list in a JSON text; an empty list for anything else."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            value = _DECODER.decode(value)
        except (ValueError, RecursionError):
            return ()
    return value if isinstance(value, (list, tuple)) else ()


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
    """Assign the result blocks of a user's message to their calls; `structured` is the scaffold's own record."""
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
    """Return the preview of a long output with the truncation notice moved to the cut."""
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
