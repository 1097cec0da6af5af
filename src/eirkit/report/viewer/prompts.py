"""Rebuilds the prompts of a LACUNA run and pairs them with the recorded replies.

Prompts are rebuilt by replaying the recorded replies and memory results through the run's session, and each is checked
against its recorded hash; no memory system is called. A controlled run can be rebuilt even without recorded texts,
since its state follows from the submitted answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from eirkit.errors import EirkitError
from eirkit.lacuna.agents.probe_session import probe_session
from eirkit.lacuna.agents.prompt import DIALECTS, Renderer
from eirkit.lacuna.agents.session import ControlledSession, LostAnswer, Session
from eirkit.lacuna.memories.memory import MemoryCall, MemoryResult
from eirkit.lacuna.models.model import Message, Reply, Request, ToolCall, prompt_hash
from eirkit.lacuna.runs.cells import CONTROLLED, Access, Unrecovered, read_intervention
from eirkit.lacuna.runs.sessions import make_session
from eirkit.lacuna.tasks.generation import prepare
from eirkit.lacuna.tasks.task import TaskInstance
from eirkit.report.viewer.lacuna_run import LacunaRun

_SAID = ("latency_seconds", "input_tokens", "output_tokens", "cached_tokens", "cost_usd", "from_cache")


class SpokenRun(LacunaRun):
    """A run with its prompts and replies."""

    @cached_property
    def replayed(self) -> Replayed:
        return replay(self)

    @property
    def exchanges(self) -> list[dict[str, Any]]:
        return self.replayed.exchanges


@dataclass(frozen=True, slots=True)
class Replayed:
    """The exchanges of a run, and why some prompts could not be rebuilt."""

    exchanges: list[dict[str, Any]]
    reason: str  # why prompts are not exact; empty if all are


def session_of(run: LacunaRun, task: TaskInstance) -> Session:
    """Return the session of a run in its initial state."""
    record = run.record
    if run.is_probe:
        return probe_session(task, LostAnswer(**{**run.moment, "resident": tuple(run.moment["resident"])}))
    access, done = Access(**record["access"]), read_intervention(record.get("intervention"))
    return make_session(access, task, prepare(task.spec), intervention=done, unrecovered=unrecovered_of(record))


def unrecovered_of(record: Mapping[str, Any]) -> Unrecovered | None:
    """Return the results injected at each step of a rescue arm; None if these were all missing results."""
    if "injected" not in record:
        return None
    return {t: frozenset(refs) for t, refs in record["injected"]}


def replay(run: LacunaRun) -> Replayed:
    """Return every exchange of a run, with the prompt messages as far as they can be rebuilt."""
    recorded = [event for event in run.events if event["type"] == "exchange"]
    task = run.task.instance
    shown: list[tuple[Message, ...] | None] = [*(() if task is None else _rebuilt(run, task, len(recorded)))]
    missing = len(recorded) - len(shown)
    shown += [None] * missing
    exchanges = [_exchange(event, messages) for event, messages in zip(recorded, shown, strict=True)]
    return Replayed(exchanges, _reason(run, recorded) if missing else "")


def _rebuilt(run: LacunaRun, task: TaskInstance, wanted: int) -> list[tuple[Message, ...]]:
    """Return the prompts in the order of the exchanges, up to the first that differs from the recorded hash.

    Only the provider knows which prompt dialect a model uses, so each is tried and the hashes decide.
    """
    best: list[tuple[Message, ...]] = []
    for renderer in DIALECTS.values():
        best = max(best, list(_prompts(run, task, renderer)), key=len)
        if len(best) == wanted:
            break
    return best


def _prompts(run: LacunaRun, task: TaskInstance, renderer: Renderer) -> Iterator[tuple[Message, ...]]:
    with suppress(EirkitError, KeyError, TypeError, ValueError):  # without texts
        session = session_of(run, task)
        session.renderer = renderer
        if isinstance(session, ControlledSession):
            session.reask = run.record["settings"].get("reask", False)
        yield from _drive(session, run, iter(run.events))


def _reason(run: LacunaRun, recorded: list[dict[str, Any]]) -> str:
    """Return a sentence that says why not every prompt could be rebuilt."""
    if run.task.instance is None:
        return f"Prompts are not rebuilt: {run.task.reason}."
    if all("reply" in event for event in recorded):
        return (
            "Played again, the record gives other prompts here than the run had; they are shown as they were recorded."
        )
    memory = run.record["access"].get("memory")
    brought = "" if memory is None else f" and what its memory, {memory}, returned"
    return f"Later prompts follow from the replies{brought}, which were not kept; run without --no-texts to see them."


def _drive(session: Session, run: LacunaRun, events: Iterator[Mapping[str, Any]]) -> Iterator[tuple[Message, ...]]:
    """Yield the messages of each recorded exchange, and stop at the first prompt whose hash differs."""
    while (request := session.request()) is not None:
        wanted = "memory" if isinstance(request, MemoryCall) else "exchange"
        event = next((event for event in events if event["type"] == wanted), None)
        if event is None:
            return
        if isinstance(request, MemoryCall):
            session.receive_memory(MemoryResult(tuple(event["found"])))
        elif prompt_hash(request) != event["prompt_sha256"]:
            return
        else:
            yield request.messages
            session.receive(_reply(event, request, run))
        session.drain()


def _reply(event: Mapping[str, Any], request: Request, run: LacunaRun) -> Reply:
    if "reply" in event:
        calls = tuple(ToolCall(call["name"], call["arguments"]) for call in event.get("calls", ()))
        carried = tuple(event.get("carried", ()))
        return Reply(event["reply"], calls, finish=event.get("finish", ""), carried=carried)
    if run.record["access"].get("condition") != CONTROLLED:
        raise ValueError("replies were not kept, and the state depends on them")
    decision = run.decisions[event["t"]]
    if decision.submitted is None:
        return Reply("")
    return Reply(f"ANSWER {decision.t} {' '.join(map(str, decision.submitted))}")


def _exchange(event: Mapping[str, Any], messages: tuple[Message, ...] | None) -> dict[str, Any]:
    """Return one exchange as JSON data; `exact` means that the prompt was rebuilt with the recorded hash."""
    if messages is not None:
        shown = [{"role": message.role, "text": message.content} for message in messages]
    else:
        shown = [{"role": "user", "text": event["prompt"]}] if "prompt" in event else []
    return {
        "t": event["t"],
        "messages": shown,
        "exact": messages is not None,
        "reply": event.get("reply"),
        "calls": event.get("calls", []),
        **{name: event[name] for name in _SAID},
        "prompt_sha256": event["prompt_sha256"],
    }
