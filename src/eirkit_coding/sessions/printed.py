"""Reads what agents print without a terminal: `claude -p --output-format stream-json` and `codex exec --json`.

Such a stream is often saved with other output before it. It tells less than the session that the agent keeps itself:
give that one where you have both. Qwen Code prints similar messages, with short notes in place of the files that were
read; they do not say what was seen, and are not read as if they did.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from eirkit.vestige.formats.messages import take_reply, take_results, usage_of
from eirkit.vestige.formats.run_builder import (
    RunBuilder,
    count_of,
    items_of,
    mapping_of,
    string_of,
    take_lines,
)
from eirkit.vestige.sources.documents import LogDocument, Skipped
from eirkit.vestige.trajectory import MARKED, KeptContext, Recording, formats
from eirkit_coding.sessions.appended import read_sessions
from eirkit_coding.sessions.codex import as_call
from eirkit_coding.sessions.codex_scripts import change_as_patch

Line = Mapping[str, Any]

_CHANGED = re.compile(r"(?m)^\*\*\* Update File: (/[^\n]{1,1000})$")


@formats.add("stream-json")
class StreamJson:
    """Output of `claude -p --output-format stream-json`."""

    def recognizes(self, document: LogDocument) -> int:
        """Return whether the lines are messages with a session, after a line that names the tools."""
        return MARKED if any(map(_is_start, document.first_records)) else 0

    def read(self, document: LogDocument) -> Iterator[Recording | Skipped]:
        """Yield each session with its sub-agents; streams are often appended to one file."""
        starts: dict[str, Line] = {}
        # By session and the call that started a sub-agent; "" for the session itself.
        builders: dict[tuple[str, str], RunBuilder] = {}
        replies: dict[tuple[str, str], str] = {}
        session = ""

        def take(line: Line) -> None:
            nonlocal session
            # Where the head of a file is cut, a session has a name but no start.
            session = string_of(line.get("session_id")) or session
            if _is_start(line):
                starts.setdefault(session, line)
            key = session, string_of(line.get("parent_tool_use_id"))
            _take_message(builders.setdefault(key, RunBuilder()), line, replies, key)

        yield from take_lines(document, take)
        found = [(key, builder) for key, builder in builders.items() if builder.turn_count]
        first = found[0][0][0] if found else next(iter(starts), "")
        for (named, caller), builder in found or [((first, ""), RunBuilder())]:
            start, own = starts.get(named, {}), named or document.name
            run_id = f"{own}/{caller}" if caller else own
            yield builder.recording(
                document,
                "stream-json",
                run_id,
                place=caller if named == first else run_id,
                parent=own if caller else "",
                model=string_of(start.get("model")),
                root=string_of(start.get("cwd")),
                agent_version=string_of(start.get("claude_code_version")),
            )


def _is_start(line: Line) -> bool:
    is_init = line.get("type") == "system" and line.get("subtype") == "init"
    return is_init and "session_id" in line and "tools" in line and "qwen_code_version" not in line


def _take_message(
    builder: RunBuilder, line: Line, replies: dict[tuple[str, str], str], parent: tuple[str, str]
) -> None:
    message, kind = mapping_of(line.get("message")), line.get("type")
    if kind == "assistant":
        id = string_of(message.get("id")) or string_of(line.get("uuid"))
        if replies.get(parent) != id or not builder.turn_count:
            builder.begin()
            replies[parent] = id
        take_reply(builder, message.get("content"))
        builder.use(usage_of(message.get("usage")))
    elif kind == "user":
        take_results(builder, message.get("content"), mapping_of(line.get("tool_use_result")))
    elif kind == "system" and line.get("subtype") == "compact_boundary":
        stated = mapping_of(line.get("compact_metadata"))
        builder.break_off("compaction", stated.get("trigger"))
        builder.keep(KeptContext("size", tokens_before=count_of(stated.get("pre_tokens")) or None))


@formats.add("codex-exec")
class CodexExec:
    """Output of `codex exec --json`."""

    def recognizes(self, document: LogDocument) -> int:
        """Return whether a thread starts and its items follow."""
        return MARKED if any(_is_thread(line) for line in document.first_records) else 0

    def read(self, document: LogDocument) -> Iterator[Recording | Skipped]:
        """Yield a run for each thread; each completed item of the agent is a turn."""
        yield from read_sessions(document, _Thread)


class _Thread:
    """The state while a thread is read."""

    def __init__(self) -> None:
        self.builder = RunBuilder()
        self.name = ""

    def session_of(self, line: Line) -> str:
        """Return the name of the thread that a line starts."""
        return string_of(line.get("thread_id"))

    def take(self, line: Line) -> None:
        """Process one line."""
        self.name = self.name or self.session_of(line)
        if line.get("type") == "item.completed":
            _take_item(self.builder, mapping_of(line.get("item")))

    def recording(self, document: LogDocument, place: str = "") -> Recording | Skipped:
        """Return the run."""
        # The folder that makes a changed file, named in full, one that a command names by a relative path.
        calls = [call for turn in self.builder.turns() for call in turn.calls]
        changed = [found[1] for call in calls for found in _CHANGED.finditer(string_of(call.arguments.get("input")))]
        words = {word for call in calls for word in string_of(call.arguments.get("command")).split()}
        ends = ((path, word) for path in changed for word in sorted(words) if path.endswith(f"/{word}"))
        root = next((path.removesuffix(f"/{word}") for path, word in ends), None)
        return self.builder.recording(document, "codex-exec", self.name, place=place, root=root)


def _is_thread(line: Line) -> bool:
    return line.get("type") == "thread.started" and "thread_id" in line


def _take_item(builder: RunBuilder, item: Line) -> None:
    # A thread that goes on counts its items anew.
    kind, id = item.get("type"), f"{string_of(item.get('id'))}@{builder.turn_count}"
    if kind == "agent_message":
        builder.begin()
        builder.say(string_of(item.get("text")))
    elif kind == "command_execution":
        builder.begin()
        call = as_call({"name": "exec_command", "arguments": {"cmd": _words(string_of(item.get("command")))}})
        builder.ask(id, call.tool, call.arguments)
        builder.answer(id, string_of(item.get("aggregated_output")), exit_code=item.get("exit_code"))
    elif kind == "file_change":
        builder.begin()
        changes = {
            string_of(change.get("path")): {"type": change.get("kind")} for change in items_of(item.get("changes"))
        }
        builder.ask(id, "apply_patch", {"input": change_as_patch(changes)})
        builder.answer(id, "", failed=item.get("status") == "failed")
    elif kind in ("mcp_tool_call", "web_search", "todo_list"):
        builder.begin()
        named = string_of(item.get("tool")) or {"todo_list": "update_plan"}.get(string_of(kind), string_of(kind))
        builder.ask(id, named, mapping_of(item.get("arguments")))


def _words(command: str) -> list[str] | str:
    """Return the words of a command line that starts a shell, whose script is the command."""
    try:
        return shlex.split(command)
    except ValueError:
        return command
