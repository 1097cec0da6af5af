"""Reads the folder of `eirkit lacuna run`: runs.jsonl with its events beside it.

Records replace files: the result of step 7 is the path `A_7`, and a step is a turn. A turn reads the required results
that were available and those fetched for it, and writes its own answer. The scored answers are the goals.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from eirkit.errors import InputFileError
from eirkit.records.event_blocks import EVENTS, LARGEST_BLOCK, unpack
from eirkit.vestige.sources.documents import LogDocument, Skipped
from eirkit.vestige.sources.json_parser import parse_json
from eirkit.vestige.sources.members import Folder
from eirkit.vestige.sources.streams import open_file
from eirkit.vestige.trajectory import NAMED, FileRead, FileWrite, LoggedUsage, RecordedTurn, Recording, Touches, formats

_BEGINNING = b'{"schema":"run/1","run":'
_RUNS = "runs.jsonl"
_OTHERS = frozenset(
    {
        EVENTS,
        "manifest.json",
        "summary.json",
        "failures.jsonl",
        "ledger.jsonl",
        "control",
    }
)
_NESTING = 50


@formats.add("lacuna")
class Lacuna:
    """A sweep of `eirkit lacuna run`; each step is a turn and each record a path."""

    def recognises(self, document: LogDocument) -> int:
        """Return whether the document holds the records of finished runs."""
        return NAMED if document.head.startswith(_BEGINNING) else 0

    def claims(self, folder: Folder, names: Sequence[str]) -> Collection[str]:
        """Return the other files of a sweep's folder; `control`, with full information, is read only when given."""
        return _OTHERS.intersection(names) if {_RUNS, EVENTS} <= set(names) else ()

    def read(self, document: LogDocument) -> Iterator[Recording | Skipped]:
        """Yield the run of each line."""
        for number, record in document.lines(sealed=True):
            place = f"{document.source}:{number}"
            if isinstance(record, Exception):
                yield Skipped(place, str(record))
                continue
            try:
                yield _recording(record, place, document.parent)
            except InputFileError as error:
                yield Skipped(place, str(error))
            except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
                yield Skipped(place, f"not a run/1 record ({type(error).__name__}: {error}); restore the file")


def _recording(record: Mapping[str, Any], place: str, folder: Folder | None) -> Recording:
    task, score = record["task"], record["score"]
    events = _events(folder, record["run"], record["events"])
    turns = tuple(_turns(events, int(task["digits"])))
    steps = [event["t"] for event in events if event["type"] == "decision" and event["submitted"] is not None]
    return Recording(
        run_id=str(record["run"]),
        task_id=f"{task['workload']}-n{task['n']}-m{task['m']}-fan{task['fan_in']}-seed{record['seed']}",
        format="lacuna",
        source=place,
        turns=turns,
        model=str(record["model"]),
        resolved=bool(score["correct"] == score["steps"]),
        reward=score["correct"] / score["steps"] if score["steps"] else None,
        goal_files=tuple(_path(t) for t in steps if t > int(task["warm_up"])),
        exit_status=str(record["ending"]),
        details={"task": task, "access": record["access"], "fingerprint": record["fingerprint"]},
    )


def _events(folder: Folder | None, run: str, place: Mapping[str, int]) -> list[dict[str, Any]]:
    if not isinstance(folder, Path):
        raise InputFileError("the events of the run are in another file; unpack the archive")
    start, size = int(place["offset"]), int(place["bytes"])
    if start < 0 or not 0 <= size <= LARGEST_BLOCK:
        raise InputFileError(f"claims {size} bytes of events at {start}; restore the folder")
    path = folder / EVENTS
    with open_file(path, path.name) as stream:  # refuses anything but a plain file
        stream.seek(start)
        block = stream.read(size)
    events = [parse_json(line, _NESTING) for line in unpack(block, Path(path.name)).splitlines()]
    if len(events) != place["count"] or any(event["run"] != run for event in events):
        raise InputFileError(f"its {place['count']} events are not in {path.name}; restore the folder")
    return events


def _turns(events: Sequence[Mapping[str, Any]], digits: int) -> Iterator[RecordedTurn]:
    values: dict[int, str] = {}
    said: list[Mapping[str, Any]] = []
    for event in events:
        if event["type"] == "exchange":
            said.append(event)
        elif event["type"] == "decision":
            yield RecordedTurn(
                text="\n".join(str(exchange.get("reply", "")) for exchange in said),
                usage=LoggedUsage.total([_usage(exchange) for exchange in said]),
                touches=_touches(event, values, digits),
            )
            said = []


def _touches(decision: Mapping[str, Any], values: dict[int, str], digits: int) -> Touches:
    restored = {t: _spelt(t, payload, digits) for t, payload in decision["restored"]}
    in_context = {*decision["retained"], *restored}
    seen = sorted({t for t in decision["required"] if t in in_context} | set(decision["fetched"]))
    reads = tuple(FileRead(_path(t), content=restored.get(t, values.get(t))) for t in seen)
    if decision["submitted"] is None:
        return Touches(reads)
    values[decision["t"]] = content = _spelt(decision["t"], decision["submitted"], digits)
    return Touches(reads, (FileWrite(_path(decision["t"]), "whole", content=content),))


def _spelt(t: int, payload: Sequence[int], digits: int) -> str:
    return f"{_path(t)} = {' '.join(f'{value:0{min(digits, 50)}d}' for value in payload)}"


def _path(t: int) -> str:
    return f"A_{int(t)}"


def _usage(exchange: Mapping[str, Any]) -> LoggedUsage:
    return LoggedUsage(int(exchange["input_tokens"]), int(exchange["output_tokens"]), int(exchange["cached_tokens"]))
