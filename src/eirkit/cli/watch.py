"""`eirkit watch`: an experiment in the terminal while it runs: how far it is, how each cell does, what was lost."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click
from rich.box import SIMPLE_HEAD
from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from eirkit.cli.memory_table import heading
from eirkit.cli.output import emit, json_option, table
from eirkit.errors import UsageError
from eirkit.findings.causes import CAUSE_MEASURES
from eirkit.findings.pooling import RUN_MEASURES
from eirkit.show.viewer.folders import ViewedFolder, find_places, open_root
from eirkit.show.viewer.progress import NAMES, cell_rows, failure_groups, lost_runs, progress_of
from eirkit.show.viewer.run_index import RunIndex

KEPT_LINES = 8  # of a screen, for what stands around the cells
LISTED = 20  # cells; the ones that were begun last
SHOWN = tuple(RUN_MEASURES[key] for key in ("scored", "accuracy", "miss_rate"))
READING_SECONDS = 600.0  # for one look with --once


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--once", is_flag=True, help="Print how far it is and leave.")
@click.option(
    "--interval", type=click.FloatRange(min=0.1), default=1.0, show_default=True, help="Seconds between two looks."
)
@json_option
def watch(folder: Path, once: bool, interval: float, as_json: bool) -> None:
    """Watch the runs in DIR until they are complete; Ctrl-C leaves them alone.

    Only its files are read, so it may run anywhere that shares them, and nothing is slowed down or locked.
    """
    place = sweep_in(folder)
    index = RunIndex(place.path)
    if once or as_json:
        index.refresh(READING_SECONDS)
        document = look(place, index, time.time())
        emit(document, as_json, lambda console: console.print(page(document, None)))
        return
    _follow(place, index, interval)


def sweep_in(folder: Path) -> ViewedFolder:
    """Return the sweep or other experiment that a folder is, or the only one below it; sweeps come first."""
    places = [place for place in find_places(open_root(folder)) if place.kind != "analysis"]
    found = [place for place in places if place.kind == "sweep" or place.key == "."] or places
    own = [place for place in found if place.key == "."]
    if len(own or found) != 1:
        names = ", ".join(place.key for place in found) or "none"
        raise UsageError(f"{folder} holds no single experiment; give one of those below it: {names}")
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
            live.update(page(document, rate, console.height - KEPT_LINES), refresh=True)
            if document["state"] == "complete":
                return
            time.sleep(interval)
            index.refresh()


def page(document: dict[str, Any], rate: float | None, room: int | None = None) -> Group:
    """Return one look as it is printed; `room` is how many cells a screen has lines for, None where it may scroll."""
    planned, runs = document["planned_runs"] or document["runs"], document["runs"]
    words = f"{document['state']}: {runs:,} of {planned:,} runs"
    if document["lost"]:
        words += f", {document['lost']:,} lost"
    if rate:
        words += f", {rate:,.1f} runs/s"
        words += f", {(planned - runs) / rate:,.0f} s left" if runs < planned else ""
    if document["spent_usd"]:
        words += f", ${document['spent_usd']:.2f}"
    parts: list[Any] = [Text(words), ProgressBar(total=max(1, planned), completed=runs, width=60), Text()]
    if document["cells"]:
        parts.append(_cells(document, room))
    for group in document["failures"]:
        parts.append(Text(f"{group['runs']} lost, {group['model']}, {group['kind']}: {group['message']}"))
    return Group(*parts)


def _cells(document: dict[str, Any], room: int | None) -> Any:
    """Return one line a cell; what all of them share is said above."""
    rows = document["cells"][-(LISTED if room is None else max(1, min(LISTED, room))) :]
    shared = [name for name in NAMES if len({row.get(name) for row in document["cells"]}) == 1]
    names = [name for name in NAMES if name not in shared]
    heads = (*names, *(heading(one) for one in SHOWN), *(heading(one) for one in CAUSE_MEASURES))
    words = [f"{name} {rows[0][name]}" for name in shared if rows[0].get(name) is not None]
    if left_out := len(document["cells"]) - len(rows):
        words.append(f"{left_out} earlier cells are not listed")
    title, lines = "; ".join(["Cells", *words]), [_line(row, names) for row in rows]
    return table(title, heads, lines) if room is None else _fitting(title, heads, lines)


def _line(row: dict[str, Any], names: list[str]) -> tuple[Any, ...]:
    named = ("" if row.get(name) is None else row[name] for name in names)
    rates = (f"{row['accuracy']:.1%}", f"{row['miss_rate']:.1%}")
    return (*named, row["scored"], *rates, *(f"{row['error_shares'][one.id]:.1%}" for one in CAUSE_MEASURES))


def _fitting(title: str, heads: tuple[str, ...], lines: list[tuple[Any, ...]]) -> Table:
    """Return a table that never leaves the screen: a line that wraps would spoil the next look."""
    made = Table(title=title, box=SIMPLE_HEAD, show_edge=False, title_justify="left", title_style="")
    for name in heads:
        made.add_column(Text(name), no_wrap=True, overflow="ellipsis", justify="left" if name in NAMES else "right")
    for line in lines:
        made.add_row(*(Text(str(cell)) for cell in line))
    return made
