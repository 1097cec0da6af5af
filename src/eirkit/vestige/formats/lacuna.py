"""Reads the runs of `eirkit lacuna run`: the database of a local folder, or the lines of `eirkit export jsonl`.

Records replace files: the result of step 7 is the path `A_7`, and a step is a turn. A turn reads the required results
that were available and those fetched for it, and writes its own answer. The scored answers are the goals.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import msgspec

from eirkit.errors import InputFileError
from eirkit.records.database import APPLICATION, DATABASE, SweepDatabase
from eirkit.records.events import Answer, Decision, Event, ModelExchange
from eirkit.records.export import CALLS, DOCUMENTS, EVENTS, FAILURES, RUNS, paired
from eirkit.records.runs import RunRecord
from eirkit.records.settings import Task
from eirkit.vestige.sources.databases import MAGIC, files_beside
from eirkit.vestige.sources.documents import LogDocument, Skipped, StoredDocument, open_document
from eirkit.vestige.sources.members import Folder
from eirkit.vestige.sources.remote import Remote
from eirkit.vestige.trajectory import NAMED, FileRead, FileWrite, LoggedUsage, RecordedTurn, Recording, Touches, formats

_LINE = re.compile(rb'\{"run":"[0-9a-f]{12}-[0-9]{1,20}","cell":"')
_APPLICATION_AT = slice(68, 72)  # of SQLite's header


@formats.add("lacuna")
class Lacuna:
    """A sweep of `eirkit lacuna run`; each step is a turn and each record a path."""

    def recognizes(self, document: LogDocument) -> int:
        """Return whether the document holds finished runs."""
        is_own = document.head.startswith(MAGIC) and document.head[_APPLICATION_AT] == APPLICATION.to_bytes(4, "big")
        return NAMED if is_own or _LINE.match(document.head) else 0

    def claims(self, folder: Folder, names: Sequence[str]) -> Collection[str]:
        """Return the other files of a sweep's folder or of its export."""
        if DATABASE in names:
            return {*files_beside(names), *DOCUMENTS}.intersection(names)
        return {EVENTS, FAILURES, CALLS, *DOCUMENTS}.intersection(names) if {RUNS, EVENTS} <= set(names) else ()

    def read(self, document: LogDocument) -> Iterator[Recording | Skipped]:
        """Yield the runs but for those of the control, which had full information."""
        if document.head.startswith(MAGIC):
            yield from _stored(document)
        else:
            yield from _exported(document)


def _stored(document: LogDocument) -> Iterator[Recording | Skipped]:
    path = getattr(document, "path", None)
    if not isinstance(path, Path):
        raise InputFileError("is a database that is not in a local folder; write its runs with `eirkit export jsonl`")
    if path.name != DATABASE:
        raise InputFileError(f"is the database of a sweep under another name; name it {DATABASE}")
    with SweepDatabase(path.parent) as database:
        for record in database.records():
            place = f"{document.source}:{record.run}"
            try:
                yield _recording(record, database.events(record.run), place)
            except (InputFileError, ValueError) as error:
                yield Skipped(place, str(error))


def _exported(document: LogDocument) -> Iterator[Recording | Skipped]:
    if not isinstance(document, StoredDocument):
        raise InputFileError(f"is without the {EVENTS} beside it; give the whole folder")
    with document.opened() as runs, _beside(document, EVENTS).opened() as events:
        for number, run in paired(runs, events):
            place = f"{document.source}:{number}"
            if isinstance(run, InputFileError):
                yield Skipped(place, str(run))
            elif not run.control:
                try:
                    yield _recording(run.record, run.events, place)
                except (InputFileError, ValueError) as error:  # a number too long to be written
                    yield Skipped(place, str(error))


def _beside(document: StoredDocument, name: str) -> StoredDocument:
    """Return a file of the same folder, which may be remote or in an archive."""
    if isinstance(document.path, Remote):
        return open_document(Remote(f"{document.path.url.rpartition('/')[0]}/{name}"), document.limits)
    if document.parent is None or not (document.parent / name).is_file():
        raise InputFileError(f"is without the {name} beside it; give the whole folder")
    return open_document(document.parent / name, document.limits)


def _recording(record: RunRecord, events: Sequence[Event], place: str) -> Recording:
    task, score = record.setting.task, record.score
    answered = [event.t for event in events if isinstance(event, Decision) and event.submitted is not None]
    return Recording(
        run_id=record.run,
        task_id=f"{task.label}-seed{record.seed}",
        format="lacuna",
        source=place,
        turns=tuple(_turns(events, task.digits if isinstance(task, Task) else 1)),
        model=record.setting.model,
        resolved=None if score is None else score.correct == score.steps,
        reward=score.correct / score.steps if score is not None and score.steps else None,
        goal_files=tuple(_path(t) for t in answered if task.is_scored(t)),
        exit_status=str(record.ending),
        details={
            "task": msgspec.to_builtins(task),
            "access": msgspec.to_builtins(record.setting.access),
            "fingerprint": record.fingerprint,
        },
    )


def _turns(events: Sequence[Event], digits: int) -> Iterator[RecordedTurn]:
    values: dict[int, str] = {}
    exchanges: list[ModelExchange] = []
    for event in events:
        if isinstance(event, ModelExchange):
            exchanges.append(event)
        elif isinstance(event, Decision):
            yield RecordedTurn(
                text="\n".join(exchange.reply or "" for exchange in exchanges),
                usage=LoggedUsage.total(
                    [
                        LoggedUsage(exchange.input_tokens, exchange.output_tokens, exchange.cached_tokens)
                        for exchange in exchanges
                    ]
                ),
                touches=_touches(event, values, digits),
            )
            exchanges = []


def _touches(decision: Decision, values: dict[int, str], digits: int) -> Touches:
    restored = {t: _record(t, payload, digits) for t, payload in decision.restored}
    in_context = {*decision.retained, *restored}
    seen = sorted({t for t in decision.required if t in in_context} | set(decision.fetched))
    reads = tuple(FileRead(_path(t), content=restored.get(t, values.get(t))) for t in seen)
    if decision.submitted is None:
        return Touches(reads)
    values[decision.t] = content = _record(decision.t, decision.submitted, digits)
    return Touches(reads, (FileWrite(_path(decision.t), "whole", content=content),))


def _record(t: int, answer: Answer, digits: int) -> str:
    if isinstance(answer, str):
        return f"{_path(t)} = {answer}"
    return f"{_path(t)} = {' '.join(f'{value:0{min(max(digits, 1), 50)}d}' for value in answer)}"


def _path(t: int) -> str:
    return f"A_{t}"
