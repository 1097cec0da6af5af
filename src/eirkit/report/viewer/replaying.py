"""The exact words of a run: its events come in, what the model was shown and what it replied go out.

Prompts are rebuilt by driving the run's own session with the recorded replies, and each is compared with the hash that
was recorded. Without kept texts a controlled run can still be rebuilt, since its state follows from what it submitted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

from eirkit.errors import EirkitError
from eirkit.lacuna.conditions import make_session
from eirkit.lacuna.evidence.capability import full_information
from eirkit.lacuna.evidence.probe import Moment, probe_session
from eirkit.lacuna.evidence.rescue import Setup
from eirkit.lacuna.generation import prepare
from eirkit.lacuna.memory import MemoryCall, MemoryResult
from eirkit.lacuna.model import Message, Reply, Request, ToolCall
from eirkit.lacuna.serving.exchange import prompt_hash
from eirkit.lacuna.session import Session
from eirkit.lacuna.sweeps.cells import Access
from eirkit.lacuna.task import TaskInstance
from eirkit.report.viewer.lacuna_run import LacunaRun

_SAID = ("latency_seconds", "input_tokens", "output_tokens", "cached_tokens", "cost_usd", "from_cache")


class SpokenRun(LacunaRun):
    """A run with what was said."""

    @cached_property
    def exchanges(self) -> list[dict[str, Any]]:
        return replay(self)


def session_of(run: LacunaRun, task: TaskInstance) -> Session:
    """Return the session that a run was driven through, before its first request."""
    trial = run.trial
    if not trial:
        return make_session(Access(**run.record["access"]), task, prepare(task.spec))
    if trial["evidence"] == "rescue":
        setup = Setup(task.spec, trial["h"], trial["policy"], trial["truth"], trial["managed"])
        return setup.session(task, trial["arm"])
    if trial["evidence"] == "probe":
        return probe_session(task, Moment(trial["at"], trial["target"], tuple(trial["resident"])))
    return full_information(task, calculator=trial["calculator"])


def replay(run: LacunaRun) -> list[dict[str, Any]]:
    """Return every exchange of a run with the messages that were shown, as far as they can be rebuilt."""
    recorded = [event for event in run.events if event["type"] == "exchange"]
    shown: list[tuple[Message, ...] | None] = []
    task = run.task.instance
    if task is not None:
        try:
            shown = list(_drive(session_of(run, task), run, iter(run.events)))
        except (EirkitError, KeyError, TypeError, ValueError):
            shown = []  # written by another version, or by a condition that cannot be made here
    shown += [None] * (len(recorded) - len(shown))
    return [_exchange(event, messages) for event, messages in zip(recorded, shown, strict=True)]


def _drive(
    session: Session, run: LacunaRun, events: Iterator[Mapping[str, Any]]
) -> Iterator[tuple[Message, ...] | None]:
    """Yield the messages of each recorded exchange; nothing more once a prompt is not the recorded one."""
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
        return Reply(event["reply"], calls)
    if not run.record.get("access", {}).get("condition") == "controlled":
        raise ValueError("replies were not kept, and the state depends on them")
    decision = run.decisions[event["t"]]
    if decision.submitted is None:
        return Reply("")
    return Reply(f"ANSWER {decision.t} {' '.join(map(str, decision.submitted))}")


def _exchange(event: Mapping[str, Any], messages: tuple[Message, ...] | None) -> dict[str, Any]:
    """Return one exchange; `exact` says that the prompt was rebuilt and has the recorded hash."""
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
