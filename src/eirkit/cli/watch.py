"""`eirkit watch`: follow the runs of an experiment in the terminal."""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from shlex import quote
from typing import Any

import click
from msgspec.structs import asdict
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.text import Text

from eirkit.cli.command import Show, command, document_options, option
from eirkit.errors import UsageError
from eirkit.lacuna.findings.measures import CAUSE_MEASURES, RUN_MEASURES
from eirkit.lacuna.findings.statistics import pool
from eirkit.records.database import SweepDatabase
from eirkit.records.money import cost_in_words
from eirkit.records.runs import CAUSES, RunScore
from eirkit.records.settings import Setting
from eirkit.records.sweeps import CellScore, FailureGroup, Spending
from eirkit.report.document import Document, Section
from eirkit.report.table import Cell, Column, Table
from eirkit.report.terminal import table_lines
from eirkit.report.viewer.documents import FolderProgress
from eirkit.report.viewer.folders import ViewedFolder, failure_groups, find_places, open_root, progress_of
from eirkit.report.viewer.run_table import FolderRuns, setting_value

EVERY_SECONDS = 1.0  # between two looks
KEPT_LINES = 8  # of a screen, for everything but the cells
LISTED = 20  # cells; the ones that were begun last
NAMES = ("workload", "model", "condition", "policy", "memory", "arm", "h")  # what identifies a cell
SHOWN = tuple(RUN_MEASURES[key] for key in ("scored", "accuracy", "miss_rate"))


class WatchedCell(CellScore, frozen=True, kw_only=True):
    """A cell with the scores of its runs so far."""

    cell: str
    workload: str
    model: str
    condition: Cell
    policy: str | None
    memory: str | None
    arm: Cell  # of a rescue
    h: int | None


class Watched(FolderProgress, frozen=True, kw_only=True):
    """An experiment at one moment."""

    folder: str
    cells: tuple[WatchedCell, ...]
    failures: tuple[FailureGroup, ...]
    spending: Spending | None  # None if nothing was paid for


class Watch:
    """Follows one experiment; each look reads the records that were added since the last."""

    def __init__(self, place: ViewedFolder) -> None:
        self.place = place
        self._known = 0  # runs
        self._scores: dict[str, list[RunScore]] = {}  # by cell
        self._settings: dict[str, Setting] = {}

    def look(self, now: float) -> Watched:
        """Return the experiment as it is; `now` is compared with file modification times."""
        runs = FolderRuns(self.place.path)
        with SweepDatabase(self.place.path) as database:
            after = int(runs.ids[self._known - 1]) if self._known else 0
            for record in islice(database.records(after=after), runs.rows - self._known):
                if record.score is not None:
                    self._scores.setdefault(record.pooled_cell, []).append(record.score)
                    self._settings.setdefault(record.pooled_cell, record.setting)
        self._known = runs.rows
        return Watched(
            folder=str(self.place.path),
            **asdict(progress_of(self.place, runs, now)),
            cells=tuple(self._cell(cell, scores) for cell, scores in self._scores.items()),
            failures=failure_groups(runs.lost),
            spending=runs.spending,
        )

    def _cell(self, cell: str, scores: Sequence[RunScore]) -> WatchedCell:
        named: dict[str, Any] = {name: setting_value(self._settings[cell], name) for name in NAMES}
        return WatchedCell(cell=cell, **named, **asdict(pool(scores)))


@command(example="eirkit watch out/run-1 --once")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@option("--once", is_flag=True, help="Print the current state and exit.")
@document_options
def watch(folder: Path, once: bool, show: Show) -> None:
    """Follow the runs in DIR until they are complete; Ctrl-C stops watching, not the runs.

    Only files are read, so the runs may be made on any machine that shares them, and nothing is slowed down or locked.
    --format and --json imply --once.
    """
    watched = Watch(sweep_in(folder))
    given = click.get_current_context().params
    if once or any(given.get(name) for name in ("form", "as_json")):
        show(_document(watched.look(time.time()), folder))
        return
    _follow(watched)


