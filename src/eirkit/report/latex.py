"""Lays out a table as a LaTeX float that fits a paper: narrow in a column, else across the page of one column.

A table that is too wide gets headings of several lines, smaller print and columns in which texts are wrapped; if that
is not enough, its columns are divided into parts one below the other, each with the columns that name its rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from eirkit.report.table import Table, latex_text, one_line

IN_COLUMN, IN_PAGE = 225.0, 340.0  # points: a column of two, and the page of a paper with one, each less a margin
SIZES = (
    (r"\small", 0.93),
    (r"\footnotesize", 0.86),
)  # of print, and its width: small letters are wider for their height
BETWEEN = (6.0, 3.0)  # points on each side of a column: as usual, and in a table that is too wide
NARROWEST = 42.0  # points, of a column in which texts are wrapped
_WIDE, _NARROW = "mwMW@%—…±×−<>≥≤", "ijltfrI.,;:'!|()[] "
_BREAK = re.compile(r"(?<=[/_.=:,-])(?=\w)|(?<=\w{10})(?=\w{4})")  # where a word that is no word may be broken
_POINTS = ".,;:!?()"
SHORT = 7  # letters; TeX hyphenates longer words, but not names, paths and hashes


def width_of(text: str) -> float:
    """Return how wide a text is in Computer Modern at ten points, rather too wide than too narrow."""
    return sum(8.4 if one in _WIDE else 3.4 if one in _NARROW else 7.5 if one.isupper() else 5.1 for one in text)


@dataclass(frozen=True, slots=True)
class _Part:
    """Some columns of a table: the width of each in points, those in which texts are wrapped, and the print."""

    columns: tuple[int, ...]
    wrapped: dict[int, float]  # share of the line
    size: str
    between: float
    stacked: bool  # headings have several lines
    heads: dict[int, float]  # points that a heading may take


def latex_float(table: Table) -> str:
    """Return a table with a caption and a label, ready to be included in a paper."""
    layout = _Layout(table)
    parts = list(layout.parts())
    said = ". ".join(latex_text(text).rstrip(".") for text in (table.title, table.note) if text)
    # What does not fit a column of a usual paper spans both; in a paper with one column the star changes nothing.
    kind = "table" if layout.natural(SIZES[0][1], BETWEEN[0]) <= IN_COLUMN else "table*"
    lines = (
        r"% wants \usepackage{booktabs}",
        rf"\begin{{{kind}}}",
        rf"\centering{parts[0].size}",
        *([rf"\setlength{{\tabcolsep}}{{{parts[0].between:g}pt}}"] if parts[0].between != BETWEEN[0] else []),
        rf"\caption{{{said}.}}",
        rf"\label{{tab:{re.sub(r'[^A-Za-z0-9-]', '-', table.id)}}}",
    )
    bodies = "\n\n\\medskip\n".join(layout.tabular(part) for part in parts)
    return "\n".join([*lines, bodies, rf"\end{{{kind}}}"])


class _Layout:
    def __init__(self, table: Table) -> None:
        self.heads = [one_line(column.title) for column in table.columns]
        self.lines = [[one_line(cell) for cell in line] for line in table.lines()]
        self.numeric = [table.is_numeric(column) for column in table.columns]
        self.places = range(len(self.heads))
        self.cells = [max((width_of(line[place]) for line in self.lines), default=0.0) for place in self.places]

    def natural(self, scale: float, between: float) -> float:
        """Return how wide the table is if nothing is wrapped."""
        wide = (max(width_of(self.heads[place]), self.cells[place]) for place in self.places)
        return scale * sum(wide) + 2 * between * len(self.heads)

    def parts(self) -> Iterator[_Part]:
        """Yield one part that fits, or as many as are needed."""
        (size, scale), between = SIZES[0], BETWEEN[0]
        if self.natural(scale, between) <= IN_PAGE:
            yield _Part(tuple(self.places), {}, size, between, False, {})
            return
        for size, scale in SIZES:
            if (part := self._fitted(tuple(self.places), size, scale)) is not None:
                yield part
                return
        yield from self._divided(*SIZES[-1])

    def _divided(self, size: str, scale: float) -> Iterator[_Part]:
        """Yield parts with as many columns as fit, each after the first ones, which tell the rows apart."""
        first = next((count for count in self.places if count and self._tells_apart(count)), 1)
        while first > 1 and self._fitted(tuple(range(first + 1)), size, scale) is None:
            first -= 1
        names, rest = tuple(range(first)), list(self.places)[first:]
        if not rest:  # one column, whose words are broken
            left = IN_PAGE - 2 * BETWEEN[1]
            yield _Part(names, dict.fromkeys(names, left / IN_PAGE), size, BETWEEN[1], True, {})
        while rest:
            fitting = [self._fitted((*names, *rest[:count]), size, scale) for count in range(1, len(rest) + 1)]
            found = [part for part in fitting if part is not None]
            part = found[-1] if found else _Part((*names, rest[0]), {}, size, BETWEEN[1], True, {})
            yield part
            rest = rest[len(part.columns) - len(names) :]

    def _tells_apart(self, count: int) -> bool:
        return len({tuple(line[:count]) for line in self.lines}) == len(self.lines)

    def _fitted(self, columns: tuple[int, ...], size: str, scale: float) -> _Part | None:
        """Return a part with these columns that fits the page; None if there is none."""
        left = IN_PAGE - 2 * BETWEEN[1] * len(columns)
        heads = {place: scale * max(map(width_of, self.heads[place].split()), default=0.0) for place in columns}
        wide = {place: max(scale * self.cells[place], heads[place]) for place in columns}
        least = {
            place: wide[place] if self.numeric[place] else min(wide[place], max(NARROWEST, heads[place]))
            for place in columns
        }
        if sum(least.values()) > left:
            return None
        given = _shared(wide, least, left)
        wrapped = {place: given[place] / IN_PAGE for place in columns if given[place] < wide[place]}
        return _Part(columns, wrapped, size, BETWEEN[1], True, {place: given[place] / scale for place in columns})

    def tabular(self, part: _Part) -> str:
        """Return the tabular of a part in the style of booktabs."""
        forms = {place: "r" if self.numeric[place] else "l" for place in part.columns}
        forms |= {place: rf"p{{{share:.3f}\linewidth}}" for place, share in part.wrapped.items()}
        form = "".join(forms.values()) or "l"  # LaTeX has no table without a column
        head = [self._heading(place, part) for place in part.columns]
        body = (" & ".join(self._cell(line[place], place, part) for place in part.columns) for line in self.lines)
        end = (
            r"\tabularnewline" if {*part.columns[-1:]} & {*part.wrapped} else r"\\"
        )  # in a ragged text \\ is a new line
        rows = [f"{line} {end}" for line in body]
        top = f"{' & '.join(head)} {end}"
        parts = (rf"\begin{{tabular}}{{{form}}}", r"\toprule", top, r"\midrule", *rows, r"\bottomrule")
        return "\n".join([*parts, r"\end{tabular}"])

    def _heading(self, place: int, part: _Part) -> str:
        lines = _filled(self.heads[place].split(), part.heads[place]) if part.stacked and part.heads else []
        if place in part.wrapped or len(lines) < 2:
            return self._cell(self.heads[place], place, part)
        form = "r" if self.numeric[place] else "l"
        stacked = r" \\ ".join(map(latex_text, lines))
        return rf"\begin{{tabular}}[b]{{@{{}}{form}@{{}}}}{stacked}\end{{tabular}}"

    def _cell(self, text: str, place: int, part: _Part) -> str:
        if place not in part.wrapped:
            return latex_text(text)
        words = (
            [word] if word.strip(_POINTS).isalpha() or len(word) <= SHORT else _BREAK.split(word)
            for word in text.split(" ")
        )
        shown = (r"\allowbreak{}".join(map(latex_text, pieces)) for pieces in words)
        return rf"\raggedright\hspace{{0pt}}{' '.join(shown)}"


def _shared(wide: dict[int, float], least: dict[int, float], left: float) -> dict[int, float]:
    """Return the widths of columns: what each needs, or else the same for all that need more."""
    open_ones = {place for place in wide if wide[place] > least[place]}
    given = {place: wide[place] for place in wide if place not in open_ones}
    rest = left - sum(given.values())
    while open_ones:
        share = rest / len(open_ones)
        content = {place for place in open_ones if wide[place] <= share}
        fixed = content or {place for place in open_ones if least[place] > share}
        if not fixed:
            return given | dict.fromkeys(open_ones, share)
        for place in fixed:
            given[place] = wide[place] if content else least[place]
            rest -= given[place]
        open_ones -= fixed
    return given


def _filled(words: Sequence[str], width: float) -> list[str]:
    """Return words as lines no wider than a width at ten points, apart from single words."""
    lines: list[str] = []
    for word in words:
        joined = f"{lines[-1]} {word}" if lines else word
        if lines and width_of(joined) > width:
            lines.append(word)
        else:
            lines[-1:] = [joined]
    return lines
