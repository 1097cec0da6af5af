"""Poisson regression with absorbed fixed effects, a log-exposure offset and cluster-robust errors.

The group effects have a closed form given the slopes, so they are never columns; groups that carry no information about
the slopes are left out and counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eirkit.errors import SpecError
from eirkit.records.analysis import Excluded
from eirkit.vestige.inference.design import (
    Codes,
    Columns,
    Design,
    Floats,
    as_codes,
    as_floats,
    as_matrix,
    group_means,
    group_peaks,
    standardize,
)
from eirkit.vestige.inference.logistic import assemble
from eirkit.vestige.inference.results import (
    Ascent,
    Fit,
    LikelihoodPoint,
    climb,
    cluster_robust,
    direction,
    few_clusters_note,
    join_notes,
    missing,
)

_ON_THE_FENCE = 1e-6  # relative rounding in a direction that proves separation
Rows = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class _Data:
    counts: Floats
    exposure: Floats
    raw: Floats
    names: tuple[str, ...]
    groups: Codes
    clusters: Codes

    def at(self, rows: Rows) -> _Data:
        groups = np.unique(self.groups[rows], return_inverse=True)[1]
        clusters = np.unique(self.clusters[rows], return_inverse=True)[1]
        return _Data(self.counts[rows], self.exposure[rows], self.raw[rows], self.names, groups, clusters)


@dataclass(frozen=True, slots=True)
class _State:
    data: _Data
    design: Design
    ascent: Ascent
    separated: frozenset[str]


def poisson(counts: ArrayLike, columns: Columns, groups: Any, clusters: Any, *, exposure: ArrayLike) -> Fit:
    """Return log rate ratios per unit of each column, with CR1 errors; k counts slopes and groups.

    Args:
        groups: labels whose rates are free; only differences inside a group count.
        clusters: labels of rows that are not independent.
        exposure: what a row was exposed to; its logarithm is the offset. Rows of no exposure are left out and counted.
    """
    y = as_floats("counts", counts)
    if (y < 0).any():
        raise SpecError("counts holds negative values; give numbers of events")
    n, names = len(y), tuple(columns)
    time = as_floats("exposure", exposure, n)
    labels = as_codes("groups", groups, n), as_codes("clusters", clusters, n)
    data = _Data(y, time, as_matrix(columns, n), names, *labels)
    if not n:
        return missing(names, "no rows")
    rows, excluded = _informative(data)
    state = _fit(data.at(rows), frozenset()) if len(rows) else "no group has two rows and a count above zero"
    if isinstance(state, str):
        return missing(names, state, n=len(rows), clusters=len(np.unique(data.clusters[rows])), excluded=excluded)
    lost = len(rows) - len(state.data.counts)
    if lost:
        reason = "never counted under " + ", ".join(sorted(state.separated))
        excluded = (*excluded, Excluded(reason, lost))
    return _report(state, excluded)


def profile(
    y: Floats, log_exposure: Floats, matrix: Floats, groups: Codes, theta: Floats
) -> tuple[LikelihoodPoint, Floats]:
    """Return the log-likelihood with the group effects at their optimum, up to a constant, and the means."""
    linear = matrix @ theta + log_exposure
    linear -= group_peaks(linear, groups)[groups]  # only differences within a group matter, and this avoids overflow
    rate = np.exp(linear)
    totals = np.bincount(groups, y)
    effects = np.log(totals) - np.log(np.bincount(groups, rate))
    mean = rate * np.exp(effects)[groups]
    value = float(y @ (linear + effects[groups])) - float(totals.sum())
    inner = matrix - group_means(matrix, groups, mean)[groups]
    return LikelihoodPoint(value, matrix.T @ (y - mean), (inner.T * mean) @ inner), mean


def _informative(data: _Data) -> tuple[Rows, tuple[Excluded, ...]]:
    """Return the rows of groups with two rows or more and a count above zero."""
    exposed = data.exposure > 0
    size = np.bincount(data.groups, exposed)
    total = np.bincount(data.groups, data.counts * exposed)
    empty = exposed & (total == 0)[data.groups]
    single = exposed & ~empty & (size == 1)[data.groups]
    kept = exposed & ~empty & ~single
    reasons = {"no exposure": ~exposed, "no count in the whole group": empty, "alone in its group": single}
    excluded = tuple(Excluded(reason, int(mask.sum())) for reason, mask in reasons.items() if mask.any())
    return np.flatnonzero(kept), excluded


def _fit(data: _Data, separated: frozenset[str]) -> _State | str:
    if data.clusters.max() == 0:
        return "all rows belong to one cluster, so no error can be estimated"
    design = standardize(data.names, data.raw, data.groups)
    offset = np.log(data.exposure)
    ascent = climb(
        lambda theta: profile(data.counts, offset, design.matrix, data.groups, theta)[0], np.zeros(len(design.names))
    )
    if ascent.converged:
        return _State(data, design, ascent, separated)
    decided, involved = _certificate(data, design.matrix, ascent)
    if not decided.any():
        return "the fit did not converge; leave out nearly collinear columns"
    culprits = {design.names[j] for j in np.flatnonzero(involved)}
    rows = np.flatnonzero(~decided)
    rows = rows[_informative(data.at(rows))[0]]
    if not len(rows):
        return (
            f"separation: {', '.join(sorted(separated | culprits))} predict every count, so the rate ratio is infinite"
        )
    return _fit(data.at(rows), separated | culprits)


def _certificate(data: _Data, matrix: Floats, ascent: Ascent) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return the rows without a count whose mean a direction sends to zero while no counted row moves."""
    way = direction(ascent.step)
    scores = matrix @ way
    counted = data.counts > 0
    drop = group_peaks(scores, data.groups)[data.groups] - scores
    limit = _ON_THE_FENCE * drop.max()
    none = np.zeros(len(scores), dtype=bool)
    if not ascent.runaway or (drop[counted] > limit).any():
        return none, way != 0
    return drop > limit, way != 0


def _report(state: _State, excluded: tuple[Excluded, ...]) -> Fit:
    data, design, theta = state.data, state.design, state.ascent.theta
    _, mean = profile(data.counts, np.log(data.exposure), design.matrix, data.groups, theta)
    inner = design.matrix - group_means(design.matrix, data.groups, mean)[data.groups]
    scores = inner * (data.counts - mean)[:, None]
    parameters = len(theta) + int(data.groups.max()) + 1
    covariance = cluster_robust(state.ascent.point.information, scores, data.clusters, parameters)
    terms = assemble(data.names, design, theta, covariance, state.separated)
    clusters = int(data.clusters.max()) + 1
    notes = [few_clusters_note(clusters), *(f"{t.name} {t.note}" for t in terms if t.note)]
    notes += [str(part) for part in excluded]
    return Fit(terms, len(data.counts), clusters, True, state.ascent.point.value, excluded, join_notes(notes))
