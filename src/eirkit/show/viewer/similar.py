"""Counts the failures of a folder that are like one of them, and names a few to look at."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from eirkit.findings.measures import FATE_MEASURES, KIND_MEASURES
from eirkit.findings.why import WhyCard, way_measure
from eirkit.findings.word_measures import WORD_FATES
from eirkit.show.table import counted
from eirkit.show.viewer.lacuna_run import LacunaRun
from eirkit.show.viewer.run_index import RunIndex

EXAMPLES = 3
MOST_OPENED = 6  # runs that are read in search of examples
# What the measures of each group count.
_COUNTED = ((KIND_MEASURES, "wrong step"), (FATE_MEASURES, "needed record"), (WORD_FATES, "wrong answer"))


@dataclass(frozen=True, slots=True)
class SimilarFailures:
    """How often runs of a folder failed in the same way, this failure included."""

    way: str  # the identifier of a measure: a fate, or the kind of a wrong step
    count: int
    runs: int
    of_runs: int
    examples: tuple[tuple[str, int], ...]  # run and step, of other runs first

    def sentence(self) -> str:
        what = f"{counted(self.count, _noun(self.way))} ({way_measure(self.way).label})"
        return f"Like it in this folder, itself included: {what} in {self.runs:,} of {counted(self.of_runs, 'run')}."

    def as_json(self) -> dict[str, Any]:
        examples = [{"run": run, "t": t} for run, t in self.examples]
        return {**asdict(self), "examples": examples, "sentence": self.sentence()}


def similar_to(index: RunIndex, run: LacunaRun, card: WhyCard) -> SimilarFailures | None:
    """Return the failures like that of a card; None for a right step."""
    if (way := card.way) is None:
        return None
    found = [row for row, counts in enumerate(index.ways) if counts.get(way)]
    names = [str(index.column("run")[row]) for row in found]
    own = str(run.record["run"])
    examples = []
    for name in [*[one for one in names if one != own][:MOST_OPENED], own]:
        other = run if name == own else LacunaRun(run.folder, index.record(name), plugins=run.plugins)
        step = next((t for t in wrong_steps(other) if (name, t) != (own, card.t) and _way(other, t) == way), None)
        examples += [] if step is None else [(name, step)]
    total = sum(index.ways[row][way] for row in found)
    return SimilarFailures(way, total, len(found), len(index), tuple(examples[:EXAMPLES]))


def wrong_steps(run: LacunaRun) -> list[int]:
    """Return the wrong steps of a run in order."""
    return [t for t, verdict in run.verdicts.items() if not verdict.correct]


def _way(run: LacunaRun, t: int) -> str | None:
    if "words" in run.record:  # what a card says, without the judgement that it is made by
        return next((str(fate) for wrong, fate, _ in run.record["words"]["wrong"] if wrong == t), None)
    card = run.card(t)
    return None if card is None else card.way


def _noun(way: str) -> str:
    """Return what a measure of failures counts."""
    return next(noun for group, noun in _COUNTED if any(one.id == way for one in group))
