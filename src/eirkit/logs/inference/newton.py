"""Newton's method for concave log-likelihoods, with a proof where the maximum lies at infinity (separation).

Near a finite maximum the steps shrink quadratically. With separated data they stay about one while the likelihood stops
growing; the last step then points to infinity, and its signs on the rows are the certificate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from eirkit.logs.inference.design import Floats

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
