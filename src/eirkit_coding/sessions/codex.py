"""Reads Codex CLI rollouts: JSON lines of session, turn context, response items and events.

Consecutive items of the model, up to the first output or user message, are a turn. Shell calls become `bash` with the
script that the shell ran; what a command prints while it still runs, which the model asks for with `write_stdin`, is
that command's. A token count that repeats its total is counted once; rolled-back turns are left out. A sub-agent's
rollout is a run of its own that names its parent.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from eirkit.vestige.formats.messages import arguments_of, text_of
from eirkit.vestige.formats.run_builder import (
    RunBuilder,
    count_of,
    items_of,
    logged_usage,
    mapping_of,
    seconds_of,
    string_of,
)
from eirkit.vestige.sources.documents import LogDocument, Skipped
from eirkit.vestige.trajectory import MARKED, KeptContext, Recording, formats
from eirkit_coding.sessions.appended import read_sessions
from eirkit_coding.sessions.codex_scripts import CodexScript

_SHELLS = frozenset({"bash", "sh", "zsh", "dash"})
_SHELL_TOOLS = frozenset({"shell", "shell_command", "exec_command", "container.exec", "local_shell", "unified_exec"})
_HEADER = re.compile(r"(?:Exit code: |Process exited with code )(-?[0-9]{1,10})$", re.MULTILINE)
_RUNNING = re.compile(r"^Process running with session ID ([0-9]{1,12})$", re.MULTILINE)
_HEADER_CHARACTERS = 400
_FEED = "write_stdin"
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
    session: str = ""  # of a command that still runs


def as_call(item: Mapping[str, Any]) -> CodexCall:
    """Return the call of a response item."""
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
    arguments = {name: value for name, value in arguments.items() if name != "cmd"}
    if isinstance(command, str):
        return CodexCall("bash", {**arguments, "command": command}, folder or None)
    words = [string_of(word) for word in command] if isinstance(command, list) else []
    if words[:1] == ["apply_patch"] and len(words) > 1:
        return CodexCall("apply_patch", {"input": words[1]}, folder or None)
    return CodexCall("bash", {**arguments, "command": _script(words)}, folder or None)


def _script(words: list[str]) -> str:
    """Return the script that a shell runs, or the command line of a program started without a shell."""
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
    is_header = bool(mark) and len(header) <= _HEADER_CHARACTERS
    if is_header and (stated := _HEADER.search(header)):
        return CodexOutput(body, int(stated[1]))
    if is_header and (running := _RUNNING.search(header)):
        return CodexOutput(body, session=running[1])
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


Item = Mapping[str, Any]

_WRAPPED = frozenset({"session_meta", "response_item", "event_msg", "turn_context", "compacted"})
_CALLS = frozenset({"function_call", "custom_tool_call", "local_shell_call", "tool_search_call", "web_search_call"})
_SCRIPTS = "exec"  # the tool that runs a script with calls in it
_OUTPUTS = frozenset({"function_call_output", "custom_tool_call_output", "tool_search_output"})


@formats.add("codex")
class Codex:
    """Rollout files of Codex CLI, with and without the envelope around each item."""

    def recognizes(self, document: LogDocument) -> int:
        """Return whether the lines have an enveloped payload, or start with bare session metadata (older files)."""
        entries = document.first_records
        return MARKED if any(map(_is_enveloped, entries)) or (entries and _is_bare(entries[0])) else 0

    def read(self, document: LogDocument) -> Iterator[Recording | Skipped]:
        """Yield the rollout's one run, or those of rollouts that were appended to one file."""
        yield from read_sessions(document, _Rollout)


def _is_enveloped(entry: Item) -> bool:
    return string_of(entry.get("type")) in _WRAPPED and isinstance(entry.get("payload"), dict)


def _is_bare(first: Item) -> bool:
    is_meta = "id" in first and "timestamp" in first and ("instructions" in first or "git" in first)
    return is_meta and "type" not in first and "payload" not in first


