"""Logistic regression by iteratively reweighted least squares, with cluster-robust errors.

Rows that the columns predict perfectly (separation) are found by a certificate and left out, as the likelihood itself
does in the limit; their columns get no estimate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eirkit.records.analysis import Excluded
from eirkit.vestige.inference.design import (
    INTERCEPT,
    Codes,
    Columns,
    Design,
    Floats,
    as_binary,
    as_codes,
    as_matrix,
    standardize,
)
from eirkit.vestige.inference.results import (
    Ascent,
    Fit,
    LikelihoodPoint,
    Term,
    climb,
    cluster_robust,
    direction,
    few_clusters_note,
    join_notes,
    missing,
    standard_errors,
    wald,
)

_ON_THE_FENCE = 1e-6  # relative rounding in a direction that proves separation


@dataclass(frozen=True, slots=True)
class _State:
    """A fit on the rows that remain without separated ones."""

    rows: NDArray[np.intp]
    design: Design
    ascent: Ascent
    separated: frozenset[str]


def logistic(outcome: ArrayLike, columns: Columns, clusters: Any) -> Fit:
    """Return log-odds per unit of each column, the intercept first, with CR1 errors.

    Args:
        outcome: 0 or 1 per row.
        columns: name to one value per row; the intercept is added.
        clusters: labels of rows that are not independent.
    """
    y = as_binary("outcome", outcome)
    raw, codes = as_matrix(columns, len(y)), as_codes("clusters", clusters, len(y))
    names = tuple(columns)
    state = _hopeless(y, codes) or _fit(y, raw, names, np.arange(len(y)), frozenset())
    if isinstance(state, str):
        return missing((INTERCEPT, *names), state, n=len(y), clusters=len(np.unique(codes)))
    return _report(y, names, codes, state)


def log_likelihood(y: Floats, matrix: Floats, weights: Floats | None, theta: Floats) -> LikelihoodPoint:
    """Return the log-likelihood with its derivatives; weights count rows."""
    linear = matrix @ theta
    tail = np.exp(-np.abs(linear))
    mean = np.where(linear >= 0, 1, tail) / (1 + tail)
    rows = y * linear - np.maximum(linear, 0) - np.log1p(tail)
    residual, curvature = y - mean, mean * (1 - mean)
    if weights is not None:
        rows, residual, curvature = rows * weights, residual * weights, curvature * weights
    return LikelihoodPoint(float(rows.sum()), matrix.T @ residual, (matrix.T * curvature) @ matrix)


def maximize(y: Floats, matrix: Floats, weights: Floats | None = None, start: Floats | None = None) -> Ascent:
    """Return the maximum-likelihood coefficients of a matrix that already has its column of ones."""
    first = np.zeros(matrix.shape[1]) if start is None else start
    return climb(lambda theta: log_likelihood(y, matrix, weights, theta), first)


def mean_of(matrix: Floats, theta: Floats) -> Floats:
    """Return fitted probabilities."""
    linear = matrix @ theta
    tail = np.exp(-np.abs(linear))
    mean: Floats = np.where(linear >= 0, 1, tail) / (1 + tail)
    return mean


def _hopeless(y: Floats, codes: Codes) -> str:
    if not len(y):
        return "no rows"
    if y.min() == y.max():
        return f"the outcome is {int(y[0])} in all {len(y)} rows, so no odds can be compared"
    if codes.max() == 0:
        return "all rows belong to one cluster, so no error can be estimated"
    return ""


def _fit(
    y: Floats, raw: Floats, names: tuple[str, ...], rows: NDArray[np.intp], separated: frozenset[str]
) -> _State | str:
    if not len(rows) or y[rows].min() == y[rows].max():
        return f"separation: {', '.join(sorted(separated))} predict every row perfectly, so the odds ratio is infinite"
    design = standardize(names, raw[rows])
    matrix = design.with_intercept()
    ascent = maximize(y[rows], matrix)
    if not ascent.runaway:
        note = "the fit did not converge; leave out nearly collinear columns"
        return _State(rows, design, ascent, separated) if ascent.converged else note
    way = direction(ascent.step)
    decided = _certificate(y[rows], matrix @ way)
    if not decided.any():
        return "no maximum of the likelihood was found; leave out nearly collinear columns"
    return _fit(y, raw, names, rows[~decided], separated | _involved(design, way))


def _certificate(y: Floats, scores: Floats) -> NDArray[np.bool_]:
    """Return the rows that a direction predicts ever better, none if it predicts any row ever worse."""
    margins = (2 * y - 1) * scores
    limit = _ON_THE_FENCE * np.abs(margins).max()
    decided: NDArray[np.bool_] = (margins > limit) & (margins.min() >= -limit)
    return decided


def _involved(design: Design, way: Floats) -> frozenset[str]:
    """Return the terms that grow without bound in a direction, in the caller's units."""
    sizes = np.abs(design.back(intercept=True) @ way) * np.append(1.0, design.scale)
    names = (INTERCEPT, *design.names)
    return frozenset(names[j] for j in np.flatnonzero(sizes > _ON_THE_FENCE * sizes.max()))


def _report(y: Floats, names: tuple[str, ...], codes: Codes, state: _State) -> Fit:
    matrix, rows = state.design.with_intercept(), state.rows
    inner = np.unique(codes[rows], return_inverse=True)[1]
    clusters = int(inner.max()) + 1
    lost = len(y) - len(rows)
    reason = "predicted perfectly by " + ", ".join(sorted(state.separated))
    excluded = (Excluded(reason, lost),) if lost else ()
    if clusters < 2:
        note = "separation leaves one cluster, so no error can be estimated"
        return missing((INTERCEPT, *names), note, n=len(rows), clusters=clusters, excluded=excluded)
    scores = matrix * (y[rows] - mean_of(matrix, state.ascent.theta))[:, None]
    covariance = cluster_robust(state.ascent.point.information, scores, inner, matrix.shape[1])
    terms = assemble((INTERCEPT, *names), state.design, state.ascent.theta, covariance, state.separated)
    notes = [few_clusters_note(clusters), *(f"{t.name} {t.note}" for t in terms if t.note)]
    notes += [str(part) for part in excluded]
    value = state.ascent.point.value
    return Fit(terms, len(rows), clusters, True, value, excluded, join_notes(notes))


def assemble(
    names: tuple[str, ...], design: Design, theta: Floats, covariance: Floats, separated: frozenset[str]
) -> tuple[Term, ...]:
    """Return one term per name in the caller's units, with the reason where there is no estimate."""
    has_intercept = len(theta) > len(design.names)
    back = design.back(intercept=has_intercept)
    values, errors = back @ theta, standard_errors(back @ covariance @ back.T)
    fitted = ((INTERCEPT,) if has_intercept else ()) + design.names
    found = {name: wald(name, float(v), float(e)) for name, v, e in zip(fitted, values, errors, strict=True)}
    reasons = {**design.dropped, **dict.fromkeys(separated, "is separated: its odds ratio is infinite")}
    return tuple(Term(name, None, note=reasons[name]) if name in reasons else found[name] for name in names)
