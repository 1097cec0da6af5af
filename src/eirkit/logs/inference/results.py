"""Results that all regressions share: terms with errors and intervals, excluded rows, notes, and robust covariances.

Intervals are 95%. A number that does not exist is None and the note says why; no value is ever NaN.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import erfc, exp, inf, sqrt
from statistics import NormalDist

import numpy as np

from eirkit.errors import UnknownNameError
from eirkit.logs.inference.design import Codes, Floats, group_sums
from eirkit.logs.inference.newton import invert

LEVEL = 0.95
Z = NormalDist().inv_cdf((1 + LEVEL) / 2)
_LARGEST_LOG = 700.0  # above this the exponential overflows


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
class Excluded:
    """Rows that were not used, and why."""

    reason: str
    rows: int

    def __str__(self) -> str:
        return f"{self.rows} {'row' if self.rows == 1 else 'rows'} left out: {self.reason}"


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
