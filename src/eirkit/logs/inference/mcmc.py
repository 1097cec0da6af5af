"""Metropolis–Hastings sampling of nearly normal densities of few dimensions, with convergence diagnostics.

Most proposals are independent draws from a heavy-tailed normal approximation and some are local steps, so that the
chain neither moves slowly nor gets stuck.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eirkit.logs.inference.design import Floats

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
    """A multivariate t with a given centre and scale."""

    centre: Floats
    root: Floats  # lower Cholesky factor of the scale

    def draw(self, count: int, rng: np.random.Generator) -> Floats:
        """Return fresh points."""
        normal = rng.standard_normal((count, len(self.centre)))
        stretch = np.sqrt(_FREEDOM / rng.chisquare(_FREEDOM, count))
        drawn: Floats = self.centre + (normal @ self.root.T) * stretch[:, None]
        return drawn

    def log_density(self, points: Floats) -> Floats:
        """Return log densities up to a constant."""
        white = np.linalg.solve(self.root, (points - self.centre).T)
        size = len(self.centre)
        density: Floats = -(_FREEDOM + size) / 2 * np.log1p((white**2).sum(axis=0) / _FREEDOM)
        return density


def sample(
    target: Target, proposal: Proposal, rng: np.random.Generator, *, chains: int, draws: int, warm_up: int
) -> Draws:
    """Return draws from the density; all chains step together, so the target evaluates them as one batch."""
    size = len(proposal.centre)
    here = proposal.centre + _OVERDISPERSED * (proposal.draw(chains, rng) - proposal.centre)
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
