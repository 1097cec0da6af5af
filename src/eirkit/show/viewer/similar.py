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
_KEPT = ("memory", "profile", "condition", "policy")  # what makes two runs those of one memory
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
    examples: tuple[tuple[str, int], ...]  # run and step: of the same memory first, and of these of other runs first
    memory: str | None = None  # of this failure, where runs of the folder differ in it
    of_memory: int | None = None  # how many of them are of that memory

    def sentence(self) -> str:
        what = f"{counted(self.count, _noun(self.way))} ({way_measure(self.way).label})"
        own = "" if self.memory is None else f", {self.of_memory:,} of them with {self.memory}"
        where = f"in {self.runs:,} of {counted(self.of_runs, 'run')}"
        return f"Like it in this folder, itself included: {what} {where}{own}."

    def as_json(self) -> dict[str, Any]:
        examples = [{"run": run, "t": t} for run, t in self.examples]
        return {**asdict(self), "examples": examples, "sentence": self.sentence()}


def similar_to(index: RunIndex, run: LacunaRun, card: WhyCard) -> SimilarFailures | None:
    """Return the failures like that of a card; None for a right step."""
    if (way := card.way) is None:
        return None
    found = [row for row, counts in enumerate(index.ways) if counts.get(way)]
    own, place = str(run.record["run"]), index.place(str(run.record["run"]))
    kept = [index.column(key) for key in _KEPT]
    apart = {row: sum(column[row] != column[place] for column in kept) for row in found}
    # Runs of the same memory first, this run last of them.
    order = sorted(found, key=lambda row: (apart[row], row == place))
    examples: list[tuple[str, int]] = []
    for row in order[:MOST_OPENED]:
        name = str(index.column("run")[row])
        other = run if row == place else LacunaRun(run.folder, index.record(name), plugins=run.plugins)
        step = next((t for t in wrong_steps(other) if (name, t) != (own, card.t) and _way(other, t) == way), None)
        examples += [] if step is None else [(name, step)]
    total = sum(index.ways[row][way] for row in found)
    varying = [column for column in kept if len({str(value) for value in column}) > 1]
    memory = ", ".join(str(column[place]) for column in varying if column[place]) or None
    same = sum(index.ways[row][way] for row in found if not apart[row]) if memory else None
    return SimilarFailures(way, total, len(found), len(index), tuple(examples[:EXAMPLES]), memory, same)


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
