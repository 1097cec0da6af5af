"""`eirkit mcp serve`: serves a task to any MCP agent as tools."""

from __future__ import annotations

import asyncio
import os
import secrets
from contextlib import AbstractContextManager
from pathlib import Path
from shlex import quote
from typing import Any

import click
import msgspec
from msgspec import structs

from eirkit.cli.command import OUTPUT, Show, document_options, option, say
from eirkit.cli.lacuna_run import fresh_folder
from eirkit.cli.options import workload_command
from eirkit.cli.run_options import axis_options, describe_external, given_keys, serve_argument
from eirkit.cli.runner_options import PATH
from eirkit.errors import UsageError
from eirkit.folders import own_folder
from eirkit.lacuna.findings.summary import read_summary
from eirkit.records.database import FinishedRun
from eirkit.records.runs import Failure
from eirkit.records.sweeps import Summary
from eirkit.report.document import Document, Section
from eirkit.report.table import Column, Table
from eirkit_bridges.external_runs import (
    CONDITION,
    MODEL,
    ExternalRuns,
    open_external_runs,
    plan_external_runs,
    refuse_controlled,
    resume_external_runs,
)
from eirkit_bridges.mcp_server import HttpAccess, require_mcp, serve_many_clients, serve_one_client

SEED_BITS = 63
EPISODES = (1, 16)  # the defaults: for the one client on the standard streams, and for many over HTTP
COLUMNS = (
    Column("workload", "workload", role="name"),
    Column("model", "model", role="name"),
    Column("condition", "setting", role="name"),
    Column("h", "h"),
    Column("scored_text", "scored", figures=True, raw="scored"),
    Column("accuracy", "accuracy"),
    Column("step_accuracy", "with refs", meaning="accuracy of steps that use earlier results", priority=1),
)


@workload_command(example="eirkit mcp serve store-recall --m 8 --h 4 --host 127.0.0.1")
@serve_argument
@axis_options
@option(
    "--instances",
    "episodes",
    type=click.IntRange(1, 100_000),
    help="Random tasks.  [default: 1; with --host 16]",
)
@option(
    "--host",
    metavar="ADDRESS",
    group="Server",
    help="Serve many clients over HTTP, not one on the standard streams: 127.0.0.1, or an address for others, "
    "which needs a token of 16 or more letters or digits in EIRKIT_MCP_TOKEN.",
)
@option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=8765,
    show_default=True,
    group="Server",
    help="Port; 0 picks a free one.",
)
@option(
    "--name",
    "names",
    multiple=True,
    common=False,
    group="Server",
    help="Another host name. Can be repeated.",
)
@option(
    "--idle-minutes",
    common=False,
    type=click.FloatRange(0.01, 10_000),
    default=30.0,
    show_default=True,
    group="Server",
    help="Minutes after which an idle session ends.",
)
@option(
    "--out",
    type=PATH,
    metavar="DIR",
    group=OUTPUT,
    help="A new or empty folder.  [default: a new one in the eirkit home]",
)
@option("--resume", type=PATH, metavar="DIR", group=OUTPUT, help="Serve the tasks in this folder that are left.")
@document_options
def serve(
    episodes: int | None,
    out: Path | None,
    resume: Path | None,
    host: str | None,
    port: int,
    names: tuple[str, ...],
    idle_minutes: float,
    show: Show,
    **options: Any,
) -> int:
    """Serve a task to an agent as tools: next_step, submit_answer, read_result, recompute, note, finish.

    Without --condition and --memory the agent manages a memory of h records itself. Every client gets a task of its
    own, and its run is recorded like any other. Neither seeds nor answers can be reached through the server.
    """
    given = click.get_current_context().params
    if host is None and (given.get("as_json") or given.get("form") not in (None, "text")):
        raise UsageError("on the standard streams stdout carries the protocol; use --json and --format with --host")
    token = os.environ.get("EIRKIT_MCP_TOKEN") or None
    access = None if host is None else HttpAccess(host, port, token, names)
    require_mcp()
    folder, opened = _open_runs(given_keys(options), episodes or EPISODES[host is not None], out, resume)
    with opened as runs:
        say(f"writing to {folder}")
        if access is None:
            asyncio.run(serve_one_client(runs))
        else:
            asyncio.run(
                serve_many_clients(runs, access, 60 * idle_minutes, lambda address: say(f"serving at {address}"))
            )
    summary = read_summary(folder)
    if host is not None:
        show(_document(folder, summary))
    return 0


describe_external(serve, MODEL, f"{CONDITION}, unless --memory is given", "random ones, as many as --instances says")


def _open_runs(
    given: dict[str, Any], episodes: int, out: Path | None, resume: Path | None
) -> tuple[Path, AbstractContextManager[ExternalRuns]]:
    if resume is not None:
        if out is not None or given:
            raise UsageError(
                "--resume continues with the recorded options; leave out --out and the options of the task"
            )
        return resume, resume_external_runs(resume, _report)
    if "workload" not in given:
        raise UsageError("no task is given; give a WORKLOAD, or --resume DIR")
    suite = plan_external_runs(given, seeds=[secrets.randbits(SEED_BITS) for _ in range(episodes)])
    refuse_controlled(suite)
    folder = out or fresh_folder(own_folder() / "runs", suite.name)
    return folder, open_external_runs(suite, folder, _report)


def _report(outcome: FinishedRun | Failure) -> None:
    if isinstance(outcome, Failure):
        say(f"a run failed: {outcome.message}")
    elif (score := outcome.record.score) is not None:
        say(f"a run {outcome.record.ending}: {score.correct} of {score.steps} steps right")


def _document(folder: Path, summary: Summary) -> Document:
    rows = tuple({**structs.asdict(row), "scored_text": f"{row.scored}/{row.attempted}"} for row in summary.rows)
    scored, attempted = sum(row.scored for row in summary.rows), sum(row.attempted for row in summary.rows)
    section = Section("", (), (Table("sessions", f"Sessions recorded in {folder}", COLUMNS, rows),))
    said = f"{scored:,} of {attempted:,} sessions were scored."
    data = {"out": str(folder), **msgspec.to_builtins(summary)}
    then = f"eirkit report {quote(str(folder))}"
    return Document("mcp-serve", "Sessions over MCP", (said,), data, (section,), next=then)
