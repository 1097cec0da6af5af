"""Tables that fit a terminal: names shortened in their middle, long texts folded, wide rows one column to a line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.cells import cell_len
from rich.console import Console, Group
from rich.measure import Measurement

from eirkit.cli.output import PIPED_WIDTH, WIDEST, table

UNKNOWN_WIDTH = 100  # columns for a table where no terminal says how many there are
SHORTEST = 12  # characters of a shortened name
GAP = "…"


def room_of(console: Console) -> int:
    """Return how many columns a table may take."""
    return UNKNOWN_WIDTH if console.width == PIPED_WIDTH and not console.is_terminal else console.width


def shortened(text: str, most: int) -> str:
    """Return a text of at most so many characters; what is left out is in the middle, since ends tell names apart."""
    if len(text) <= most:
        return text
    tail = (most - len(GAP)) * 2 // 3
    return f"{text[: most - len(GAP) - tail]}{GAP}{text[len(text) - tail :]}"


def matches(shown: str, name: str) -> bool:
    """Tell whether a name may have been shortened to what is shown."""
    head, gap, tail = shown.partition(GAP)
    return bool(gap) and len(name) > len(head) + len(tail) and name.startswith(head) and name.endswith(tail)


def width_of(console: Console, made: Group) -> int:
    """Return how many columns a table takes at its natural width."""
    wide = console.options.update(max_width=WIDEST)
    whole = made.renderables[1]
    return Measurement.get(console, wide, getattr(whole, "table", whole)).maximum


def named_table(
    console: Console, title: str, columns: Sequence[str], rows: Iterable[Sequence[object]], *, last: bool = False
) -> Group:
    """Return a table whose first column, or last, holds names, which are shortened as far as the terminal needs."""
    listed = [tuple(row) for row in rows]
    whole = table(title, columns, listed)
    excess = width_of(console, whole) - room_of(console)
    if excess <= 0:
        return whole
    place = len(columns) - 1 if last else 0
    longest = max((cell_len(str(row[place])) for row in listed), default=0)
    most = max(SHORTEST, longest - excess)
    cut = [(*row[:place], shortened(str(row[place]), most), *row[place + 1 :]) for row in listed]
    return table(title, columns, cut)


def paired_table(console: Console, title: str, columns: tuple[str, str], rows: Sequence[tuple[str, str]]) -> Group:
    """Return a table of figures and what is said of them, which is folded to the terminal's width."""
    named = max((cell_len(name) for name, _ in rows), default=0)
    return table(title, columns, rows, folded={columns[1]: max(20, room_of(console) - named - len("     "))})


def expanded(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> Iterable[str]:
    """Yield the rows one column to a line, each row under its number."""
    widest = max(map(len, columns), default=0)
    for number, row in enumerate(rows, 1):
        yield f"row {number:,}"
        for name, value in zip(columns, row, strict=True):
            yield f"  {name:<{widest}}  {cell_text(value)}"


def cell_text(value: object) -> str:
    """Return a value as a table shows it, without characters that would steer the terminal."""
    text = "–" if value is None else f"{value:.3f}" if isinstance(value, float) else str(value)
    return "".join(mark if mark.isprintable() else "\ufffd" for mark in text)
