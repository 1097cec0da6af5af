"""`eirkit export jsonl`, `harbor`, `inspect` and `otel`: converts tasks and runs for other tools."""

from __future__ import annotations

import secrets
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from shlex import quote
from typing import Any

import click

from eirkit.cli.command import OUTPUT, Show, command, document_options, option
from eirkit.cli.options import workload_command
from eirkit.cli.run_options import axis_options, describe_external, given_keys, suite_argument
from eirkit.cli.runner_options import PATH
from eirkit.errors import UsageError
from eirkit.folders import files_for_owner_only
from eirkit.lacuna.runs.manifest import SECOND, start_time
from eirkit.lacuna.runs.suite import Suite
from eirkit.records.export import write_export
from eirkit.report.document import Document, Section
from eirkit.report.folders import damage_named
from eirkit.report.table import Cell, Column, Table, counted
from eirkit.vestige.sources.documents import complaints
from eirkit_bridges.external_runs import CONDITION, plan_external_runs
from eirkit_bridges.harbor import MODEL, REQUIREMENT, export_harbor
from eirkit_bridges.inspect_export import export_logs
from eirkit_bridges.otel_export import Collector, Sink, TraceFile, export_traces

SEED_BITS = 63
LISTED = 20  # tasks; --json has all


@command("jsonl", example="eirkit export jsonl out/run-1 --out out/lines")
@click.argument("folder", metavar="DIR", type=PATH)
@option("--out", type=PATH, required=True, metavar="DIR", group=OUTPUT, help="A new or empty folder.")
@document_options
def export_jsonl(folder: Path, out: Path, show: Show) -> None:
    """Write the runs of an `eirkit lacuna run` folder as lines of JSON: runs, events, failures and paid calls.

    The same folder always gives the same bytes. Archives, submissions and buckets hold such lines.
    """
    with damage_named(folder), files_for_owner_only():
        runs = write_export(folder, out)
    files = sorted(path.name for path in out.iterdir())
    section = Section("", (f"files: {', '.join(files)}",))
    data = {"out": str(out), "runs": runs, "files": files}
    said = f"{counted(runs, 'run')} in {out}."
    then = f"eirkit vestige analyze {quote(str(out))} --out out/analysis"
    show(Document("export-jsonl", "Export as lines", (said,), data, (section,), next=then))


@workload_command(example="eirkit export harbor store-recall --m 8 --h 4 --seeds 0:2 --out out/harbor")
@suite_argument
@axis_options
@option("--instances", "episodes", type=click.IntRange(1, 10_000), help="Number of random seeds in place of --seeds.")
@option(
    "--install", default=REQUIREMENT, show_default=True, help="What to install in the image: a requirement or wheel."
)
@option("--out", type=PATH, required=True, metavar="DIR", group=OUTPUT, help="A new or empty folder.")
@document_options
def harbor(suite: Path | None, episodes: int | None, install: str, out: Path, show: Show, **options: Any) -> None:
    """Write one Harbor task folder for each run of a WORKLOAD or a SUITE.toml; options replace values of the suite.

    A service beside the agent's container holds the task; with --condition controlled every step is a session of its
    own. The reward is correct / scored.
    """
    exported = export_harbor(_wanted(suite, episodes, given_keys(options)), out, secrets.token_bytes, install)
    tasks = [
        {"folder": str(one.folder), "name": one.name, "mode": one.mode, "seed": one.seed, "run": one.run}
        for one in exported
    ]
    columns = (Column("folder", "folder", role="name"), Column("mode", "mode"))
    rows = tuple({"folder": one.folder.name, "mode": one.mode} for one in exported[:LISTED])
    note = f"and {len(exported) - LISTED:,} more" if len(exported) > LISTED else ""
    section = Section("", (), (Table("tasks", f"Tasks in {out}", columns, rows, note),))
    said = f"{counted(len(exported), 'task')} in {out}."
    then = f"harbor run -p {quote(str(out))}"
    data = {"out": str(out), "tasks": tasks}
    show(Document("export-harbor", "Export to Harbor", (said,), data, (section,), next=then))


describe_external(harbor, MODEL, CONDITION, "0:3")


