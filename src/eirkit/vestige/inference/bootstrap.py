"""Resampling of whole clusters, and percentile intervals of what was estimated from the resamples."""

from __future__ import annotations

import numpy as np

from eirkit.vestige.inference.design import Floats
from eirkit.vestige.inference.results import LEVEL, Term

FEWEST = 20  # resamples below which percentiles mean nothing


def cluster_weights(clusters: int, rng: np.random.Generator) -> Floats:
    """Return how often each cluster occurs in one resample of as many clusters."""
    drawn = rng.integers(clusters, size=clusters)
    return np.bincount(drawn, minlength=clusters).astype(np.float64)


def percentile_term(name: str, estimate: float, draws: Floats) -> Term:
    """Return a term whose error, interval and p value come from resamples; p counts signs, with one added."""
    if len(draws) < FEWEST:
        return Term(name, estimate, note=f"only {len(draws)} resamples could be fitted, too few for an interval")
    low, high = np.quantile(draws, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    smaller = min(int((draws <= 0).sum()), int((draws >= 0).sum()))
    p = min(1.0, 2 * (smaller + 1) / (len(draws) + 1))
    return Term(name, estimate, float(draws.std(ddof=1)), float(low), float(high), p)
