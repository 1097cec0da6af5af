"""Mediation analysis: how much of an exposure's effect on a binary outcome runs through a binary mediator.

Logistic models of mediator and outcome are fitted; then the predicted risk, with the exposure set to two of its
percentiles, is averaged over all rows. Intervals resample whole clusters. The result is causal only if both models are
right and nothing unmeasured drives mediator and outcome.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from eirkit.vestige.inference.design import (
    Codes,
    Columns,
    Floats,
    as_binary,
    as_codes,
    as_floats,
    as_matrix,
    standardize,
)
from eirkit.vestige.inference.logistic import maximize, mean_of
from eirkit.vestige.inference.results import Term, cluster_weights, join_notes, percentile_term

EXPOSURE, MEDIATOR = "exposure", "mediator"
NAMES = ("indirect", "direct", "total")


@dataclass(frozen=True, slots=True)
class Mediation:
    """Risk differences between two values of the exposure; indirect and direct sum to total."""

    indirect: Term  # outcome's exposure at the upper value, mediator as under the upper minus as under the lower
    direct: Term  # outcome's exposure from lower to upper, mediator as under the lower
    total: Term
    n: int
    clusters: int
    resamples: int  # resamples that could be fitted
    note: str = ""


@dataclass(frozen=True, slots=True)
class _Data:
    outcome: Floats
    mediator: Floats
    matrix: Floats  # ones, exposure, covariates; standardized
    ends: tuple[float, float]  # of the exposure, in the matrix's units

    def at(self, end: float, mediator: float | None = None) -> Floats:
        """Return the design with everyone's exposure, and mediator if given, set."""
        moved = self.matrix.copy()
        moved[:, 1] = end
        return moved if mediator is None else np.column_stack([moved, np.full(len(moved), mediator)])


def mediate(
    outcome: ArrayLike,
    mediator: ArrayLike,
    exposure: ArrayLike,
    covariates: Columns,
    clusters: Any,
    rng: np.random.Generator,
    *,
    percentiles: tuple[float, float] = (25, 75),
    resamples: int = 200,
) -> Mediation:
    """Return indirect, direct and total risk difference between two percentiles of the exposure.

    The percentiles' values are those of all rows and stay fixed in the resamples. Neither model has interactions.
    """
    y = as_binary("outcome", outcome)
    m, x = as_binary("mediator", mediator, len(y)), as_floats("exposure", exposure, len(y))
    codes = as_codes("clusters", clusters, len(y))
    raw = np.column_stack([x, as_matrix(covariates, len(y))])
    if note := _hopeless(y, m, x, codes):
        return _nothing(note, len(y), codes)
    low, high = (float(value) for value in np.percentile(x, percentiles))
    if low == high:
        return _nothing(f"both percentiles of the exposure are {low:g}, so there is no contrast", len(y), codes)
    design = standardize((EXPOSURE, *covariates), raw)
    if MEDIATOR in standardize((EXPOSURE, *covariates, MEDIATOR), np.column_stack([raw, m])).dropped:
        return _nothing("the mediator is a combination of exposure and covariates", len(y), codes)
    ends = tuple((value - design.center[0]) / design.scale[0] for value in (low, high))
    data = _Data(y, m, design.with_intercept(), (ends[0], ends[1]))
    whole = _effects(data, np.ones(len(y)))
    if isinstance(whole, str):
        return _nothing(whole, len(y), codes)
    count = int(codes.max()) + 1
    found = [_effects(data, cluster_weights(count, rng)[codes]) for _ in range(resamples)]
    fitted = [effects for effects in found if not isinstance(effects, str)]
    draws = np.array(fitted).reshape(len(fitted), len(NAMES))
    indirect, direct, total = (percentile_term(name, float(whole[i]), draws[:, i]) for i, name in enumerate(NAMES))
    lost = f"{resamples - len(draws)} of {resamples} resamples could not be fitted" if len(draws) < resamples else ""
    notes = [lost, *(f"{name} {why}" for name, why in design.dropped.items()), indirect.note]
    return Mediation(indirect, direct, total, len(y), int(codes.max()) + 1, len(draws), join_notes(notes))


def _hopeless(y: Floats, m: Floats, x: Floats, codes: Codes) -> str:
    if not len(y):
        return "no rows"
    for name, values in (("outcome", y), ("mediator", m), ("exposure", x)):
        if values.min() == values.max():
            return f"the {name} is {values[0]:g} in all {len(y)} rows, so there is no path to measure"
    return "all rows belong to one cluster, so no interval can be resampled" if codes.max() == 0 else ""


def _nothing(note: str, n: int, codes: Codes) -> Mediation:
    indirect, direct, total = (Term(name, None, note=note) for name in NAMES)
    return Mediation(indirect, direct, total, n, len(np.unique(codes)), 0, note)


def _effects(data: _Data, weights: Floats) -> Floats | str:
    """Return indirect, direct and total, or why there are none."""
    first = maximize(data.mediator, data.matrix, weights)
    if not first.converged:
        return "the mediator is separated or its model did not converge"
    joint = np.column_stack([data.matrix, data.mediator])
    second = maximize(data.outcome, joint, weights)
    if not second.converged:
        return "the outcome is separated or its model did not converge"
    share = [mean_of(data.at(end), first.theta) for end in data.ends]
    risk = [[mean_of(data.at(end, value), second.theta) for value in (0.0, 1.0)] for end in data.ends]

    def mean_risk(outcome_end: int, mediator_end: int) -> float:
        without, present = risk[outcome_end]
        mixed = without + share[mediator_end] * (present - without)
        return float(weights @ mixed / weights.sum())

    lower, crossed, upper = mean_risk(0, 0), mean_risk(1, 0), mean_risk(1, 1)
    return np.array([upper - crossed, crossed - lower, upper - lower])
