"""What all regressions share: Newton's method, terms with errors and intervals, excluded rows, robust covariances.

Intervals are 95%. A number that does not exist is None and the note says why; no value is ever NaN.

Near a finite maximum the steps of Newton's method shrink quadratically. With separated data they stay about one while
the likelihood stops growing; the last step then points to infinity, and its signs on the rows are the certificate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from math import erfc, exp, inf, sqrt
from statistics import NormalDist

import numpy as np

from eirkit.errors import UnknownNameError
from eirkit.records.analysis import Excluded
from eirkit.vestige.inference.design import Codes, Floats, group_sums

LEVEL = 0.95
Z = NormalDist().inv_cdf((1 + LEVEL) / 2)
_LARGEST_LOG = 700.0  # above this the exponential overflows
MOST_STEPS = 100
_STILL = 1e-9  # largest entry of a last step, in standard deviations of a column
_FLAT = 1e-10  # twice the log-likelihood that a further step would gain
_MOVING = 0.05  # a step this long on a flat likelihood leads to infinity
_LONGEST = 3.0  # longest step, in standard deviations of a column: the parabola is only local
_PATIENCE = 5  # steps in a row without a gain that a float can represent
_SHORTEST = 1e-6  # smallest fraction of a Newton step that is tried
_ROUNDING = 1e-13  # relative rounding error of a log-likelihood summed over rows
_NEGLIGIBLE = 1e-5  # entries of a direction below this are rounding noise


@dataclass(frozen=True, slots=True)
class Term:
    """One estimated quantity."""

    name: str
    estimate: float | None
    standard_error: float | None = None
    low: float | None = None  # of the 95% interval
    high: float | None = None
    p: float | None = None  # two-sided, against zero
    note: str = ""  # why a number is missing

    def ratio(self) -> Term:
        """Return the term as an odds or rate ratio: exponentials of the ends, the error by the delta method."""
        estimate, own = _exponential(self.estimate), self.standard_error
        error = None if estimate is None or own is None else estimate * own
        low, high = _exponential(self.low), _exponential(self.high)
        return replace(self, estimate=estimate, standard_error=error, low=low, high=high)


@dataclass(frozen=True, slots=True)
class Fit:
    """A fitted regression. Terms are log odds ratios or log rate ratios; `Term.ratio` converts one."""

    terms: tuple[Term, ...]
    n: int  # rows used
    clusters: int  # clusters, groups or strata among them, depending on the estimator
    converged: bool
    log_likelihood: float | None = None
    excluded: tuple[Excluded, ...] = ()
    note: str = ""

    def term(self, name: str) -> Term:
        """Return the term of that name."""
        for term in self.terms:
            if term.name == name:
                return term
        raise UnknownNameError("term", name, [term.name for term in self.terms])


def wald(name: str, estimate: float, standard_error: float) -> Term:
    """Return a term with a normal interval and p value; neither if the error is zero or missing."""
    if not 0 < standard_error < inf:
        return Term(name, estimate, note="its error cannot be estimated from these rows")
    half = Z * standard_error
    p = erfc(abs(estimate) / standard_error / sqrt(2))
    return Term(name, estimate, standard_error, estimate - half, estimate + half, p)


def missing(
    names: Iterable[str], note: str, *, n: int = 0, clusters: int = 0, excluded: tuple[Excluded, ...] = ()
) -> Fit:
    """Return a fit without estimates, and the reason."""
    terms = tuple(Term(name, None, note=note) for name in names)
    return Fit(terms, n, clusters, converged=False, excluded=excluded, note=note)


def join_notes(notes: Iterable[str]) -> str:
    """Return the distinct non-empty notes as one line."""
    return "; ".join(dict.fromkeys(note for note in notes if note))


def _exponential(value: float | None) -> float | None:
    return None if value is None or value > _LARGEST_LOG else exp(value)


FEWEST = 20  # fewest resamples for percentiles


def cluster_weights(clusters: int, rng: np.random.Generator) -> Floats:
    """Return how often each cluster occurs in one resample of as many clusters."""
    drawn = rng.integers(clusters, size=clusters)
    return np.bincount(drawn, minlength=clusters).astype(np.float64)


def percentile_term(name: str, estimate: float, draws: Floats) -> Term:
    """Return a term whose error, interval and p value come from resamples; p counts signs, plus one."""
    if len(draws) < FEWEST:
        return Term(name, estimate, note=f"only {len(draws)} resamples could be fitted, too few for an interval")
    low, high = np.quantile(draws, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    smaller = min(int((draws <= 0).sum()), int((draws >= 0).sum()))
    p = min(1.0, 2 * (smaller + 1) / (len(draws) + 1))
    return Term(name, estimate, float(draws.std(ddof=1)), float(low), float(high), p)


FEW_CLUSTERS = 30  # fewer clusters make normal intervals from robust errors too short


def cluster_robust(information: Floats, scores: Floats, codes: Codes, parameters: int) -> Floats:
    """Return the covariance with the factor G/(G−1) · (n−1)/(n−k).

    Args:
        scores: rows × coefficients, the gradient of each row's log-likelihood.
        codes: clusters 0 … G−1, none empty.
        parameters: k, absorbed effects included.
    """
    sums = group_sums(scores, codes)
    rows, clusters = len(scores), len(sums)
    factor = clusters / (clusters - 1) * (rows - 1) / max(1, rows - parameters)
    bread = invert(information)
    covariance: Floats = factor * bread @ (sums.T @ sums) @ bread
    return covariance


def standard_errors(covariance: Floats) -> Floats:
    """Return the square roots of the diagonal."""
    errors: Floats = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    return errors


def few_clusters_note(clusters: int) -> str:
    """Return a warning where clusters are few, else nothing."""
    if clusters >= FEW_CLUSTERS:
        return ""
    return f"only {clusters} clusters, so the interval is likely too short"


@dataclass(frozen=True, slots=True)
class LikelihoodPoint:
    """A log-likelihood and its derivatives at one point."""

    value: float
    gradient: Floats
    information: Floats  # minus the second derivatives


@dataclass(frozen=True, slots=True)
class Ascent:
    """Where the iteration ended."""

    theta: Floats
    point: LikelihoodPoint
    step: Floats  # the Newton step that was not taken
    converged: bool
    runaway: bool  # the likelihood is flat but the steps are not: the maximum is at infinity


def climb(evaluate: Callable[[Floats], LikelihoodPoint], start: Floats, still: float = _STILL) -> Ascent:
    """Return the maximum of a concave function, or the direction in which it has none.

    Args:
        still: the largest entry of a step at which the iteration stops.
    """
    theta, point, idle = start, evaluate(start), 0
    for _ in range(MOST_STEPS):
        step = newton_step(point)
        longest = float(np.abs(step).max(initial=0.0))
        if longest < still:
            return Ascent(theta, point, step, converged=True, runaway=False)
        if float(point.gradient @ step) < _FLAT and longest > _MOVING:
            return Ascent(theta, point, step, converged=False, runaway=True)
        moved = _advance(evaluate, theta, point, step * min(1.0, _LONGEST / longest))
        if moved is None or idle >= _PATIENCE:  # no representable progress: as close as floats allow
            return Ascent(theta, point, step, converged=longest < np.sqrt(_STILL), runaway=False)
        idle = idle + 1 if moved[1].value - point.value < _ROUNDING * (1 + abs(point.value)) else 0
        theta, point = moved
    return Ascent(theta, point, step, converged=False, runaway=False)


def newton_step(point: LikelihoodPoint) -> Floats:
    """Return the step to the maximum of the local parabola."""
    try:
        return np.asarray(np.linalg.solve(point.information, point.gradient), dtype=np.float64)
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.lstsq(point.information, point.gradient, rcond=None)[0], dtype=np.float64)


def direction(step: Floats) -> Floats:
    """Return a step to infinity at unit length, without noise entries."""
    largest = np.abs(step).max(initial=0.0)
    clean = np.where(np.abs(step) < _NEGLIGIBLE * largest, 0.0, step)
    unit: Floats = clean / largest if largest else clean
    return unit


def invert(information: Floats) -> Floats:
    """Return the inverse of an information matrix, made symmetric."""
    inverse = np.linalg.pinv(information, hermitian=True)
    half: Floats = (inverse + inverse.T) / 2
    return half


def _advance(
    evaluate: Callable[[Floats], LikelihoodPoint], theta: Floats, point: LikelihoodPoint, step: Floats
) -> tuple[Floats, LikelihoodPoint] | None:
    fraction = 1.0
    while fraction > _SHORTEST:
        there = theta + fraction * step
        found = evaluate(there)
        if np.isfinite(found.value) and found.value >= point.value - _ROUNDING * (1 + abs(point.value)):
            return there, found
        fraction /= 2
    return None
