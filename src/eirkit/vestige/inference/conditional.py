"""Exact conditional logistic regression: which rows of a stratum failed, given how many did.

Strata in which all rows agree carry no information and are counted. Errors come from the information matrix, or from
resampling whole strata or, on request, rows within strata.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eirkit.errors import SpecError, TooLargeError
from eirkit.packages import compiled, has_compiler
from eirkit.records.analysis import Excluded
from eirkit.vestige.inference.design import Codes, Columns, Design, Floats, as_binary, as_codes, as_matrix, standardize
from eirkit.vestige.inference.logistic import assemble
from eirkit.vestige.inference.results import (
    Ascent,
    Fit,
    LikelihoodPoint,
    climb,
    cluster_weights,
    direction,
    invert,
    join_notes,
    missing,
    percentile_term,
)

Kernel = Callable[[Floats, Floats, Codes, Codes, Floats, Floats, Floats], float]
LARGEST_STRATUM = 900  # rows: sums over the subsets of larger strata overflow
_BLOCK_FLOATS = 1 << 15  # second derivatives that the NumPy kernel holds at once, sized for a CPU cache


def kernel() -> Kernel:
    """Return the fastest kernel that is available."""
    return compiled(with_loops, error_model="numpy") if has_compiler() else with_numpy


def with_loops(
    linear: Floats,
    matrix: Floats,
    starts: Codes,
    cases: Codes,
    weights: Floats,
    gradient: Floats,
    information: Floats,
) -> float:
    """Return the weighted log denominators, summed; add their gradient and second derivatives to the last two.

    Args:
        linear: log odds per row.
        starts: first row of each stratum, and the number of rows at the end.
        cases: rows with the outcome, per stratum.
    """
    width, most = matrix.shape[1], 0
    for s in range(len(cases)):
        most = max(most, cases[s])
    b, d, h = np.zeros(most + 1), np.zeros((most + 1, width)), np.zeros((most + 1, width, width))
    total = 0.0
    for s in range(len(cases)):
        m, first, last, peak = cases[s], starts[s], starts[s + 1], -np.inf
        if weights[s] == 0.0:
            continue
        for k in range(m + 1):
            b[k] = 1.0 if k == 0 else 0.0
            for p in range(width):
                d[k, p] = 0.0
                for q in range(p + 1):
                    h[k, p, q] = 0.0
        for i in range(first, last):
            peak = max(peak, linear[i])
        for i in range(first, last):
            e = np.exp(linear[i] - peak)
            # A subset of size m needs m − k more rows, so smaller k cannot matter once too few rows are left.
            for k in range(min(m, i - first + 1), max(0, m - (last - i)), -1):
                for p in range(width):
                    x = matrix[i, p]
                    for q in range(p + 1):
                        z = matrix[i, q]
                        h[k, p, q] += e * (h[k - 1, p, q] + x * d[k - 1, q] + z * d[k - 1, p] + x * z * b[k - 1])
                for p in range(width):
                    d[k, p] += e * (d[k - 1, p] + matrix[i, p] * b[k - 1])
                b[k] += e * b[k - 1]
        total += weights[s] * (np.log(b[m]) + m * peak) if b[m] > 0.0 else np.inf
        for p in range(width):
            gradient[p] += weights[s] * d[m, p] / b[m]
            for q in range(p + 1):
                second = weights[s] * (h[m, p, q] / b[m] - d[m, p] / b[m] * (d[m, q] / b[m]))
                information[p, q] += second
                information[q, p] += second if p != q else 0.0
    return total


def with_numpy(
    linear: Floats,
    matrix: Floats,
    starts: Codes,
    cases: Codes,
    weights: Floats,
    gradient: Floats,
    information: Floats,
) -> float:
    """Compute the same as `with_loops`, over blocks of strata of similar size."""
    live = np.flatnonzero(weights != 0)
    order = live[np.lexsort((cases[live], np.diff(starts)[live]))]
    total, width = 0.0, matrix.shape[1]
    block = max(1, _BLOCK_FLOATS // ((int(cases.max(initial=0)) + 1) * (width + 1) ** 2))
    for first in range(0, len(order), block):
        strata = order[first : first + block]
        total += _block(
            linear, matrix, (starts[strata], starts[strata + 1]), cases[strata], weights[strata], gradient, information
        )
    return total


def _block(
    linear: Floats,
    matrix: Floats,
    span: tuple[Codes, Codes],
    cases: Codes,
    weights: Floats,
    gradient: Floats,
    information: Floats,
) -> float:
    odds, rows, peaks = _padded(linear, matrix, span)
    count, most, width = len(cases), int(cases.max()), matrix.shape[1]
    b, d = np.zeros((count, most + 1)), np.zeros((count, most + 1, width))
    h = np.zeros((count, most + 1, width, width))
    b[:, 0] = 1.0
    for i in range(odds.shape[1]):
        e, x = odds[:, i, None], rows[:, i, None, :]
        cross = x[..., :, None] * d[:, :-1, None, :]
        square = (x[..., :, None] * x[..., None, :]) * b[:, :-1, None, None]
        h[:, 1:] += e[..., None, None] * (h[:, :-1] + cross + np.swapaxes(cross, -1, -2) + square)
        d[:, 1:] += e[..., None] * (d[:, :-1] + x * b[:, :-1, None])
        b[:, 1:] += e * b[:, :-1]
    own = np.arange(count), cases
    if (b[own] <= 0).any():
        return float("inf")
    slope = d[own] / b[own][:, None]
    second = h[own] / b[own][:, None, None] - slope[:, :, None] * slope[:, None, :]
    gradient += weights @ slope
    information += np.tensordot(weights, second, axes=1)
    return float(weights @ (np.log(b[own]) + cases * peaks))


def _padded(linear: Floats, matrix: Floats, span: tuple[Codes, Codes]) -> tuple[Floats, Floats, Floats]:
    """Return odds and columns as strata × rows, padded with rows of odds zero."""
    longest = int((span[1] - span[0]).max())
    places = span[0][:, None] + np.arange(longest)
    inside: NDArray[np.bool_] = places < span[1][:, None]
    places = np.where(inside, places, span[0][:, None])
    values = np.where(inside, linear[places], -np.inf)
    peaks: Floats = values.max(axis=1)
    return np.exp(values - peaks[:, None]), matrix[places], peaks


Unit = Literal["strata", "rows"]
ROWS_NOTE = (
    "rows were resampled within strata: repeated rows bias conditional estimates away from zero, and the interval "
    "covers less than it says; resample whole strata instead"
)
_ON_THE_FENCE = 1e-6  # relative rounding in a direction that proves separation
_STILL = 1e-6  # in standard deviations of a column; far below the spread of resamples
_LARGE = 12.0  # log odds per standard deviation that only separated resamples reach


@dataclass(frozen=True, slots=True)
class Strata:
    """Rows sorted by stratum; cases are the rarer outcome in each, with signs flipped where they were not."""

    matrix: Floats
    is_case: Floats
    starts: Codes  # first row of each stratum, and the number of rows
    cases: Codes
    observed: Floats  # the cases' columns summed, strata × columns


@dataclass(frozen=True, slots=True)
class _State:
    rows: NDArray[np.intp]
    design: Design
    strata: Strata
    ascent: Ascent
    separated: frozenset[str]


def conditional_logit(outcome: ArrayLike, columns: Columns, strata: Any) -> Fit:
    """Return log odds ratios per unit of each column with errors from the information; `clusters` counts strata."""
    y = as_binary("outcome", outcome)
    codes, names = as_codes("strata", strata, len(y)), tuple(columns)
    state = _prepare(y, as_matrix(columns, len(y)), names, codes)
    return state if isinstance(state, Fit) else _report(state, names, y, codes)


def bootstrap_conditional_logit(
    outcome: ArrayLike,
    columns: Columns,
    strata: Any,
    rng: np.random.Generator,
    *,
    resamples: int = 1000,
    unit: Unit = "strata",
) -> Fit:
    """Return the same estimates with percentile intervals.

    Args:
        unit: "strata" resamples the strata that inform the fit, whole; "rows" resamples rows inside each of them, with
            a bias that the note names.
    """
    if unit not in ("strata", "rows"):
        raise SpecError(f"cannot resample {unit!r}; choose 'strata' or 'rows'")
    y = as_binary("outcome", outcome)
    codes, names = as_codes("strata", strata, len(y)), tuple(columns)
    state = _prepare(y, as_matrix(columns, len(y)), names, codes)
    if isinstance(state, Fit):
        return state
    draws = _resample(state, rng, resamples, unit)
    return _with_percentiles(_report(state, names, y, codes), state, draws, resamples, unit)


def log_likelihood(strata: Strata, theta: Floats, weights: Floats, inner: Kernel) -> LikelihoodPoint:
    """Return the conditional log-likelihood with its derivatives; weights count strata."""
    width = strata.matrix.shape[1]
    gradient, information = np.zeros(width), np.zeros((width, width))
    linear = strata.matrix @ theta
    below = inner(linear, strata.matrix, strata.starts, strata.cases, weights, gradient, information)
    observed = weights @ strata.observed
    return LikelihoodPoint(float(observed @ theta) - below, observed - gradient, information)


def arrange(y: Floats, matrix: Floats, codes: Codes) -> Strata:
    """Return rows sorted by stratum, without strata in which all rows agree."""
    totals, sizes = np.bincount(codes, y), np.bincount(codes)
    kept = np.flatnonzero(((totals > 0) & (totals < sizes))[codes])
    order = kept[np.argsort(codes[kept], kind="stable")]
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    sizes, totals = sizes[codes[order][starts]], totals[codes[order][starts]]
    # Conditioning on failures or on successes is equivalent; the rarer outcome has fewer subsets.
    turned = np.repeat(totals > sizes - totals, sizes)
    is_case = np.where(turned, 1 - y[order], y[order])
    signed = np.where(turned[:, None], -matrix[order], matrix[order])
    cases = np.minimum(totals, sizes - totals).astype(np.int64)
    observed = np.add.reduceat(signed * is_case[:, None], starts, axis=0) if len(starts) else signed
    return Strata(
        np.ascontiguousarray(signed), is_case, np.append(starts, len(order)).astype(np.int64), cases, observed
    )


def _prepare(y: Floats, raw: Floats, names: tuple[str, ...], codes: Codes) -> _State | Fit:
    if not len(y):
        return missing(names, "no rows")
    rows = _discordant(y, codes, np.arange(len(y)))
    if (largest := int(np.bincount(codes[rows]).max(initial=0))) > LARGEST_STRATUM:
        raise TooLargeError(
            f"a stratum has {largest} rows, more than {LARGEST_STRATUM}; use finer strata, or logistic regression"
        )
    state = _fit(y, raw, names, codes, rows, frozenset())
    if not isinstance(state, str):
        return state
    return missing(names, state, n=len(rows), clusters=len(np.unique(codes[rows])), excluded=_agreeing(y, rows))


def _discordant(y: Floats, codes: Codes, rows: NDArray[np.intp]) -> NDArray[np.intp]:
    count = int(codes.max()) + 1
    totals, sizes = np.bincount(codes[rows], y[rows], count), np.bincount(codes[rows], minlength=count)
    return rows[((totals > 0) & (totals < sizes))[codes[rows]]]


def _agreeing(y: Floats, rows: NDArray[np.intp]) -> tuple[Excluded, ...]:
    lost = len(y) - len(rows)
    return (Excluded("in strata where all rows agree", lost),) if lost else ()


def _fit(
    y: Floats,
    raw: Floats,
    names: tuple[str, ...],
    codes: Codes,
    rows: NDArray[np.intp],
    separated: frozenset[str],
) -> _State | str:
    if not len(rows) and not separated:
        return "no stratum has both outcomes, so nothing can be compared within one"
    if not len(rows):
        return f"separation: {', '.join(sorted(separated))} predict every stratum, so the odds ratio is infinite"
    inner = np.unique(codes[rows], return_inverse=True)[1]
    design = standardize(names, raw[rows], inner)
    order = rows[np.argsort(codes[rows], kind="stable")]
    strata = arrange(y[rows], design.matrix, inner)
    ones = np.ones(len(strata.cases))
    ascent = climb(lambda t: log_likelihood(strata, t, ones, kernel()), np.zeros(len(design.names)))
    if ascent.converged:
        return _State(rows, design, strata, ascent, separated)
    way = direction(ascent.step)
    decided = _decided(strata, strata.matrix @ way) if ascent.runaway else np.zeros(len(rows), dtype=bool)
    if not decided.any():
        return "the fit did not converge; leave out nearly collinear columns"
    culprits = {design.names[j] for j in np.flatnonzero(way)}
    return _fit(y, raw, names, codes, _discordant(y, codes, np.sort(order[~decided])), separated | culprits)


def _decided(strata: Strata, scores: Floats) -> NDArray[np.bool_]:
    """Return the rows that a direction decides: cases above, others below the lowest case; none if one does not fit."""
    first, sizes = strata.starts[:-1], np.diff(strata.starts)
    is_case = strata.is_case == 1
    lowest = np.minimum.reduceat(np.where(is_case, scores, np.inf), first)
    highest = np.maximum.reduceat(np.where(is_case, -np.inf, scores), first)
    limit = _ON_THE_FENCE * np.abs(scores).max()
    if (highest > lowest + limit).any():
        return np.zeros(len(scores), dtype=bool)
    decided: NDArray[np.bool_] = np.abs(scores - np.repeat(lowest, sizes)) > limit
    return decided


def _report(state: _State, names: tuple[str, ...], y: Floats, codes: Codes) -> Fit:
    every = _discordant(y, codes, np.arange(len(y)))
    lost = len(every) - len(state.rows)
    excluded = _agreeing(y, every)
    if lost:
        excluded = (*excluded, Excluded("predicted perfectly by " + ", ".join(sorted(state.separated)), lost))
    covariance = invert(state.ascent.point.information)
    terms = assemble(names, state.design, state.ascent.theta, covariance, state.separated)
    notes = [f"{t.name} {t.note}" for t in terms if t.note]
    notes += [str(part) for part in excluded]
    value = state.ascent.point.value
    return Fit(terms, len(state.rows), len(state.strata.cases), True, value, excluded, join_notes(notes))


def _resample(state: _State, rng: np.random.Generator, resamples: int, unit: Unit) -> Floats:
    """Return the estimates of every resample, NaN where the fit failed: resamples × columns."""
    draws = np.full((resamples, len(state.design.names)), np.nan)
    inner, start = kernel(), state.ascent.theta
    for i in range(resamples):
        strata, weights = _redraw(state.strata, rng, unit)
        if len(weights):
            ascent = climb(lambda t, s=strata, w=weights: log_likelihood(s, t, w, inner), start, _STILL)  # type: ignore[misc]
            if ascent.converged or ascent.runaway:
                draws[i] = ascent.theta
    return draws


def _redraw(strata: Strata, rng: np.random.Generator, unit: Unit) -> tuple[Strata, Floats]:
    if unit == "strata":
        return strata, cluster_weights(len(strata.cases), rng)
    sizes = np.diff(strata.starts)
    codes = np.repeat(np.arange(len(sizes)), sizes)
    rows = strata.starts[codes] + (rng.random(len(codes)) * sizes[codes]).astype(np.int64)
    redrawn = arrange(strata.is_case[rows], strata.matrix[rows], codes)
    return redrawn, np.ones(len(redrawn.cases))


def _with_percentiles(fit: Fit, state: _State, draws: Floats, resamples: int, unit: Unit) -> Fit:
    fitted = draws[~np.isnan(draws).any(axis=1)]
    scaled = fitted / state.design.scale
    place = {name: j for j, name in enumerate(state.design.names)}
    terms = tuple(
        percentile_term(t.name, t.estimate, scaled[:, place[t.name]]) if t.estimate is not None else t
        for t in fit.terms
    )
    unbounded = int((np.abs(fitted) > _LARGE).any(axis=1).sum())
    notes = [fit.note, ROWS_NOTE if unit == "rows" else ""]
    notes += (
        [f"{resamples - len(fitted)} of {resamples} resamples could not be fitted"] if len(fitted) < resamples else []
    )
    notes += [f"{unbounded} of {resamples} resamples are separated in some column"] if unbounded else []
    return replace(fit, terms=terms, note=join_notes(notes))
