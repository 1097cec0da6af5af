"""Converts the runs of an `eirkit lacuna run` folder to OpenTelemetry spans.

A run becomes an `invoke_agent` span, a step a `turn` with the records that were available and the answer submitted, a
request to the model a `chat`, an action an `execute_tool`, and a call to an external memory a `search_memory` or
`upsert_memory` inside it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from eirkit.lacuna.agents.protocol import Fault, as_call, read_reply
from eirkit.lacuna.memories.memory import label_of
from eirkit.lacuna.models.model import Reply
from eirkit.lacuna.runs.manifest import read_manifest
from eirkit.lacuna.tasks.task import show_values
from eirkit.records.database import SweepDatabase
from eirkit.records.events import (
    ActionTaken,
    Decision,
    Event,
    MemoryExchange,
    ModelExchange,
    RequestedCall,
    Verdicts,
)
from eirkit.records.runs import RunRecord, RunUsage
from eirkit.records.settings import Task
from eirkit.vestige.trajectory import LoggedUsage
from eirkit_bridges.otel import TraceBuilder, TraceSpan, Value, call_part, compact_json, message, text_part
from eirkit_bridges.otlp_spans import RUN_FACTS, TURN_FACTS

_PROVIDERS = {"google": "gcp.gemini"}  # where the conventions use another name
_STORES, _FINDS = "upsert_memory", "search_memory"
_OPERATIONS = {"write": _STORES, "observe": _STORES, "search": _FINDS, "recall": _FINDS}


def sweep_traces(folder: Path, start: int, *, texts: bool = True) -> Iterator[list[TraceSpan]]:
    """Yield the trace of each finished run of a sweep; each run starts where the previous one ended.

    Args:
        start: when the first run began, in nanoseconds since 1970.
        texts: include prompts, replies and memory contents, if the sweep stored them.
    """
    rules = read_manifest(folder).rules
    with SweepDatabase(folder) as database:
        for record in database.records():
            told = rules.get(record.rules_sha256, "") if texts else ""
            spans = run_trace(record, database.events(record.run), told, start, texts=texts)
            start = spans[0].end
            yield spans


def run_trace(
    record: RunRecord, events: Sequence[Event], rules: str, start: int, *, texts: bool = True
) -> list[TraceSpan]:
    """Return the spans of one run.

    Args:
        record, events: as stored by a sweep.
        rules: the system message; "" to leave it out.
    """
    trace = TraceBuilder(record.run, start)
    writer = _SpanWriter(trace, record, texts)
    answered = [event.t for event in events if isinstance(event, Decision) and event.submitted is not None]
    task = record.setting.task
    goals = [label_of(t) for t in answered if task.is_scored(t)]
    attributes = writer.agent_attributes(goals)
    if rules:
        attributes["gen_ai.system_instructions"] = compact_json([text_part(rules)])
    with trace.span(f"invoke_agent {record.setting.model}", "internal", attributes):
        for group in _by_decision(events):
            writer.add_turn(group)
        writer.conclude()
    return trace.spans()


def _by_decision(events: Sequence[Event]) -> Iterator[list[Event]]:
    """Yield the events of each step, its decision last; events after the last decision form a last group."""
    group: list[Event] = []
    for event in events:
        if not isinstance(event, Verdicts):
            group.append(event)
        if isinstance(event, Decision):
            yield group
            group = []
    if group:
        yield group


class _SpanWriter:
    """Writes the events of one run as spans."""

    def __init__(self, trace: TraceBuilder, record: RunRecord, texts: bool) -> None:
        self.trace, self.record, self.texts = trace, record, texts
        provider, _, self.model = record.setting.model.partition("/")
        self.common: dict[str, Value] = {
            "gen_ai.provider.name": _PROVIDERS.get(provider, provider),
            "gen_ai.conversation.id": record.run,
        }
        self.values: dict[int, str] = {}  # results so far, as shown to the agent
        self.asked = 0  # tool calls so far
        self.waiting: deque[str] = deque()  # ids of calls in the last reply that have not been executed

    def agent_attributes(self, goals: Sequence[str]) -> dict[str, Value]:
        """Return the attributes of the whole run; its goals are the scored answers."""
        record, setting = self.record, self.record.setting
        return {
            "gen_ai.operation.name": "invoke_agent",
            **self.common,
            "gen_ai.agent.name": setting.model,
            "gen_ai.request.model": self.model,
            **token_attributes(record.usage),
            RUN_FACTS: compact_json({**self._facts(), "goal_files": goals}),
            "eirkit.task": compact_json(msgspec.to_builtins(setting.task)),
            "eirkit.access": compact_json(msgspec.to_builtins(setting.access)),
            "eirkit.fingerprint": record.fingerprint,
            "eirkit.seed": str(record.seed),  # seeds go up to 2^64, integer attributes only to 2^63
        }

    def _facts(self) -> dict[str, Any]:
        record, task, score = self.record, self.record.setting.task, self.record.score
        return {
            "task_id": f"{task.label}-seed{record.seed}",
            "model": record.setting.model,
            "resolved": None if score is None else score.correct == score.steps,
            "reward": score.correct / score.steps if score is not None and score.steps else None,
            "exit_status": record.ending,
        }

    def add_turn(self, group: Sequence[Event]) -> None:
        """Add the spans of one step."""
        decision = group[-1]
        if not isinstance(decision, Decision):
            self._add_events(group)
            return
        facts = {"touches": self._touches(decision)}
        attributes: dict[str, Value] = {
            TURN_FACTS: compact_json(facts),
            "eirkit.step": decision.t,
            "eirkit.missing": tuple(map(label_of, decision.missing)),
        }
        with self.trace.span("turn", "internal", attributes) as turn:
            self._add_events(group[:-1])
            if decision.fault:
                turn.fail(decision.fault, "the step has no valid answer")

    def _touches(self, decision: Decision) -> dict[str, Any]:
        task = self.record.setting.task
        digits = task.digits if isinstance(task, Task) else 1
        restored = {t: f"{label_of(t)} = {show_values(digits, values)}" for t, values in decision.restored}
        near = {*decision.retained, *restored}
        seen = sorted({*decision.fetched, *(t for t in decision.required if t in near)})
        reads = [{"path": label_of(t), "content": restored.get(t, self.values.get(t))} for t in seen]
        if decision.submitted is None:
            return {"reads": reads, "writes": []}
        path = label_of(decision.t)
        values = decision.values
        answer = decision.text if values is None else show_values(digits, values)
        self.values[decision.t] = content = f"{path} = {answer}"
        return {"reads": reads, "writes": [{"path": path, "kind": "whole", "content": content}]}

    def _add_events(self, events: Sequence[Event]) -> None:
        place = 0
        while place < len(events):
            event = events[place]
            place += 1
            if isinstance(event, ModelExchange):
                self._chat(event)
            elif isinstance(event, MemoryExchange):
                self._memory(event)
            elif isinstance(event, ActionTaken):
                # The memory call of an action is the next event.
                calls = [call for call in events[place : place + 1] if isinstance(call, MemoryExchange)]
                self._action(event, calls)
                place += len(calls)

    def _chat(self, event: ModelExchange) -> None:
        asked = self.record.setting.settings
        attributes: dict[str, Value] = {
            "gen_ai.operation.name": "chat",
            **self.common,
            "gen_ai.request.model": self.model,
            "gen_ai.request.max_tokens": asked.max_tokens,
            **token_attributes(event),
            "eirkit.prompt_sha256": event.prompt_sha256,
        }
        if asked.temperature is not None:
            attributes["gen_ai.request.temperature"] = asked.temperature
        self.waiting.clear()
        if self.texts and event.prompt is not None:
            said = [text_part(event.reply or ""), *map(self._call_part, event.calls)]
            attributes["gen_ai.input.messages"] = compact_json([message("user", [text_part(event.prompt)])])
            attributes["gen_ai.output.messages"] = compact_json([message("assistant", said, "stop")])
        with self.trace.span(f"chat {self.model}", "client", attributes, event.latency_seconds):
            pass

    def _call_part(self, call: RequestedCall) -> dict[str, Any]:
        self.asked += 1
        self.waiting.append(f"call_{self.asked}")
        return call_part(self.waiting[-1], call.name, call.arguments)

    def _action(self, event: ActionTaken, memory: Sequence[MemoryExchange]) -> None:
        id = self.waiting.popleft() if self.waiting else ""
        if event.action == "SUMMARY":
            self.trace.note("eirkit.summary", {"eirkit.detail": event.detail})
            return
        (action, *_) = read_reply(Reply(event.action))
        if isinstance(action, Fault) or event.outcome == "fault":
            self.trace.note("eirkit.fault", {"error.type": event.reason or event.action})
            return
        call = as_call(action)
        attributes: dict[str, Value] = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": call.name,
            "gen_ai.tool.type": "function",
            "gen_ai.tool.call.arguments": compact_json(call.arguments),
            "gen_ai.tool.call.result": event.detail,
        }
        if id:
            attributes["gen_ai.tool.call.id"] = id
        if not self.texts:
            del attributes["gen_ai.tool.call.arguments"], attributes["gen_ai.tool.call.result"]
        with self.trace.span(f"execute_tool {call.name}", "internal", attributes) as tool:
            for exchange in memory:
                self._memory(exchange)
            if event.outcome != "done":
                tool.fail(event.reason, event.detail)

    def _memory(self, event: MemoryExchange) -> None:
        operation = _OPERATIONS[event.verb]
        attributes: dict[str, Value] = {
            "gen_ai.operation.name": operation,
            "gen_ai.memory.store.id": str(self.record.setting.access.memory),
            "gen_ai.memory.record.count": event.passages if operation == _FINDS else 1,
        }
        if self.texts and event.text is not None:
            kept = event.found or () if operation == _FINDS else [event.text]
            attributes["gen_ai.memory.records"] = compact_json([{"content": text} for text in kept])
            if operation == _FINDS:
                attributes["gen_ai.memory.query.text"] = event.text
        with self.trace.span(operation, "client", attributes, event.latency_seconds):
            pass

    def conclude(self) -> None:
        """Add the score of the run as an event."""
        score = self.record.score
        if score is None:
            return
        label = "pass" if score.correct == score.steps else "fail"
        self.trace.note(
            "gen_ai.evaluation.result",
            {
                "gen_ai.evaluation.name": "accuracy",
                "gen_ai.evaluation.score.value": score.accuracy,
                "gen_ai.evaluation.score.label": label,
                **{f"eirkit.errors.{cause}": count for cause, count in score.errors.items()},
            },
        )


def token_attributes(usage: RunUsage | ModelExchange | LoggedUsage) -> dict[str, Value]:
    """Return the tokens of a request, or of a whole run, as the conventions name them."""
    return {
        "gen_ai.usage.input_tokens": usage.input_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cached_tokens,
    }