def sweep_in(folder: Path) -> ViewedFolder:
    """Return the sweep or other experiment that a folder is, or the only one below it; sweeps come first."""
    places = [place for place in find_places(open_root(folder)) if place.kind != "analysis"]
    found = [place for place in places if place.kind == "sweep" or place.key == "."] or places
    own = [place for place in found if place.key == "."]
    if len(own or found) != 1:
        names = ", ".join(place.key for place in found) or "none"
        raise UsageError(f"{folder} holds no single experiment; give one of those in it: {names}")
    return (own or found)[0]


def _follow(watched: Watch) -> None:
    console = Console()
    with Live(console=console, auto_refresh=False, vertical_overflow="ellipsis") as live:
        first = seen = watched.look(time.time())
        then = time.monotonic()
        while True:
            elapsed = time.monotonic() - then
            rate = (seen.runs - first.runs) / elapsed if elapsed > 1 else None
            live.update(_screen(seen, rate, console), refresh=True)
            if seen.state == "complete":
                return
            time.sleep(EVERY_SECONDS)
            seen = watched.look(time.time())


def _document(seen: Watched, folder: Path) -> Document:
    failures = tuple(map(_failure, seen.failures))
    tables = (_cells(seen, LISTED),) if seen.cells else ()
    every = (Section("", (), tables), Section("", failures))
    sections = tuple(section for section in every if section.words or section.items)
    verb = "report" if seen.state == "complete" else "watch"
    then = f"eirkit {verb} {quote(str(folder))}"
    return Document("watch", f"Sweep in {seen.folder}", (_state(seen, None),), seen, sections, next=then)


def _screen(seen: Watched, rate: float | None, console: Console) -> Group:
    """Return one look, as much of it as the screen has room for."""
    bar = ProgressBar(total=max(1, seen.planned_runs), completed=seen.runs, width=min(60, console.width))
    parts: list[RenderableType] = [Text(_state(seen, rate)), bar, Text()]
    if seen.cells:
        shown = _cells(seen, max(1, min(LISTED, console.height - KEPT_LINES)))
        parts += [Text(line.text, style=line.style, no_wrap=True) for line in table_lines(shown, console.width)]
    parts += [Text(_failure(group), no_wrap=True, overflow="ellipsis") for group in seen.failures]
    return Group(*parts)


def _state(seen: Watched, rate: float | None) -> str:
    words = f"{seen.state}: {seen.runs:,} of {seen.planned_runs:,} runs"
    if seen.lost:
        words += f", {seen.lost:,} failed"
    if rate:
        words += f", {rate:,.1f} runs/s"
        words += f", {(seen.planned_runs - seen.runs) / rate:,.0f} s left" if seen.runs < seen.planned_runs else ""
    if seen.spending is not None:
        return f"{words}, {cost_in_words(seen.spending)}"
    return f"{words}, ${seen.spent_usd:.2f}" if seen.spent_usd else words


def _failure(group: FailureGroup) -> str:
    return f"{group.runs} failed, {group.model}, {group.kind}: {group.message}"


def _cells(seen: Watched, most: int) -> Table:
    """Return one row for each cell; what all of them share is in the title."""
    rows = seen.cells[-most:]
    shared = [name for name in NAMES if len({getattr(cell, name) for cell in seen.cells}) == 1]
    words = [f"{name} {getattr(rows[0], name)}" for name in shared if getattr(rows[0], name) is not None]
    left_out = len(seen.cells) - len(rows)
    causes = [CAUSE_MEASURES[cause] for cause in CAUSES if any(cell.errors[cause] for cell in seen.cells)]
    columns = (
        *(Column(name, name, role="name") for name in NAMES if name not in shared),
        *(Column.of(measure) for measure in SHOWN),
        *(Column.of(cause, priority=1) for cause in causes),
    )
    note = f"{left_out:,} earlier cells are not listed" if left_out else ""
    return Table("cells", "; ".join(["Cells", *words]), columns, tuple(map(_cell_row, rows)), note)


def _cell_row(cell: WatchedCell) -> dict[str, Cell]:
    named: dict[str, Cell] = {name: "" if getattr(cell, name) is None else getattr(cell, name) for name in NAMES}
    return {
        **named,
        **{measure.id: getattr(cell, measure.id) for measure in SHOWN},
        **{str(cause): share for cause, share in cell.error_shares.items()},
    }
