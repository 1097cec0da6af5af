"""Sends traces to a collector through the OpenTelemetry SDK's own exporter, with the ids that we gave them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from eirkit.bridges.otel import SERVICE, Span, SpanEvent
from eirkit.errors import InfrastructureError
from eirkit.lacuna.serving.vendor import load_vendor

FEATURE, EXTRA = "sending traces to a collector", "otel"
_EXPORTER = "opentelemetry.exporter.otlp.proto.http.trace_exporter"


class Collector:
    """A sink in front of an OTLP/HTTP endpoint such as http://127.0.0.1:4318/v1/traces; use it in a with statement.

    Headers, certificates and time limits come from the environment, by OpenTelemetry's own names.
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

    def __call__(self, spans: Sequence[Span]) -> None:
        """Send the spans of one trace.

        Raises:
            InfrastructureError: the collector did not take them.
        """
        resource = self._resources.Resource(SERVICE)
        result = self._exporter.export([self._readable(span, resource) for span in spans])
        if result.name != "SUCCESS":
            raise InfrastructureError(
                f"the collector at {self.endpoint} did not take a trace; see that it runs and takes OTLP over HTTP"
            )

    def _readable(self, span: Span, resource: Any) -> Any:
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
