"""The commands about coding agents of this machine: `week` sums up their logs, `guard` watches their context."""

from __future__ import annotations

import json
import os
import re
import threading
import time
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TextIO

import click

from eirkit.agents.serving.prices import load_prices
from eirkit.cli.command import OUTPUT, Show, command, document_options, option, options, say, write_file
from eirkit.errors import UsageError
from eirkit.folders import own_folder
from eirkit.live.guard import LIKELY, Loss
from eirkit.live.proxy import GuardProxy, Telling
from eirkit.logs.audits.occupancy import read_windows
from eirkit.logs.week.facts import LogPlace
from eirkit.logs.week.homes import agent_homes, logs_at
from eirkit.logs.week.kept import collect
from eirkit.logs.week.totals import Stretch, WeekQuestion, sum_up
from eirkit.show.html import render
from eirkit.show.logs.week import price_dates, pricing, week_document
from eirkit.show.showing import json_text

STORE = "week.sqlite"  # below eirkit's own folder
_DAYS = re.compile(r"(\d{1,4})d")
_FILE = click.Path(path_type=Path, dir_okay=False)

_OPTIONS = options(
    option(
        "--since",
        metavar="DATE",
        help="First day, such as 2026-11-10, or a number of days, such as 14d.  [default: 7d]",
    ),
    option("--until", metavar="TIME", help="Last moment, as a day or a time.  [default: now]"),
    option("--project", default="", metavar="NAME", help="Only this project: its folder, or the last part of it."),
    option("--prices", type=_FILE, metavar="FILE", help="TOML with prices that take precedence (docs/models.md)."),
    option("--windows", type=_FILE, metavar="FILE", help="TOML with context windows of further models."),
    option("--html", "page", type=_FILE, metavar="FILE", group=OUTPUT, help="Also write the page to FILE."),
)


@command(example="eirkit week --html week.html")
@_OPTIONS
@document_options
def week(show: Show, **asked: Any) -> None:
    """Sum up the last seven days of the coding agents on this machine.

    Reads the logs of Claude Code, Codex, Gemini CLI and opencode where they keep them, and only what is new since the
    last time. Nothing leaves the machine.
    """
    places = [log for home in agent_homes(Path.home(), os.environ) for log in home.logs()]
    _answer(places, (), show, **asked)


@command("week", example="eirkit vestige week ~/.claude/projects --since 14d")
@click.argument("paths", metavar="PATH...", type=click.Path(path_type=Path), nargs=-1, required=True)
@_OPTIONS
@document_options
def vestige_week(paths: tuple[Path, ...], show: Show, **asked: Any) -> None:
    """Sum up a week of the logs at PATH: sessions of Claude Code, Codex, Gemini CLI or opencode."""
    found = list(logs_at(paths))
    others = sorted({one for one in found if isinstance(one, str)})
    _answer([one for one in found if isinstance(one, LogPlace)], others, show, **asked)


def _answer(
    places: Sequence[LogPlace],
    others: Sequence[str],
    show: Show,
    *,
    since: str | None,
    until: str | None,
    project: str,
    prices: Path | None,
    windows: Path | None,
    page: Path | None,
) -> None:
    stretch, known = stretch_of(since, until, time.time), load_prices(prices)
    asked = WeekQuestion(stretch, pricing(known), read_windows(windows), project)
    found = collect(places, stretch.before().since, own_folder() / STORE)
    sums = sum_up(found.logs, asked)
    agents = {one.agent: sum(other.agent == one.agent for other in found.logs) for one in found.logs}
    data = {
        "since": stretch.since,
        "until": stretch.until,
        "project": project or None,
        "sources": [{"agent": agent, "logs": logs} for agent, logs in sorted(agents.items())],
        "other_formats": list(others),
        "logs": len(found.logs),
        "new_logs": found.new_logs,
        "new_bytes": found.new_bytes,
        **sums,
        "prices": {"as_of": price_dates(known, [row["model"] for row in sums["models"]])},
        "skipped": [{"source": one.source, "reason": one.reason} for log in found.logs for one in log.skipped],
    }
    document = week_document(data, stretch.zone)
    if page is not None:
        write_file(page, render(document.page()).rstrip("\n"))
        say(f"written to {page}")
    show(document)


def stretch_of(since: str | None, until: str | None, now: Callable[[], float]) -> Stretch:
    """Return the stretch of time that was asked for, in days of this machine's zone."""
    end = now() if until is None else _moment(until, is_end=True)
    days = _DAYS.fullmatch(since or "7d")
    if days is not None and int(days[1]):
        return Stretch.week(end, days=int(days[1]))
    start = _moment(since or "", is_end=False)
    if start >= end:
        raise UsageError(f"--since {since} is not before the end; give an earlier day")
    return Stretch(start, end)


def _moment(text: str, *, is_end: bool) -> float:
    try:
        found = datetime.fromisoformat(text)
        if is_end and re.fullmatch(r"\d{4}-\d\d-\d\d", text):
            found += timedelta(days=1, microseconds=-1)
        return found.timestamp()
    except (ValueError, OverflowError, OSError):
        raise UsageError(f"{text!r} is not a day or a time; write 2026-11-10, 2026-11-10T18:00 or 7d") from None


@command(example="eirkit vestige guard --upstream https://api.anthropic.com")
@option("--upstream", required=True, metavar="URL", help="The model server that the agent would talk to.")
@option("--port", type=click.IntRange(0, 65535), default=0, help="Port on loopback.  [default: a free one]")
@option(
    "--likely",
    type=click.FloatRange(0, 1),
    default=LIKELY,
    show_default=True,
    help="Warn about a file from this probability that it is needed again.",
)
@option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    group=OUTPUT,
    help="Also append every loss to this file, as JSON lines.",
)
@option("--json", "as_json", is_flag=True, group=OUTPUT, help="Print JSON lines on stdout instead of warnings.")
def guard(upstream: str, port: int, likely: float, out: Path | None, as_json: bool) -> None:
    """Watch an agent's requests and warn when they drop files that it is likely to need again.

    Give the agent the printed address in place of its model server's. Stop with Ctrl-C.
    """
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
    file = out.open("a", encoding="utf-8") if out is not None else None
    try:
        proxy = GuardProxy(upstream, _telling(as_json, file), port, likely)
        if as_json:
            click.echo(json_text({"address": proxy.address, "upstream": proxy.shown_upstream}))
        else:
            say(f"Point the agent at {proxy.address} in place of {proxy.shown_upstream}.")
        proxy.serve()
    finally:
        if file is not None:
            file.close()


def _telling(as_json: bool, file: TextIO | None) -> Telling:
    lock = threading.Lock()

    def tell(losses: Sequence[Loss]) -> None:
        with lock:
            for loss in losses:
                line = json.dumps(loss.as_json(), ensure_ascii=False)
                if file is not None:
                    file.write(line + "\n")
                    file.flush()
                if loss.likely and as_json:
                    click.echo(json_text(loss.as_json()))
                elif loss.likely:
                    say(f"warning: {loss}")

    return tell
