"""Reads `plain`, the documented JSON lines format for logs of any other agent: one run per line.

`{"run_id", "task_id", "model", "resolved", "goal_files": […], "turns": [{"reads": [{"path", "tokens"}], "writes":
[{"path", "tokens"}], "tokens"}]}`; `run_id` and `turns` are required. An invalid line is skipped, and the reason names
the wrong field.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from eirkit.errors import InputFileError
from eirkit.vestige.sources.documents import LogDocument, Skipped
from eirkit.vestige.sources.json_parser import parse_json
from eirkit.vestige.trajectory import MARKED, FileRead, FileWrite, RecordedTurn, Recording, Touches, formats

_TURNS = b'"turns"'
_OTHERS = (b'"run_id"', b'"reads"', b'"writes"')
_NESTING = 200
_LINES_LOOKED_AT = 20


@formats.add("plain")
class Plain:
    """JSON lines of runs with the files that each turn read and wrote."""

    run_per_line = True  # in JSON lines, one run per line

    def recognizes(self, document: LogDocument) -> int:
        """Return whether an early line has a run's turns; a line too long or damaged to parse is judged by its keys."""
        if _TURNS.strip(b'"') not in document.quoted:
            return 0
        lines = document.head.split(b"\n", _LINES_LOOKED_AT)[:_LINES_LOOKED_AT]
        return MARKED if any(map(_is_ours, lines)) else 0

    def read(self, document: LogDocument) -> Iterator[Recording | Skipped]:
        """Yield the run on each line."""
        for number, value in document.lines():
            place = f"{document.source}:{number}"
            if isinstance(value, Exception):
                yield Skipped(place, str(value))
                continue
            try:
                yield _recording(value, place)
            except InputFileError as error:
                yield Skipped(place, str(error))


def _is_ours(line: bytes) -> bool:
    if _TURNS not in line or not any(mark in line for mark in _OTHERS):
        return False
    try:
        value = parse_json(line, _NESTING)
    except InputFileError:
        return line.lstrip().startswith(b"{")
    return isinstance(value, dict) and "turns" in value


def _recording(value: Any, place: str) -> Recording:
    run = _object(value, "the line")
    run_id = _text(run, "run_id")
    if not run_id:
        raise InputFileError("run_id is missing; give every run a unique name")
    turns = run.get("turns")
    if not isinstance(turns, list):
        raise InputFileError("turns is not a list; give one object for each turn")
    return Recording(
        run_id=run_id,
        task_id=_text(run, "task_id") or run_id,
        format="plain",
        source=place,
        turns=tuple(_turn(turn, f"turns[{index}]") for index, turn in enumerate(turns)),
        model=_text(run, "model"),
        resolved=_resolved(run),
        goal_files=_goal_files(run),
    )


def _turn(value: Any, field: str) -> RecordedTurn:
    turn = _object(value, field)
    reads = tuple(FileRead(*_touch(touch, place)) for touch, place in _list(turn, "reads", field))
    writes = tuple(
        FileWrite(path, tokens=tokens)
        for path, tokens in (_touch(touch, place) for touch, place in _list(turn, "writes", field))
    )
    return RecordedTurn(touches=Touches(reads, writes), tokens=_tokens(turn, field))


def _touch(value: Any, field: str) -> tuple[str, int | None]:
    touch = _object(value, field)
    path = touch.get("path")
    if not isinstance(path, str) or not path:
        raise InputFileError(f"{field}.path is not a string; give the file's path")
    return path, _tokens(touch, field)


def _tokens(container: Mapping[str, Any], field: str) -> int | None:
    tokens = container.get("tokens")
    if tokens is None or (type(tokens) is int and tokens >= 0):
        return tokens
    raise InputFileError(f"{field}.tokens is not a whole number of at least 0; give a count or leave it out")


def _object(value: Any, field: str) -> Mapping[str, Any]:
    if isinstance(value, dict):
        return value
    raise InputFileError(f"{field} is not an object; see the plain format in `eirkit vestige formats`")


def _list(container: Mapping[str, Any], key: str, field: str) -> Iterator[tuple[Any, str]]:
    values = container.get(key)
    if values is None:
        return
    if not isinstance(values, list):
        raise InputFileError(f'{field}.{key} is not a list; give objects with "path" and "tokens"')
    for index, value in enumerate(values):
        yield value, f"{field}.{key}[{index}]"


def _text(run: Mapping[str, Any], key: str) -> str:
    value = run.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise InputFileError(f"{key} is not a string; put it in quotation marks")
    return value


def _resolved(run: Mapping[str, Any]) -> bool | None:
    value = run.get("resolved")
    if value is None or isinstance(value, bool):
        return value
    raise InputFileError("resolved is neither true, false nor null; give one of them or leave it out")


def _goal_files(run: Mapping[str, Any]) -> tuple[str, ...] | None:
    value = run.get("goal_files")
    if value is None:
        return None
    if not isinstance(value, list) or not all(isinstance(path, str) for path in value):
        raise InputFileError("goal_files is not a list of strings; give paths, [] for none, or leave it out")
    return tuple(value)
