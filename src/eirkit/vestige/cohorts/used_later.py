"""Quantiles of how much runs held for later use, whatever its purpose: entities of a database, or tokens of files.

Intervals are distribution-free, from order statistics. For entities it also tests how well the number of entities that
the task itself names separates failed from resolved runs.
"""

from __future__ import annotations

from math import ceil, floor, sqrt

import numpy as np

from eirkit.records.analysis import Excluded
from eirkit.vestige.cohorts.finding import Cohort, Finding, Question, known, no_finding
from eirkit.vestige.cohorts.run_columns import Floats
from eirkit.vestige.inference.auc import failure_auc
from eirkit.vestige.inference.results import Z
from eirkit.vestige.measures import SHELL_TOOL_TURNS

SHARES = (0.5, 0.9, 0.99)
ORDERED = "95%, from order statistics"
_LIMITS = "what a correct run would need: it is what these runs used on their own paths"
TASK_AUC = Question(
    "task-entities-auc",
    "area under the curve of failure against the number of entities that the task names",
    "whether tasks that name more entities fail more often",
    "an effect of context: longer tasks are harder for many reasons",
)


def _question(unit: str, share: float) -> Question:
    percent = round(share * 100)
    shows = f"how many {unit} were held at the peak for later use: {percent}% of runs no more than this"
    return Question(f"used-later-{unit}-{percent}", f"{unit}, {percent}% quantile", shows, _LIMITS)


QUANTILES = {(unit, share): _question(unit, share) for unit in ("files", "tokens", "entities") for share in SHARES}
OF_ENTITIES = (*(asked for (unit, _), asked in QUANTILES.items() if unit == "entities"), TASK_AUC)
QUESTIONS = (*QUANTILES.values(), TASK_AUC)


def analyze(cohort: Cohort) -> list[Finding]:
    """Return the quantiles in the cohort's unit; shell runs with too few tool turns are left out."""
    runs = cohort.runs
    if not len(runs):
        return []
    if not cohort.in_tokens:
        return [*_quantiles("entities", runs.later_used, ()), _task_auc(cohort)]
    kept, excluded = known(runs, runs.tool_turns >= SHELL_TOOL_TURNS, f"fewer than {SHELL_TOOL_TURNS} tool turns")
    return _quantiles("files", kept.later_used_files, excluded) + _quantiles("tokens", kept.later_used, excluded)


def quantile_interval(ordered: Floats, share: float) -> tuple[float | None, float | None]:
    """Return the order statistics that enclose a quantile with 95%; None if the sample is too small for one end."""
    n = len(ordered)
    half = Z * sqrt(n * share * (1 - share))
    low, high = floor(n * share - half), ceil(n * share + half)
    return (float(ordered[low - 1]) if low >= 1 else None), (float(ordered[high]) if high < n else None)


def _quantiles(unit: str, peaks: Floats, excluded: tuple[Excluded, ...]) -> list[Finding]:
    ordered = np.sort(peaks[~np.isnan(peaks)])
    found = []
    for share in SHARES:
        question = QUANTILES[unit, share]
        if not len(ordered):
            found.append(no_finding(question, "no run has enough tool turns", 0, excluded))
            continue
        low, high = quantile_interval(ordered, share)
        note = "" if low is not None and high is not None else "too few runs for a 95% interval of this quantile"
        low, high = (None, None) if note else (low, high)
        estimate = float(np.quantile(ordered, share))
        found.append(Finding(question, estimate, low, high, None, len(ordered), ORDERED, excluded, note))
    return found


def _task_auc(cohort: Cohort) -> Finding:
    judged, excluded = cohort.judged()
    runs, excluded = known(
        judged, ~np.isnan(judged.task_entities), "the log does not name the task's entities", excluded
    )
    if not len(runs):
        return no_finding(TASK_AUC, "no run's task names its entities", 0, excluded)
    found = failure_auc(runs.task_entities, runs.failed, runs.task)
    interval = "95%, DeLong with tasks as clusters"
    return Finding(TASK_AUC, found.estimate, found.low, found.high, found.p, found.n, interval, excluded, found.note)
