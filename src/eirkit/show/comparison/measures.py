"""What two folders are compared in: names, the table each belongs to, its unit, and which way is better. Facts only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Unit = Literal["share", "ms", "dollars", "number"]
Better = Literal["more", "less", "neither"]

RESULT, CAUSES, FATES, COSTS, RUNS = "result", "causes", "fates", "costs", "runs"
TITLES: Mapping[str, str] = {
    RESULT: "How well they did",
    CAUSES: "Why steps were wrong, of all steps",
    FATES: "What became of results that had left the agent’s sight, of those that were needed",
    COSTS: "What it took",
    RUNS: "The runs",
}


@dataclass(frozen=True, slots=True)
class Measure:
    """One figure of a run, or of a task's runs."""

    name: str
    group: str
    unit: Unit = "share"
    better: Better = "less"
    meaning: str = ""  # where the name does not say it
    said: str = ""  # in a sentence, where the name does not fit one


_ALL = (
    Measure("accuracy", RESULT, better="more"),
    Measure("task right", RESULT, better="more", meaning="the last answer"),
    Measure(
        "out of sight",
        RESULT,
        better="neither",
        meaning="steps that need a result which is no longer in sight, whether a memory brings it or not",
    ),
    Measure("missing state", CAUSES),
    Measure("from an earlier error", CAUSES),
    Measure("never answered", CAUSES),
    Measure("own mistake", CAUSES),
    Measure("came back, used", FATES, better="more"),
    Measure("came back, not used", FATES, meaning="the answer does not follow from it"),
    Measure("another label’s value", FATES, meaning="its label came back with another value"),
    Measure("stored, not found", FATES, meaning="no search brought it"),
    Measure("lost by the store", FATES, meaning="written and sought, and the store does not have it"),
    Measure("never searched for", FATES),
    Measure("never written", FATES, meaning="by the agent"),
    Measure("ms a write", COSTS, "ms"),
    Measure("ms a search", COSTS, "ms"),
    Measure("records held", COSTS, "number", "neither"),
    Measure("bytes held", COSTS, "number", "neither"),
    Measure("its own calls", COSTS, "number", meaning="that the memory made of a model, a run"),
    Measure("its own tokens", COSTS, "number"),
    Measure("its own cost, $", COSTS, "dollars"),
    Measure("agent’s calls", COSTS, "number", meaning="a run, as its tokens and cost"),
    Measure("agent’s tokens", COSTS, "number"),
    Measure("agent’s cost, $", COSTS, "dollars"),
    Measure("failed", RUNS, said="share of failed runs"),
    Measure("goal reached", RUNS, better="more"),
    Measure("any rework", RUNS),
    Measure("peak demand, tokens", RUNS, "number", "neither"),
    Measure("used later, peak", RUNS, "number", "neither"),
    Measure("trajectory, tokens", RUNS, "number", "neither"),
    Measure("tool turns", RUNS, "number", "neither"),
)
MEASURES: Mapping[str, Measure] = {one.name: one for one in _ALL}


def measure_of(name: str) -> Measure:
    """Return what is known of a measure; one that nobody described is a plain number."""
    return MEASURES.get(name, Measure(name, RUNS, "number", "neither"))
