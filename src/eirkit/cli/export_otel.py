"""`eirkit export otel`: converts runs to OpenTelemetry traces, in a file or sent to a collector."""

from __future__ import annotations

from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from shlex import quote

import click

from eirkit.bridges.otel_export import Collector, Sink, TraceFile, export_traces
from eirkit.bridges.start_times import SECOND, start_time
from eirkit.cli.command import OUTPUT, command, option
from eirkit.cli.output import Show, document_options
from eirkit.errors import UsageError
from eirkit.show.document import Document
from eirkit.show.page import Section
from eirkit.show.phrases import counted



@command("otel", example="eirkit export otel out/run-1 --out out/traces.jsonl")
@click.argument("path", metavar="PATH", type=PATH)
@option("--out", type=PATH, metavar="FILE", group=OUTPUT, help="Write OTLP/JSON to this file, one run per line.")
@option("--endpoint", metavar="URL", help="Send to a collector: http://127.0.0.1:4318/v1/traces; needs eirkit[otel].")
@option("--start", metavar="TIME", help="When the first run began: 2026-01-31T12:00:00Z.  [default: from the files]")
@option("--no-texts", is_flag=True, help="Leave out prompts, replies, arguments and tool results.")
@document_options
def export_otel(
    path: Path, out: Path | None, endpoint: str | None, start: str | None, no_texts: bool, show: Show
) -> None:
    """Convert runs to traces with the GenAI conventions: agents, inferences, tools and memory operations.

    PATH is a folder of `eirkit lacuna run`, or any logs that `eirkit vestige` reads. Trace ids follow from the names of
    the runs, so exporting twice gives the same traces.
    """
    if out is None and endpoint is None:
        raise UsageError("no destination for the traces; give --out FILE.jsonl, --endpoint URL or both")
    began = start_time(path) if start is None else _nanoseconds(start)
    with ExitStack() as stack:
        sinks: list[Sink] = []
        if endpoint is not None:
            sinks.append(stack.enter_context(Collector(endpoint)))
        if out is not None:
            sinks.append(stack.enter_context(TraceFile(out)))
        done = export_traces(path, began, sinks, texts=not no_texts)
    places = " and ".join(str(place) for place in (out, endpoint) if place is not None)
    data = {
        "out": None if out is None else str(out),
        "endpoint": endpoint,
        "runs": done.runs,
        "spans": done.spans,
        "skipped": [{"source": one.source, "reason": one.reason} for one in done.skipped],
    }
    said = f"{counted(done.runs, 'run')}, {counted(done.spans, 'span')}: {places}"
    skipped = tuple(f"skipped {one.source}: {one.reason}" for one in done.skipped)
    sections = (Section("", skipped),) if skipped else ()
    then = f"eirkit vestige analyze {quote(str(out or path))} --out out/analysis"
    show(Document("export-otel", "Export to OpenTelemetry", (said,), data, sections, next=then))


def _nanoseconds(text: str) -> int:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"--start {text!r} is not a time; write it like 2026-01-31T12:00:00Z") from None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    if moment.timestamp() < 0:
        raise UsageError(f"--start {text!r} is before 1970; give a later time")
    return round(moment.timestamp()) * SECOND
