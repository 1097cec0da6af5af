"""Logistic regression with a random intercept per group: maximum likelihood, and a posterior for credible intervals.

The intercepts are integrated out by quadrature; the posterior of the other parameters is sampled by Markov chains whose
mixing is reported. The correlated-random-effects variant adds one column: the group's mean of the exposure.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import exp, lgamma, log, pi
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

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
from eirkit.vestige.inference.integration import (
    NODES,
    GroupedRows,
    Proposal,
    collapse,
    derivatives,
    effective_draws,
    log_marginal,
    r_hat,
    sample,
)
from eirkit.vestige.inference.logistic import assemble, maximize
from eirkit.vestige.inference.results import (
    LEVEL,
    Ascent,
    Fit,
    LikelihoodPoint,
    Term,
    climb,
    invert,
    join_notes,
    missing,
    wald,
)

GROUP_SD = "group sd"
INTERCEPT_SCALE, SLOPE_SCALE, SD_SCALE, SD_FREEDOM = 5.0, 2.5, 2.5, 3.0
PRIORS = (
    f"intercept at the columns' means ~ normal(0, {INTERCEPT_SCALE:g}); a column's log odds per standard deviation ~ "
    f"normal(0, {SLOPE_SCALE:g}); sd of the group intercepts ~ half Student t({SD_FREEDOM:g}, 0, {SD_SCALE:g})"
)
_ALL_SPREAD = 4.0  # log sd above which the groups alone determine nearly every row
_NO_SPREAD = -5.0  # log sd below which the intercepts are practically equal
_MIXED_R_HAT, _MIXED_DRAWS = 1.01, 400.0
_MANY_NODES, _MOST_NODES = 63, 127
_FINE_ENOUGH = 1e-2  # difference in log-likelihood too small to affect an interval
_CHAINS, _WARM_UP = 4, 200


@dataclass(frozen=True, slots=True)
class ChainMixing:
    """Whether the chains agree on one term."""

    name: str
    r_hat: float
    effective_draws: float


@dataclass(frozen=True, slots=True)
class Posterior:
    """Posterior medians, standard deviations and equal-tailed intervals; p is twice the smaller tail beyond zero."""

    terms: tuple[Term, ...]
    group_sd: Term  # on the log-odds scale
    n: int
    groups: int
    draws: int  # over all chains
    acceptance: float | None
    mixing: tuple[ChainMixing, ...]
    converged: bool  # every R-hat ≤ 1.01 and 400 effective draws of every term
    priors: str = PRIORS
    note: str = ""

    def term(self, name: str) -> Term:
        """Return the term of that name."""
        return Fit(self.terms, self.n, self.groups, self.converged).term(name)


@dataclass(frozen=True, slots=True)
class _Model:
    names: tuple[str, ...]
    design: Design
    cells: GroupedRows
    outcome: Floats
    codes: Codes


def mixed_logit(outcome: ArrayLike, columns: Columns, groups: Any) -> Fit:
    """Return log odds per unit of each column by maximum likelihood, the sd of the intercepts last.

    Errors come from the observed information of the marginal likelihood; `clusters` counts groups.
    """
    model = _build(outcome, columns, groups)
    if isinstance(model, Fit):
        return model
    ascent = _climb(model)
    if ascent is None:
        pooled = maximize(model.outcome, model.design.with_intercept())
        if not pooled.converged:
            return _lost(model)
        terms = assemble(model.names, model.design, pooled.theta, invert(pooled.point.information), frozenset())
        note = "groups differ by no more than chance: the sd of their intercepts is 0 and has no interval"
        return _fitted(model, (*terms, Term(GROUP_SD, 0.0, note=note)), pooled.point.value, note)
    if not ascent.converged:
        return _lost(model)
    covariance, theta = invert(ascent.point.information), ascent.theta
    slopes = assemble(model.names, model.design, theta[:-1], covariance[:-1, :-1], frozenset())
    # The sd with an interval on the log scale, and no p value, since zero is on the boundary.
    by_log = wald(GROUP_SD, float(theta[-1]), float(np.sqrt(max(covariance[-1, -1], 0.0)))).ratio()
    sd = Term(GROUP_SD, by_log.estimate, by_log.standard_error, by_log.low, by_log.high, None, by_log.note)
    notes = [f"{t.name} {t.note}" for t in slopes if t.note]
    return _fitted(model, (*slopes, sd), ascent.point.value, join_notes(notes))


def mixed_posterior(
    outcome: ArrayLike, columns: Columns, groups: Any, rng: np.random.Generator, *, draws: int = 1000
) -> Posterior:
    """Return the posterior of the same model under weakly informative priors; draws are per chain, of four."""
    model = _build(outcome, columns, groups)
    if isinstance(model, Fit):
        terms, sd = model.terms[:-1], model.terms[-1]
        return Posterior(terms, sd, model.n, model.clusters, 0, None, (), False, note=model.note)
    ascent = _climb_finely(model, lambda theta, nodes: _penalized(model.cells, theta, nodes))
    spread = invert(ascent.point.information)
    # Steep groups need the most nodes, so their number is chosen near the posterior's mode.
    steep = ascent.theta + np.append(np.zeros(len(spread) - 1), 2 * np.sqrt(spread[-1, -1]))
    nodes = _fewest_nodes(model.cells, steep)
    root = np.asarray(np.linalg.cholesky(spread + 1e-12 * np.eye(len(spread))), dtype=np.float64)
    proposal = Proposal(ascent.theta, root)
    drawn = sample(
        lambda points: log_marginal(model.cells, points[:, :-1], points[:, -1], nodes) + log_prior(points),
        proposal,
        rng,
        chains=_CHAINS,
        draws=draws,
        warm_up=_WARM_UP,
    )
    return _summarize(model, drawn.values, drawn.acceptance)


def log_prior(points: Floats) -> Floats:
    """Return the log prior density of (intercept, slopes, log sd), each row one set, on the standardized columns."""
    scales = np.full(points.shape[1] - 1, SLOPE_SCALE)
    scales[0] = INTERCEPT_SCALE
    normal = -0.5 * (points[:, :-1] / scales) ** 2 - np.log(scales) - 0.5 * log(2 * pi)
    ratio = np.exp(2 * points[:, -1]) / (SD_FREEDOM * SD_SCALE**2)
    constant = log(2 / SD_SCALE) + lgamma((SD_FREEDOM + 1) / 2) - lgamma(SD_FREEDOM / 2) - 0.5 * log(pi * SD_FREEDOM)
    # The last summand is the Jacobian of the log transform.
    half_t: Floats = constant - (SD_FREEDOM + 1) / 2 * np.log1p(ratio) + points[:, -1]
    whole: Floats = normal.sum(axis=1) + half_t
    return whole


def _build(outcome: ArrayLike, columns: Columns, groups: Any) -> _Model | Fit:
    y = as_binary("outcome", outcome)
    raw, codes = as_matrix(columns, len(y)), as_codes("groups", groups, len(y))
    names = (INTERCEPT, *columns)
    if note := _hopeless(y, codes):
        return missing((*names, GROUP_SD), note, n=len(y), clusters=len(np.unique(codes)))
    design = standardize(tuple(columns), raw)
    return _Model(names, design, collapse(y, design.with_intercept(), codes), y, codes)


def _hopeless(y: Floats, codes: Codes) -> str:
    if not len(y):
        return "no rows"
    if y.min() == y.max():
        return f"the outcome is {int(y[0])} in all {len(y)} rows, so no odds can be compared"
    groups = int(codes.max()) + 1
    if groups == 1:
        return "all rows belong to one group, so groups cannot be compared"
    if groups == len(y):
        return "every row is its own group, so the spread between groups cannot be distinguished from chance"
    wins = np.bincount(codes, y)
    if not ((wins > 0) & (wins < np.bincount(codes))).any():
        return "in every group all rows agree, so the spread between groups is infinite"
    return ""


def _start(model: _Model) -> Floats:
    pooled = maximize(model.outcome, model.design.with_intercept()).theta
    return np.append(np.clip(pooled, -5, 5), 0.0)


def _climb_finely(model: _Model, evaluate: Callable[[Floats, int], LikelihoodPoint]) -> Ascent:
    """Return the maximum, with as many nodes as the groups need."""
    start = _start(model)
    for nodes in (_MANY_NODES, _MOST_NODES):
        ascent = climb(lambda theta, nodes=nodes: _tamed(evaluate(theta, nodes)), start)  # type: ignore[misc]
        finer = evaluate(ascent.theta, _MOST_NODES)
        if ascent.theta[-1] > _ALL_SPREAD or abs(finer.value - ascent.point.value) < _FINE_ENOUGH:
            break
        start = ascent.theta
    return ascent


def _fewest_nodes(cells: GroupedRows, theta: Floats) -> int:
    """Return the smallest number of nodes that is as accurate as the largest."""
    slopes, log_sd = theta[None, :-1], theta[-1:]
    best = log_marginal(cells, slopes, log_sd, _MOST_NODES)[0]
    for nodes in (NODES, 2 * NODES + 1, _MANY_NODES):
        if abs(log_marginal(cells, slopes, log_sd, nodes)[0] - best) < _FINE_ENOUGH:
            return nodes
    return _MOST_NODES


def _climb(model: _Model) -> Ascent | None:
    """Return the maximum, or None if it lies at zero spread between groups."""
    pooled = maximize(model.outcome, model.design.with_intercept())
    ascent = _climb_finely(model, lambda theta, nodes: derivatives(model.cells, theta, nodes))
    flat = ascent.theta[-1] < _NO_SPREAD or (pooled.converged and ascent.point.value <= pooled.point.value + 1e-6)
    return None if flat else ascent


def _tamed(point: LikelihoodPoint) -> LikelihoodPoint:
    """Return the point with an information matrix that leads uphill even where the likelihood is not concave."""
    values, vectors = np.linalg.eigh(point.information)
    if values.min() > 0:
        return point
    floor = 1e-3 * max(1.0, float(np.abs(values).max()))
    lifted = (vectors * np.maximum(np.abs(values), floor)) @ vectors.T
    return LikelihoodPoint(point.value, point.gradient, lifted)


def _fitted(model: _Model, terms: tuple[Term, ...], log_likelihood: float, note: str) -> Fit:
    return Fit(terms, len(model.outcome), len(model.cells.starts), True, log_likelihood, (), note)


def _lost(model: _Model) -> Fit:
    note = "the data are separated or the fit did not converge; leave out columns that predict the outcome perfectly"
    names = (*model.names, GROUP_SD)
    return missing(names, note, n=len(model.outcome), clusters=len(model.cells.starts))


def _penalized(cells: GroupedRows, theta: Floats, nodes: int) -> LikelihoodPoint:
    """Return the log posterior with derivatives."""
    point = derivatives(cells, theta, nodes)
    scales = np.full(len(theta), SLOPE_SCALE)
    scales[0] = INTERCEPT_SCALE
    gradient, curvature = -theta / scales**2, 1 / scales**2
    ratio = exp(2 * theta[-1]) / (SD_FREEDOM * SD_SCALE**2)
    gradient[-1] = 1 - (SD_FREEDOM + 1) * ratio / (1 + ratio)
    curvature[-1] = 2 * (SD_FREEDOM + 1) * ratio / (1 + ratio) ** 2
    value = point.value + float(log_prior(theta[None])[0])
    return LikelihoodPoint(value, point.gradient + gradient, point.information + np.diag(curvature))


def _summarize(model: _Model, values: Floats, acceptance: float) -> Posterior:
    back = model.design.back(intercept=True)
    slopes, sd = values[..., :-1] @ back.T, np.exp(values[..., -1])
    fitted = (INTERCEPT, *model.design.names)
    found = {name: _credible(name, slopes[..., j]) for j, name in enumerate(fitted)}
    dropped = model.design.dropped
    terms = tuple(Term(name, None, note=dropped[name]) if name in dropped else found[name] for name in model.names)
    chains = {**{name: slopes[..., j] for j, name in enumerate(fitted)}, GROUP_SD: values[..., -1]}
    mixing = tuple(
        ChainMixing(name, r_hat(chain) or float("inf"), effective_draws(chain) or 0.0) for name, chain in chains.items()
    )
    converged = all(m.r_hat <= _MIXED_R_HAT and m.effective_draws >= _MIXED_DRAWS for m in mixing)
    notes = [f"{t.name} {t.note}" for t in terms if t.note]
    notes += [] if converged else ["the chains have not mixed; increase the number of draws"]
    count, groups = values.shape[0] * values.shape[1], len(model.cells.starts)
    spread = _credible(GROUP_SD, sd, has_sign=False)
    return Posterior(
        terms, spread, len(model.outcome), groups, count, acceptance, mixing, converged, note=join_notes(notes)
    )


def _credible(name: str, chain: Floats, *, has_sign: bool = True) -> Term:
    low, middle, high = np.quantile(chain, [(1 - LEVEL) / 2, 0.5, (1 + LEVEL) / 2])
    smaller = min(int((chain > 0).sum()), int((chain < 0).sum()))
    tail = min(1.0, 2 * (smaller + 1) / (chain.size + 1))
    return Term(name, float(middle), float(chain.std(ddof=1)), float(low), float(high), tail if has_sign else None)
