"""Rebuilds the prompts of a LACUNA run and pairs them with the recorded replies.

Prompts are rebuilt by replaying the recorded replies and memory results through the run's session, and each is checked
against its recorded hash; no memory system is called. A controlled run can be rebuilt even without recorded texts,
since its state follows from the submitted answers.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from eirkit.errors import EirkitError
from eirkit.lacuna.agents.probe_session import probe_session
from eirkit.lacuna.agents.prompt import DIALECTS, Renderer
from eirkit.lacuna.agents.session import Session
from eirkit.lacuna.memories.memory import MemoryCall, MemoryResult
from eirkit.lacuna.models.message import Message
from eirkit.lacuna.models.model import Reply, ToolCall, prompt_hash
from eirkit.lacuna.runs.family import family_of
from eirkit.lacuna.tasks.task import GeneratedTask, TaskInstance
from eirkit.records.events import Event, MemoryExchange, ModelExchange
from eirkit.records.settings import TEXT
from eirkit.report.viewer.documents import ShownExchange, ShownMessage, taken
from eirkit.report.viewer.lacuna_run import LacunaRun, Replayed


def session_of(run: LacunaRun, task: GeneratedTask) -> Session:
    """Return the session of a run in its initial state."""
    record, setting = run.record, run.record.setting
    if record.lost is not None and isinstance(task, TaskInstance):
        return probe_session(task, record.lost)
    arm = setting.intervention
    # An arm injects what its record says, or everything that is missing.
    unrecovered = None if record.injected is None else {t: frozenset(refs) for t, refs in record.injected}
    return family_of(task.spec).session(setting.access, task, arm, unrecovered)


def replay(run: LacunaRun) -> Replayed:
    """Return every exchange of a run, with the prompt messages as far as they can be rebuilt."""
    recorded = [event for event in run.events if isinstance(event, ModelExchange)]
    task = run.task.instance
    shown: list[tuple[Message, ...] | None] = [*(() if task is None else _rebuilt(run, task, len(recorded)))]
    missing = len(recorded) - len(shown)
    shown += [None] * missing
    exchanges = [_exchange(event, messages) for event, messages in zip(recorded, shown, strict=True)]
    return Replayed(exchanges, _reason(run, recorded) if missing else "")


def _rebuilt(run: LacunaRun, task: GeneratedTask, wanted: int) -> list[tuple[Message, ...]]:
    """Return the prompts in the order of the exchanges, up to the first that differs from the recorded hash.

    Only the provider knows which prompt dialect a model uses, so each is tried and the hashes decide.
    """
    best: list[tuple[Message, ...]] = []
    for renderer in DIALECTS.values():
        best = max(best, list(_prompts(run, task, renderer)), key=len)
        if len(best) == wanted:
            break
    return best


def _prompts(run: LacunaRun, task: GeneratedTask, renderer: Renderer) -> Iterator[tuple[Message, ...]]:
    with suppress(EirkitError, KeyError, TypeError, ValueError):  # without texts
        session = session_of(run, task)
        session.renderer = renderer
        settings = run.record.setting.settings
        session.protocol, session.reask = settings.protocol or TEXT, settings.reask
        yield from _drive(session, run, iter(run.events))


def _reason(run: LacunaRun, recorded: list[ModelExchange]) -> str:
    """Return a sentence that says why not every prompt could be rebuilt."""
    if run.task.instance is None:
        return f"Prompts are not rebuilt: {run.task.reason}."
    if all(event.reply is not None for event in recorded):
        return (
            "Played again, the record gives other prompts here than the run had; they are shown as they were recorded."
        )
    memory = run.record.setting.access.memory
    brought = "" if memory is None else f" and what its memory, {memory}, returned"
    return f"Later prompts follow from the replies{brought}, which were not kept; run without --no-texts to see them."


def _drive(session: Session, run: LacunaRun, events: Iterator[Event]) -> Iterator[tuple[Message, ...]]:
    """Yield the messages of each recorded exchange, and stop at the first prompt whose hash differs."""
    while (request := session.request()) is not None:
        if isinstance(request, MemoryCall):
            call = next((event for event in events if isinstance(event, MemoryExchange)), None)
            if call is None or call.found is None:
                return
            session.receive_memory(MemoryResult(call.found))
        else:
            exchange = next((event for event in events if isinstance(event, ModelExchange)), None)
            if exchange is None or prompt_hash(request) != exchange.prompt_sha256:
                return
            yield request.messages
            session.receive(_reply(exchange, run))
        session.drain()


def _reply(event: ModelExchange, run: LacunaRun) -> Reply:
    if event.reply is not None:
        calls = tuple(ToolCall(call.name, call.arguments) for call in event.calls)
        return Reply(event.reply, calls, finish=event.finish, carried=event.carried)
    if not run.record.setting.access.is_controlled:
        raise ValueError("replies were not kept, and the state depends on them")
    decision = run.decisions[event.t]
    if decision.submitted is None:
        return Reply("")
    return Reply(f"ANSWER {decision.t} {' '.join(map(str, decision.submitted))}")


def _exchange(event: ModelExchange, messages: tuple[Message, ...] | None) -> ShownExchange:
    """Return an exchange as it is shown; `messages` are those of its prompt if it was rebuilt."""
    if messages is not None:
        shown = tuple(ShownMessage(message.role, message.content) for message in messages)
    else:
        shown = () if event.prompt is None else (ShownMessage("user", event.prompt),)
    return taken(ShownExchange, event, messages=shown, exact=messages is not None)
