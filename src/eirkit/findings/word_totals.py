"""Pools the records of runs in words over the worlds of a cell: accuracy by ability, fates, and bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from eirkit.findings.intervals import proportion, student
from eirkit.findings.statistics import mean
from eirkit.findings.word_measures import WORD_FATES
from eirkit.tasks.words.world import ABILITIES

ALL = "all"
INSTRUCTION = "instruction"  # not among the questions: it is checked at every answer


@dataclass(slots=True)
class WordTotals:
    """The runs of one cell so far."""

    runs: list[Mapping[str, Any]] = field(default_factory=list)

    def add(self, record: Mapping[str, Any] | None) -> None:
        """Add what a run record says about answers in words, if it does."""
        if record is not None:
            self.runs.append(record)

    def row(self) -> dict[str, Any] | None:
        """Return the figures of the cell; None if its task is not told in words."""
        if not self.runs:
            return None
        asked = sum(n for run in self.runs for _, n in run["abilities"].values())
        fates = {one.id: sum(run["fates"].get(one.id, 0) for run in self.runs) for one in WORD_FATES}
        sizes = ("stored_texts", "stored_bytes", "said_bytes", "floor_bytes")
        return {
            "worlds": len(self.runs),
            "asked": asked,
            "abilities": self.abilities(),
            "fates": fates,
            "fate_shares": {one.id: mean(_share(run, one.id) for run in self.runs) for one in WORD_FATES},
            **{name: _mean_known([run[name] for run in self.runs]) for name in sizes},
            "returned_bytes": _ratio(self.runs, "returned_bytes", "recalls"),
        }

    def abilities(self) -> list[dict[str, Any]]:
        """Return right answers by ability, all of them first, each with an interval over worlds."""
        every = [[(sum(r for r, _ in one.values()), sum(n for _, n in one.values()))] for one in self._counts()]
        rows = [_line(ALL, [pair for pairs in every for pair in pairs])]
        for ability in ABILITIES:
            pairs = [(right, n) for run in self._counts() for name, (right, n) in run.items() if name == ability]
            if pairs:
                rows.append(_line(ability, pairs))
        kept = [(run["instruction"]["kept"], run["instruction"]["asked"]) for run in self.runs]
        return [*rows, _line(INSTRUCTION, kept)] if any(n for _, n in kept) else rows

    def _counts(self) -> list[Mapping[str, Sequence[int]]]:
        return [run["abilities"] for run in self.runs]


def _line(ability: str, worlds: Sequence[tuple[int, int]]) -> dict[str, Any]:
    """Return one ability: its rate, and the wider of the exact interval and the t interval over worlds."""
    counted = [(right, n) for right, n in worlds if n]
    right, asked = sum(r for r, _ in counted), sum(n for _, n in counted)
    exact = proportion(right, asked)
    low, high = exact.low, exact.high
    if len(counted) > 1:
        rate = right / asked
        spread = sum((r - rate * n) ** 2 for r, n in counted) * len(counted) / (len(counted) - 1)
        half = student(len(counted) - 1) * spread**0.5 / asked
        low, high = min(low, max(0.0, rate - half)), max(high, min(1.0, rate + half))
    return {"ability": ability, "right": right, "asked": asked, "accuracy": exact.estimate, "low": low, "high": high}


def _share(run: Mapping[str, Any], fate: str) -> float:
    return float(run["fates"].get(fate, 0) / sum(n for _, n in run["abilities"].values()))


def _mean_known(values: Sequence[float | None]) -> float | None:
    """Return the mean; None if it is unknown for any run."""
    known = [float(value) for value in values if value is not None]
    return mean(known) if len(known) == len(values) else None


def _ratio(runs: Sequence[Mapping[str, Any]], above: str, below: str) -> float | None:
    calls = sum(run[below] for run in runs)
    return sum(run[above] for run in runs) / calls if calls else None
