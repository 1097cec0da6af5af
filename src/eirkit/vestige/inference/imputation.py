"""Median imputation with an indicator of what was missing. NaN in, floats and a 0/1 column out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from eirkit.errors import SpecError
from eirkit.vestige.inference.design import Floats, as_codes


@dataclass(frozen=True, slots=True)
class Imputed:
    """A column without holes, and the column that says where they were."""

    values: Floats | None  # None where nothing at all is known
    missing: Floats  # 1 where the value was imputed
    median: float | None
    n: int
    imputed: int
    note: str = ""


def impute_median(values: ArrayLike, groups: Any = None) -> Imputed:
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
        return Imputed(None, holes.astype(np.float64), None, len(given), int(holes.sum()), note)
    median = float(np.median(known))
    note = f"{int(holes.sum())} of {len(given)} values imputed by the median {median:g}" if holes.any() else ""
    return Imputed(np.where(holes, median, given), holes.astype(np.float64), median, len(given), int(holes.sum()), note)


def _one_each(given: Floats, holes: Any, groups: Any) -> Floats:
    if groups is None:
        every: Floats = given[~holes]
        return every
    codes = as_codes("groups", groups, len(given))[~holes]
    firsts = np.unique(codes, return_index=True)[1]
    chosen: Floats = given[~holes][firsts]
    return chosen
