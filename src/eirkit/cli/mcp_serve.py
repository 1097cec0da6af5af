"""`eirkit mcp serve`: a task through tools, for any agent that speaks MCP."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from eirkit.agents.stores.environments import home
from eirkit.bridges.external_runs import Visits, open_visits, plan_visits, refuse_controlled, resume_visits, summary_of
from eirkit.bridges.http_server import Door
from eirkit.bridges.mcp_server import require_mcp
from eirkit.bridges.mcp_service import receive_at, receive_here
from eirkit.cli.bench_options import PATH
from eirkit.cli.lacuna_run import fresh_folder
from eirkit.cli.output import emit, json_option, table
from eirkit.cli.run_options import axis_options, given_keys, hide_model_options
from eirkit.errors import UsageError
from eirkit.runs.attempt import Failure
from eirkit.runs.cells import CONTROLLED
from eirkit.runs.store import FinishedRun
from eirkit.runs.summary import RunSummary

SEED_BITS = 63
EPISODES = (1, 16)  # unless given: of the one client on the standard streams, and of many over HTTP


@click.command()
@axis_options
@click.option("--episodes", type=click.IntRange(1, 100_000), help="Tasks with random seeds.  [default: 1; --http: 16]")
@click.option("--out", type=PATH, help="A new or empty folder; a fresh one in the home of eirkit unless given.")
@click.option("--resume", type=PATH, metavar="DIR", help="Give out what is left of the tasks in this folder.")
@click.option("--http", is_flag=True, help="Serve many clients over HTTP instead of one on the standard streams.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Other than loopback it needs --token.")
@click.option("--port", type=click.IntRange(0, 65_535), default=8765, show_default=True, help="0: any that is free.")
@click.option("--token", envvar="EIRKIT_MCP_TOKEN", help="Letters and digits; clients send it as bearer token.")
@click.option("--name", "names", multiple=True, help="A further name by which clients call this server.")
@click.option("--idle-minutes", type=click.FloatRange(0.01, 10_000), default=30.0, show_default=True)
@json_option
def serve(
    episodes: int | None,
    out: Path | None,
    resume: Path | None,
    http: bool,
    host: str,
    port: int,
    token: str | None,
    names: tuple[str, ...],
    idle_minutes: float,
    as_json: bool,
    **options: Any,
) -> int:
    """Give an agent a task through tools: next_step, submit_answer, read_result, recompute, note, finish.

    Without --condition and --memory the agent looks after a memory of h records itself. Every client gets a task of its
    own; its run is written to the folder as any other. Neither seeds nor answers can be reached through the server.
    """
    if as_json and not http:
        raise UsageError("on the standard streams stdout carries the protocol; --json goes with --http")
    door = Door(host, port, token or None, names) if http else None
    require_mcp()
    folder, visiting = _visiting(given_keys(options), episodes or EPISODES[http], out, resume)
    with visiting as visits:
        click.echo(f"writing to {folder}", err=True)
        if door is None:
            asyncio.run(receive_here(visits))
        else:
            asyncio.run(receive_at(visits, door, 60 * idle_minutes, _say("serving at ")))
    summary = summary_of(visits.suite, folder)
    if http:
        emit({"out": str(folder), **summary.as_json()}, as_json, lambda console: _render(console, folder, summary))
    return 0


hide_model_options(serve)


def _visiting(
    given: dict[str, Any], episodes: int, out: Path | None, resume: Path | None
) -> tuple[Path, AbstractContextManager[Visits]]:
    if resume is not None:
        if out is not None or given:
            raise UsageError("--resume goes on as it was begun; leave out --out and the options of the task")
        return resume, resume_visits(resume, _report)
    if "workload" not in given:
        raise UsageError("no task is given; give --workload, or --resume DIR")
    calls = {} if given.get("condition") == [CONTROLLED] else {"tool_calls": True}
    suite = plan_visits({**calls, **given}, seeds=[secrets.randbits(SEED_BITS) for _ in range(episodes)])
    refuse_controlled(suite)
    folder = out or fresh_folder(home() / "visits", suite.name)
    return folder, open_visits(suite, folder, _report)


def _say(before: str) -> Callable[[str], None]:
    return lambda text: click.echo(f"{before}{text}", err=True)


def _report(outcome: FinishedRun | Failure) -> None:
    if isinstance(outcome, Failure):
        click.echo(f"a run was lost: {outcome.record['message']}", err=True)
        return
    score = outcome.record["score"]
    click.echo(f"a run {outcome.record['ending']}: {score['correct']} of {score['steps']} steps right", err=True)


def _render(console: Console, folder: Path, summary: RunSummary) -> None:
    columns = ("workload", "model", "condition", "h", "scored", "accuracy", "with refs")
    rows = [
        [
            *(row[name] for name in ("workload", "model", "condition", "h")),
            f"{row['scored']}/{row['attempted']}",
            row["accuracy"],
            row["step_accuracy"],
        ]
        for row in summary.rows
    ]
    console.print(table("What came of the visits", columns, rows))
    console.print(f"records in {folder}", markup=False, highlight=False)
