"""Filters, sorts, pages and groups the rows of the viewer's tables.

Columns are converted to labels or numbers on first use: those of runs come from their database (`run_table.py`), those
of analyses from Arrow tables.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self, TypeVar

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from eirkit.errors import UsageError
from eirkit.measures import Measure
from eirkit.report.table import Cell

if TYPE_CHECKING:  # the readers of all logs, for one annotation
    from eirkit.report.viewer.logs import LogFolders

NOTHING = "–"  # label of a missing value in filters and on axes
Places = NDArray[np.int64]
V = TypeVar("V", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Coded:
    """A column as its distinct labels and the index of the label in each row."""

    codes: Places
    labels: tuple[str, ...]

    @property
    def ranks(self) -> Places:
        """The rank of each label in sorted order; the missing value comes last."""
        order = sorted(range(len(self.labels)), key=lambda code: (self.labels[code] == NOTHING, self.labels[code]))
        ranks = np.empty(len(order), dtype=np.int64)
        ranks[order] = np.arange(len(order))
        return ranks


class Columns(Protocol):
    """Columns of equal length."""

    rows: int

    def coded(self, key: str) -> Coded: ...

    def numbers(self, key: str) -> NDArray[np.float64]:
        """Return a column as numbers, with NaN where it holds none."""
        ...

    def occurs(self, key: str, *, zero: bool) -> bool:
        """True if a column of numbers holds any; `zero`: also if all are 0."""
        ...

    def cells(self, keys: Sequence[str], places: Sequence[int]) -> list[dict[str, Cell]]:
        """Return some rows."""
        ...


def label(cell: Cell) -> str:
    """Return the label of a value in filters and on axes."""
    if cell is None or cell == "":
        return NOTHING
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    return f"{cell:g}" if isinstance(cell, float) else str(cell)


def number(cell: Cell) -> float:
    """Return a value as a number, a flag as 0 or 1, and anything else as NaN."""
    return float(cell) if isinstance(cell, (bool, int, float)) else float("nan")


class KeptColumns(ABC):
    """Columns whose converted forms are kept once they were asked for."""

    def __init__(self, rows: int) -> None:
        self.rows = rows
        self._coded: dict[str, Coded] = {}
        self._numbers: dict[str, NDArray[np.float64]] = {}

    def coded(self, key: str) -> Coded:
        if key not in self._coded:
            self._coded[key] = self._code(key)
        return self._coded[key]

    def numbers(self, key: str) -> NDArray[np.float64]:
        if key not in self._numbers:
            self._numbers[key] = self._number(key)
        return self._numbers[key]

    def occurs(self, key: str, *, zero: bool) -> bool:
        numbers = self.numbers(key)
        return not np.isnan(numbers).all() if zero else bool(np.nan_to_num(numbers).any())

    @abstractmethod
    def _code(self, key: str) -> Coded: ...

    @abstractmethod
    def _number(self, key: str) -> NDArray[np.float64]: ...


class ListColumns(KeptColumns):
    """Columns stored as lists."""

    def __init__(self, columns: Mapping[str, Sequence[Cell]], rows: int) -> None:
        super().__init__(rows)
        self._columns = columns

    def _code(self, key: str) -> Coded:
        return code_labels([label(cell) for cell in self._columns[key]])

    def _number(self, key: str) -> NDArray[np.float64]:
        return np.array([number(cell) for cell in self._columns[key]], dtype=float)

    def cells(self, keys: Sequence[str], places: Sequence[int]) -> list[dict[str, Cell]]:
        return [{key: self._columns[key][place] for key in keys} for place in places]


def code_labels(labels: Iterable[str]) -> Coded:
    """Return labels as codes."""
    codes, known = code_values(tuple(labels))
    return Coded(codes, known)


def code_values(values: Sequence[V]) -> tuple[Places, tuple[V, ...]]:
    """Return for each value the number of its first occurrence among the different ones, and these."""
    known = {value: number for number, value in enumerate(dict.fromkeys(values))}
    return np.fromiter(map(known.__getitem__, values), np.int64, len(values)), tuple(known)


class ArrowColumns(KeptColumns):
    """Columns of an Arrow table; only the rows of the requested page are converted to Python."""

    def __init__(self, table: Any) -> None:
        super().__init__(int(table.num_rows))
        self._table = table

    def _code(self, key: str) -> Coded:
        encoded = self._table[key].combine_chunks().dictionary_encode("encode")
        if hasattr(encoded, "combine_chunks"):  # some versions keep one chunk
            encoded = encoded.combine_chunks()
        own = code_labels([label(cell) for cell in encoded.dictionary.to_pylist()])  # two values may share a label
        return Coded(own.codes[encoded.indices.to_numpy(zero_copy_only=False)], own.labels)

    def _number(self, key: str) -> NDArray[np.float64]:
        column = self._table[key]
        kind = str(column.type)
        if kind == "string":
            return np.full(self.rows, np.nan)
        plain = column.cast("int8") if kind == "bool" else column
        return np.asarray(plain.cast("float64").to_numpy(), dtype=float)

    def cells(self, keys: Sequence[str], places: Sequence[int]) -> list[dict[str, Cell]]:
        rows: list[dict[str, Cell]] = self._table.select(list(keys)).take(np.array(places, dtype=np.int64)).to_pylist()
        return rows


FieldKind = Literal["text", "number", "share", "flag"]
FieldPart = Literal["result", "setting", "replicate"]
LARGEST_PAGE = 500  # rows
MOST_FACETS = 60  # values of a column that are offered as filters
KEPT_CHOICES = 16


class Field(Struct, frozen=True):
    """One column of a table."""

    key: str
    title: str
    kind: FieldKind = "number"
    meaning: str = ""
    facet: bool = False  # few values, by which rows can be filtered and laid out
    shown: bool = True  # in the table; the others are for filters and axes
    part: FieldPart = "result"  # means are taken over replicates, and not over settings unless somebody asks for it
    order: tuple[str, ...] = ()  # of values on an axis, where they have one that is not their sorted one

    @classmethod
    def of(cls, measure: Measure, *, facet: bool = False, shown: bool = True, part: FieldPart = "result") -> Self:
        """Return the column of a measure, under its label and with its meaning."""
        kind: FieldKind = "share" if measure.unit == "share" else "number"
        return cls(measure.id, measure.heading, kind, measure.description, facet, shown, part)


class FacetValue(Struct, frozen=True):
    """One value of a facet, and how many rows have it."""

    label: str
    rows: int


class Facet(Struct, frozen=True):
    """The values of a column by which rows can be filtered."""

    key: str
    title: str
    values: tuple[FacetValue, ...]
    distinct: int


class Page(Struct, frozen=True):
    """Some of the rows that fit a query."""

    fields: tuple[Field, ...]
    rows: list[dict[str, Cell]]  # the columns that are shown
    matched: int
    total: int
    offset: int
    facets: tuple[Facet, ...]


class SharedValue(Struct, frozen=True):
    """What all rows have in common."""

    title: str
    value: str


@dataclass(frozen=True, slots=True)
class Query:
    """Filters and order of rows, all of which are part of the URL."""

    equal: tuple[tuple[str, tuple[str, ...]], ...] = ()  # a column and its accepted labels
    least: tuple[tuple[str, float], ...] = ()
    most: tuple[tuple[str, float], ...] = ()
    words: str = ""  # in any text column
    sort: str = ""
    descending: bool = False


@dataclass(slots=True)
class RowTable:
    """Rows with the columns that hold any information."""

    fields: Sequence[Field]
    columns: Columns
    noun: str = "run"  # what a row is
    _choices: OrderedDict[Query, Places] = field(default_factory=OrderedDict)

    @property
    def rows(self) -> int:
        return self.columns.rows

    def page(self, query: Query, offset: int, limit: int) -> Page:
        """Return one page of the selected rows, with their total number and the values to filter by."""
        chosen = self.choose(query)
        shown = chosen[offset : offset + min(limit, LARGEST_PAGE)].tolist()
        rows = self.columns.cells([field.key for field in self.fields if field.shown], shown)
        return Page(tuple(self.fields), rows, len(chosen), self.rows, offset, self.facets(query))

    def choose(self, query: Query) -> Places:
        """Return the indices of all rows that match a query, in its order."""
        kept = self._choices.get(query)
        if kept is not None:
            return kept
        for key in (*(key for key, _ in (*query.equal, *query.least, *query.most)), *filter(None, [query.sort])):
            self.field(key)  # refuses one that is unknown
        found = self._sorted(self._filtered(query), query)
        self._choices[query] = found
        if len(self._choices) > KEPT_CHOICES:
            self._choices.popitem(last=False)
        return found

    def facets(self, query: Query) -> tuple[Facet, ...]:
        """Return the values of every facet among rows that pass the other filters, the most frequent first."""
        return tuple(self._facet(field, query) for field in self.fields if field.facet)

    def _facet(self, one: Field, query: Query) -> Facet:
        others = tuple(entry for entry in query.equal if entry[0] != one.key)
        left = self.choose(Query(others, query.least, query.most, query.words))
        coded = self.columns.coded(one.key)
        counts = np.bincount(coded.codes[left], minlength=len(coded.labels)).tolist()
        found = [FacetValue(name, rows) for name, rows in zip(coded.labels, counts, strict=True) if rows]
        tally = sorted(found, key=lambda value: (-value.rows, value.label))
        values = tuple(tally[:MOST_FACETS])
        return Facet(one.key, one.title, values, len(tally))

    def groups(self, query: Query, keys: Sequence[str]) -> dict[tuple[str, ...], Places]:
        """Return the indices of the selected rows, grouped by their labels in the given columns."""
        chosen, groups = self.choose(query), self._group_of(query, keys)
        order = np.argsort(groups, kind="stable")
        starts = np.unique(groups[order], return_index=True)[1]
        parts = np.split(chosen[order], starts[1:]) if len(chosen) else []
        columns = [self.columns.coded(key) for key in keys]
        return {tuple(coded.labels[coded.codes[part[0]]] for coded in columns): part for part in parts}

    def count_groups(self, query: Query, keys: Sequence[str]) -> int:
        """Return how many combinations of labels the selected rows have in the given columns."""
        return int(self._group_of(query, keys).max(initial=-1)) + 1

    def _group_of(self, query: Query, keys: Sequence[str]) -> Places:
        """Return the number of the group of each selected row; groups are numbered from 0 without gaps."""
        chosen = self.choose(query)
        found = np.zeros(len(chosen), dtype=np.int64)
        for key in keys:
            coded = self.columns.coded(key)
            if len(coded.labels) < 2:
                continue  # it separates nothing
            # Numbered anew after each column, since the product of all their sizes may exceed 64 bits.
            found = np.unique(found * len(coded.labels) + coded.codes[chosen], return_inverse=True)[1]
        return found

    def field(self, key: str) -> Field:
        for column in self.fields:
            if column.key == key:
                return column
        raise UsageError(f"no column named {key!r}; known: {', '.join(column.key for column in self.fields)}")

    def _filtered(self, query: Query) -> Places:
        kept = np.ones(self.rows, dtype=bool)
        for key, labels in query.equal:
            coded = self.columns.coded(key)
            kept &= np.array([label in labels for label in coded.labels], dtype=bool)[coded.codes]
        for key, least in query.least:
            kept &= self.columns.numbers(key) >= least
        for key, most in query.most:
            kept &= self.columns.numbers(key) <= most
        if query.words:
            kept &= self._with_words(query.words.casefold())
        return np.flatnonzero(kept)

    def _with_words(self, words: str) -> Any:
        found = np.zeros(self.rows, dtype=bool)
        for column in self.fields:
            if column.kind == "text":
                coded = self.columns.coded(column.key)
                has = [name != NOTHING and words in name.casefold() for name in coded.labels]
                found |= np.array(has, dtype=bool)[coded.codes]
        return found

    def _sorted(self, left: Places, query: Query) -> Places:
        """Return rows in a stable order; missing values come last in either direction."""
        if not query.sort:
            return left
        if self.field(query.sort).kind == "text":
            coded = self.columns.coded(query.sort)
            keys = coded.ranks[coded.codes[left]].astype(float)
            keys[np.array([name == NOTHING for name in coded.labels], dtype=bool)[coded.codes[left]]] = np.nan
        else:
            keys = self.columns.numbers(query.sort)[left]
        return left[np.argsort(-keys if query.descending else keys, kind="stable")]


def telling(
    fields: Sequence[Field], columns: Columns, always: Collection[str], often_zero: Collection[str] = ()
) -> list[Field]:
    """Return the columns that have any value; facets with the same value in all rows are not shown.

    Args:
        often_zero: columns that are left out also where all their values are 0.
    """
    found = []
    for column in fields:
        if column.key in always:
            found.append(column)
        elif column.facet or column.kind == "text":
            values = set(columns.coded(column.key).labels)
            if values - {NOTHING}:
                found.append(replace(column, shown=column.shown and (len(values) > 1 or not column.facet)))
        elif columns.occurs(column.key, zero=column.key not in often_zero):
            found.append(column)
    return found


def alike(table: RowTable) -> tuple[SharedValue, ...]:
    """Return the facet values that all rows share, with the titles of their columns."""
    values = {field.title: table.columns.coded(field.key).labels for field in table.fields if field.facet}
    return tuple(SharedValue(title, found[0]) for title, found in values.items() if len(found) == 1)


class CutCompactor(Struct, frozen=True):
    """What one compactor made of a cut."""

    name: str
    status: str  # ok, or how it failed
    reason: str
    used_tokens: int
    kept_share: float | None


class CutLine(Struct, frozen=True):
    """One line of a context, with a digit for each compactor: 1 where it kept the line."""

    text: str
    needed: bool
    kept: str


class CutPart(Struct, frozen=True):
    """A message or file, and lines of it."""

    title: str
    lines: tuple[CutLine, ...]


class CutContext(Struct, frozen=True, kw_only=True):
    """One cut of a run, line by line."""

    run: str
    source: str
    turn: int
    turns: tuple[int, ...]  # of all cuts of the run
    budget: int
    budgets: tuple[int, ...]
    context_tokens: int
    needed_tokens: int
    needed_lines: int
    compactors: tuple[CutCompactor, ...]
    missing: str  # why only needed lines are known
    matched: int
    offset: int
    parts: tuple[CutPart, ...]


@dataclass(frozen=True, slots=True)
class CutQuery:
    """Which cut of a run is shown, and which of its lines: all, needed, or lost (needed, and dropped by some)."""

    turn: int
    budget: int  # 0: the largest that was tried
    lines: str
    offset: int
    limit: int


class CutTables(Protocol):
    """The tables of a compaction benchmark, which an extension reads."""

    def __init__(self, folder: Path) -> None: ...

    @property
    def answers(self) -> list[str]:
        """The sentences that its command began with."""
        ...

    @property
    def table(self) -> RowTable:
        """Its compactions."""
        ...

    def cut(self, run_id: str, query: CutQuery, logs: LogFolders) -> CutContext:
        """Return one cut of a run, line by line."""
        ...
