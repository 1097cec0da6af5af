"""How often a task is resolved by runs outside the analysed set: logit((s + ½)/(n + 1)), from s resolved of n.

All runs and a mark for the analysed ones come in, so the two sets cannot overlap. Higher values mean easier tasks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eirkit.vestige.inference.design import Floats, as_binary, as_codes


@dataclass(frozen=True, slots=True)
class Difficulty:
    """One value per analysed run, in the order in which they came."""

    success_logit: Floats  # 0 where nothing is known
    known: NDArray[np.bool_]  # False: the task has no run outside the analysed set
    n: int  # analysed runs with a value
    excluded: int  # analysed runs without
    tasks: int  # tasks of the analysed runs
    note: str = ""


def disjoint_difficulty(tasks: Any, resolved: ArrayLike, analysed: ArrayLike) -> Difficulty:
    """Return the smoothed log-odds of success of each analysed run's task, from the other runs of that task."""
    outcome = as_binary("resolved", resolved)
    inside = as_binary("analysed", analysed, len(outcome)) == 1
    codes = as_codes("tasks", tasks, len(outcome))
    count = int(codes.max()) + 1 if len(codes) else 0
    runs = np.bincount(codes[~inside], minlength=count)
    wins = np.bincount(codes[~inside], outcome[~inside], minlength=count)
    logit = np.where(runs > 0, np.log((wins + 0.5) / (runs - wins + 0.5)), 0.0)
    mine = codes[inside]
    known = runs[mine] > 0
    lost = int((~known).sum())
    note = f"{lost} of {len(mine)} analysed runs belong to tasks without other runs" if lost else ""
    note = note if len(mine) else "no runs to analyse"
    return Difficulty(logit[mine], known, len(mine) - lost, lost, len(np.unique(mine)), note)