class _Rollout:
    """The state while a rollout is read."""

    def __init__(self) -> None:
        self.builder = RunBuilder()
        self.meta: Item = {}
        self.model = ""
        self.folder: str | None = None
        self.window: int | None = None
        self.scripts: dict[str, CodexScript] = {}  # that run, in code mode, by call; one reply may start several
        self.loose: list[Item] = []  # events of which it is not clear which script they belong to
        self.running: dict[str, str] = {}  # by session: the call whose command still runs
        self.fed: dict[str, str] = {}  # by call of `write_stdin`: the call whose command gets the input
        self.is_open = False  # whether the last turn may get more of the same response
        self.counted_total = -1
        self.at: float | None = None  # the time of the present line
        self.told_by: set[str] = set()  # kinds of records that told of the last compaction
        self.users_words: list[int] = []  # for each user message, the number of turns before it

    def session_of(self, line: Item) -> str:
        """Return the name of the rollout that a line starts; a fork begins with its own and its origins' metadata."""
        if line.get("type") == "session_meta":
            meta = mapping_of(line.get("payload"))
        elif "id" in line and _is_bare(line):
            meta = line
        else:
            return ""
        is_later = string_of(meta.get("timestamp")) > string_of(self.meta.get("timestamp"))
        is_origin = self.meta and not is_later and not self.builder.turn_count and not self.builder.prompt
        return "" if is_origin else string_of(meta.get("id"))

    def take(self, line: Item) -> None:
        """Process one line of the file."""
        kind, payload = string_of(line.get("type")), line
        self.at = seconds_of(line.get("timestamp"))
        if isinstance(line.get("payload"), dict):
            payload = line["payload"]
        if kind == "response_item" or (kind not in _WRAPPED and "role" in line) or kind in _CALLS | _OUTPUTS:
            self._take_item(payload)
        elif kind == "event_msg":
            self._take_event(payload)
        elif kind == "compacted":
            self._take_compaction(payload)
        elif kind == "turn_context":
            self.model = self.model or string_of(payload.get("model"))
            self.folder = string_of(payload.get("cwd")) or self.folder
        elif not self.meta and (kind == "session_meta" or "id" in line):
            self.meta = payload
            self.folder = string_of(payload.get("cwd")) or None

    def _take_item(self, item: Item) -> None:
        kind = string_of(item.get("type", "message"))
        if kind in _OUTPUTS and _call_id(item) in self.scripts:
            self.is_open = False
            self._end_script(_call_id(item), item.get("output"))
        elif kind in _OUTPUTS:
            self.is_open = False
            self._take_output(_call_id(item), as_output(item.get("output")))
        elif kind in _CALLS:
            self._take_call(item)
        elif kind in ("compaction", "compaction_summary", "context_compaction"):
            self._break_off(kind)
        elif kind == "message":
            self._take_message(item)

    def _take_call(self, item: Item) -> None:
        self._begin_if_closed()
        if item.get("type") == "custom_tool_call" and item.get("name") == _SCRIPTS:
            id = _call_id(item)
            self.scripts.setdefault(id, CodexScript(id, string_of(item.get("input")), [], self.builder.turn_count))
            return
        call = as_call(item)
        session = string_of(call.arguments.get("session_id"))
        if call.tool == _FEED and session in self.running:
            self.fed[_call_id(item)] = self.running[session]
        self.builder.ask(_call_id(item), call.tool, call.arguments, call.folder or self.folder)

    def _take_output(self, id: str, output: CodexOutput) -> None:
        """Take the output of a call; what `write_stdin` returns was printed by the command that runs."""
        command = self.fed.get(id, id)
        if output.session:
            self.running[output.session] = command
        if command == id:
            self.builder.answer(id, output.text, failed=output.failed, exit_code=output.exit_code)
        else:
            self.builder.answer(id, "")
            self.builder.extend(command, output.text, output.exit_code)

    def _take_ran(self, item: Item) -> None:
        """Take the event of a command or patch that a script ran; it does not name the script."""
        last = max((script.turn for script in self.scripts.values()), default=0)
        running = [script for script in self.scripts.values() if script.turn == last]
        if len(running) > 1:
            running = [script for script in running if script.awaits(item)][:1]
        if running:
            running[0].take(item)
        elif self.scripts:
            self.loose.append(item)

    def _end_script(self, id: str, output: object) -> None:
        """Add the calls of a script that ran, or the script itself if none was found in it."""
        script, unclaimed = self.scripts.pop(id), text_of(output)
        for item in self.loose[:]:
            printed = string_of(item.get("aggregated_output")).strip("\n")
            if not self.scripts or (printed and printed in unclaimed):
                unclaimed = unclaimed.replace(printed, "", 1)  # another script may have printed the same
                script.take(item)
                self.loose.remove(item)
        made = script.end(output)
        for number, call in enumerate(made):
            id = f"{script.call_id}/{number}"
            known = as_call({"name": call.tool, "arguments": call.arguments})
            folder = known.folder or call.folder or self.folder
            self.builder.ask(id, known.tool, known.arguments, folder, script.turn)
            full = call.full_output if len(call.full_output) > len(call.output) + 1 else None
            self.builder.answer(id, call.output, failed=call.failed, exit_code=call.exit_code, full_output=full)
        if not made:
            self.builder.ask(script.call_id, _SCRIPTS, {"input": script.source}, self.folder, script.turn)
            self.builder.answer(script.call_id, as_output(output).text)

    def _take_message(self, item: Item) -> None:
        text = text_of(item.get("content"))
        if item.get("role") == "assistant":
            self._begin_if_closed()
            self.builder.say(text)
        else:
            self.is_open = False
            self.builder.hear(text)

    def _begin_if_closed(self) -> None:
        if not self.is_open:
            self.builder.begin(self.at)
            self.is_open = True

    def _take_event(self, event: Item) -> None:
        kind = event.get("type")
        if kind == "token_count":
            info = mapping_of(event.get("info"))
            self.window = count_of(info.get("model_context_window")) or self.window
            self._take_usage(info)
        elif kind == "task_started":
            self.window = count_of(event.get("model_context_window")) or self.window
        elif kind == "context_compacted":
            self._break_off("event")
        elif kind == "user_message":
            self._take_request(string_of(event.get("message")))
        elif kind == "item_completed":
            item = mapping_of(event.get("item"))
            if item.get("type") == "UserMessage":
                self._take_request(text_of(item.get("content")))
            else:
                self._take_ran(item)
        elif kind == "thread_rolled_back":
            count = count_of(event.get("num_turns"))
            if 0 < count <= len(self.users_words):
                self.builder.drop_from(self.users_words[-count])
                self.scripts = {id: one for id, one in self.scripts.items() if one.turn <= self.builder.turn_count}
                del self.users_words[-count:]
                self.is_open = False

    def _take_request(self, text: str) -> None:
        self.builder.request(text)
        self.users_words.append(self.builder.turn_count)
        self.is_open = False

    def _take_usage(self, info: Item) -> None:
        total = count_of(mapping_of(info.get("total_token_usage")).get("total_tokens"))
        last = mapping_of(info.get("last_token_usage"))
        if not last or total == self.counted_total or not self.builder.turn_count:
            return
        self.counted_total = total
        if self.builder.last_usage is None:
            counts = map(last.get, ("input_tokens", "output_tokens", "cached_input_tokens"))
            prompt, written, cached = counts
            self.builder.use(logged_usage([prompt], [written], cached))

    def _take_compaction(self, payload: Item) -> None:
        self.builder.drop_summary(string_of(payload.get("message")))
        self._break_off("line")
        history = items_of(payload.get("replacement_history"))
        texts = tuple(filter(None, map(_text, history)))
        told = filter(None, (_text(item) for item in history if item.get("role") not in ("developer", "system")))
        self.builder.carry("\n\n".join(told) or string_of(payload.get("message")))
        if history:
            is_opaque = any(item.get("encrypted_content") for item in history)
            self.builder.keep(KeptContext("history", texts, is_complete=not is_opaque, is_opaque=is_opaque))

    def _break_off(self, record: str) -> None:
        # One compaction is recorded by an item, an event and a line of its own; a second line is another compaction.
        if not self.builder.is_broken or record in self.told_by:
            self.builder.break_off("compaction")
            self.told_by.clear()
        self.told_by.add(record)
        self.is_open = False

    def recording(self, document: LogDocument, place: str = "") -> Recording | Skipped:
        """Return the run that the lines record."""
        for id in list(self.scripts):  # those that the log does not answer
            self._end_script(id, "")
        run_id = string_of(self.meta.get("id")) or document.name.removesuffix(".jsonl")
        session = string_of(self.meta.get("session_id")) or run_id
        forked = string_of(self.meta.get("forked_from_id"))
        spawned = mapping_of(mapping_of(self.meta.get("source")).get("subagent")).get("thread_spawn")
        return self.builder.recording(
            document,
            "codex",
            run_id,
            place=place,
            parent=string_of(self.meta.get("parent_thread_id"))
            or string_of(mapping_of(spawned).get("parent_thread_id")),
            task_id=session,
            model=self.model,
            root=string_of(self.meta.get("cwd")) or self.folder,
            agent_version=string_of(self.meta.get("cli_version")),
            window=self.window,
            details={"session": session, **({"forked_from": forked} if forked else {})},
        )


def _text(item: Item) -> str:
    """Return what an item of a replacement history shows the model."""
    return text_of(item.get("content")) or as_output(item.get("output")).text


def _call_id(item: Item) -> str:
    return string_of(item.get("call_id")) or string_of(item.get("id"))
