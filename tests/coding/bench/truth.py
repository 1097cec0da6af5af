"""What the bodies that the scripted server received show of the project's files, request by request."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.coding.bench.play import REQUESTS
from tests.coding.bench.session import FILES, Phase

_FIRST_LINES = 12  # characters from which on a line of the project is distinctive
_MATCHED = ("Output: ", "  Line ", "L")  # what Gemini CLI and the agents' own search tools print before a line


@dataclass(frozen=True, slots=True)
class Seen:
    """Distinctive lines of each file, as it is on disk when a request is sent."""

    shown: Mapping[str, frozenset[str]]  # in results of tools, attachments and messages of the user
    held: Mapping[str, frozenset[str]]  # there, or in what the agent wrote itself
    phase: int  # compactions before the request


def seen_by_request(folder: Path, phases: tuple[Phase, ...]) -> list[Seen]:
    """Return what each request of the main agent has of the files."""
    requests = json.loads((folder / REQUESTS).read_text())
    on_disk, found, phase, was_summary = dict(FILES), list[Seen](), 0, False
    edits = [[step for step in steps if step.kind == "edit"] for phase in phases for steps in phase]
    answered = 0
    for request in requests:
        if request["kind"] != "step":
            was_summary = was_summary or request["kind"] == "summary"
            continue
        phase, was_summary = phase + was_summary, False
        found.append(Seen(*(_lines(on_disk, list(texts)) for texts in _both(request["body"])), phase))
        if _is_acting(request["reply"]):
            for step in edits[answered] if answered < len(edits) else ():
                assert on_disk[step.path].count(step.old) == 1
                on_disk[step.path] = on_disk[step.path].replace(step.old, step.new)
            answered += 1
    return found


def _is_acting(reply: Mapping[str, Any]) -> bool:
    return bool(reply["calls"])


def _both(body: Mapping[str, Any]) -> Iterator[Iterator[str]]:
    messages = next(body[name] for name in ("input", "messages", "contents") if name in body)
    told = [message for message in messages if message.get("role") not in ("system", "developer")]
    yield _strings([_result(message) for message in told])
    yield _strings(told)


def _result(message: Mapping[str, Any]) -> Any:
    """Return a message without what the agent wrote."""
    if message.get("role") in ("assistant", "model") or message.get("type") in ("function_call", "custom_tool_call"):
        return None
    return message


def _strings(value: Any) -> Iterator[str]:
    """Yield all texts in a JSON value; arguments that are JSON themselves are parsed."""
    if isinstance(value, str):
        yield value
        if value.startswith("{"):
            try:
                yield from _strings(json.loads(value))
            except ValueError:
                return
    elif isinstance(value, dict):
        for one in value.values():
            yield from _strings(one)
    elif isinstance(value, list):
        for one in value:
            yield from _strings(one)


def _lines(on_disk: Mapping[str, str], texts: list[str]) -> dict[str, frozenset[str]]:
    present = {bare(line) for text in texts if "Traceback" not in text for line in text.split("\n")}
    return {name: frozenset(present & telling(text.split("\n"))) for name, text in on_disk.items()}


def telling(lines: list[str]) -> set[str]:
    """Return the lines that are long enough to tell their file."""
    return {line.strip() for line in lines if len(line.strip()) >= _FIRST_LINES}


def bare(line: str) -> str:
    """Return a line without what a viewer, a search or a patch prints before it."""
    for mark in _MATCHED:
        line = line.removeprefix(mark)
    if line[:1] in "+" and line[1:2] != "+":
        line = line[1:]
    for mark in ("\t", ": ", ":"):
        number, found, rest = line.partition(mark)
        if found and number.strip().isdigit():
            return rest.strip()
    return line.strip()
