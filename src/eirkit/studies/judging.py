"""How a published figure is put beside ours: many of ours come in, in threes of seeds; one row goes out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from eirkit.report.study import Row
from eirkit.report.verdict import DIFFERS, NEEDS_MODEL, verdict_of

THREE = 3  # seeds behind a published mean
TOLERANCE = 3.0  # standard deviations of three-seed means
COUNTED = 1000  # repetitions from which on the range is counted and not taken from their deviation
TAILS = (0.00135, 0.99865)  # what three standard deviations leave out on either side of a normal distribution
NOTHING = "no run of ours has this figure, where the paper prints one; more seeds may have it"

Repetitions = Sequence[float] | NDArray[np.float64]
By = tuple[str, str]  # who made the published figure, who made ours


def compare(
    label: str, published: float, repetitions: Repetitions, by: By = ("", ""), why: str = "", digits: int = 3
) -> Row:
    """Return a judged row.

    Args:
        repetitions: ours, once for each repetition of the published experiment: a mean over three seeds, mostly.
        why: what is known of the difference, shown where there is one; it never changes the verdict.
        digits: with which the published figure is printed.
    """
    level = spread(repetitions)
    if level is None:
        return replace(absent(label, published, DIFFERS, NOTHING, by[0]), ours_by=by[1])
    ours, low, high = level
    verdict = verdict_of(published, ours, low, high, digits)
    return Row(label, published, ours, low, high, verdict, why if verdict == DIFFERS else "", "", *by)


def exact(label: str, published: float, ours: float, why: str = "", digits: int = 3, by: By = ("", "")) -> Row:
    """Return a judged row of a figure that has no spread."""
    return compare(label, published, [ours], by, why, digits)


def trait(label: str, published: float, repetitions: Repetitions, by: By, why: str) -> Row:
    """Return a row that is shown and never judged: near or far, the two figures belong to different models."""
    ours, low, high = spread(repetitions) or (None, None, None)
    return Row(label, published, ours, low, high, NEEDS_MODEL, why, "", *by)


def absent(label: str, published: float | None, verdict: str, why: str, published_by: str = "") -> Row:
    """Return a row without a figure of ours: what it needs is not here."""
    return Row(label, published, None, None, None, verdict, why, "", published_by)


def spread(repetitions: Repetitions) -> tuple[float, float, float] | None:
    """Return the mean and the range in which 99.7% of repetitions lie; None where there is no repetition."""
    values = np.asarray(repetitions, dtype=float)
    if not len(values):
        return None
    ours = float(values.mean())
    if len(values) >= COUNTED:
        low, high = (float(bound) for bound in np.quantile(values, TAILS))
        return ours, low, high
    return ours, ours - TOLERANCE * float(values.std()), ours + TOLERANCE * float(values.std())


def in_section(title: str, rows: Iterable[Row], source: str = "") -> tuple[Row, ...]:
    """Return rows under the title of their table, with where in the paper their figures stand."""
    return tuple(replace(row, section=title, source=source or row.source) for row in rows)


def sectioned(sections: Mapping[str, Iterable[Row]]) -> tuple[Row, ...]:
    return tuple(row for title, rows in sections.items() for row in in_section(title, rows))
