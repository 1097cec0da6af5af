"""`eirkit week`: what coding agents used, cost and lost in a week."""

from __future__ import annotations

import os
import re
import shlex
import time
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import click
from msgspec import structs

from eirkit.cli.command import OUTPUT, Show, command, document_options, option, options, repeated, say, write_file
from eirkit.errors import UsageError
from eirkit.folders import own_folder
from eirkit.lacuna.models.prices import load_prices
from eirkit.report.html import render
from eirkit.report.table import counted
from eirkit.vestige.audits.occupancy import read_windows
from eirkit.vestige.sources.documents import Skipped
from eirkit_coding.week.facts import LogPlace
from eirkit_coding.week.log_files import agent_homes, collect, logs_at
from eirkit_coding.week.page import price_dates, pricing, week_document
from eirkit_coding.week.results import AgentLogs, PriceDates, Week
from eirkit_coding.week.totals import Stretch, WeekQuestion, sum_up, unknown_by_log

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
    option(
        "--only",
        "project",
        default="",
        metavar="PROJECT",
        help="Only this project: its folder, or its last part.",
    ),
    option("--prices", type=_FILE, metavar="FILE", help="TOML with prices that take precedence (docs/models.md)."),
    option("--windows", type=_FILE, metavar="FILE", help="TOML with context windows of further models."),
    option("--out", "page", type=_FILE, metavar="FILE", group=OUTPUT, help="Also write the page to FILE."),
)


@command(example="eirkit week --out week.html")
@click.argument("paths", metavar="[PATH]...", type=click.Path(path_type=Path), nargs=-1)
@_OPTIONS
@document_options
def week(paths: tuple[Path, ...], show: Show, **asked: Any) -> None:
    """Sum up the last seven days of the coding agents on this machine, or of the logs at PATH.

    Reads the logs of Claude Code, Codex, Gemini CLI and opencode where they keep them, and only what is new since the
    last time. Nothing leaves the machine. Needs the extra eirkit[vestige].
    """
    if paths:
        found = list(logs_at(paths))
        others = sorted({name for name in found if isinstance(name, str)})
        _answer([place for place in found if isinstance(place, LogPlace)], paths, others, show, **asked)
    else:
        homes = agent_homes(Path.home(), os.environ)
        places = [log for home in homes for log in home.logs()]
        _answer(places, [home.folder for home in homes], (), show, **asked)


def _answer(
    places: Sequence[LogPlace],
    folders: Sequence[Path],
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
    summary = sum_up(found.logs, asked)
    agents = Counter(log.agent for log in found.logs)
    result = Week(
        since=stretch.since,
        until=stretch.until,
        project=project or None,
        sources=tuple(AgentLogs(agent, logs) for agent, logs in sorted(agents.items())),
        looked_in=tuple(str(folder) for folder in folders),
        newest=max((response.at for log in found.logs for response in log.responses), default=found.newest),
        other_formats=tuple(others),
        logs=len(found.logs),
        new_logs=found.new_logs,
        new_bytes=found.new_bytes,
        prices=PriceDates(tuple(price_dates(known, [row.model for row in summary.models]))),
        skipped=(
            *(skipped for log in found.logs for skipped in log.skipped),
            *(
                Skipped(source, f"{counted(many, 'response')} without valid numbers of tokens, which are unknown")
                for source, many in unknown_by_log(found.logs, asked).items()
            ),
        ),
        **structs.asdict(summary),
    )
    roots = Counter(place.root for place in places).most_common(1)  # the folder with most of the logs
    then = " ".join(["eirkit vestige analyze", *(_typed(root) for root, _ in roots), "--out analysis"])
    replaced = ("--only", project) if summary.other_projects else ("--since", since or "")
    document = week_document(result, stretch.zone, repeated(*replaced, "--json"), then)
    if page is not None:
        write_file(page, render(document.page()).rstrip("\n"))
        say(f"written to {page}")
    show(document)


def _typed(folder: Path) -> str:
    """Return a folder as one would type it: below the home folder from `~` on."""
    try:
        return f"~/{shlex.quote(str(folder.relative_to(Path.home())))}"
    except ValueError:
        return shlex.quote(str(folder))


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
