"""Exports runs as OpenTelemetry traces, to a file or to a collector (`eirkit export otel`).

A folder of `eirkit lacuna run` is exported with everything it records; other logs, with what VESTIGE reads from them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eirkit.bridges.otel import SERVICE, SpanEvent, TraceSpan, otlp_line
from eirkit.bridges.otel_recordings import recording_trace
from eirkit.bridges.otel_runs import sweep_traces
from eirkit.errors import InfrastructureError, UsageError
from eirkit.logs.corpus.reader import read_corpus
from eirkit.logs.sources.documents import Skipped
from eirkit.packages import load_vendor
from eirkit.runs.manifest import FILE as MANIFEST
from eirkit.runs.store import RUNS

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
            events=[self._event(event) for event in span.events],
            kind=getattr(self._api.SpanKind, span.kind.upper()),
            status=status,
            start_time=span.start,
            end_time=span.end,
            instrumentation_scope=self._scope(),
        )

    def _context(self, trace: str, span: str) -> Any:
        flags = self._api.TraceFlags(self._api.TraceFlags.SAMPLED)
        return self._api.SpanContext(int(trace, 16), int(span, 16), is_remote=False, trace_flags=flags)

    def _event(self, event: SpanEvent) -> Any:
        return self._sdk.Event(event.name, dict(event.attributes), timestamp=event.at)

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
    if (path / MANIFEST).is_file() and (path / RUNS).is_file():
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
        self._unfinished = path.with_name(f".{path.name}.unfinished")

    def __enter__(self) -> TraceFile:
        if self.path.is_dir():
            raise UsageError(f"{self.path} is a folder; give --out a file")
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._stream = self._unfinished.open("wb")
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
