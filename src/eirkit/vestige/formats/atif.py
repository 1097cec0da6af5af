"""The Agent Trajectory Interchange Format, 1.0 to 1.8.

A step of the agent is a turn. Steps marked as copied context repeat what another file tells and are not counted again;
scripted steps (`llm_call_count` 0) are turns without usage, for what they did they did. A context that was summarised
breaks the run. A continuation beside its beginning (`NAME.cont-1.json`) is read with it as one run; sub-agents, in
their own files or embedded, are runs of their own that name their parent.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import count, takewhile
from pathlib import Path
from typing import Any

from eirkit.errors import InputFileError
from eirkit.vestige.formats.atif_steps import take_steps
from eirkit.vestige.formats.building import (
    RunBuilder,
    begins_with_info,
    is_own_file,
    items_of,
    mapping_of,
    skipped,
    string_of,
    whole_document,
)
from eirkit.vestige.source import Document, Skipped, open_document
from eirkit.vestige.trajectory import Recording, formats

_FIRST_CONTINUATION = ".cont-1.json"


@formats.add("atif")
class Atif:
    """ATIF trajectory files."""

    def recognises(self, document: Document) -> bool:
        """True for an object that names the schema."""
        return _is_atif(document.head)

    def claims(self, folder: Path, names: Sequence[str]) -> Collection[str]:
        """Return the continuations whose beginning lies beside them."""
        known = frozenset(names)
        beginnings = (name.removesuffix(_FIRST_CONTINUATION) for name in names if name.endswith(_FIRST_CONTINUATION))
        return [
            continuation
            for stem in beginnings
            if f"{stem}.json" in known and _begins_with_atif(folder / f"{stem}.json")
            for continuation in _continuation_names(folder, stem)
        ]

    def read(self, document: Document) -> Iterator[Recording | Skipped]:
        """Yield the run with its continuations, then its embedded sub-agents."""
        trajectory = whole_document(document)
        if isinstance(trajectory, Skipped):
            yield trajectory
            return
        if not isinstance(trajectory.get("steps"), list):
            yield skipped(document, "has no list of steps; restore the file")
            return
        for number, step in enumerate(trajectory["steps"], 1):
            if not isinstance(step, dict):
                yield skipped(document, "is no step; restore the file", f"step {number}")
        parts = [trajectory]
        for part in _continuations(document):
            if isinstance(part, Skipped):
                yield part
            else:
                parts.append(part)
        yield _recording(document, parts)
        for part in parts:
            yield from _embedded(document, part, _own_id(trajectory, document))


def _is_atif(head: bytes) -> bool:
    """True if a document's beginning names the schema at the top."""
    if begins_with_info(head):
        return False
    return head.lstrip()[:1] == b"{" and re.search(rb'"schema_version"\s*:\s*"ATIF-v', head) is not None


def _recording(document: Document, parts: list[Mapping[str, Any]], parent: str = "") -> Recording:
    """Return the run that a trajectory and its continuations tell."""
    builder = RunBuilder()
    for number, part in enumerate(parts):
        if number and not builder.is_broken:
            builder.break_off("compaction")
        take_steps(builder, items_of(part.get("steps")))
    trajectory, agent = parts[0], mapping_of(parts[0].get("agent"))
    extra = mapping_of(agent.get("extra"))
    parent = parent or string_of(extra.get("parent_session_id"))
    own_id = _own_id(trajectory, document)
    return Recording(
        run_id=f"{parent}/{own_id}" if parent and not own_id.startswith(parent) else own_id,
        task_id=parent or own_id,
        format="atif",
        source=document.source,
        turns=builder.turns(),
        model=_model(trajectory),
        prompt=builder.prompt,
        details={
            "schema_version": string_of(trajectory.get("schema_version")),
            "agent": string_of(agent.get("name")),
            "parts": len(parts),
            **({"parent_run": parent} if parent else {}),
        },
    )


def _continuations(document: Document) -> Iterator[Mapping[str, Any] | Skipped]:
    """Yield what continues a trajectory, from the files beside it that bear its name and a number."""
    folder = document.parent
    if folder is not None:
        for name in _continuation_names(folder, document.name.removesuffix(".json")):
            yield _part_at(folder / name, document)


def _continuation_names(folder: Path, stem: str) -> Iterator[str]:
    names = (f"{stem}.cont-{number}.json" for number in count(1))
    return takewhile(lambda name: is_own_file(folder / name, folder), names)


def _part_at(path: Path, document: Document) -> Mapping[str, Any] | Skipped:
    source = f"{document.source.removesuffix(document.name)}{path.name}"
    try:
        return whole_document(open_document(path, source=source))
    except InputFileError as error:
        return Skipped(source, str(error))


def _begins_with_atif(path: Path) -> bool:
    try:
        return _is_atif(open_document(path).head)
    except InputFileError:
        return False


def _embedded(document: Document, trajectory: Mapping[str, Any], own_id: str) -> Iterator[Recording]:
    """Yield sub-agents that a trajectory holds, and theirs, without recursion."""
    waiting = deque((own_id, child) for child in items_of(trajectory.get("subagent_trajectories")))
    while waiting:
        parent, child = waiting.popleft()
        recording = _recording(document, [child], parent)
        yield recording
        waiting.extend((recording.run_id, inner) for inner in items_of(child.get("subagent_trajectories")))


def _own_id(trajectory: Mapping[str, Any], document: Document) -> str:
    named = string_of(trajectory.get("trajectory_id")) or string_of(trajectory.get("session_id"))
    return named or document.name.removesuffix(".json").removesuffix(".trajectory")


def _model(trajectory: Mapping[str, Any]) -> str:
    named = string_of(mapping_of(trajectory.get("agent")).get("model_name"))
    steps = items_of(trajectory.get("steps"))
    return named or next(filter(None, (string_of(step.get("model_name")) for step in steps)), "")
