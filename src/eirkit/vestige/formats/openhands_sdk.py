"""Converts events of OpenHands' software agent SDK, identified by their `kind`, to the turns of a run.

Actions of one response are one turn. A call that the scaffold or its user rejected is kept with its arguments as text,
because it was not executed. The log holds the terminal's whole output, of which the agent saw at most 30,000
characters.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from eirkit.errors import InputFileError
from eirkit.vestige.formats.messages import arguments_of, shell_name, text_of
from eirkit.vestige.formats.run_builder import RunBuilder, is_own_file, items_of, mapping_of, skipped, string_of
from eirkit.vestige.sources.documents import LogDocument, Skipped, open_document
from eirkit.vestige.sources.members import Folder
from eirkit.vestige.trajectory import KeptContext, LoggedUsage

Event = Mapping[str, Any]

_KINDS = frozenset({"ActionEvent", "MessageEvent", "ObservationEvent", "SystemPromptEvent"})
_REFUSALS = {"AgentErrorEvent": "error", "UserRejectObservation": "rejection_reason"}
_SHOWN_CHARACTERS = 30_000
_CLIPPED = (
    "<response clipped><NOTE>Due to the max output limit, only part of the full response has been shown to you.</NOTE>"
)


def is_sdk(events: Sequence[Event]) -> bool:
    """Return whether a history was written by the SDK and not by the older scaffold."""
    return any(_kind(event) in _KINDS for event in events)


def tell_sdk(events: Sequence[Event], builder: RunBuilder, usages: Mapping[str, LoggedUsage | None]) -> None:
    """Add the events of a run to the builder."""
    telling = _Telling(events, builder, usages)
    for event in events:
        telling.take(event)


def ends_in_finish(events: Sequence[Event]) -> bool:
    """Return whether the last action of a run was to finish."""
    last: Event = next((event for event in reversed(events) if _kind(event) == "ActionEvent"), {})
    return last.get("tool_name") == "finish"


class _Telling:
    """The state from one event to the next."""

    def __init__(self, events: Sequence[Event], builder: RunBuilder, usages: Mapping[str, LoggedUsage | None]) -> None:
        self.builder, self.usages = builder, usages
        self.response, self.folder = "", ""
        self.calls: dict[str, str] = {}  # the last action of each call id, since models reuse ids
        self.turns: dict[str, int] = {}  # by event, the turn to which it belongs
        self.asked: dict[str, str] = {}  # by event, what the user wrote
        self.forgotten: set[str] = set()
        refused = {string_of(event.get("tool_call_id")) for event in events if _kind(event) in _REFUSALS}
        self.refused = refused - {""}
        acting = (event for event in events if _kind(event) == "ActionEvent" and self._is_done(event))
        self.done = {string_of(event.get("llm_response_id")) for event in acting}

    def take(self, event: Event) -> None:
        kind = _kind(event)
        if kind == "ActionEvent":
            self._act(event)
        elif kind == "MessageEvent":
            self._speak(event)
        elif kind == "ObservationEvent":
            self._observe(event)
        elif kind in _REFUSALS:
            self._answer(event, string_of(event.get(_REFUSALS[kind])), failed=True)
        elif kind == "SystemPromptEvent":
            self.builder.hear(_texts(event.get("system_prompt")))
        elif kind == "Condensation":
            self._condense(event)

    def _condense(self, event: Event) -> None:
        """Add a condensation, which names the events that it forgets; all others stay in the context."""
        self.builder.break_off("compaction")
        self.builder.carry(string_of(event.get("summary")))
        self.response = ""
        forgotten = event.get("forgotten_event_ids")
        if isinstance(forgotten, list):
            self.forgotten.update(map(string_of, forgotten))
            gone = {self.turns[id] for id in self.forgotten if id in self.turns}
            stayed = tuple(turn for turn in range(1, self.builder.turn_count + 1) if turn not in gone)
            texts = tuple(text for id, text in self.asked.items() if id not in self.forgotten)
            self.builder.keep(KeptContext("removed", texts, turns=stayed, is_complete=True))

    def _act(self, event: Event) -> None:
        self._begin(event, _texts(event.get("thought")))
        if self.response not in self.done:
            self.builder.reject()
        id = string_of(event.get("id"))
        self.calls[string_of(event.get("tool_call_id"))] = id
        self.builder.ask(id, *_asked(event, is_done=self._is_done(event)), self.folder or None)

    def _speak(self, event: Event) -> None:
        text = _texts(mapping_of(event.get("llm_message")).get("content"))
        if event.get("source") == "agent":
            self._begin(event, text)
        elif event.get("source") == "user":
            self.builder.request(text)
            self.asked[string_of(event.get("id"))] = text
        else:
            self.builder.hear(text)

    def _begin(self, event: Event, text: str) -> None:
        own = string_of(event.get("llm_response_id"))
        if not own or own != self.response:
            self.builder.begin()
            self.builder.use(self.usages.get(own))
            self.builder.say(text)
        self.response = own
        self.turns[string_of(event.get("id"))] = self.builder.turn_count

    def _observe(self, event: Event) -> None:
        seen = mapping_of(event.get("observation"))
        state = mapping_of(seen.get("metadata"))
        text = _texts(seen.get("content")) or _texts(seen.get("output")) or _texts(seen.get("error"))
        code = state.get("exit_code", seen.get("exit_code"))
        # -1 means that the command is still running.
        self._answer(event, text, failed=seen.get("is_error") is True, exit_code=None if code == -1 else code)
        self.folder = string_of(state.get("working_dir")) or self.folder

    def _answer(self, event: Event, text: str, *, failed: bool, exit_code: object = None) -> None:
        id = string_of(event.get("action_id")) or self.calls.get(string_of(event.get("tool_call_id")), "")
        if id in self.turns:
            self.turns[string_of(event.get("id"))] = self.turns[id]
        shown = _shown(text)
        whole = text if shown != text else None
        self.builder.answer(id, shown, failed=failed, exit_code=exit_code, full_output=whole)

    def _is_done(self, event: Event) -> bool:
        """Return whether a call was executed."""
        return bool(mapping_of(event.get("action"))) and string_of(event.get("tool_call_id")) not in self.refused


def _kind(event: Event) -> str:
    return string_of(event.get("kind"))


def _asked(event: Event, *, is_done: bool) -> tuple[str, Mapping[str, Any]]:
    call, tool = mapping_of(event.get("tool_call")), string_of(event.get("tool_name")) or "unknown"
    if not is_done:
        return tool, {"arguments": string_of(call.get("arguments"))}
    arguments = arguments_of({name: value for name, value in mapping_of(event["action"]).items() if name != "kind"})
    if arguments.get("is_input") is True:
        return "terminal_input", arguments  # input to a running program, not a command
    name = shell_name(tool, arguments)
    return name, {"command": arguments["command"]} if name == "bash" else arguments


def _texts(content: object) -> str:
    return text_of([content]) if isinstance(content, dict) else text_of(content)


def _shown(text: str) -> str:
    """Return what the agent saw of an output: both ends of a long one."""
    if len(text) <= _SHOWN_CHARACTERS:
        return text
    kept = _SHOWN_CHARACTERS - len(_CLIPPED)
    head = kept // 2 + kept % 2
    return text[:head] + _CLIPPED + text[len(text) - (kept - head) :]


_STATE, _EVENTS = "base_state.json", "events"
_BELONGING = frozenset({_EVENTS, "observations", "TASKS.json"})
_EVENT = re.compile(r"event-(\d{5,12})-[0-9a-fA-F-]{8,64}\.json")


@dataclass(frozen=True, slots=True)
class StoredConversation:
    """The content of a conversation's files."""

    run: Mapping[str, Any]  # in the shape of a line of `output.jsonl`
    folder: str  # folder in which its shell started
    status: str


