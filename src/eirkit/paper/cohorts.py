"""The recorded cohorts of the paper: where they are published, how they lie below --data, how many runs to expect."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from eirkit.paper.published import figures_by_id

SLACK = 0.01  # of the runs: a reader may normalise a few more or fewer than the published one


@dataclass(frozen=True, slots=True)
class PaperCohort:
    """One published collection of runs."""

    folder: str
    figure: str  # the id of the published number of its runs
    gold: bool  # it has reference patches
    source: str
    layout: str

    @property
    def runs(self) -> int:
        return int(figures_by_id()[self.figure].value)

    def is_met(self, runs: int) -> bool:
        """True if an analysis has as many runs as the paper's."""
        return abs(runs - self.runs) <= SLACK * self.runs

    def differs(self, runs: int) -> str:
        """Return why figures of an analysis are not judged."""
        return f"{runs:,} runs in --data, {self.runs:,} in the paper: {self.source}"

    @property
    def command(self) -> str:
        gold = " --gold GOLD" if self.gold else ""
        return f"eirkit vestige analyze RUNS{gold} --demand paper --out DATA/{self.folder}"


@cache
def paper_cohorts() -> Mapping[str, PaperCohort]:
    document = tomllib.loads((files("eirkit.paper") / "cohorts.toml").read_text("utf-8"))
    return {name: PaperCohort(name, **fields) for name, fields in document.items()}
