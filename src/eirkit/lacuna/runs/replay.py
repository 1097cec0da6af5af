"""Plays one stored run again from its recorded replies, and says which of its records do not follow from them.

Replies and passages are taken from the events; prompts, answers, verdicts, fates and the run record are computed anew
and must be equal to the stored ones. A run can also be made anew with its model and memory, where both are scripts.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from eirkit.errors import EirkitError, InputFileError, UntrustedError
from eirkit.lacuna.agents.driver import lacking_in
from eirkit.lacuna.agents.telemetry import Consultation, Exchange, Trace, trace_of, with_stores
from eirkit.lacuna.conversation.workload import ToldTask
from eirkit.lacuna.findings.causes import judge, score
from eirkit.lacuna.memories.calls import wait_for
from eirkit.lacuna.memories.factory import reason_absent
from eirkit.lacuna.memories.memory import (
    LONGEST_PASSAGE,
    MOST_PASSAGES,
    SEARCH_LIMIT,
    MemoryCall,
    MemoryResult,
    MemoryUsage,
    memories,
)
from eirkit.lacuna.memories.plan import MemoryPool
from eirkit.lacuna.models.factory import make_model, split_model
from eirkit.lacuna.models.model import Model, Reply, Request, ToolCall, Usage, close_model
from eirkit.lacuna.models.scrubber import Scrubber
from eirkit.lacuna.runs.attempt import CellContext, Failure, attempt, finished_run, score_record, session_of
from eirkit.lacuna.runs.cells import Cell, recorded_cell
from eirkit.lacuna.runs.manifest import SystemMessages
from eirkit.lacuna.runs.store import FinishedRun, scan_runs
from eirkit.lacuna.runs.workers import CellBatch, cell_context_of
from eirkit.lacuna.tasks.generation import generate
from eirkit.lacuna.tasks.task import TaskInstance
from eirkit.records.event_blocks import EVENTS, LARGEST_BLOCK, read_block
from eirkit.registry import records_read

ROUNDING_SECONDS = 1e-6  # times are stored with six digits, and sums of them are rounded once more
# What reading a file that somebody else wrote may raise.
UNREADABLE = (
    *(EirkitError, LookupError, TypeError, ValueError, AttributeError, ArithmeticError),
    *(OSError, RecursionError, MemoryError),
)
_SCRIPTS = ("reference", "scripted")
_COORDINATES = ("task", "model", "settings", "access", "intervention", "repeat")
_ITS_OWN = "eirkit.lacuna.memories.in_process"  # memories that need nothing but this process
_IN_MEMORY_RECORD = tuple(one.name for one in fields(MemoryUsage))  # what a system says of itself


class DiffersError(EirkitError):
    """What a run recorded is not what follows from it."""


@dataclass(slots=True)
class Replays:
    """Plays runs of one folder again; cells and their system messages are made once."""

    folder: Path
    plugins: bool = False  # whether code that a record names may be run, and files be opened
    planned: Mapping[str, Any] | None = None  # by cell: what a record must say of it; None: anything
    largest_block: int = LARGEST_BLOCK  # bytes of the events of one run
    _contexts: dict[str, CellContext] = field(default_factory=dict)
    _rules: SystemMessages = field(default_factory=SystemMessages)

    def check(self, record: Mapping[str, Any]) -> tuple[bool, list[str]]:
        """Return whether one run of this folder was played again, and what is wrong with it.

        A run whose texts were not kept cannot be played; its score is computed again from its answers.

        Raises:
            UntrustedError: the record names code or a file, and `plugins` does not allow it.
        """
        try:
            block = self._block(record)
            events = with_stores([_json(line) for line in block.splitlines()])
            context, task = self.context_of(record)
            if any(event["type"] == "exchange" and "reply" not in event for event in events):
                return False, list(_scored_again(context, task, record, events))
            again = finished_run(context, task, *_played(context, task, record, events))
        except DiffersError as error:
            return True, [str(error)]
        except UntrustedError:
            raise  # it could be played again, if the user trusts it
        except UNREADABLE as error:
            words = " ".join(str(error).split())[:200]
            return True, [f"cannot be played again ({type(error).__name__}: {words})"]
        found = []
        if again.events != block or again.count != record["events"]["count"]:
            found.append(f"its events do not follow from its replies ({_first_difference(block, again.events)})")
        if changed := differing(record, again.record):
            found.append(f"its {', '.join(changed)} do not follow from its events")
        return True, found

    def _block(self, record: Mapping[str, Any]) -> bytes:
        place = record["events"]
        return read_block(self.folder / EVENTS, place["offset"], place["bytes"], self.largest_block)

    def made_anew(self, record: Mapping[str, Any]) -> str | None:
        """Run a task again with its model and memory, which must be scripts; return what differs, apart from times."""
        context, task = self.context_of(record)
        with records_read(plugins=self.plugins):
            outcome = wait_for(_attempted(context, task))
        if isinstance(outcome, Failure):
            return f"fails when it is run again: {outcome.record['message']}"
        before = self._block(record)
        then, now = (_without_times(lines) for lines in (before, outcome.events))
        if then != now:
            return f"gives other events when it is run again ({_first_difference(then, now)})"
        changed = differing(record, outcome.record, exact=False)
        return f"gives another {', '.join(changed)} when it is run again" if changed else None

    def context_of(self, record: Mapping[str, Any]) -> tuple[CellContext, TaskInstance]:
        """Return the cell of a run as its record describes it, and its task."""
        with records_read(plugins=self.plugins):
            return self._context_of(record)

    def _context_of(self, record: Mapping[str, Any]) -> tuple[CellContext, TaskInstance]:
        said = {name: record[name] for name in _COORDINATES if name in record}
        if self.planned is not None and said != self.planned.get(record["cell"]):
            raise DiffersError("its settings are not those that were planned")
        described = json.dumps([record.get(name) for name in _COORDINATES])
        if described not in self._contexts:
            batch = CellBatch(recorded_cell(record), [record["seed"]], texts=True)
            scrub = Scrubber.of_environment(os.environ)
            self._contexts[described] = cell_context_of(batch, _NotAsked(), self._rules, scrub)
        context = self._contexts[described]
        cell = context.cell
        if (cell.id, cell.run_id(record["seed"])) != (record["cell"], record["run"]):
            raise DiffersError("its settings are not those of its cell")
        if "injected" in record:
            injected = {t: frozenset(steps) for t, steps in record["injected"]}
            context = replace(context, unrecovered={record["seed"]: injected})
        return context, generate(cell.task.with_seed(record["seed"]))


def reason_not_made_anew(cell: Cell) -> str | None:
    """Return why runs cannot be made anew; None if model and memory are scripts that need what is here and no more."""
    memory = cell.access.memory
    if split_model(cell.model)[0] not in _SCRIPTS or ":" in cell.model:
        return "its model is no script of eirkit"
    if memory is None:
        return None
    if memories.home(memory) != _ITS_OWN:
        return "its memory is no script of eirkit"
    return None if reason_absent(memory, cell.access.memory_settings) is None else "its packages are not installed here"


def check_runs(
    path: Path,
    *,
    plugins: bool = False,
    planned: Mapping[str, Any] | None = None,
    largest_block: int = LARGEST_BLOCK,
) -> Iterator[tuple[Mapping[str, Any], bool, list[str]]]:
    """Yield every run of a file, whether it was played again, and what is wrong with it.

    Raises:
        InputFileError: the file is damaged, or there are events that no run owns.
    """
    replays, end = Replays(path.parent, plugins, planned, largest_block), 0
    for record, _ in scan_runs(path):
        place = record["events"]
        found = [] if place["offset"] == end else ["its events do not follow those of the run before"]
        end = place["offset"] + place["bytes"]
        was_played, wrong = replays.check(record)
        yield record, was_played, [*found, *wrong]
    if path.exists() and (path.parent / EVENTS).stat().st_size != end:
        raise InputFileError(f"{path.parent / EVENTS} has events that belong to no run; restore the folder")


def differing(then: Mapping[str, Any], now: Mapping[str, Any], *, exact: bool = True) -> list[str]:
    """Return the fields in which two records of a run differ.

    Args:
        exact: whether times must be equal too, up to rounding.
    """
    calls = max(1, then.get("usage", {}).get("calls", 0) + then.get("usage", {}).get("memory_calls", 0))
    margin = (calls + 1) * ROUNDING_SECONDS if exact else math.inf
    now = _plain(now)
    changed = []
    for name in sorted((then.keys() | now.keys()) - {"events", "schema"}):
        old, new = then.get(name), now.get(name)
        if not (isinstance(old, Mapping) and isinstance(new, Mapping)):
            changed += [] if old == new else [name]
            continue
        for part in sorted((old.keys() | new.keys()) - {"attempt"}):
            a, b = old.get(part), new.get(part)
            if part == "profile" and isinstance(a, Mapping) and isinstance(b, Mapping) and "passages" not in a:
                b = {key: b[key] for key in b if key in a}  # of a version that asked every search for the same number
            if part.endswith("_seconds") and a is not None and b is not None:
                alike = abs(a - b) <= margin
            else:
                alike = a == b
            changed += [] if alike else [f"{name}.{part}"]
    return changed


def _scored_again(
    context: CellContext, task: TaskInstance, record: Mapping[str, Any], events: Sequence[dict[str, Any]]
) -> Iterator[str]:
    """Yield what does not follow from the answers of a run."""
    if task.fingerprint != record["fingerprint"]:
        yield "its task is not the one of its seed"
    if "score" in record and not isinstance(task, ToldTask):
        trace = trace_of(events, record["ending"])
        verdicts = judge(task, context.workload, trace.decisions, trace.actions)
        again = score_record(score(verdicts, trace.decisions, max_turn=record["ending"] == "action-limit"))
        if changed := [name for name, value in _plain(again).items() if record["score"].get(name) != value]:
            yield f"its {', '.join(changed)} do not follow from its events"


def _played(
    context: CellContext, task: TaskInstance, record: Mapping[str, Any], events: Sequence[Mapping[str, Any]]
) -> tuple[Trace, MemoryUsage | None]:
    """Return the trace of a run whose replies and passages are taken from its events, and the usage of its memory."""
    given = iter([event for event in events if event["type"] in ("exchange", "memory")])
    session, trace = session_of(context, task), Trace()
    profile = (record.get("memory") or {}).get("profile") or {}
    limit = profile.get("passages", SEARCH_LIMIT) or MOST_PASSAGES  # runs of earlier versions have no number
    while (request := session.request()) is not None:
        t, event = session.position, next(given, None)
        is_call = isinstance(request, MemoryCall)
        if event is None or (event["type"] == "memory") != is_call:
            raise DiffersError(f"its replies lead to another call at step {t} than the one recorded")
        if isinstance(request, MemoryCall):
            asked = _consultation(t, request, event, session.records, limit)
            trace.log.append(asked)
            session.receive_memory(MemoryResult(asked.passages))
        else:
            reply = _reply(event)
            trace.log.append(Exchange(t, request, reply))
            session.receive(reply)
        trace.log.extend(session.drain())
    if next(given, None) is not None:
        raise DiffersError("it has replies after its end")
    trace.ending = session.ending
    told = record.get("memory")
    used = None if told is None else MemoryUsage(**{name: told[name] for name in _IN_MEMORY_RECORD if name in told})
    return trace, used


def _reply(event: Mapping[str, Any]) -> Reply:
    usage = Usage(**{one.name: event[one.name] for one in fields(Usage) if one.name in event})
    calls = tuple(ToolCall(call["name"], call["arguments"]) for call in event.get("calls", ()))
    return Reply(
        event["reply"],
        calls,
        usage,
        event["latency_seconds"],
        event.get("finish", ""),
        event.get("reasoning", ""),
        event.get("max_tokens", 0),
        carried=tuple(event.get("carried", ())),
    )


def _consultation(
    t: int, call: MemoryCall, event: Mapping[str, Any], records: Mapping[int, Any], limit: int
) -> Consultation:
    if (event["verb"], event.get("text")) != (call.verb, call.text):
        raise DiffersError(f"its replies lead to another {call.verb} at step {t} than the one recorded")
    passages = tuple(event["found"])
    whole = sum(map(len, passages))
    is_cut = len(passages) == limit or any(len(text) >= LONGEST_PASSAGE for text in passages)
    if event["returned_characters"] < whole or (event["returned_characters"] != whole and not is_cut):
        raise DiffersError(f"the length of what its memory returned at step {t} is wrong")
    lacking, stated, uncertain = lacking_in(call, passages, records) if call.verb == "search" else ((), (), ())
    return Consultation(
        t,
        call,
        passages,
        event["latency_seconds"],
        event["returned_characters"],
        lacking,
        tuple(step for step in event["held"] if step in lacking),
        stated,
        event["records"],
        event["bytes"],
        uncertain,
        tuple(event["stored"]) if "stored" in event else None,
    )


async def _attempted(context: CellContext, task: TaskInstance) -> FinishedRun | Failure:
    cell, memories = context.cell, MemoryPool()
    model = make_model(cell.model, cell.options)
    batch = CellBatch(cell, [task.spec.seed], True, context.unrecovered)
    try:
        return await attempt(cell_context_of(batch, model, SystemMessages(), context.scrub), task, memories)
    finally:
        await memories.close()
        await close_model(model)


class _NotAsked(Model):
    """The model of a run that is played again from its records."""

    async def reply(self, request: Request) -> Reply:
        raise DiffersError("a recorded run asked its model")

    async def close(self) -> None:
        """Nothing is open."""

    def settings(self) -> Mapping[str, Any]:
        return {}


def _json(line: bytes) -> dict[str, Any]:
    event = json.loads(line)
    if not isinstance(event, dict):
        raise DiffersError("an event of it is no record")
    return event


def _plain(value: Mapping[str, Any]) -> Any:
    """Return a value as JSON would give it back, so that tuples equal lists."""
    return json.loads(json.dumps(value, sort_keys=True))


def _without_times(lines: bytes) -> bytes:
    events = [{**_json(line), "latency_seconds": 0} for line in lines.splitlines()]
    return b"\n".join(json.dumps(event, sort_keys=True).encode() for event in events)


def _first_difference(then: bytes, now: bytes) -> str:
    """Return the step and the kind of the first event that differs."""
    lines: Sequence[tuple[bytes, bytes]] = list(zip(then.splitlines(), now.splitlines(), strict=False))
    for old, new in lines:
        if old != new:
            event, other = _json(old), _json(new)
            changed = [name for name in event.keys() | other.keys() if event.get(name) != other.get(name)]
            return f"{event.get('type')} of step {event.get('t', '–')}: {', '.join(sorted(changed))}"
    return f"{len(then.splitlines())} events instead of {len(now.splitlines())}"
