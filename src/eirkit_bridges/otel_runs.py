"""Converts the runs of an `eirkit lacuna run` folder to OpenTelemetry spans.

A run becomes an `invoke_agent` span, a step a `turn` with the records that were available and the answer submitted, a
request to the model a `chat`, an action an `execute_tool`, and a call to an external memory a `search_memory` or
`upsert_memory` inside it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from eirkit.lacuna.agents.protocol import Fault, as_call, read_reply
from eirkit.lacuna.memories.calls import label_of
from eirkit.lacuna.models.model import Reply
from eirkit.lacuna.runs.manifest import read_manifest
from eirkit.lacuna.runs.store import RUNS, read_events, scan_runs
from eirkit.lacuna.tasks.task import show_values
from eirkit_bridges.otel import TraceBuilder, TraceSpan, Value, call_part, compact_json, message, text_part
from eirkit_bridges.otlp_spans import RUN_FACTS, TURN_FACTS

Record = Mapping[str, Any]
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
    for record, _ in scan_runs(folder / RUNS):
        told = rules.get(record["rules_sha256"], "") if texts else ""
        spans = run_trace(record, read_events(folder, record["events"]), told, start, texts=texts)
        start = spans[0].end
        yield spans


def run_trace(
    record: Record, events: Sequence[Record], rules: str, start: int, *, texts: bool = True
) -> list[TraceSpan]:
    """Return the spans of one run.

    Args:
        record, events: as stored by a sweep.
        rules: the system message; "" to leave it out.
    """
    trace = TraceBuilder(record["run"], start)
    writer = _SpanWriter(trace, record, texts)
    answered = [e["t"] for e in events if e["type"] == "decision" and e["submitted"] is not None]
    goals = [label_of(t) for t in answered if t > int(record["task"]["warm_up"])]
    attributes = writer.agent_attributes(goals)
    if rules:
        attributes["gen_ai.system_instructions"] = compact_json([text_part(rules)])
    with trace.span(f"invoke_agent {record['model']}", "internal", attributes):
        for group in _by_decision(events):
            writer.add_turn(group)
        writer.conclude()
    return trace.spans()


def _by_decision(events: Sequence[Record]) -> Iterator[list[Record]]:
    """Yield the events of each step, its decision last; events after the last decision form a last group."""
    group: list[Record] = []
    for event in events:
        if event["type"] != "verdicts":
            group.append(event)
        if event["type"] == "decision":
            yield group
            group = []
    if group:
        yield group


class _SpanWriter:
    """Writes the events of one run as spans."""

    def __init__(self, trace: TraceBuilder, record: Record, texts: bool) -> None:
        self.trace, self.record, self.texts = trace, record, texts
        provider, _, self.model = str(record["model"]).partition("/")
        self.common: dict[str, Value] = {
            "gen_ai.provider.name": _PROVIDERS.get(provider, provider),
            "gen_ai.conversation.id": str(record["run"]),
        }
        self.values: dict[int, str] = {}  # results so far, as shown to the agent
        self.asked = 0  # tool calls so far
        self.waiting: deque[str] = deque()  # ids of calls in the last reply that have not been executed

    def agent_attributes(self, goals: Sequence[str]) -> dict[str, Value]:
        """Return the attributes of the whole run; its goals are the scored answers."""
        record, usage = self.record, self.record["usage"]
        return {
            "gen_ai.operation.name": "invoke_agent",
            **self.common,
            "gen_ai.agent.name": str(record["model"]),
            "gen_ai.request.model": self.model,
            **_tokens(usage),
            RUN_FACTS: compact_json({**self._facts(), "goal_files": goals}),
            "eirkit.task": compact_json(record["task"]),
            "eirkit.access": compact_json(record["access"]),
            "eirkit.fingerprint": str(record["fingerprint"]),
            "eirkit.seed": str(record["seed"]),  # seeds go up to 2^64, integer attributes only to 2^63
        }

    def _facts(self) -> dict[str, Any]:
        record, task, score = self.record, self.record["task"], self.record["score"]
        return {
            "task_id": f"{task['workload']}-n{task['n']}-m{task['m']}-fan{task['fan_in']}-seed{record['seed']}",
            "model": record["model"],
            "resolved": score["correct"] == score["steps"],
            "reward": score["correct"] / score["steps"] if score["steps"] else None,
            "exit_status": record["ending"],
        }

    def add_turn(self, group: Sequence[Record]) -> None:
        """Add the spans of one step."""
        decision = group[-1] if group[-1]["type"] == "decision" else None
        if decision is None:
            self._add_events(group)
            return
        facts = {"touches": self._touches(decision)}
        attributes: dict[str, Value] = {
            TURN_FACTS: compact_json(facts),
            "eirkit.step": int(decision["t"]),
            "eirkit.missing": tuple(map(label_of, decision["missing"])),
        }
        with self.trace.span("turn", "internal", attributes) as turn:
            self._add_events(group[:-1])
            if decision["fault"]:
                turn.fail(decision["fault"], "the step has no valid answer")

    def _touches(self, decision: Record) -> dict[str, Any]:
        digits = int(self.record["task"]["digits"])
        restored = {t: f"{label_of(t)} = {show_values(digits, tuple(values))}" for t, values in decision["restored"]}
        near = {*decision["retained"], *restored}
        seen = sorted({*decision["fetched"], *(t for t in decision["required"] if t in near)})
        reads = [{"path": label_of(t), "content": restored.get(t, self.values.get(t))} for t in seen]
        if decision["submitted"] is None:
            return {"reads": reads, "writes": []}
        path = label_of(decision["t"])
        self.values[decision["t"]] = content = f"{path} = {show_values(digits, tuple(decision['submitted']))}"
        return {"reads": reads, "writes": [{"path": path, "kind": "whole", "content": content}]}

    def _add_events(self, events: Sequence[Record]) -> None:
        place = 0
        while place < len(events):
            event = events[place]
            place += 1
            if event["type"] == "exchange":
                self._chat(event)
            elif event["type"] == "memory":
                self._memory(event)
            else:
                # The memory call of an action is the next event.
                calls = [one for one in events[place : place + 1] if one["type"] == "memory"]
                self._action(event, calls)
                place += len(calls)

    def _chat(self, event: Record) -> None:
        asked = self.record["settings"]
        attributes: dict[str, Value] = {
            "gen_ai.operation.name": "chat",
            **self.common,
            "gen_ai.request.model": self.model,
            "gen_ai.request.max_tokens": int(asked["max_tokens"]),
            **_tokens(event),
            "eirkit.prompt_sha256": str(event["prompt_sha256"]),
        }
        if asked["temperature"] is not None:
            attributes["gen_ai.request.temperature"] = float(asked["temperature"])
        self.waiting.clear()
        if self.texts and "prompt" in event:
            said = [text_part(event["reply"]), *map(self._call_part, event.get("calls", ()))]
            attributes["gen_ai.input.messages"] = compact_json([message("user", [text_part(event["prompt"])])])
            attributes["gen_ai.output.messages"] = compact_json([message("assistant", said, "stop")])
        with self.trace.span(f"chat {self.model}", "client", attributes, float(event["latency_seconds"])):
            pass

    def _call_part(self, call: Record) -> dict[str, Any]:
        self.asked += 1
        self.waiting.append(f"call_{self.asked}")
        return call_part(self.waiting[-1], call["name"], call["arguments"])

    def _action(self, event: Record, memory: Sequence[Record]) -> None:
        id = self.waiting.popleft() if self.waiting else ""
        if event["action"] == "SUMMARY":
            self.trace.note("eirkit.summary", {"eirkit.detail": str(event["detail"])})
            return
        (action, *_) = read_reply(Reply(str(event["action"])))
        if isinstance(action, Fault) or event["outcome"] == "fault":
            self.trace.note("eirkit.fault", {"error.type": str(event["reason"] or event["action"])})
            return
        call = as_call(action)
        attributes: dict[str, Value] = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": call.name,
            "gen_ai.tool.type": "function",
            "gen_ai.tool.call.arguments": compact_json(call.arguments),
            "gen_ai.tool.call.result": str(event["detail"]),
        }
        if id:
            attributes["gen_ai.tool.call.id"] = id
        if not self.texts:
            del attributes["gen_ai.tool.call.arguments"], attributes["gen_ai.tool.call.result"]
        with self.trace.span(f"execute_tool {call.name}", "internal", attributes) as tool:
            for one in memory:
                self._memory(one)
            if event["outcome"] != "done":
                tool.fail(str(event["reason"]), str(event["detail"]))

    def _memory(self, event: Record) -> None:
        operation = _OPERATIONS[event["verb"]]
        attributes: dict[str, Value] = {
            "gen_ai.operation.name": operation,
            "gen_ai.memory.store.id": str(self.record["access"]["memory"]),
            "gen_ai.memory.record.count": int(event["passages"]) if operation == _FINDS else 1,
        }
        if self.texts and "text" in event:
            kept = event["found"] if operation == _FINDS else [event["text"]]
            attributes["gen_ai.memory.records"] = compact_json([{"content": text} for text in kept])
            if operation == _FINDS:
                attributes["gen_ai.memory.query.text"] = str(event["text"])
        with self.trace.span(operation, "client", attributes, float(event["latency_seconds"])):
            pass

    def conclude(self) -> None:
        """Add the score of the run as an event."""
        score = self.record["score"]
        share = score["correct"] / score["steps"] if score["steps"] else 0.0
        label = "pass" if score["correct"] == score["steps"] else "fail"
        self.trace.note(
            "gen_ai.evaluation.result",
            {
                "gen_ai.evaluation.name": "accuracy",
                "gen_ai.evaluation.score.value": share,
                "gen_ai.evaluation.score.label": label,
                **{f"eirkit.errors.{cause}": int(count) for cause, count in score["errors"].items()},
            },
        )


def _tokens(usage: Record) -> dict[str, Value]:
    return {
        "gen_ai.usage.input_tokens": int(usage["input_tokens"]),
        "gen_ai.usage.output_tokens": int(usage["output_tokens"]),
        "gen_ai.usage.cache_read.input_tokens": int(usage["cached_tokens"]),
    }
