"""Tables with typed columns as Markdown, LaTeX and CSV; how numbers, shares and lists are written everywhere."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Self
from urllib.parse import urlencode

from eirkit.measures import Measure, Unit

FEWEST = 0.005  # shares up to this would be rounded to 0%, which is reserved for exactly 0

# Characters that steer a terminal, a parser or the direction of writing: nothing that is shown needs them.
_STEERING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufeff\ufffe\uffff]"
)


def share(value: float | None) -> str:
    """Return a share as a whole percentage; only exactly 0 is shown as 0% and only exactly 1 as 100%."""
    if value is None:
        return "–"
    if 0 < value <= FEWEST:
        return "under 1%"
    return "over 99%" if 1 - FEWEST <= value < 1 else f"{value:.0%}"


def number(value: float | None, digits: int = 0) -> str:
    return "–" if value is None else f"{value:,.{digits}f}"


def points(value: float) -> str:
    """Return a difference of two shares in percentage points, with its sign."""
    shown = f"{100 * value:+.1f}"
    return "0.0" if float(shown) == 0 else shown.replace("-", "−")


def counted(amount: int, noun: str, plural: str = "") -> str:
    """Return `1 run`, `3 runs`."""
    return f"{amount:,} {noun if amount == 1 else plural or noun + 's'}"


def listed(words: Sequence[str], most: int = 6) -> str:
    """Return `a, b and c`; beyond `most` words only the number of the others."""
    if len(words) > most:
        return f"{', '.join(words[: most - 1])} and {len(words) - most + 1} more"
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


Cell = float | int | str | bool | None
Role = Literal["value", "name", "text"]

# After \\ and \midrule, brackets and stars that begin a cell would be read as arguments of these.
LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "–": "--", "±": r"$\pm$", "≥": r"$\ge$", "≤": r"$\le$",
    "×": r"$\times$", "−": "$-$", "<": "$<$", ">": "$>$", "[": "{[}", "*": "{*}",
}  # fmt: skip
DIGITS: Mapping[Unit, int] = {"milliseconds": 2, "dollars": 4, "bits": 0, "tokens": 0, "amount": 0, "bytes": 0}
MARKDOWN = {**{mark: f"\\{mark}" for mark in "\\|`*_[]~"}, "<": "&lt;"}
_ENTITY = re.compile(r"&(?=#?\w+;)")  # elsewhere an ampersand is itself


def clean(text: str) -> str:
    """Return a text with control characters replaced by the replacement character."""
    return _STEERING.sub("\ufffd", text)


@dataclass(frozen=True, slots=True)
class Column:
    """One column: the key of its cells, its heading, its number format and the meaning of the heading.

    In a terminal a `value` is never cut, a `name` that is too long loses its middle, and a `text` is wrapped.
    """

    key: str
    title: str
    digits: int = 3
    percent: bool = False
    meaning: str = ""
    whole: str = ""  # of a share: what it is a share of
    least: float | None = None  # what is smaller is only said to be so, as p values are
    signed: bool = False  # differences: +0.25
    role: Role = "value"
    figures: bool = False  # texts made of numbers, such as 3/5, which stand on the right as numbers do
    priority: int = 0  # a terminal that is too narrow leaves out the highest first; 0 is always shown
    raw: str = ""  # the key of the plain values behind cells that are texts, for CSV
    link: str = ""  # the key of the addresses that cells lead to on a page, relative to it
    measure: str = ""  # the identifier of the measure whose definition the heading leads to

    @classmethod
    def of(cls, measure: Measure, **more: Any) -> Self:
        """Return the column of a measure with its label and meaning; further arguments override these."""
        digits = DIGITS.get(measure.unit, 3)
        whole = f"{measure.of}, mean over runs" if measure.of and measure.pooled == "mean" else measure.of
        own = {"digits": digits, "percent": measure.unit == "share", "meaning": measure.meaning, "whole": whole}
        own["measure"] = measure.id
        return cls(measure.id, measure.heading, **{**own, **more})

    def text(self, cell: Cell) -> str:
        """Return a cell formatted for readers; a missing value is a dash."""
        if cell is None:
            return "–"
        if isinstance(cell, bool):
            return "yes" if cell else "no"
        if isinstance(cell, float) and self.least is not None and 0 <= cell < self.least:
            return f"< {self.least:g}"
        if isinstance(cell, str):
            return cell
        sign = "+" if self.signed else ""
        kind = (
            "," if isinstance(cell, int) else f"z.{max(0, self.digits - 2)}%" if self.percent else f"z,.{self.digits}f"
        )
        text = f"{cell:{sign}{kind}}"
        return text.replace("-", "−") if self.signed else text


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under typed columns, with a title and, where needed, a note on how to read them."""

    id: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[Mapping[str, Cell], ...]
    note: str = ""
    kind: Literal["table"] = "table"

    def reworded(self, tell: Callable[[str], str]) -> Table:
        """Return the table with other words in its title, headings and notes; keys and cells stay."""
        columns = (
            replace(column, title=tell(column.title), meaning=tell(column.meaning), whole=tell(column.whole))
            for column in self.columns
        )
        return replace(self, title=tell(self.title), note=tell(self.note), columns=tuple(columns))

    def lines(self) -> list[list[str]]:
        """Return the cells as text, row by row."""
        return [[column.text(row.get(column.key)) for column in self.columns] for row in self.rows]

    def is_numeric(self, column: Column) -> bool:
        """Return True if a column holds numbers, which are right-aligned."""
        if column.figures:
            return True
        cells = [row.get(column.key) for row in self.rows]
        return all(cell is None or (isinstance(cell, (int, float)) and not isinstance(cell, bool)) for cell in cells)

    def meanings(self, left_out: Collection[str] = ()) -> str:
        """Return the meanings of the headings, and once the denominator that most shares have if several have it."""
        told = [column for column in self.columns if column.meaning and column.title not in left_out]
        wholes = Counter(column.whole for column in told if column.whole)
        usual = max((whole for whole, number in wholes.items() if number > 1), key=wholes.__getitem__, default="")
        others = {column: f" (share of {column.whole})" for column in told if column.whole not in ("", usual)}
        texts = [f"{column.title}: {column.meaning}{others.get(column, '')}" for column in told]
        shares = "shares" if len(wholes) == 1 else "other shares"
        return "; ".join([*texts, *([f"{shares}: of {usual}"] if usual else [])])

    def csv(self) -> str:
        """Return the rows as CSV with full precision, with keys as the header."""
        written = io.StringIO()
        lines = csv.writer(written, lineterminator="\n")
        keys = [column.raw or column.key for column in self.columns]
        lines.writerow(keys)
        lines.writerows([csv_cell(row.get(key)) for key in keys] for row in self.rows)
        return written.getvalue()

    def markdown(self) -> str:
        """Return a Markdown table, with all cells escaped."""
        rule = ["---:" if self.is_numeric(column) else "---" for column in self.columns]
        shown = [[column.title for column in self.columns], *self.lines()]
        head, *body = ([markdown_text(cell) for cell in line] for line in shown)
        escaped = [head, rule, *body]
        return "\n".join(f"| {' | '.join(line)} |" for line in escaped)

    def latex(self) -> str:
        """Return a LaTeX table in the style of booktabs."""
        form = "".join("r" if self.is_numeric(column) else "l" for column in self.columns) or "l"
        head = [column.title for column in self.columns]
        body = [" & ".join(map(latex_text, line)) + r" \\" for line in self.lines()]
        return "\n".join(
            [
                rf"\begin{{tabular}}{{{form}}}",
                r"\toprule",
                " & ".join(map(latex_text, head)) + r" \\",
                r"\midrule",
                *body,
                r"\bottomrule",
                r"\end{tabular}",
            ]
        )


