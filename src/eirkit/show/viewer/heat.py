"""The heat map of the viewer: a figure by two columns of a table, or the most frequent value of a column of texts.

Each cell is the mean over runs of each run's own value, as in the summary of a sweep.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eirkit.errors import UsageError
from eirkit.findings.statistics import mean
from eirkit.show.document import Axis, Chart, Series
from eirkit.show.viewer.tables import Coded, Field, Places, Query, RowTable

MOST_PLACES = 40  # on an axis; beyond it names cannot be read


def heat(table: RowTable, query: Query, x: str, y: str, value: str) -> dict[str, Any]:
    """Return the heat map with the number of runs in each cell."""
    across, down, figure = table.field(x), table.field(y), table.field(value)
    if figure.kind == "text" and not figure.facet:
        raise UsageError(f"{value} is no figure; choose a column of numbers")
    groups = table.groups(query, (x, y))
    kept_x, kept_y = (_kept([key[side] for key in groups]) for side in (0, 1))
    places = [(key, rows) for key, rows in groups.items() if key[0] in kept_x and key[1] in kept_y]
    labels: list[str] = []
    values: list[float | None]
    if figure.kind == "text":
        usual = [_usual(table.columns.coded(value), rows) for _, rows in places]
        labels, values = [name for name, _ in usual], [share for _, share in usual]
    else:
        numbers = table.columns.numbers(value)
        values = [_mean(numbers[rows]) for _, rows in places]
    cells = Series(
        figure.title,
        "cells",
        tuple(key[0] for key, _ in places),
        tuple(key[1] for key, _ in places),
        value=tuple(values),
    )
    chart = Chart(
        "heat",
        f"{figure.title} by {across.title} and {down.title}",
        _usual_words(figure, labels)
        if labels
        else _words(figure, [(key, v) for (key, _), v in zip(places, values, strict=True) if v is not None]),
        Axis(across.title, "category"),
        Axis(down.title, "category"),
        (cells,),
    )
    counts = [len(rows) for _, rows in places]
    left_out = len(groups) - len(places)
    order = {"x": sorted(kept_x, key=_rank), "y": sorted(kept_y, key=_rank)}
    more = {"left_out": left_out, **order, "kind": figure.kind, "labels": labels}
    return {"chart": chart.as_json(), "runs": counts, **more}


def _usual(coded: Coded, rows: Places) -> tuple[str, float]:
    """Return the most frequent label of some rows, the first of several, and its share of them."""
    counts = np.bincount(coded.codes[rows], minlength=len(coded.labels))
    most = int(counts.argmax())
    return coded.labels[most], float(counts[most]) / len(rows)


def _usual_words(figure: Field, labels: Sequence[str]) -> str:
    found = Counter(labels)
    return f"{len(labels)} cells by the most frequent {figure.title}: " + (
        ", ".join(f"{name} in {count}" for name, count in found.most_common()) + "."
    )


def _mean(numbers: NDArray[np.float64]) -> float | None:
    return mean(numbers[~np.isnan(numbers)].tolist())


def _kept(labels: Sequence[str]) -> frozenset[str]:
    return frozenset(sorted(set(labels), key=_rank)[:MOST_PLACES])


def _rank(label: str) -> tuple[int, float, str]:
    """Return a sort key that orders numbers by value and puts words after them."""
    try:
        return 0, float(label), label
    except ValueError:
        return 1, 0.0, label


def _words(figure: Field, found: Sequence[tuple[tuple[str, ...], float]]) -> str:
    if not found:
        return f"No run has a value of {figure.title}."
    low, high = min(found, key=lambda one: one[1]), max(found, key=lambda one: one[1])
    shown = [f"{value:.1%}" if figure.kind in ("share", "flag") else f"{value:,.4g}" for _, value in (low, high)]
    return (
        f"{len(found)} cells; {figure.title} from {shown[0]} at {' / '.join(low[0])} to {shown[1]} at "
        f"{' / '.join(high[0])}."
    )
