"""The words in which a study says how a published figure and ours stand to each other; there are no others.

*reproduced*: equal to the printed digits. *within seed spread*: the published figure lies where means over as many
seeds as the paper used lie here. *differs*: it does not, and the row says why. The rest say what a figure needs.
An estimate from recorded runs has an interval in place of repetitions; its row says so, and it is never *reproduced*.
"""

from __future__ import annotations

from collections.abc import Iterable

REPRODUCED = "reproduced"
SPREAD = "within seed spread"
DIFFERS = "differs"
NEEDS_MODEL = "needs a model that is not configured"
NEEDS_RUNS = "needs recorded runs that are not given"
NEEDS_MEMORY = "needs a memory system that is not installed"

VERDICTS = (REPRODUCED, SPREAD, DIFFERS, NEEDS_MODEL, NEEDS_RUNS, NEEDS_MEMORY)
JUDGED = (DIFFERS, SPREAD, REPRODUCED)  # the worst first
MEANINGS = {
    REPRODUCED: "ours equals the published figure to its printed digits",
    SPREAD: "the published figure lies in the range of our means over as many seeds as the paper has; of an estimate "
    "from recorded runs, which says so, inside our 95% interval",
    DIFFERS: "it does not; the row says what is known of the reason",
    NEEDS_MODEL: "the figure is a trait of the models that were tested; a reference agent's stands beside it",
    NEEDS_RUNS: "the figure comes from recorded runs, which are not shipped",
    NEEDS_MEMORY: "the figure comes from a memory system that is not installed here",
}


def verdict_of(published: float, ours: float, low: float, high: float, digits: int = 3) -> str:
    """Return how a published figure, printed with so many digits, stands to ours and its range."""
    if abs(published - ours) <= _rounding(digits):
        return REPRODUCED
    return verdict_of_interval(published, low, high, digits)


def verdict_of_interval(published: float, low: float, high: float, digits: int = 3) -> str:
    """Return how a published figure stands to a range alone; *reproduced* is not among the answers."""
    rounding = _rounding(digits)
    return SPREAD if low - rounding <= published <= high + rounding else DIFFERS


def _rounding(digits: int) -> float:
    return 0.5 * 10.0**-digits * (1 + 1e-9)  # a figure halfway between two printed ones may be either


def overall(verdicts: Iterable[str]) -> str:
    """Return the verdict of many: the worst of those that were judged; what is needed where none was."""
    found = set(verdicts)
    for verdict in JUDGED:
        if verdict in found:
            return verdict
    return next(verdict for verdict in VERDICTS if verdict in found)
