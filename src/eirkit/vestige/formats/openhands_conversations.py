"""Conversations as OpenHands' software agent SDK keeps them: `base_state.json`, and a file for each event in `events/`.

The state comes in; out go the same facts as on a line of an evaluation's output, after whatever cannot be read.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eirkit.errors import InputFileError
from eirkit.vestige.formats.building import is_own_file, items_of, mapping_of, skipped, string_of
from eirkit.vestige.source import Document, Skipped, open_document

_STATE, _EVENTS = "base_state.json", "events"
_BELONGING = frozenset({_EVENTS, "observations", "TASKS.json"})
_EVENT = re.compile(r"event-(\d{5,12})-[0-9a-fA-F-]{8,64}\.json")


@dataclass(frozen=True, slots=True)
class Conversation:
    """What the files of a conversation tell."""

    run: Mapping[str, Any]  # in the shape of a line of an evaluation's output
    folder: str  # in which its shell began
    status: str


def is_state(document: Document) -> bool:
    """True for the state of a conversation."""
    return document.name == _STATE and _is_state(document.head)


def files_of_conversation(folder: Path, names: Sequence[str]) -> Collection[str]:
    """Return those of a folder's names that belong to the state beside them; sub-agents are runs of their own."""
    if _STATE not in names or _EVENTS not in names:
        return ()
    try:
        head = open_document(folder / _STATE).head
    except InputFileError:
        return ()
    return [name for name in names if name in _BELONGING] if _is_state(head) else ()


def read_conversation_files(document: Document, state: Mapping[str, Any]) -> Iterator[Conversation | Skipped]:
    """Yield the events that cannot be read, then the conversation."""
    if document.parent is None:
        yield skipped(document, "is a conversation inside an archive, apart from its events; unpack the archive")
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
    usages = [counts for one in metrics for counts in items_of(mapping_of(one).get("token_usages"))]
    run = {
        "instance_id": string_of(state.get("id")) or document.parent.name,
        "history": history,
        "metadata": {"llm": model},
        "metrics": {"token_usages": usages},
    }
    folder = string_of(mapping_of(state.get("workspace")).get("working_dir"))
    yield Conversation(run, folder, string_of(state.get("execution_status")) or string_of(state.get("agent_status")))


def _is_state(head: bytes) -> bool:
    return head.lstrip()[:1] == b"{" and b'"agent"' in head and b'"llm"' in head


def _event_files(folder: Path) -> list[Path]:
    """Return the files of events in their order; none that a link leads to from elsewhere."""
    try:
        found = [(match, path) for path in (folder / _EVENTS).iterdir() if (match := _EVENT.fullmatch(path.name))]
    except OSError:
        return []
    return [
        path
        for match, path in sorted(found, key=lambda one: (int(one[0][1]), one[1].name))
        if is_own_file(path, folder)
    ]