def _wanted(path: Path | None, episodes: int | None, given: dict[str, Any]) -> Suite:
    if path is None and "workload" not in given:
        raise UsageError("nothing to export; give a WORKLOAD or a SUITE.toml")
    if episodes is not None and "seeds" in given:
        raise UsageError("--instances draws seeds at random and --seeds names them; give one of the two")
    keys = {"model": [MODEL], **given}
    if episodes is not None:
        keys["seeds"] = [secrets.randbits(SEED_BITS) for _ in range(episodes)]
    return plan_external_runs(keys, path)


@command("inspect", example="eirkit export inspect out/run-1 --out out/logs")
@click.argument("folder", metavar="DIR", type=PATH)
@option(
    "--out",
    type=PATH,
    required=True,
    metavar="DIR",
    group=OUTPUT,
    help="Folder for the logs, one for each cell of the sweep.",
)
@document_options
def export_inspect(folder: Path, out: Path, show: Show) -> None:
    """Convert the runs of an `eirkit lacuna run` folder to `.eval` logs, which `inspect view` opens.

    Needs the extra eirkit[inspect].
    """
    with damage_named(folder), files_for_owner_only():
        logs, missing = export_logs(folder, out)
    rows: list[dict[str, Cell]] = [{"file": path.name, "samples": samples} for path, samples in logs.items()]
    columns = (Column("file", "log", role="name"), Column("samples", "samples"))
    section = Section("", (), (Table("logs", f"Logs in {out}", columns, tuple(rows)),))
    said = [f"{counted(sum(logs.values()), 'sample')} in {counted(len(logs), 'log')}."]
    if missing:
        resume = f"`eirkit lacuna run --resume {quote(str(folder))}`"
        said.append(f"Left out: {counted(missing, 'planned run')} without a result; {resume} continues.")
    then = f"inspect view start --log-dir {quote(str(out))}"
    data = {"out": str(out), "logs": rows, "unfinished": missing}
    show(Document("export-inspect", "Export to Inspect", tuple(said), data, (section,), next=then))


@command("otel", example="eirkit export otel out/run-1 --out out/traces.jsonl")
@click.argument("path", metavar="PATH", type=PATH)
@option(
    "--out",
    "places",
    multiple=True,
    required=True,
    metavar="FILE|URL",
    group=OUTPUT,
    help="A file of OTLP/JSON, one run per line, or a collector: http://127.0.0.1:4318/v1/traces, which needs "
    "eirkit[otel]. Can be repeated.",
)
@option("--since", metavar="TIME", help="When the first run began: 2026-01-31T12:00:00Z.  [default: from the files]")
@option("--no-texts", is_flag=True, help="Leave out prompts, replies, arguments and tool results.")
@document_options
def export_otel(path: Path, places: tuple[str, ...], since: str | None, no_texts: bool, show: Show) -> None:
    """Convert runs to traces with the GenAI conventions: agents, inferences, tools and memory operations.

    PATH is a folder of `eirkit lacuna run`, or any logs that `eirkit vestige` reads. Trace ids follow from the names of
    the runs, so exporting twice gives the same traces.
    """
    files = [Path(place) for place in places if "://" not in place]
    endpoints = [place for place in places if "://" in place]
    began = start_time(path) if since is None else _nanoseconds(since)
    with damage_named(path), files_for_owner_only(), ExitStack() as stack:
        sinks: list[Sink] = [stack.enter_context(Collector(endpoint)) for endpoint in endpoints]
        sinks += [stack.enter_context(TraceFile(file)) for file in files]
        done = export_traces(path, began, sinks, texts=not no_texts)
    data = {
        "out": str(files[0]) if files else None,
        "endpoint": endpoints[0] if endpoints else None,
        "runs": done.runs,
        "spans": done.spans,
        "skipped": [{"source": one.source, "reason": one.reason} for one in done.skipped],
    }
    said = f"{counted(done.runs, 'run')}, {counted(done.spans, 'span')}: {' and '.join(places)}"
    skipped = tuple(f"skipped {cause}" for cause in complaints(done.skipped))
    sections = (Section("", skipped),) if skipped else ()
    then = f"eirkit vestige analyze {quote(str(files[0] if files else path))} --out out/analysis"
    show(Document("export-otel", "Export to OpenTelemetry", (said,), data, sections, next=then))


def _nanoseconds(text: str) -> int:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"--since {text!r} is not a time; write it like 2026-01-31T12:00:00Z") from None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    if moment.timestamp() < 0:
        raise UsageError(f"--since {text!r} is before 1970; give a later time")
    return round(moment.timestamp()) * SECOND
