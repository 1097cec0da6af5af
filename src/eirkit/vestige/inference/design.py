"""Design matrices from named columns: checked, centered, scaled, without constant or collinear columns.

A design also converts estimates back to the caller's units.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eirkit.errors import SpecError

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
Columns = Mapping[str, ArrayLike]

INTERCEPT = "intercept"
_ROUNDING = 64 * float(np.finfo(np.float64).eps)
_NOTHING_NEW = 1e-9  # relative to a column's spread: below this a column is collinear up to rounding


@dataclass(frozen=True, slots=True)
class Design:
    """The columns that can be estimated, standardized, and the reasons why others cannot."""

    names: tuple[str, ...]
    matrix: Floats  # rows × names
    center: Floats
    scale: Floats
    dropped: Mapping[str, str]  # name to reason

    def with_intercept(self) -> Floats:
        """Return the matrix with a leading column of ones."""
        return np.column_stack([np.ones(len(self.matrix)), self.matrix])

    def back(self, *, intercept: bool) -> Floats:
        """Return the matrix that converts coefficients of this design to those of the columns as given."""
        slopes = np.diag(1 / self.scale)
        if not intercept:
            return slopes
        whole = np.zeros((len(self.names) + 1,) * 2)
        whole[0, 0], whole[1:, 1:] = 1, slopes
        whole[0, 1:] = -self.center / self.scale
        return whole


def as_floats(name: str, values: ArrayLike, rows: int | None = None) -> Floats:
    """Return values as a vector of finite floats.

    Raises:
        SpecError: the values have another length or shape, or are not all finite numbers.
    """
    vector = np.asarray(values, dtype=np.float64)
    if vector.ndim != 1 or (rows is not None and len(vector) != rows):
        raise SpecError(
            f"{name} has shape {vector.shape}, not ({'rows' if rows is None else rows},); give one value per row"
        )
    if not np.isfinite(vector).all():
        raise SpecError(f"{name} holds missing or infinite values; impute them or leave those rows out first")
    return vector


def as_binary(name: str, values: ArrayLike, rows: int | None = None) -> Floats:
    """Return values as a vector of zeros and ones."""
    vector = as_floats(name, values, rows)
    if not np.isin(vector, (0.0, 1.0)).all():
        raise SpecError(f"{name} holds values other than 0 and 1; code the outcome as 0 or 1")
    return vector


def as_codes(name: str, labels: Any, rows: int) -> Codes:
    """Return labels of any one kind as 0 … k−1, by ascending label."""
    array = np.asarray(labels)
    if array.shape != (rows,):
        raise SpecError(f"{name} has shape {array.shape}, not ({rows},); give one label per row")
    codes: Codes = np.unique(array, return_inverse=True)[1].astype(np.int64).reshape(rows)
    return codes


def as_matrix(columns: Columns, rows: int) -> Floats:
    """Return the columns side by side, as given."""
    vectors = [as_floats(f"column {name!r}", values, rows) for name, values in columns.items()]
    return np.column_stack(vectors) if vectors else np.empty((rows, 0))


def standardize(names: tuple[str, ...], raw: Floats, codes: Codes | None = None) -> Design:
    """Return the columns that vary beyond what the columns before them span.

    Args:
        codes: groups whose levels are free; only what varies inside them counts. Without it there is one group.
    """
    groups = np.zeros(len(raw), dtype=np.int64) if codes is None else codes
    center, spread = raw.mean(axis=0), raw.std(axis=0)
    scale = np.where(spread > 0, spread, 1.0)
    matrix = (raw - center) / scale
    inner = matrix - group_means(matrix, groups)[groups]
    constant = "does not vary" if codes is None else "does not vary within any group"
    # Rounding grows with the ratio of a column's values to their spread.
    noise = np.maximum(_NOTHING_NEW, _ROUNDING * (np.abs(center) / scale + 1) * (spread > 0))
    reasons = _reasons(inner, np.where(spread > 0, noise, np.inf), constant)
    kept = [j for j, reason in enumerate(reasons) if not reason]
    dropped = {names[j]: reason for j, reason in enumerate(reasons) if reason}
    return Design(tuple(names[j] for j in kept), matrix[:, kept], center[kept], scale[kept], dropped)


def group_means(matrix: Floats, codes: Codes, weights: Floats | None = None) -> Floats:
    """Return the (weighted) mean of every column in every group: groups × columns."""
    mass = np.bincount(codes, weights)
    weighted = matrix if weights is None else matrix * weights[:, None]
    return group_sums(weighted, codes) / mass[:, None]


def group_sums(matrix: Floats, codes: Codes) -> Floats:
    """Return the sum of every column in every group: groups × columns."""
    count = int(codes.max()) + 1
    sums = [np.bincount(codes, column, minlength=count) for column in matrix.T]
    return np.column_stack(sums) if sums else np.empty((count, 0))


def group_peaks(vector: Floats, codes: Codes) -> Floats:
    """Return the largest value in every group."""
    peaks = np.full(int(codes.max()) + 1, -np.inf)
    np.maximum.at(peaks, codes, vector)
    return peaks


def _reasons(inner: Floats, noise: Floats, constant: str) -> list[str]:
    basis = np.empty((len(inner), 0))
    reasons = []
    for column, share in zip(inner.T, noise, strict=True):
        least = share * np.sqrt(len(column))  # the norm of a standardized column is this root
        rest = column
        for _ in range(2):  # twice, since the first projection leaves rounding errors
            rest = rest - basis @ (basis.T @ rest)
        if share > 1 or np.linalg.norm(column) <= least:
            reasons.append(constant)
        elif np.linalg.norm(rest) <= least:
            reasons.append("is a combination of the columns before it")
        else:
            reasons.append("")
            basis = np.column_stack([basis, rest / np.linalg.norm(rest)])
    return reasons


@dataclass(frozen=True, slots=True)
class ImputedColumn:
    """A column without missing values, and the indicator of where they were."""

    values: Floats | None  # None if no value is known
    missing: Floats  # 1 where the value was imputed
    median: float | None
    n: int
    imputed: int
    note: str = ""


def impute_median(values: ArrayLike, groups: Any = None) -> ImputedColumn:
    """Return values with the median of the known ones in place of NaN.

    Args:
        groups: labels of rows that share one value, such as their task; the median then is over groups, each counted
            once by its first known value.
    """
    given = np.asarray(values, dtype=np.float64)
    if given.ndim != 1 or np.isinf(given).any():
        raise SpecError("values to impute must be one vector of numbers or NaN; remove infinities first")
    holes = np.isnan(given)
    known = _one_each(given, holes, groups)
    if not len(known):
        note = "no rows" if not len(given) else "no value is known, so there is no median to impute"
        return ImputedColumn(None, holes.astype(np.float64), None, len(given), int(holes.sum()), note)
    median = float(np.median(known))
    note = f"{int(holes.sum())} of {len(given)} values imputed by the median {median:g}" if holes.any() else ""
    return ImputedColumn(
        np.where(holes, median, given), holes.astype(np.float64), median, len(given), int(holes.sum()), note
    )


def _one_each(given: Floats, holes: Any, groups: Any) -> Floats:
    if groups is None:
        every: Floats = given[~holes]
        return every
    codes = as_codes("groups", groups, len(given))[~holes]
    firsts = np.unique(codes, return_index=True)[1]
    chosen: Floats = given[~holes][firsts]
    return chosen