def cells_of(record: object, columns: Iterable[Column]) -> dict[str, Cell]:
    """Return the fields of a record that columns show or have behind texts; what it has not is left out."""
    keys = [column.raw or column.key for column in columns]
    return {key: getattr(record, key) for key in keys if hasattr(record, key)}


def in_viewer(**where: Cell) -> str:
    """Return the link of a row to what the viewer shows of it, such as `run="a", t=3`; `html.render` resolves it."""
    return f"view:{urlencode({key: str(value) for key, value in where.items()}, errors='replace')}"


def one_line(text: str) -> str:
    """Return a text on one line, without unprintable characters."""
    spaced = "".join(mark if mark.isprintable() else " " for mark in text)
    return " ".join(spaced.split())


def latex_text(text: str) -> str:
    """Return a text escaped for LaTeX, on one line."""
    return one_line(text).translate(_LATEX)


def markdown_text(text: str) -> str:
    """Return a text escaped for Markdown, on one line."""
    return _ENTITY.sub("&amp;", one_line(text)).translate(_MARKDOWN)


def csv_cell(cell: Cell) -> Cell:
    """Return a cell that is safe in spreadsheets: text that looks like a formula gets an apostrophe."""
    if not isinstance(cell, str):
        return cell
    # The csv module leaves a lone carriage return unquoted, which readers take for a line ending.
    text = cell.replace("\r\n", "\n").replace("\r", "\n")
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\n")) else text


_LATEX = str.maketrans(LATEX)
_MARKDOWN = str.maketrans(MARKDOWN)
