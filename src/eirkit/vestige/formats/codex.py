"""Codex CLI rollouts: JSON lines of session, turn context, response items and events.

A run of the model's items, up to the first answer or the next word of the user, is a turn. Shell calls become `bash`
with the script that the shell was given. A token count that repeats its total is counted once; turns that were rolled
back are left out. A sub-agent's rollout is a run of its own that names its parent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from eirkit.vestige.formats.building import (
    RunBuilder,
    begins_with_info,
    count_of,
    first_objects,
    items_of,
    mapping_of,
    objects_by_line,
    skipped,
    string_of,
)
from eirkit.vestige.formats.codex_calls import as_call, as_output
from eirkit.vestige.formats.messages import text_of
from eirkit.vestige.source import Document, Skipped
from eirkit.vestige.trajectory import Recording, Usage, formats

Item = Mapping[str, Any]

_WRAPPED = frozenset({"session_meta", "response_item", "event_msg", "turn_context", "compacted"})
_CALLS = frozenset({"function_call", "custom_tool_call", "local_shell_call", "tool_search_call", "web_search_call"})
_OUTPUTS = frozenset({"function_call_output", "custom_tool_call_output", "tool_search_output"})


@formats.add("codex")
class Codex:
    """Rollout files of Codex CLI, with and without the envelope around each item."""

    def recognises(self, document: Document) -> bool:
        """True for lines with an enveloped payload, or for the older kind that begins with bare session facts."""
        head = document.head
        if begins_with_info(head) or not head.lstrip().startswith(b"{") or b'"timestamp"' not in head:
            return False
        entries = list(first_objects(head, 4))
        if not entries:  # a first line of more than the beginning: it holds the instructions
            return b'"session_meta"' in head and b'"payload"' in head
        return _is_enveloped(entries[0]) or _is_bare(entries)

    def read(self, document: Document) -> Iterator[Recording | Skipped]:
        """Yield the rollout's one run."""
        rollout = _Rollout()
        for value in objects_by_line(document):
            if isinstance(value, Skipped):
                yield value
            else:
                rollout.take(value)
        if rollout.builder.turn_count:
            yield rollout.recording(document)
        else:
            yield skipped(document, "holds no reply of the agent; there is nothing to analyse")


def _is_enveloped(entry: Item) -> bool:
    return string_of(entry.get("type")) in _WRAPPED and isinstance(entry.get("payload"), dict)


def _is_bare(entries: list[Item]) -> bool:
    first = entries[0]
    is_meta = "id" in first and "timestamp" in first and ("instructions" in first or "git" in first)
    return is_meta and "type" not in first and "payload" not in first


class _Rollout:
    """A rollout while it is read."""

    def __init__(self) -> None:
        self.builder = RunBuilder()
        self.meta: Item = {}
        self.model = ""
        self.folder: str | None = None
        self.is_open = False  # the last turn may get more of the same response
        self.counted_total = -1
        self.users_words: list[int] = []  # for each word of the user, how many turns there were before it

    def take(self, line: Item) -> None:
        """Take one line of the file."""
        kind, payload = string_of(line.get("type")), line
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
        elif kind == "session_meta" or (not self.meta and "id" in line):
            self._take_meta(payload)

    def _take_meta(self, payload: Item) -> None:
        # A forked rollout holds its forerunner's facts after its own.
        if not self.meta:
            self.meta = payload
            self.folder = string_of(payload.get("cwd")) or None

    def _take_item(self, item: Item) -> None:
        kind = string_of(item.get("type", "message"))
        if kind in _OUTPUTS:
            self.is_open = False
            output = as_output(item.get("output"))
            self.builder.answer(_call_id(item), output.text, failed=output.failed, exit_code=output.exit_code)
        elif kind in _CALLS:
            self._take_call(item)
        elif kind in ("compaction", "compaction_summary", "context_compaction"):
            self._break_off()
        elif kind == "message":
            self._take_message(item)

    def _take_call(self, item: Item) -> None:
        self._begin_if_closed()
        call = as_call(item)
        self.builder.ask(_call_id(item), call.tool, call.arguments, call.folder or self.folder)

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
            self.builder.begin()
            self.is_open = True

    def _take_event(self, event: Item) -> None:
        kind = event.get("type")
        if kind == "token_count":
            self._take_usage(mapping_of(event.get("info")))
        elif kind == "context_compacted":
            self._break_off()
        elif kind == "user_message":
            self.users_words.append(self.builder.turn_count)
            self.is_open = False
        elif kind == "thread_rolled_back":
            self._roll_back(count_of(event.get("num_turns")))

    def _take_usage(self, info: Item) -> None:
        total = count_of(mapping_of(info.get("total_token_usage")).get("total_tokens"))
        last = mapping_of(info.get("last_token_usage"))
        if not last or total == self.counted_total or not self.builder.turn_count:
            return
        self.counted_total = total
        if self.builder.last_usage is None:
            prompt = count_of(last.get("input_tokens"))
            cached = min(prompt, count_of(last.get("cached_input_tokens")))
            self.builder.use(Usage(prompt, count_of(last.get("output_tokens")), cached))

    def _roll_back(self, count: int) -> None:
        if 0 < count <= len(self.users_words):
            self.builder.drop_from(self.users_words[-count])
            del self.users_words[-count:]
            self.is_open = False

    def _take_compaction(self, payload: Item) -> None:
        self._break_off()
        history = items_of(payload.get("replacement_history"))
        kept = "\n\n".join(filter(None, (text_of(item.get("content")) for item in history)))
        self.builder.carry(kept or string_of(payload.get("message")))

    def _break_off(self) -> None:
        # The same compaction is told by an item, an event and a line of its own.
        if not self.builder.is_broken:
            self.builder.break_off("compaction")
        self.is_open = False

    def recording(self, document: Document) -> Recording:
        """Return the run that the lines told."""
        run_id = string_of(self.meta.get("id")) or document.name.removesuffix(".jsonl")
        session = string_of(self.meta.get("session_id")) or run_id
        parent = _parent(self.meta)
        forked = string_of(self.meta.get("forked_from_id"))
        return Recording(
            run_id=run_id,
            task_id=session,
            format="codex",
            source=document.source,
            turns=self.builder.turns(),
            model=self.model,
            prompt=self.builder.prompt,
            root=string_of(self.meta.get("cwd")) or self.folder,
            details={
                "session": session,
                **({"parent_run": parent} if parent else {}),
                **({"forked_from": forked} if forked else {}),
            },
        )


def _parent(meta: Item) -> str:
    spawned = mapping_of(mapping_of(meta.get("source")).get("subagent")).get("thread_spawn")
    return string_of(meta.get("parent_thread_id")) or string_of(mapping_of(spawned).get("parent_thread_id"))


def _call_id(item: Item) -> str:
    return string_of(item.get("call_id")) or string_of(item.get("id"))
