"""Converts recorded runs of any log format to OpenTelemetry spans by the GenAI conventions.

A reply becomes a `chat` span, a tool call an `execute_tool` span. Facts for which the conventions have no attribute
(what a turn read and wrote, compactions, exit codes) go into `eirkit.*` attributes, so that reading the trace gives the
same run again.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from typing import Any

from eirkit.bridges.otel import OpenSpan, TraceBuilder, TraceSpan, Value, call_part, compact_json, message, text_part
from eirkit.logs.formats.otlp_spans import CALL_FACTS, RUN_FACTS, TURN_FACTS
from eirkit.logs.trajectory import Call, LoggedUsage, RecordedTurn, Recording, Touches

_RUN = ("task_id", "model", "resolved", "reward", "goal_files", "submission", "root", "exit_status", "domain")
_READ = ("path", "tokens", "content", "clipped")
_WRITE = ("path", "kind", "tokens", "content")


def recording_trace(recording: Recording, start: int, *, texts: bool = True) -> list[TraceSpan]:
    """Return the spans of one recorded run.

    Args:
        start: when it began, in nanoseconds since 1970; most log formats record no durations.
        texts: include prompts, replies, tool arguments and results.
    """
    trace = TraceBuilder(recording.run_id, start)
    writer = _SpanWriter(trace, recording, texts)
    with trace.span(f"invoke_agent {recording.format}", "internal", writer.agent_attributes()):
        for number, turn in enumerate(recording.turns, 1):
            writer.add_turn(turn, number)
        if recording.reward is not None or recording.resolved is not None:
            trace.note("gen_ai.evaluation.result", _verdict(recording))
    return trace.spans()


def _verdict(recording: Recording) -> dict[str, Value]:
    made: dict[str, Value] = {"gen_ai.evaluation.name": "resolved"}
    if recording.reward is not None:
        made["gen_ai.evaluation.score.value"] = float(recording.reward)
    if recording.resolved is not None:
        made["gen_ai.evaluation.score.label"] = "pass" if recording.resolved else "fail"
    return made


class _SpanWriter:
    """Writes the turns of one run as spans."""

    def __init__(self, trace: TraceBuilder, recording: Recording, texts: bool) -> None:
        self.trace, self.recording, self.texts = trace, recording, texts

    def agent_attributes(self) -> dict[str, Value]:
        run = self.recording
        facts = {name: getattr(run, name) for name in _RUN}
        if not self.texts:
            facts.pop("submission")
        return {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": run.format,
            "gen_ai.conversation.id": run.run_id,
            "gen_ai.request.model": run.model,
            RUN_FACTS: compact_json(facts),
        }

    def add_turn(self, turn: RecordedTurn, number: int) -> None:
        """Add the spans of one turn."""
        facts = self._facts(turn)
        around: AbstractContextManager[OpenSpan | None] = nullcontext()
        if facts:
            around = self.trace.span("turn", "internal", {TURN_FACTS: compact_json(facts)})
        with around:
            self._chat(turn, number)
            for place, call in enumerate(turn.calls, 1):
                self._tool(call, f"call_{number}_{place}")

    def _facts(self, turn: RecordedTurn) -> dict[str, Any]:
        """Return the facts that the conventions have no attribute for; usually none."""
        facts: dict[str, Any] = {}
        if turn.touches is not None:
            facts["touches"] = self._touches(turn.touches)
        if turn.tokens is not None:
            facts["tokens"] = turn.tokens
        if turn.broken is not None:
            facts |= {"broken": turn.broken, "carried": turn.carried if self.texts else ""}
        return {**facts, "rejected": True} if turn.rejected else facts

    def _touches(self, touches: Touches) -> dict[str, Any]:
        found = {
            "reads": [{name: getattr(read, name) for name in _READ} for read in touches.reads],
            "writes": [{name: getattr(write, name) for name in _WRITE} for write in touches.writes],
        }
        for item in () if self.texts else (*found["reads"], *found["writes"]):
            del item["content"]
        return found

    def _chat(self, turn: RecordedTurn, number: int) -> None:
        attributes: dict[str, Value] = {"gen_ai.operation.name": "chat", "gen_ai.request.model": self.recording.model}
        attributes |= _tokens(turn.usage)
        if self.texts:
            calls = [
                call_part(f"call_{number}_{place}", call.tool, dict(call.arguments))
                for place, call in enumerate(turn.calls, 1)
            ]
            finish = "tool_call" if calls else "stop"
            said = message("assistant", [text_part(turn.text), *calls], finish)
            attributes["gen_ai.output.messages"] = compact_json([said])
            if number == 1 and self.recording.prompt:
                heard = message("user", [text_part(self.recording.prompt)])
                attributes["gen_ai.input.messages"] = compact_json([heard])
        with self.trace.span(f"chat {self.recording.model}".rstrip(), "client", attributes):
            pass

    def _tool(self, call: Call, id: str) -> None:
        attributes: dict[str, Value] = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": call.tool,
            "gen_ai.tool.type": "function",
            "gen_ai.tool.call.id": id,
        }
        if self.texts:
            attributes["gen_ai.tool.call.arguments"] = compact_json(dict(call.arguments))
            attributes["gen_ai.tool.call.result"] = call.output
        facts = dict(self._call_facts(call))
        if facts:
            attributes[CALL_FACTS] = compact_json(facts)
        with self.trace.span(f"execute_tool {call.tool}", "internal", attributes) as tool:
            if call.failed:
                tool.fail("tool_error", "the tool reported an error")

    def _call_facts(self, call: Call) -> Iterator[tuple[str, Any]]:
        if call.exit_code is not None:
            yield "exit_code", call.exit_code
        if call.working_folder is not None:
            yield "working_folder", call.working_folder
        if call.full_output is not None and self.texts:
            yield "full_output", call.full_output


def _tokens(usage: LoggedUsage | None) -> dict[str, Value]:
    if usage is None:
        return {}
    given = asdict(usage)
    return {
        "gen_ai.usage.input_tokens": given["input_tokens"],
        "gen_ai.usage.output_tokens": given["output_tokens"],
        "gen_ai.usage.cache_read.input_tokens": given["cached_tokens"],
    }