def is_state(document: LogDocument) -> bool:
    """Return whether the document is the state of a conversation."""
    return document.name == _STATE and _is_state(document.head)


def files_of_conversation(folder: Folder, names: Sequence[str]) -> Collection[str]:
    """Return the names in a folder that belong to the state beside them; sub-agents are runs of their own."""
    if _STATE not in names or _EVENTS not in names:
        return ()
    try:
        head = open_document(folder / _STATE).head
    except InputFileError:
        return ()
    return [name for name in names if name in _BELONGING] if _is_state(head) else ()


def read_conversation_files(document: LogDocument, state: Mapping[str, Any]) -> Iterator[StoredConversation | Skipped]:
    """Yield the events that cannot be read, then the conversation."""
    if document.parent is None:
        yield skipped(
            document,
            "is a conversation at an address, where its events cannot be read; copy its folder here",
        )
        return
    history = []
    for path in _event_files(document.parent):
        source = f"{document.source.removesuffix(_STATE)}{_EVENTS}/{path.name}"
        try:
            history.append(open_document(path, source=source).json())
        except InputFileError as error:
            yield Skipped(source, str(error).removeprefix(f"{source}: "))
    model = mapping_of(mapping_of(state.get("agent")).get("llm"))
    metrics = mapping_of(mapping_of(state.get("stats")).get("usage_to_metrics")).values()
    usages = [counts for metric in metrics for counts in items_of(mapping_of(metric).get("token_usages"))]
    run = {
        "instance_id": string_of(state.get("id")) or document.parent.name,
        "history": history,
        "metadata": {"llm": model},
        "metrics": {"token_usages": usages},
    }
    folder = string_of(mapping_of(state.get("workspace")).get("working_dir"))
    yield StoredConversation(
        run, folder, string_of(state.get("execution_status")) or string_of(state.get("agent_status"))
    )


def _is_state(head: bytes) -> bool:
    return head.lstrip()[:1] == b"{" and b'"agent"' in head and b'"llm"' in head


def _event_files(folder: Folder) -> list[Folder]:
    """Return the event files in order, without links to files elsewhere."""
    try:
        found = [(match, path) for path in (folder / _EVENTS).iterdir() if (match := _EVENT.fullmatch(path.name))]
    except OSError:
        return []
    return [
        path
        for match, path in sorted(found, key=lambda one: (int(one[0][1]), one[1].name))
        if is_own_file(path, folder)
    ]
