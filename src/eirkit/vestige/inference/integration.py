"""Integrates over group intercepts: adaptive Gauss–Hermite quadrature, and Metropolis–Hastings sampling.

Rows of a group with equal columns are one cell with a count, which only saves time. Nodes are placed around each
group's own mode and curvature, so a few suffice for groups of any size.

Most proposals are independent draws from a heavy-tailed normal approximation and some are local steps, so that the
chain neither moves slowly nor gets stuck.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from eirkit.vestige.inference.design import Codes, Floats
from eirkit.vestige.inference.results import LikelihoodPoint

NODES = 15
_MODE_STEPS = 60
_FARTHEST = 300.0  # log odds are clipped here, so that a product of two odds stays finite
_AT_THE_MODE = 1e-6  # in standard deviations of the intercept; nodes need not be centered exactly


@dataclass(frozen=True, slots=True)
class GroupedRows:
    """Rows with the same columns in the same group, sorted by group."""

    matrix: Floats  # cells × columns, the ones included
    events: Floats
    trials: Floats
    groups: Codes
    starts: NDArray[np.intp]  # first cell of each group


@dataclass(frozen=True, slots=True)
class _Nodes:
    """Where the integrand of each group is evaluated: sets × groups × nodes."""

    places: Floats  # of the standardized intercept
    weights: Floats  # shares of the group's integral, adding up to one
    odds: Floats  # sets × cells × nodes
    log_integral: Floats  # sets × groups


def collapse(outcome: Floats, matrix: Floats, codes: Codes) -> GroupedRows:
    """Return the cells of a table of rows."""
    keyed = np.column_stack([codes.astype(np.float64), matrix])
    distinct, inverse = np.unique(keyed, axis=0, return_inverse=True)
    inverse = inverse.reshape(len(outcome))
    groups = distinct[:, 0].astype(np.int64)
    starts = np.flatnonzero(np.diff(groups, prepend=-1))
    trials = np.bincount(inverse).astype(np.float64)
    events = np.asarray(np.bincount(inverse, outcome), dtype=np.float64)
    return GroupedRows(distinct[:, 1:], events, trials, groups, starts)


def log_marginal(cells: GroupedRows, slopes: Floats, log_sd: Floats, nodes: int = NODES) -> Floats:
    """Return the log-likelihood of several sets of parameters: slopes is sets × columns, log_sd one per set."""
    total: Floats = _lay(cells, slopes, np.exp(log_sd), nodes).log_integral.sum(axis=1)
    return total


def derivatives(cells: GroupedRows, theta: Floats, nodes: int = NODES) -> LikelihoodPoint:
    """Return the log-likelihood at (slopes, log sd) with derivatives, by the moments of the complete-data score."""
    sd = float(np.exp(theta[-1]))
    laid = _lay(cells, theta[None, :-1], np.array([sd]), nodes)
    shift, weights, mean = sd * laid.places[0], laid.weights[0], laid.odds[0] / (1 + laid.odds[0])
    residual = cells.events[:, None] - cells.trials[:, None] * mean
    curvature = cells.trials[:, None] * mean * (1 - mean)
    per_cell = weights[cells.groups]
    of_slopes = np.stack([_sums(residual * x[:, None], cells) for x in cells.matrix.T])
    of_sd, curved = _sums(residual, cells) * shift, _sums(curvature, cells)
    scores = np.concatenate([of_slopes, of_sd[None]])  # parameters × groups × nodes
    means = (scores * weights).sum(axis=2)
    spread = np.einsum("pgq,rgq,gq->pr", scores, scores, weights, optimize=True) - means @ means.T
    complete = np.zeros((len(theta), len(theta)))
    complete[:-1, :-1] = (cells.matrix.T * (curvature * per_cell).sum(axis=1)) @ cells.matrix
    complete[:-1, -1] = cells.matrix.T @ (curvature * per_cell * shift[cells.groups]).sum(axis=1)
    complete[-1, :-1] = complete[:-1, -1]
    complete[-1, -1] = float((weights * (shift**2 * curved - of_sd)).sum())
    return LikelihoodPoint(float(laid.log_integral.sum()), means.sum(axis=1), complete - spread)


def _lay(cells: GroupedRows, slopes: Floats, sd: Floats, nodes: int) -> _Nodes:
    fixed = _within(slopes @ cells.matrix.T)
    fixed_odds = np.exp(fixed)
    center, curvature = _modes(cells, fixed_odds, sd)
    width = np.sqrt(2 / curvature)
    knots, knot_weights = _knots(nodes)
    places = center[..., None] + width[..., None] * knots
    shift = _within(sd[:, None, None] * places)
    # Odds multiply, so few exponentials are needed; the cost per cell and node is one logarithm.
    odds = fixed_odds[..., None] * np.exp(shift)[:, cells.groups]
    events = np.add.reduceat(cells.events, cells.starts)
    logs = shift * events[:, None] + np.add.reduceat(cells.events * fixed, cells.starts, axis=1)[..., None]
    logs -= np.add.reduceat(cells.trials[:, None] * np.log(1 + odds), cells.starts, axis=1)
    logs += np.log(knot_weights) + knots**2 - places**2 / 2
    peak = logs.max(axis=2, keepdims=True)
    shares = np.exp(logs - peak)
    integral = shares.sum(axis=2, keepdims=True)
    log_integral = np.log(width / np.sqrt(2 * np.pi)) + (peak + np.log(integral))[..., 0]
    return _Nodes(places, shares / integral, odds, log_integral)


@cache
def _knots(nodes: int) -> tuple[Floats, Floats]:
    knots, weights = np.polynomial.hermite.hermgauss(nodes)
    return knots, weights


def _modes(cells: GroupedRows, fixed_odds: Floats, sd: Floats) -> tuple[Floats, Floats]:
    """Return each group's most likely standardized intercept and the curvature there: sets × groups.

    Newton's steps are kept inside a bracket, since a steep group can throw them from one tail to the other.
    """
    spread = sd[:, None]
    most = spread * np.add.reduceat(cells.trials, cells.starts)
    low, high, mode = -most, most.copy(), np.zeros_like(most)
    for _ in range(_MODE_STEPS):
        odds = fixed_odds * np.exp(_within(spread * mode))[:, cells.groups]
        mean = odds / (1 + odds)
        slope = spread * np.add.reduceat(cells.events - cells.trials * mean, cells.starts, axis=1) - mode
        curvature = spread**2 * np.add.reduceat(cells.trials * mean * (1 - mean), cells.starts, axis=1) + 1
        low, high = np.where(slope > 0, mode, low), np.where(slope > 0, high, mode)
        step = slope / curvature
        if np.abs(step).max() < _AT_THE_MODE:
            break
        there = mode + step
        mode = np.where((there >= low) & (there <= high), there, (low + high) / 2)
    return mode, curvature


def _sums(values: Floats, cells: GroupedRows) -> Floats:
    total: Floats = np.add.reduceat(values, cells.starts, axis=0)
    return total


def _within(logs: Floats) -> Floats:
    cut: Floats = np.clip(logs, -_FARTHEST, _FARTHEST)
    return cut


_FREEDOM = 5.0  # degrees of freedom of the proposal: its tails are heavier than the target's
_LOCAL_SHARE = 0.25
_LOCAL_SCALE = 1.2  # divided by the square root of the dimension
_OVERDISPERSED = 1.5  # spread of starting points, in scales of the proposal

Target = Callable[[Floats], Floats]  # points × dimensions to log densities


@dataclass(frozen=True, slots=True)
class Draws:
    """The draws of all chains after warm-up."""

    values: Floats  # chains × draws × dimensions
    acceptance: float


@dataclass(frozen=True, slots=True)
class Proposal:
    """A multivariate t with a given center and scale."""

    center: Floats
    root: Floats  # lower Cholesky factor of the scale

    def draw(self, count: int, rng: np.random.Generator) -> Floats:
        """Return fresh points."""
        normal = rng.standard_normal((count, len(self.center)))
        stretch = np.sqrt(_FREEDOM / rng.chisquare(_FREEDOM, count))
        drawn: Floats = self.center + (normal @ self.root.T) * stretch[:, None]
        return drawn

    def log_density(self, points: Floats) -> Floats:
        """Return log densities up to a constant."""
        white = np.linalg.solve(self.root, (points - self.center).T)
        size = len(self.center)
        density: Floats = -(_FREEDOM + size) / 2 * np.log1p((white**2).sum(axis=0) / _FREEDOM)
        return density


def sample(
    target: Target, proposal: Proposal, rng: np.random.Generator, *, chains: int, draws: int, warm_up: int
) -> Draws:
    """Return draws from the density; all chains step together, so the target evaluates them as one batch."""
    size = len(proposal.center)
    here = proposal.center + _OVERDISPERSED * (proposal.draw(chains, rng) - proposal.center)
    height = target(here)
    kept, accepted = np.empty((chains, draws, size)), 0
    for i in range(-warm_up, draws):
        is_local = bool(rng.random() < _LOCAL_SHARE)
        there, bend = _propose(proposal, here, is_local, rng)
        reached = target(there)
        with np.errstate(invalid="ignore"):  # both log densities may be minus infinity
            move = np.log(rng.random(chains)) < reached - height + bend
        here, height = np.where(move[:, None], there, here), np.where(move, reached, height)
        if i >= 0:
            kept[:, i], accepted = here, accepted + int(move.sum())
    return Draws(kept, accepted / (chains * draws))


def r_hat(values: Floats) -> float | None:
    """Return the split potential scale reduction of one quantity (chains × draws); 1 means that the halves agree."""
    halves = _halves(values)
    length = halves.shape[1]
    within = float(halves.var(axis=1, ddof=1).mean())
    between = float(halves.mean(axis=1).var(ddof=1))
    return None if within == 0 else float(np.sqrt((length - 1) / length + between / within))


def effective_draws(values: Floats) -> float | None:
    """Return the effective sample size of the mean, by Geyer's initial monotone sequence."""
    halves = _halves(values)
    count, length = halves.shape
    covariances = np.array([_autocovariances(half) for half in halves])
    within = float((covariances[:, 0] * length / (length - 1)).mean())
    total = within * (length - 1) / length + float(halves.mean(axis=1).var(ddof=1))
    if total == 0:
        return None
    correlation = 1 - (within - covariances.mean(axis=0) * length / (length - 1)) / total
    correlation[0] = 1.0
    pairs = correlation[: length // 2 * 2].reshape(-1, 2).sum(axis=1)
    ends = np.flatnonzero(pairs <= 0)
    pairs = np.minimum.accumulate(pairs[: ends[0] if len(ends) else len(pairs)])
    time: float = max(-1 + 2 * float(pairs.sum()), 1 / np.log10(count * length))
    return float(count * length / time)


def _propose(
    proposal: Proposal, here: Floats, is_local: bool, rng: np.random.Generator
) -> tuple[Floats, Floats | float]:
    if is_local:
        noise = rng.standard_normal(here.shape) @ proposal.root.T
        return here + _LOCAL_SCALE / np.sqrt(here.shape[1]) * noise, 0.0
    there = proposal.draw(len(here), rng)
    return there, proposal.log_density(here) - proposal.log_density(there)


def _halves(values: Floats) -> Floats:
    half = values.shape[1] // 2
    return np.concatenate([values[:, :half], values[:, -half:]])


def _autocovariances(values: NDArray[np.float64]) -> Floats:
    length = len(values)
    padded = 1 << (2 * length - 1).bit_length()
    spectrum = np.fft.rfft(values - values.mean(), padded)
    products: Floats = np.fft.irfft(spectrum * np.conj(spectrum), padded)[:length] / length
    return products
