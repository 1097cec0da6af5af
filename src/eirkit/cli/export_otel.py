"""`eirkit export otel`: runs as traces of OpenTelemetry, in a file or at a collector."""

from __future__ import annotations

from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

import click
from rich.console import Console

from eirkit.bridges.otel_export import Collector, Sink, TraceFile, export_traces
from eirkit.bridges.start_times import SECOND, begun_at
from eirkit.cli.output import emit, json_option
from eirkit.errors import UsageError

PATH = click.Path(path_type=Path)


@click.command("otel")
@click.argument("path", type=PATH)
@click.option("--out", type=PATH, help="A file for OTLP/JSON, one line a run.")
@click.option("--endpoint", help="A collector, such as http://127.0.0.1:4318/v1/traces; needs eirkit[otel].")
@click.option("--start", help="When the first run began, such as 2026-01-31T12:00:00Z.  [default: as the files say]")
@click.option("--no-texts", is_flag=True, help="Leave out prompts, replies, arguments and what tools returned.")
@json_option
def export_otel(
    path: Path, out: Path | None, endpoint: str | None, start: str | None, no_texts: bool, as_json: bool
) -> None:
    """Turn runs into traces by the GenAI conventions: agents, inferences, tools and operations on a memory.

    PATH is the folder of an `eirkit lacuna run`, or any logs that `eirkit vestige` reads. The ids follow from the names
    of the runs, so that exporting twice gives the same traces.
    """
    if out is None and endpoint is None:
        raise UsageError("nowhere to put the traces; give --out FILE.jsonl, --endpoint URL or both")
    began = begun_at(path) if start is None else _nanoseconds(start)
    with ExitStack() as stack:
        sinks: list[Sink] = []
        if endpoint is not None:
            sinks.append(stack.enter_context(Collector(endpoint)))
        if out is not None:
            sinks.append(stack.enter_context(TraceFile(out)))
        done = export_traces(path, began, sinks, texts=not no_texts)
    places = [str(place) for place in (out, endpoint) if place is not None]
    document = {
        "out": None if out is None else str(out),
        "endpoint": endpoint,
        "runs": done.runs,
        "spans": done.spans,
        "skipped": [{"source": one.source, "reason": one.reason} for one in done.skipped],
    }

    def render(console: Console) -> None:
        console.print(
            f"{done.runs:,} runs, {done.spans:,} spans: {' and '.join(places)}", markup=False, highlight=False
        )
        for one in done.skipped:
            console.print(f"skipped {one.source}: {one.reason}", markup=False, highlight=False)

    emit(document, as_json, render)


def _nanoseconds(text: str) -> int:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"--start {text!r} is no time; write it like 2026-01-31T12:00:00Z") from None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    if moment.timestamp() < 0:
        raise UsageError(f"--start {text!r} is before 1970; give a later time")
    return round(moment.timestamp()) * SECOND
