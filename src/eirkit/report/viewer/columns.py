"""Columns of many rows in the forms that filters, orders and counts need: codes of labels, numbers, and single cells.

Lists come in from records, Arrow tables from an analysis; each column is turned into a form when that is first wanted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from eirkit.report.table import Cell

NOTHING = "–"  # how a missing value is called in filters and axes
Places = NDArray[np.int64]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Coded:
    """A column as labels and which of them each row has."""

    codes: Places
    labels: tuple[str, ...]

    @property
    def ranks(self) -> Places:
        """The place of each label in their order; what is missing comes last."""
        order = sorted(range(len(self.labels)), key=lambda code: (self.labels[code] == NOTHING, self.labels[code]))
        ranks = np.empty(len(order), dtype=np.int64)
        ranks[order] = np.arange(len(order))
        return ranks


class Columns(Protocol):
    """Columns of equal length."""

    rows: int

    def coded(self, key: str) -> Coded: ...

    def numbers(self, key: str) -> NDArray[np.float64]:
        """Return a column as numbers; not a number where it holds none."""
        ...

    def cells(self, keys: Sequence[str], places: Sequence[int]) -> list[dict[str, Cell]]:
        """Return some rows."""
        ...


def label(cell: Cell) -> str:
    """Return the name of a value in filters and on axes."""
    if cell is None or cell == "":
        return NOTHING
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    return f"{cell:g}" if isinstance(cell, float) else str(cell)


def number(cell: Cell) -> float:
    """Return a value as a number, a flag as 0 or 1; not a number for anything else."""
    return float(cell) if isinstance(cell, (bool, int, float)) else float("nan")


class _Kept:
    """Remembers every form of every column."""

    def __init__(self) -> None:
        self._made: dict[tuple[str, str], Any] = {}

    def get(self, form: str, key: str, make: Callable[[], T]) -> T:
        if (form, key) not in self._made:
            self._made[form, key] = make()
        found: T = self._made[form, key]
        return found


class ListColumns:
    """Columns that are lists."""

    def __init__(self, columns: Mapping[str, Sequence[Cell]], rows: int) -> None:
        self.rows, self._columns, self._kept = rows, columns, _Kept()

    def coded(self, key: str) -> Coded:
        return self._kept.get("coded", key, lambda: _coded([label(cell) for cell in self._columns[key]]))

    def numbers(self, key: str) -> NDArray[np.float64]:
        return self._kept.get(
            "numbers", key, lambda: np.array([number(cell) for cell in self._columns[key]], dtype=float)
        )

    def cells(self, keys: Sequence[str], places: Sequence[int]) -> list[dict[str, Cell]]:
        return [{key: self._columns[key][place] for key in keys} for place in places]


def _coded(labels: Sequence[str]) -> Coded:
    known: dict[str, int] = {}
    codes = [known.setdefault(one, len(known)) for one in labels]
    return Coded(np.array(codes, dtype=np.int64), tuple(known))


class ArrowColumns:
    """Columns of an Arrow table; what stands in a page is taken out of it, the rest stays where it is."""

    def __init__(self, table: Any) -> None:
        self.rows, self._table, self._kept = int(table.num_rows), table, _Kept()

    def coded(self, key: str) -> Coded:
        return self._kept.get("coded", key, lambda: self._code(key))

    def _code(self, key: str) -> Coded:
        encoded = self._table[key].combine_chunks().dictionary_encode("encode")
        if hasattr(encoded, "combine_chunks"):  # some versions keep one chunk
            encoded = encoded.combine_chunks()
        own = _coded([label(cell) for cell in encoded.dictionary.to_pylist()])  # two values may share a label
        return Coded(own.codes[encoded.indices.to_numpy(zero_copy_only=False)], own.labels)

    def numbers(self, key: str) -> NDArray[np.float64]:
        return self._kept.get("numbers", key, lambda: self._number(key))

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
