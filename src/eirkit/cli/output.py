"""How commands print: one JSON document on stdout with --json, else a table; everything else goes to stderr."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import redirect_stdout
from contextvars import ContextVar
from functools import wraps
from typing import Any, TextIO, TypeVar

import click
from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

Command = TypeVar("Command", bound=Callable[..., Any])

PIPED_WIDTH = 120  # columns where no terminal says how many there are
WIDEST = 10_000  # columns
WITHHELD = "withheld"  # in the place of a figure that may not be claimed


_reserved: ContextVar[TextIO | None] = ContextVar("_reserved", default=None)  # stdout, while others may not have it


def json_option(command: Command) -> Command:
    """Add --json to a command; it arrives as `as_json`. What plug-ins print meanwhile goes to stderr."""

    @wraps(command)
    def reserving(as_json: bool, **given: Any) -> Any:
        if not as_json:
            return command(as_json=False, **given)
        token = _reserved.set(sys.stdout)
        try:
            with redirect_stdout(sys.stderr):
                return command(as_json=True, **given)
        finally:
            _reserved.reset(token)

    return click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout.")(reserving)  # type: ignore[return-value]


def emit(document: Mapping[str, Any], as_json: bool, render: Callable[[Console], None]) -> None:
    """Print the document, as JSON or for reading."""
    if as_json:
        stdout = _reserved.get() or sys.stdout
        click.echo(_json(document, (stdout.encoding or "").lower().startswith("utf")), file=stdout)
    else:
        fixed = not sys.stdout.isatty() and "COLUMNS" not in os.environ
        render(WholeConsole(width=PIPED_WIDTH if fixed else None))


def _json(document: Mapping[str, Any], unicode: bool) -> str:
    """Return a document as a line of JSON; what its encoding has no bytes for, such as half a character, is escaped."""
    text = json.dumps(document, ensure_ascii=not unicode, allow_nan=False)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return json.dumps(document, allow_nan=False)
    return text


class WholeConsole(Console):
    """A console that folds sentences at its width but never cuts a line: half a table says less than a wide one."""

    def print(self, *objects: Any, crop: bool = False, **more: Any) -> None:
        super().print(*objects, crop=crop, **more)


class WholeTable:
    """A table at its natural width, however narrow the console is: a row without its name is no row."""

    def __init__(self, table: Table) -> None:
        self.table = table

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        needed = Measurement.get(console, options.update(max_width=WIDEST), self.table).maximum
        yield from console.render(self.table, options.update(width=needed, max_width=needed))


def table(
    title: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    folded: Mapping[str, int] | None = None,
) -> Group:
    """Return a titled table whose numbers are right-aligned; brackets in cells are text, not markup.

    Args:
        folded: columns whose texts are broken into lines of at most so many characters.
    """
    listed = [[_cell(value) for value in row] for row in rows]
    made = Table(box=SIMPLE_HEAD, show_edge=False, header_style="bold")
    for position, name in enumerate(columns):
        shown = [row[position] for row in listed if row[position] not in ("", WITHHELD)]
        numeric = all(cell[0] in "0123456789-−+–<" for cell in shown)
        widest = (folded or {}).get(name)
        made.add_column(Text(name), justify="right" if numeric else "left", no_wrap=widest is None, max_width=widest)
    for row in listed:
        made.add_row(*map(Text, row))
    # A title of the table's own would be folded to the table's width.
    return Group(Text(title, style="bold"), WholeTable(made))


def legend(console: Console, **meanings: str) -> None:
    """Print what terse headings mean, under their table; nothing where none needs it."""
    if not meanings:
        return
    console.print(
        "; ".join(f"{name}: {text}" for name, text in meanings.items()), style="dim", markup=False, highlight=False
    )


def show_losses(console: Console, losses: Iterable[Mapping[str, int]]) -> None:
    """Print why runs were not scored, each reason once with its number."""
    total: Counter[str] = Counter()
    for lost in losses:
        total.update(lost)
    for reason, runs in total.items():
        console.print(f"not scored: {runs} {'run' if runs == 1 else 'runs'}: {reason}", markup=False, highlight=False)


def _cell(value: object) -> str:
    if value is None:
        return "–"
    text = f"{value:.3f}" if isinstance(value, float) else str(value)
    # What comes from logs and plug-ins may try to steer the terminal.
    return text if text.isprintable() else "".join(c if c.isprintable() else "\ufffd" for c in text)
