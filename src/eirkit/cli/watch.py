"""`eirkit watch`: follow the runs of an experiment in the terminal."""

from __future__ import annotations

import time
from pathlib import Path
from shlex import quote
from typing import Any

import click
from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.text import Text

from eirkit.cli.command import Show, command, document_options, option
from eirkit.errors import UsageError
from eirkit.lacuna.findings.measures import CAUSE_MEASURES, RUN_MEASURES
from eirkit.report.document import Document, Section
from eirkit.report.table import Cell, Column, Table
from eirkit.report.terminal import table_lines
from eirkit.report.viewer.folders import (
    CELL_NAMES,
    ViewedFolder,
    cell_rows,
    failure_groups,
    find_places,
    lost_runs,
    open_root,
    progress_of,
)
from eirkit.report.viewer.run_index import RunIndex

KEPT_LINES = 8  # of a screen, for everything but the cells
LISTED = 20  # cells; the ones that were begun last
SHOWN = tuple(RUN_MEASURES[key] for key in ("scored", "accuracy", "miss_rate"))
READING_SECONDS = 600.0  # for one look with --once


@command(example="eirkit watch out/run-1 --once")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@option("--once", is_flag=True, help="Print the current state and exit.")
@option(
    "--interval", type=click.FloatRange(min=0.1), default=1.0, show_default=True, help="Seconds between two updates."
)
@document_options
def watch(folder: Path, once: bool, interval: float, show: Show) -> None:
    """Follow the runs in DIR until they are complete; Ctrl-C stops watching, not the runs.

    Only files are read, so the runs may be made on any machine that shares them, and nothing is slowed down or locked.
    --format, --json and --output imply --once.
    """
    place = sweep_in(folder)
    index = RunIndex(place.path)
    given = click.get_current_context().params
    if once or any(given.get(name) for name in ("form", "as_json", "output_file")):
        index.refresh(READING_SECONDS)
        show(_document(look(place, index, time.time()), folder))
        return
    _follow(place, index, interval)


def sweep_in(folder: Path) -> ViewedFolder:
    """Return the sweep or other experiment that a folder is, or the only one below it; sweeps come first."""
    places = [place for place in find_places(open_root(folder)) if place.kind != "analysis"]
    found = [place for place in places if place.kind == "sweep" or place.key == "."] or places
    own = [place for place in found if place.key == "."]
    if len(own or found) != 1:
        names = ", ".join(place.key for place in found) or "none"
        raise UsageError(f"{folder} holds no single experiment; give one of those in it: {names}")
    return (own or found)[0]


def look(place: ViewedFolder, index: RunIndex, now: float) -> dict[str, Any]:
    """Return a sweep at one moment."""
    lost = lost_runs(place.path, index)
    progress = progress_of(place, index, now).as_json()
    return {"folder": str(place.path), **progress, "cells": cell_rows(index), "failures": failure_groups(lost)}


def _follow(place: ViewedFolder, index: RunIndex, interval: float) -> None:
    console, before, then = Console(), 0, time.monotonic()
    with Live(console=console, auto_refresh=False, vertical_overflow="ellipsis") as live:
        index.refresh()
        before, then = len(index), time.monotonic()
        while True:
            document = look(place, index, time.time())
            elapsed = time.monotonic() - then
            rate = (len(index) - before) / elapsed if elapsed > 1 else None
            live.update(_screen(document, rate, console), refresh=True)
            if document["state"] == "complete":
                return
            time.sleep(interval)
            index.refresh()


def _document(data: dict[str, Any], folder: Path) -> Document:
    failures = tuple(_failure(group) for group in data["failures"])
    tables = (_cells(data, LISTED),) if data["cells"] else ()
    sections = tuple(
        section for section in (Section("", (), tables), Section("", failures)) if section.words or section.items
    )
    verb = "report" if data["state"] == "complete" else "watch"
    then = f"eirkit {verb} {quote(str(folder))}"
    return Document("watch", f"Sweep in {data['folder']}", (_state(data, None),), data, sections, next=then)


def _screen(data: dict[str, Any], rate: float | None, console: Console) -> Group:
    """Return one look, as much of it as the screen has room for."""
    planned, runs = data["planned_runs"] or data["runs"], data["runs"]
    bar = ProgressBar(total=max(1, planned), completed=runs, width=min(60, console.width))
    parts: list[Any] = [Text(_state(data, rate)), bar, Text()]
    if data["cells"]:
        shown = _cells(data, max(1, min(LISTED, console.height - KEPT_LINES)))
        parts += [Text(line.text, style=line.style, no_wrap=True) for line in table_lines(shown, console.width)]
    parts += [Text(_failure(group), no_wrap=True, overflow="ellipsis") for group in data["failures"]]
    return Group(*parts)


def _state(data: dict[str, Any], rate: float | None) -> str:
    planned, runs = data["planned_runs"] or data["runs"], data["runs"]
    words = f"{data['state']}: {runs:,} of {planned:,} runs"
    if data["lost"]:
        words += f", {data['lost']:,} failed"
    if rate:
        words += f", {rate:,.1f} runs/s"
        words += f", {(planned - runs) / rate:,.0f} s left" if runs < planned else ""
    return f"{words}, ${data['spent_usd']:.2f}" if data["spent_usd"] else words


def _failure(group: dict[str, Any]) -> str:
    return f"{group['runs']} failed, {group['model']}, {group['kind']}: {group['message']}"


def _cells(data: dict[str, Any], most: int) -> Table:
    """Return one row for each cell; what all of them share is in the title."""
    rows = data["cells"][-most:]
    shared = [name for name in CELL_NAMES if len({row.get(name) for row in data["cells"]}) == 1]
    words = [f"{name} {rows[0][name]}" for name in shared if rows[0].get(name) is not None]
    left_out = len(data["cells"]) - len(rows)
    columns = (
        *(Column(name, name, role="name") for name in CELL_NAMES if name not in shared),
        *(Column.of(one) for one in SHOWN),
        *(Column.of(one, priority=1) for one in CAUSE_MEASURES if any(row["errors"][one.id] for row in data["cells"])),
    )
    note = f"{left_out:,} earlier cells are not listed" if left_out else ""
    return Table("cells", "; ".join(["Cells", *words]), columns, tuple(map(_cell_row, rows)), note)


def _cell_row(row: dict[str, Any]) -> dict[str, Cell]:
    named: dict[str, Cell] = {name: "" if row.get(name) is None else row[name] for name in CELL_NAMES}
    return {**named, **{name: row[name] for name in ("scored", "accuracy", "miss_rate")}, **row["error_shares"]}
