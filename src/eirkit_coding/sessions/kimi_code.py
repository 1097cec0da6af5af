"""Reads Kimi Code sessions (`agents/NAME/wire.jsonl`): JSON lines of messages, steps with their calls, and compactions.

A compaction keeps messages of the user, whose number it states, and the summary; every call and result is gone. The
files of sub-agents lie beside that of the main agent. The older kimi-cli keeps events with a time and a payload.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from eirkit.errors import InputFileError
from eirkit.vestige.formats.messages import arguments_of, shell_name, text_of
from eirkit.vestige.formats.run_builder import (
    RunBuilder,
    count_of,
    is_own_file,
    logged_usage,
    mapping_of,
    string_of,
    take_lines,
)
from eirkit.vestige.sources.documents import LogDocument, Skipped, open_document
from eirkit.vestige.sources.members import Folder
from eirkit.vestige.trajectory import MARKED, KeptContext, Recording, formats

Object = Mapping[str, Any]

_OWN = ("context.append_message", "context.append_loop_event", "context.apply_compaction", "profile.bind")
_EVENTS = ("TurnBegin", "StepBegin", "ToolCall", "ToolResult", "ContentPart", "StatusUpdate")
_EXIT = re.compile(r"\n?Command failed with exit code: (\d{1,3})\.?\s*\Z")
_MAIN = "main"


@formats.add("kimi-code")
class KimiCode:
    """Session files of Kimi Code, and of the older kimi-cli."""

    def recognizes(self, document: LogDocument) -> int:
        """Return whether the lines are records of a context, or events with a payload."""
        records = document.first_records
        return MARKED if any(record.get("type") in _OWN for record in records) or any(map(_is_event, records)) else 0

    def claims(self, folder: Folder, names: Sequence[str]) -> Collection[str]:
        """Return what lies beside the records of a session: its state, and the context as it is at the end."""
        if "state.json" in names and "agents" in names:
            return [name for name in names if name != "agents"]
        if "wire.jsonl" not in names:
            return ()
        return [name for name in names if name in ("state.json", "file-history") or name.startswith("context")]

    def read(self, document: LogDocument) -> Iterator[Recording | Skipped]:
        """Yield the run of the agent to which the file belongs, then sub-agents whose events are in it."""
        agent, session = _names(document)
        wire = _Wire()
        yield from take_lines(document, wire.take)
        root, parent = _folder(document) or wire.folder, session if agent != _MAIN else ""
        yield wire.recording(document, f"{session}/{agent}" if parent else session, parent, root)
        for id, child in wire.children.items():
            yield child.recording(document, f"{session}/{id}", session, root, id)


def _is_event(record: Object) -> bool:
    message = mapping_of(record.get("message"))
    return "timestamp" in record and "payload" in message and message.get("type") in _EVENTS


def _names(document: LogDocument) -> tuple[str, str]:
    """Return the agent and the session to which a file belongs, as its folders name them."""
    folder = document.parent
    if folder is None:
        return _MAIN, document.name.removesuffix(".jsonl")
    if folder.parent.name in ("agents", "subagents"):
        return folder.name, folder.parent.parent.name
    return _MAIN, folder.name


def _folder(document: LogDocument) -> str:
    if document.parent is None:
        return ""
    home = document.parent.parent.parent
    try:
        state = open_document(home / "state.json").json() if is_own_file(home / "state.json", home) else {}
    except InputFileError:
        return ""
    return string_of(mapping_of(state).get("cwd"))


class _Wire:
    """The state while the records of an agent are read."""

    def __init__(self) -> None:
        self.builder = RunBuilder()
        self.model = self.folder = ""
        self.window = 0
        self.asked: list[str] = []  # by the user
        self.open: tuple[str, str] = ("", "")  # the call whose arguments are still being written, and they so far
        self.children: dict[str, _Wire] = {}
        self.trigger: object = None  # of the compaction that began

    def take(self, line: Object) -> None:
        """Process one line."""
        kind = line.get("type")
        if _is_event(line) or mapping_of(line.get("message")).get("payload") is not None:
            event = mapping_of(line.get("message"))
            self._take_event(string_of(event.get("type")), mapping_of(event.get("payload")))
        elif kind == "context.append_message":
            message = mapping_of(line.get("message"))
            text = text_of(message.get("content"))
            if mapping_of(message.get("origin")).get("kind", "user") == "user":
                self._ask_of(text)
            else:
                self.builder.hear(text)
        elif kind == "context.append_loop_event":
            self._take_step(mapping_of(line.get("event")))
        elif kind == "llm.request" and line.get("kind") == "loop":
            self.model = self.model or string_of(line.get("model"))
        elif kind in ("full_compaction.begin", "full_compaction.cancel"):
            self.trigger = line.get("source")
        elif kind == "context.apply_compaction":
            self._compact(line)
        elif kind == "context.clear":
            self.builder.break_off("clear")

    def _ask_of(self, text: str) -> None:
        self.asked.append(text)
        self.builder.request(text)

    def _take_step(self, event: Object) -> None:
        kind, id = event.get("type"), string_of(event.get("toolCallId"))
        if kind == "step.begin":
            self.builder.begin()
        elif not self.builder.turn_count:
            return
        elif kind == "content.part":
            part = mapping_of(event.get("part"))
            self.builder.say(string_of(part.get("text")) if part.get("type") == "text" else "")
        elif kind == "tool.call":
            self.folder = self.folder or string_of(mapping_of(event.get("display")).get("cwd"))
            self._call(id, string_of(event.get("name")), arguments_of(event.get("args")))
        elif kind == "tool.result":
            result = mapping_of(event.get("result"))
            self._answer(id, text_of(result.get("output")), result.get("isError") is True)
        elif kind == "step.end":
            self._use(mapping_of(event.get("usage")))

    def _call(self, id: str, tool: str, arguments: Object) -> None:
        given = dict(arguments)
        first, count = given.pop("line_offset", None), given.pop("n_lines", None)
        if type(first) is int and first > 0:
            given["offset"] = first
        if type(count) is int:
            given["limit"] = count
        edit = given.pop("edit", None)  # of kimi-cli: one edit or a list of them
        if edit is not None:
            given["edits"] = edit if isinstance(edit, list) else [edit]
        own = {"ReadFile": "read_file", "StrReplaceFile": "str_replace", "WriteFile": "write_file"}.get(tool, tool)
        self.builder.ask(id, "bash" if tool in ("Bash", "Shell") else shell_name(own, given), given)

    def _answer(self, id: str, output: str, failed: bool) -> None:
        ended = _EXIT.search(output, max(0, len(output) - 100)) if failed else None
        text = output[: ended.start()] if ended else output
        self.builder.answer(id, text, failed=failed and ended is None, exit_code=int(ended[1]) if ended else None)

    def _use(self, counts: Object) -> None:
        names = (
            ("inputOther", "inputCacheRead", "inputCacheCreation"),
            ("input_other", "input_cache_read", "input_cache_creation"),
        )
        parts = next(([counts.get(name) for name in own] for own in names if own[0] in counts), None)
        if parts is not None and self.builder.turn_count:
            self.builder.use(logged_usage(parts, [counts.get("output")], parts[1]))

    def _compact(self, record: Object) -> None:
        summary = string_of(record.get("contextSummary")) or string_of(record.get("summary"))
        kept, head = record.get("keptUserMessageCount"), count_of(record.get("keptHeadUserMessageCount"))
        texts: tuple[str, ...] = ()
        if type(kept) is int:
            tail = min(len(self.asked), max(0, kept - head))
            texts = (*self.asked[:head], *self.asked[len(self.asked) - tail :])
        self.builder.break_off("compaction", self.trigger)
        self.trigger = None
        self.builder.carry(summary)
        self.builder.keep(
            KeptContext(
                "history" if type(kept) is int else "size",
                texts,
                is_complete=type(kept) is int,  # older records keep a tail of messages, too
                tokens_before=count_of(record.get("tokensBefore")) or None,
                tokens_after=count_of(record.get("tokensAfter")) or None,
            )
        )

    def _take_event(self, kind: str, payload: Object) -> None:
        """Process an event of kimi-cli."""
        if kind != "ToolCallPart":
            self._close_call()
        if kind == "SubagentEvent":
            event = mapping_of(payload.get("event"))
            id = string_of(payload.get("agent_id")) or string_of(payload.get("parent_tool_call_id"))
            child = self.children.setdefault(id or string_of(payload.get("task_tool_call_id")), _Wire())
            child._take_event(string_of(event.get("type")), mapping_of(event.get("payload")))
        elif kind in ("TurnBegin", "SteerInput"):
            self._ask_of(text_of(payload.get("user_input")))
        elif kind == "StepBegin":
            self.builder.begin()
        elif kind == "CompactionBegin":
            self.builder.break_off("compaction")
            self.builder.keep(KeptContext("size"))
        elif not self.builder.turn_count:
            return
        elif kind == "ContentPart" and payload.get("type") == "text":
            self.builder.say(string_of(payload.get("text")))
        elif kind == "ToolCall":
            self.open = string_of(payload.get("id")), string_of(mapping_of(payload.get("function")).get("arguments"))
            self.tool = string_of(mapping_of(payload.get("function")).get("name"))
        elif kind == "ToolCallPart":
            self.open = self.open[0], self.open[1] + string_of(payload.get("arguments_part"))
        elif kind == "ToolResult":
            value = mapping_of(payload.get("return_value"))
            shown = text_of(value.get("output")) or string_of(value.get("message"))
            self._answer(string_of(payload.get("tool_call_id")), shown, value.get("is_error") is True)
        elif kind == "StatusUpdate":
            self.window = count_of(payload.get("max_context_tokens")) or self.window
            self._use(mapping_of(payload.get("token_usage")))

    def _close_call(self) -> None:
        id, arguments = self.open
        if id:
            self.open = ("", "")
            self._call(id, self.tool, arguments_of(arguments))

    def recording(
        self, document: LogDocument, run_id: str, parent: str, root: str, place: str = ""
    ) -> Recording | Skipped:
        """Return the run."""
        self._close_call()
        return self.builder.recording(
            document,
            "kimi-code",
            run_id,
            place=place,
            parent=parent,
            model=self.model,
            root=root,
            window=self.window,
            details={"keeps_folder": False},
        )
