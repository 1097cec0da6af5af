"""Area under the ROC curve of a score for failed against resolved runs, with DeLong's interval.

Ties count half. With clusters the variance is Obuchowski's, which equals DeLong's when every run is its own cluster.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import erfc, exp, log, sqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from eirkit.vestige.inference.design import Codes, Floats, as_binary, as_codes, as_floats
from eirkit.vestige.inference.results import Z

CHANCE = 0.5
_ROUNDING = 1e-15  # a variance below this is zero up to rounding and gives no interval


@dataclass(frozen=True, slots=True)
class Auc:
    """The probability that a failed run scores higher than a resolved one, ties counted half."""

    estimate: float | None
    standard_error: float | None
    low: float | None  # 95%, on the logit scale, so always between 0 and 1
    high: float | None
    p: float | None  # two-sided, against one half
    n: int
    failed: int
    note: str = ""


def failure_auc(scores: ArrayLike, failed: ArrayLike, clusters: Any = None) -> Auc:
    """Return the area under the curve of failure against score.

    Args:
        failed: 1 for failed, 0 for resolved.
        clusters: labels of runs that are not independent, such as their task; without it every run is.
    """
    outcome = as_binary("failed", failed)
    values = as_floats("scores", scores, len(outcome))
    codes = np.arange(len(outcome)) if clusters is None else as_codes("clusters", clusters, len(outcome))
    n, positives = len(outcome), int(outcome.sum())
    if not 0 < positives < n:
        known = "no runs" if n == 0 else "no failed runs" if positives == 0 else "no resolved runs"
        return Auc(None, None, None, None, None, n, positives, f"{known}, so there is nothing to compare")
    is_failed = outcome == 1
    area, wins, losses = _placements(values, is_failed)
    variance = _variance(area, (wins, losses), (codes[is_failed], codes[~is_failed]))
    if variance is None or variance <= _ROUNDING or not 0 < area < 1:
        note = _why_no_error(values, area, variance)
        return Auc(area, None, None, None, None, n, positives, f"{note}, so no error can be estimated")
    return _with_interval(area, variance, n, positives)


def _placements(values: Floats, is_failed: Any) -> tuple[float, Floats, Floats]:
    """Return the area, each failed run's share of resolved runs below it, each resolved run's of failed runs above."""
    high, low = values[is_failed], values[~is_failed]
    wins = _share_below(np.sort(low), high)
    losses = 1 - _share_below(np.sort(high), low)
    return float(wins.mean()), wins, losses


def _share_below(ordered: Floats, values: Floats) -> Floats:
    share: Floats = (np.searchsorted(ordered, values, "left") + np.searchsorted(ordered, values, "right")) / (
        2 * len(ordered)
    )
    return share


def _variance(area: float, shares: tuple[Floats, Floats], codes: tuple[Codes, Codes]) -> float | None:
    count = int(max(codes[0].max(), codes[1].max())) + 1
    excess = [np.bincount(c, share - area, minlength=count) for c, share in zip(codes, shares, strict=True)]
    present = [np.bincount(c, minlength=count) > 0 for c in codes]
    sizes = [len(share) for share in shares]
    occupied, clusters = [int(p.sum()) for p in present], int((present[0] | present[1]).sum())
    if min(occupied) < 2:
        return None
    own = sum(k / (k - 1) * float(e @ e) / m**2 for k, e, m in zip(occupied, excess, sizes, strict=True))
    both = clusters / (clusters - 1) * float(excess[0] @ excess[1]) / (sizes[0] * sizes[1])
    return own + 2 * both


def _why_no_error(values: Floats, area: float, variance: float | None) -> str:
    if float(values.min()) == float(values.max()):
        return "all scores are equal"
    if not 0 < area < 1:
        return "the score separates the two classes perfectly"
    if variance is None:
        return "one class lies in a single cluster"
    return "the estimate of the clustered variance is not positive"


def _with_interval(area: float, variance: float, n: int, positives: int) -> Auc:
    error = sqrt(variance)
    center, half = log(area / (1 - area)), Z * error / (area * (1 - area))
    p = erfc(abs(area - CHANCE) / error / sqrt(2))
    return Auc(area, error, _expit(center - half), _expit(center + half), p, n, positives)


def _expit(x: float) -> float:
    return 1 / (1 + exp(-x)) if x > -700 else 0.0
