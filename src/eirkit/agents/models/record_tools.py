"""How `scripted/extractor` uses the tools of a memory: which calls it makes to keep records and to look them up.

It has no state: each round follows from the request. A record with another value replaces the earlier one where the
tools can do that.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from eirkit.agents.model import Request, ToolCall
from eirkit.agents.models.word_tools import (
    ARCHIVE,
    GRAPH_TOOLS,
    INSERT,
    SEEK,
    UPDATE,
    WRITES,
    read_documents,
    read_nodes,
)

_RECORD = re.compile(r"\b(A_\d{1,6}) = \d{1,20}(?: \d{1,20})*")
_LABEL = re.compile(r"\bA_\d{1,6}\b")
_QUESTION = re.compile(r"^Question: (.*)\Z", re.MULTILINE | re.DOTALL)


def records_by_label(text: str) -> dict[str, str]:
    """Return the records of a text by label; the last one of a label counts."""
    return {found[1]: found[0] for found in _RECORD.finditer(text)}


def use_record_tools(request: Request) -> tuple[ToolCall, ...] | None:
    """Return the next calls, none if the task is done; None if the tools are not known."""
    names = {tool.name for tool in request.tools}
    if INSERT in names:
        return _manage(request)
    said = [message.content for message in request.messages if message.role == "user"]
    worked = [message.content for message in request.messages if message.role == "assistant"]
    task, results = said[0] if said else "", said[1:]
    asked = _QUESTION.search(task)
    if ARCHIVE in names:
        if any(f'"{name}"' in text for text in worked for name in (*WRITES, SEEK)):
            return ()
        return (ToolCall(SEEK, {"query": asked[1].strip()}),) if asked is not None else _archive(task)
    if not names >= GRAPH_TOOLS:
        return None
    if asked is not None:
        labels = dict.fromkeys(_LABEL.findall(asked[1]))
        return () if worked else tuple(ToolCall("search_nodes", {"query": label}) for label in labels)
    new = records_by_label(task)
    if not worked:
        return tuple(ToolCall("search_nodes", {"query": label}) for label in new)
    return _observe(new, read_nodes(results)) if len(worked) == 1 else ()


def _manage(request: Request) -> tuple[ToolCall, ...]:
    """Return what LangMem should insert and update, given a message and the documents that it found."""
    said, known = read_documents(request)
    held = {label: name for name, text in known.items() for label in records_by_label(text)}
    calls: list[ToolCall] = []
    for label, record in records_by_label("\n".join(said)).items():
        if label not in held:
            calls.append(ToolCall(INSERT, {"content": record}))
        elif known[held[label]] != record:
            patch = {"op": "replace", "path": "/content", "value": record}
            calls.append(ToolCall(UPDATE, {"json_doc_id": held[label], "planned_edits": record, "patches": [patch]}))
    return tuple(calls)


def _archive(task: str) -> tuple[ToolCall, ...]:
    """Return what an agent of Letta should archive, where nothing can be changed."""
    found = records_by_label(task)
    return tuple(ToolCall(ARCHIVE, {"content": record, "tags": [label]}) for label, record in found.items())


def _observe(new: dict[str, str], graph: dict[str, list[str]]) -> tuple[ToolCall, ...]:
    """Return the calls that make every record the only observation of its node."""
    made = [(label, record) for label, record in new.items() if label not in graph]
    other = [(label, record, graph[label]) for label, record in new.items() if label in graph]
    old = [
        {"entityName": label, "observations": gone}
        for label, record, known in other
        if (gone := _without(known, record))
    ]
    more = [{"entityName": label, "contents": [record]} for label, record, known in other if record not in known]
    entities = [{"name": label, "entityType": "record", "observations": [record]} for label, record in made]
    calls = (
        ("delete_observations", {"deletions": old}),
        ("create_entities", {"entities": entities}),
        ("add_observations", {"observations": more}),
    )
    return tuple(ToolCall(name, given) for name, given in calls if any(given.values()))


def _without(texts: Sequence[str], kept: str) -> list[str]:
    return [text for text in texts if text != kept]
