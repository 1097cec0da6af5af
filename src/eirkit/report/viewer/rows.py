"""Many rows behind one table: columns and a query come in, one page of rows and what can be filtered by go out.

A filter is one pass over numbers and an order one sort; the last choices are kept, so that paging costs nothing.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from eirkit.errors import UsageError
from eirkit.report.viewer.columns import NOTHING, Columns, Places

FieldKind = Literal["text", "number", "share", "flag"]
LARGEST_PAGE = 500  # rows
MOST_FACETS = 60  # values of a column that are offered as filters
KEPT_CHOICES = 16


@dataclass(frozen=True, slots=True)
class Field:
    """One column of a table."""

    key: str
    title: str
    kind: FieldKind = "number"
    meaning: str = ""
    facet: bool = False  # few values, by which rows can be filtered and laid out
    shown: bool = True  # in the table; the others are for filters and axes


@dataclass(frozen=True, slots=True)
class Query:
    """Which rows, in which order; all of it stands in the address bar."""

    equal: tuple[tuple[str, tuple[str, ...]], ...] = ()  # column and the labels of which a row has one
    least: tuple[tuple[str, float], ...] = ()
    most: tuple[tuple[str, float], ...] = ()
    words: str = ""  # in any text column
    sort: str = ""
    descending: bool = False


@dataclass(slots=True)
class RowTable:
    """Rows under columns, of which those that say nothing have been left out."""

    fields: Sequence[Field]
    columns: Columns
    _choices: OrderedDict[Query, Places] = field(default_factory=OrderedDict)

    @property
    def rows(self) -> int:
        return self.columns.rows

    def page(self, query: Query, offset: int, limit: int) -> dict[str, Any]:
        """Return some of the chosen rows with how many there are."""
        chosen = self.choose(query)
        shown = chosen[offset : offset + min(limit, LARGEST_PAGE)].tolist()
        rows = self.columns.cells([one.key for one in self.fields if one.shown], shown)
        return {"rows": rows, "matched": len(chosen), "total": self.rows, "offset": offset}

    def choose(self, query: Query) -> Places:
        """Return the places of all rows that a query asks for, in its order."""
        kept = self._choices.get(query)
        if kept is not None:
            return kept
        self._refuse_unknown(query)
        found = self._sorted(self._filtered(query), query)
        self._choices[query] = found
        if len(self._choices) > KEPT_CHOICES:
            self._choices.popitem(last=False)
        return found

    def facets(self, query: Query) -> list[dict[str, Any]]:
        """Return the values of every facet among rows that the other filters leave, the most frequent first."""
        return [self._facet(one, query) for one in self.fields if one.facet]

    def _facet(self, one: Field, query: Query) -> dict[str, Any]:
        others = tuple(entry for entry in query.equal if entry[0] != one.key)
        left = self.choose(Query(others, query.least, query.most, query.words))
        coded = self.columns.coded(one.key)
        counts = np.bincount(coded.codes[left], minlength=len(coded.labels)).tolist()
        tally = sorted(((rows, name) for name, rows in zip(coded.labels, counts, strict=True) if rows), key=_most_first)
        values = [{"label": name, "rows": rows} for rows, name in tally[:MOST_FACETS]]
        return {"key": one.key, "title": one.title, "values": values, "distinct": len(tally)}

    def groups(self, query: Query, keys: tuple[str, str]) -> dict[tuple[str, str], Places]:
        """Return the places of the chosen rows by their labels in two columns."""
        first, second = (self.columns.coded(key) for key in keys)
        chosen = self.choose(query)
        both = first.codes[chosen] * len(second.labels) + second.codes[chosen]
        order = np.argsort(both, kind="stable")
        found, starts = np.unique(both[order], return_index=True)
        parts = np.split(chosen[order], starts[1:]) if len(found) else []
        pairs = (divmod(int(code), len(second.labels)) for code in found)
        return {(first.labels[a], second.labels[b]): part for (a, b), part in zip(pairs, parts, strict=True)}

    def field(self, key: str) -> Field:
        for one in self.fields:
            if one.key == key:
                return one
        raise UsageError(f"no column named {key!r}; known: {', '.join(one.key for one in self.fields)}")

    def _refuse_unknown(self, query: Query) -> None:
        named = [key for key, _ in (*query.equal, *query.least, *query.most)]
        for key in [*named, *([query.sort] if query.sort else [])]:
            self.field(key)

    def _filtered(self, query: Query) -> Places:
        kept = np.ones(self.rows, dtype=bool)
        for key, labels in query.equal:
            coded = self.columns.coded(key)
            kept &= np.array([one in labels for one in coded.labels], dtype=bool)[coded.codes]
        for key, least in query.least:
            kept &= self.columns.numbers(key) >= least
        for key, most in query.most:
            kept &= self.columns.numbers(key) <= most
        if query.words:
            kept &= self._with_words(query.words.casefold())
        return np.flatnonzero(kept)

    def _with_words(self, words: str) -> Any:
        found = np.zeros(self.rows, dtype=bool)
        for one in self.fields:
            if one.kind == "text":
                coded = self.columns.coded(one.key)
                has = [name != NOTHING and words in name.casefold() for name in coded.labels]
                found |= np.array(has, dtype=bool)[coded.codes]
        return found

    def _sorted(self, left: Places, query: Query) -> Places:
        """Return rows in order; equal ones stay as they were, what is missing comes last in either direction."""
        if not query.sort:
            return left
        if self.field(query.sort).kind == "text":
            coded = self.columns.coded(query.sort)
            keys = coded.ranks[coded.codes[left]].astype(float)
            keys[np.array([name == NOTHING for name in coded.labels], dtype=bool)[coded.codes[left]]] = np.nan
        else:
            keys = self.columns.numbers(query.sort)[left]
        return left[np.argsort(-keys if query.descending else keys, kind="stable")]


def _most_first(entry: tuple[int, str]) -> tuple[int, str]:
    return -entry[0], entry[1]


def as_json(fields: Sequence[Field]) -> list[dict[str, Any]]:
    """Return columns as pages read them."""
    names = ("key", "title", "kind", "meaning", "facet", "shown")
    return [{name: getattr(one, name) for name in names} for one in fields]


def telling(fields: Sequence[Field], columns: Columns, always: Collection[str]) -> list[Field]:
    """Return the columns that say anything; those by which all rows are alike need not be shown."""
    found = []
    for one in fields:
        if one.key in always:
            found.append(one)
        elif one.facet or one.kind == "text":
            values = set(columns.coded(one.key).labels)
            if values - {NOTHING}:
                found.append(replace(one, shown=one.shown and (len(values) > 1 or not one.facet)))
        elif not np.isnan(columns.numbers(one.key)).all():
            found.append(one)
    return found


def alike(table: RowTable) -> list[dict[str, str]]:
    """Return the values that all rows share, by the titles of their columns."""
    values = {one.title: table.columns.coded(one.key).labels for one in table.fields if one.facet}
    return [{"title": title, "value": found[0]} for title, found in values.items() if len(found) == 1]
