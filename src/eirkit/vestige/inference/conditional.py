"""Conditional logistic regression: who failed inside a stratum, given how many did, exactly.

A 0/1 outcome, named columns and strata come in. Strata in which all rows agree say nothing and are counted. Errors come
from the information, or from resampling whole strata, or, on request, rows within strata.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eirkit.errors import SpecError, TooLargeError
from eirkit.vestige.inference.ascent import Ascent, Point, climb, direction, invert
from eirkit.vestige.inference.bootstrap import cluster_weights, percentile_term
from eirkit.vestige.inference.conditional_kernels import LARGEST_STRATUM, Kernel, kernel
from eirkit.vestige.inference.design import Codes, Columns, Design, Floats, as_binary, as_codes, as_matrix, standardise
from eirkit.vestige.inference.logistic import assemble
from eirkit.vestige.inference.results import Excluded, Fit, join_notes, missing

Unit = Literal["strata", "rows"]
ROWS_NOTE = (
    "rows resampled inside strata: repeated rows bias conditional estimates away from zero, and the interval covers "
    "less than it says; resample whole strata instead"
)
_ON_THE_FENCE = 1e-6  # of the largest score: rounding in a direction that proves separation
_STILL = 1e-6  # standard deviations of a column: far below the spread of resamples
_LARGE = 12.0  # log odds per standard deviation that only a separated resample reaches


@dataclass(frozen=True, slots=True)
class Strata:
    """Rows sorted by stratum; in each, cases are the rarer outcome, with signs turned where they were not."""

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


def log_likelihood(strata: Strata, theta: Floats, weights: Floats, inner: Kernel) -> Point:
    """Return the conditional log-likelihood with its derivatives; weights count strata."""
    width = strata.matrix.shape[1]
    gradient, information = np.zeros(width), np.zeros((width, width))
    linear = strata.matrix @ theta
    below = inner(linear, strata.matrix, strata.starts, strata.cases, weights, gradient, information)
    observed = weights @ strata.observed
    return Point(float(observed @ theta) - below, observed - gradient, information)


def arrange(y: Floats, matrix: Floats, codes: Codes) -> Strata:
    """Return rows sorted by stratum, without strata in which all rows agree."""
    totals, sizes = np.bincount(codes, y), np.bincount(codes)
    kept = np.flatnonzero(((totals > 0) & (totals < sizes))[codes])
    order = kept[np.argsort(codes[kept], kind="stable")]
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    sizes, totals = sizes[codes[order][starts]], totals[codes[order][starts]]
    # The subsets that failed and those that did not are the same thing; the smaller ones are fewer to sum over.
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
        return "no stratum has both outcomes, so nothing can be compared inside one"
    if not len(rows):
        return f"separation: {', '.join(sorted(separated))} predict every stratum, so odds are infinite"
    inner = np.unique(codes[rows], return_inverse=True)[1]
    design = standardise(names, raw[rows], inner)
    order = rows[np.argsort(codes[rows], kind="stable")]
    strata = arrange(y[rows], design.matrix, inner)
    ones = np.ones(len(strata.cases))
    ascent = climb(lambda t: log_likelihood(strata, t, ones, kernel()), np.zeros(len(design.names)))
    if ascent.converged:
        return _State(rows, design, strata, ascent, separated)
    way = direction(ascent.step)
    decided = _decided(strata, strata.matrix @ way) if ascent.runaway else np.zeros(len(rows), dtype=bool)
    if not decided.any():
        return "the fit did not converge; leave out columns that say nearly the same"
    culprits = {design.names[j] for j in np.flatnonzero(way)}
    return _fit(y, raw, names, codes, _discordant(y, codes, np.sort(order[~decided])), separated | culprits)


def _decided(strata: Strata, scores: Floats) -> NDArray[np.bool_]:
    """Return the rows that a direction decides: cases above, others below the lowest case; none if one lies amiss."""
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
        excluded = (*excluded, Excluded("decided by " + ", ".join(sorted(state.separated)), lost))
    covariance = invert(state.ascent.point.information)
    terms = assemble(names, state.design, state.ascent.theta, covariance, state.separated)
    notes = [f"{t.name} {t.note}" for t in terms if t.note]
    notes += [f"{part.rows} rows left out: {part.reason}" for part in excluded]
    value = state.ascent.point.value
    return Fit(terms, len(state.rows), len(state.strata.cases), True, value, excluded, join_notes(notes))


def _resample(state: _State, rng: np.random.Generator, resamples: int, unit: Unit) -> Floats:
    """Return the estimates of every resample, NaN where one has no fit: resamples × columns."""
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
