"""A cohort and how it is to be analysed; what every analysis takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from eirkit.seeds import name_key
from eirkit.vestige.analyses.cohort_runs import Cells, Codes, Floats, Mask, Runs
from eirkit.vestige.inference.design import Columns
from eirkit.vestige.inference.results import Excluded

Resampled = Literal["tasks", "runs"]
UNKNOWN = "nobody says whether they were resolved"
MOST_MODELS = 60  # indicators of their own
OTHER_MODELS = "other models"  # the indicator that rarer ones share


@dataclass(frozen=True, slots=True)
class Settings:
    """What is drawn, and how often."""

    seed: int = 0
    resamples: int = 1000  # of fair-clock gaps
    mediation_resamples: int = 200
    draws: int = 1000  # of each of four chains
    resampled: Resampled = "tasks"  # "runs": within tasks


@dataclass(frozen=True, slots=True)
class Cohort:
    """Runs of one unit, the cells of these runs, and runs of other sets, from which difficulty may be told."""

    name: str
    runs: Runs
    cells: Cells
    elsewhere: Runs
    settings: Settings

    def rng(self, name: str) -> np.random.Generator:
        """Return a generator of the cohort's and the analysis's own, so that neither moves the other."""
        return np.random.default_rng([self.settings.seed, name_key("cohort", self.name, name)])

    @property
    def in_tokens(self) -> bool:
        return bool(len(self.runs)) and self.runs.unit[0] == "tokens"

    def judged(self) -> tuple[Runs, tuple[Excluded, ...]]:
        """Return the runs with a known outcome, and how many have none."""
        return known(self.runs, ~np.isnan(self.runs.failed), UNKNOWN)


def known(runs: Runs, mask: Mask, reason: str, before: tuple[Excluded, ...] = ()) -> tuple[Runs, tuple[Excluded, ...]]:
    """Return the runs where a mask holds, and what was left out so far."""
    lost = int((~mask).sum())
    return runs.at(mask), (*before, Excluded(reason, lost)) if lost else before


def log2_1p(values: Floats) -> Floats:
    """Return log2(1 + x), the scale on which one unit is a doubling of anything large."""
    scaled: Floats = np.log2(1 + values)
    return scaled


def model_columns(models: NDArray[np.object_]) -> Columns:
    """Return an indicator for each model but the most frequent one; the rarest share one where there are too many."""
    names, inverse, counts = np.unique(models.astype(str), return_inverse=True, return_counts=True)
    order = np.argsort(-counts, kind="stable")[1:]
    own, rest = order[:MOST_MODELS], order[MOST_MODELS:]
    columns = {f"model {names[place]}": (inverse == place).astype(np.float64) for place in sorted(own)}
    return {**columns, OTHER_MODELS: np.isin(inverse, rest).astype(np.float64)} if len(rest) else columns


def model_note(models: NDArray[np.object_]) -> str:
    """Return how many models share an indicator, if any do."""
    rest = len(np.unique(models.astype(str))) - 1 - MOST_MODELS
    if rest <= 0:
        return ""
    return f"the rarest {rest:,} of {rest + MOST_MODELS + 1:,} models share one indicator"


def at_tasks(values: Floats, tasks: Codes) -> Floats:
    """Return for each run the mean of a column over the runs of its task."""
    _, inverse, counts = np.unique(tasks, return_inverse=True, return_counts=True)
    means: Floats = (np.bincount(inverse, values) / counts)[inverse]
    return means
