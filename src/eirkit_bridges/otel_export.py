"""Exports runs, recorded ones of any log format included, as OpenTelemetry traces (`eirkit export otel`).

A reply becomes a `chat` span, a tool call an `execute_tool` span. Facts for which the conventions have no attribute
(what a turn read and wrote, compactions, exit codes) go into `eirkit.*` attributes, so that reading the trace gives the
same run again.

A folder of `eirkit lacuna run` is exported with everything it records; other logs, with what VESTIGE reads from them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from eirkit.errors import InfrastructureError, UsageError
from eirkit.packages import load_vendor
from eirkit.records.database import DATABASE
from eirkit.records.documents import MANIFEST
from eirkit.vestige.corpus.reader import read_corpus
from eirkit.vestige.sources.documents import Skipped
from eirkit.vestige.trajectory import (
    Break,
    Call,
    FileRead,
    FileWrite,
    KeptContext,
    RecordedTurn,
    Recording,
    Touches,
    Trigger,
)
from eirkit_bridges.otel import (
    SERVICE,
    OpenSpan,
    TraceBuilder,
    TraceSpan,
    Value,
    call_part,
    compact_json,
    message,
    otlp_line,
    text_part,
)
from eirkit_bridges.otel_runs import sweep_traces, token_attributes
from eirkit_bridges.otlp_spans import CALL_FACTS, RUN_FACTS, TURN_FACTS

_RUN = (
    *("task_id", "model", "agent_version", "window", "resolved", "reward"),
    *("goal_files", "submission", "root", "exit_status", "domain"),
)


class TurnFacts(Struct, frozen=True, omit_defaults=True):
    """What the conventions have no attribute for, of a turn; see `RecordedTurn`."""

    touches: Touches | None = None
    tokens: int | None = None
    broken: Break | None = None
    carried: str = ""
    earlier_breaks: tuple[Break, ...] = ()
    triggers: tuple[Trigger, ...] = ()
    asked: str = ""
    at: float | None = None
    kept: KeptContext | None = None
    rejected: bool = False


class CallFacts(Struct, frozen=True, omit_defaults=True):
    """What the conventions have no attribute for, of a call; see `Call`."""

    exit_code: int | None = None
    working_folder: str | None = None
    full_output: str | None = None


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
            made: dict[str, Value] = {"gen_ai.evaluation.name": "resolved"}
            if recording.reward is not None:
                made["gen_ai.evaluation.score.value"] = float(recording.reward)
            if recording.resolved is not None:
                made["gen_ai.evaluation.score.label"] = "pass" if recording.resolved else "fail"
            trace.note("gen_ai.evaluation.result", made)
    return trace.spans()


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
        if facts != TurnFacts():
            around = self.trace.span("turn", "internal", {TURN_FACTS: compact_json(msgspec.to_builtins(facts))})
        with around:
            self._chat(turn, number)
            for place, call in enumerate(turn.calls, 1):
                self._tool(call, f"call_{number}_{place}")

    def _facts(self, turn: RecordedTurn) -> TurnFacts:
        """Return the facts that the conventions have no attribute for; usually none."""
        return TurnFacts(
            None if turn.touches is None else self._touches(turn.touches),
            turn.tokens,
            turn.broken,
            turn.carried if self.texts and turn.broken is not None else "",
            turn.earlier_breaks,
            turn.triggers,
            turn.asked if self.texts else "",
            turn.at,
            None if turn.kept is None else self._kept(turn.kept),
            turn.rejected,
        )

    def _kept(self, kept: KeptContext) -> KeptContext:
        if not self.texts:
            return msgspec.structs.replace(kept, texts=(), files=())
        return msgspec.structs.replace(kept, files=tuple(map(self._read, kept.files)))

    def _touches(self, touches: Touches) -> Touches:
        return Touches(tuple(map(self._read, touches.reads)), tuple(map(self._write, touches.writes)))

    def _read(self, read: FileRead) -> FileRead:
        return FileRead(read.path, read.tokens, read.content if self.texts else None, clipped=read.clipped)

    def _write(self, write: FileWrite) -> FileWrite:
        texts = (write.content, write.removed, write.added) if self.texts else ()
        return FileWrite(write.path, write.kind, write.tokens, *texts)

    def _chat(self, turn: RecordedTurn, number: int) -> None:
        attributes: dict[str, Value] = {"gen_ai.operation.name": "chat", "gen_ai.request.model": self.recording.model}
        if turn.usage is not None:
            attributes |= token_attributes(turn.usage)
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
        facts = CallFacts(call.exit_code, call.working_folder, call.full_output if self.texts else None)
        if facts != CallFacts():
            attributes[CALL_FACTS] = compact_json(msgspec.to_builtins(facts))
        with self.trace.span(f"execute_tool {call.tool}", "internal", attributes) as tool:
            if call.failed:
                tool.fail("tool_error", "the tool reported an error")


FEATURE, EXTRA = "sending traces to a collector", "otel"
_EXPORTER = "opentelemetry.exporter.otlp.proto.http.trace_exporter"


class Collector:
    """A sink that sends to an OTLP/HTTP endpoint such as http://127.0.0.1:4318/v1/traces; use it in a with statement.

    Headers, certificates and timeouts come from OpenTelemetry's environment variables.
    """

    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint
        self._exporter: Any = None
        self._sdk = load_vendor("opentelemetry.sdk.trace", FEATURE, EXTRA)
        self._api = load_vendor("opentelemetry.trace", FEATURE, EXTRA)
        self._resources = load_vendor("opentelemetry.sdk.resources", FEATURE, EXTRA)

    def __enter__(self) -> Collector:
        self._exporter = load_vendor(_EXPORTER, FEATURE, EXTRA).OTLPSpanExporter(endpoint=self.endpoint)
        return self

    def __exit__(self, *error: object) -> None:
        self._exporter.shutdown()

    def __call__(self, spans: Sequence[TraceSpan]) -> None:
        """Send the spans of one trace.

        Raises:
            InfrastructureError: the collector did not accept them.
        """
        resource = self._resources.Resource(SERVICE)
        result = self._exporter.export([self._readable(span, resource) for span in spans])
        if result.name != "SUCCESS":
            raise InfrastructureError(
                f"the collector at {self.endpoint} did not accept a trace; "
                "check that it is running and accepts OTLP over HTTP"
            )

    def _readable(self, span: TraceSpan, resource: Any) -> Any:
        status = self._api.Status(self._api.StatusCode.ERROR, span.error) if span.error else self._api.Status()
        return self._sdk.ReadableSpan(
            name=span.name,
            context=self._context(span.trace, span.id),
            parent=self._context(span.trace, span.parent) if span.parent else None,
            resource=resource,
            attributes=dict(span.attributes),
            events=[self._sdk.Event(event.name, dict(event.attributes), timestamp=event.at) for event in span.events],
            kind=getattr(self._api.SpanKind, span.kind.upper()),
            status=status,
            start_time=span.start,
            end_time=span.end,
            instrumentation_scope=self._scope(),
        )

    def _context(self, trace: str, span: str) -> Any:
        flags = self._api.TraceFlags(self._api.TraceFlags.SAMPLED)
        return self._api.SpanContext(int(trace, 16), int(span, 16), is_remote=False, trace_flags=flags)

    def _scope(self) -> Any:
        kind = load_vendor("opentelemetry.sdk.util.instrumentation", FEATURE, EXTRA).InstrumentationScope
        return kind("eirkit", SERVICE["service.version"])


Sink = Callable[[Sequence[TraceSpan]], None]


@dataclass(frozen=True, slots=True)
class ExportedTraces:
    """How much was exported, and what could not be read."""

    runs: int
    spans: int
    skipped: tuple[Skipped, ...]


def traces_of(path: Path, start: int, *, texts: bool = True) -> Iterator[list[TraceSpan] | Skipped]:
    """Yield the trace of each run at a path, and each file that could not be read."""
    if (path / MANIFEST).is_file() and (path / DATABASE).is_file():
        yield from sweep_traces(path, start, texts=texts)
        return
    for item in read_corpus([path]):
        if isinstance(item, Skipped):
            yield item
            continue
        spans = recording_trace(item, start, texts=texts)
        start = spans[0].end
        yield spans


def export_traces(path: Path, start: int, sinks: Iterable[Sink], *, texts: bool = True) -> ExportedTraces:
    """Send every trace to each sink and return the counts.

    Raises:
        UsageError: the path holds no finished run.
    """
    given, runs, total, skipped = list(sinks), 0, 0, []
    for item in traces_of(path, start, texts=texts):
        if isinstance(item, Skipped):
            skipped.append(item)
            continue
        for sink in given:
            sink(item)
        runs, total = runs + 1, total + len(item)
    if not runs:
        why = f": {skipped[0].source}: {skipped[0].reason}" if skipped else ""
        raise UsageError(
            f"{path} holds no finished run{why}; give the folder of a sweep, or logs that VESTIGE can read"
        )
    return ExportedTraces(runs, total, tuple(skipped))


class TraceFile:
    """A sink that writes one line of OTLP/JSON for each trace; use it in a with statement.

    The file gets its name only when it is complete.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._unfinished = path.with_name(f".{path.name}.{os.getpid()}.unfinished")

    def __enter__(self) -> TraceFile:
        if self.path.is_dir():
            raise UsageError(f"{self.path} is a folder; give --out a file")
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._unfinished.unlink(missing_ok=True)
        self._stream = self._unfinished.open("xb")  # a link there is not followed
        return self

    def __call__(self, spans: Sequence[TraceSpan]) -> None:
        self._stream.write(otlp_line(spans))

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        self._stream.close()
        try:
            if kind is None:
                self._unfinished.replace(self.path)
        finally:
            self._unfinished.unlink(missing_ok=True)
