"""Pools the records of runs in words over the worlds of a cell: accuracy by ability, fates, and bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from eirkit.findings.intervals import proportion, student
from eirkit.findings.statistics import mean
from eirkit.findings.word_measures import WORD_FATES
from eirkit.tasks.words.world import ABILITIES

ALL = "all"
INSTRUCTION = "instruction"  # not among the questions: it is checked at every answer


def pool_words(runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the figures of a cell, from what the records of its runs say about answers in words."""
    asked = sum(n for run in runs for _, n in run["abilities"].values())
    fates = {one.id: sum(run["fates"].get(one.id, 0) for run in runs) for one in WORD_FATES}
    sizes = ("stored_texts", "stored_bytes", "said_bytes", "floor_bytes")
    return {
        "worlds": len(runs),
        "asked": asked,
        "abilities": _abilities(runs),
        "fates": fates,
        "fate_shares": {one.id: mean(_share(run, one.id) for run in runs) for one in WORD_FATES},
        **{name: _mean_known([run[name] for run in runs]) for name in sizes},
        "returned_bytes": _ratio(runs, "returned_bytes", "recalls"),
    }


def _abilities(runs: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return right answers by ability, all of them first, each with an interval over worlds."""
    counts: list[Mapping[str, Sequence[int]]] = [run["abilities"] for run in runs]
    rows = [_line(ALL, [(sum(r for r, _ in one.values()), sum(n for _, n in one.values())) for one in counts])]
    for ability in ABILITIES:
        pairs = [(right, n) for run in counts for name, (right, n) in run.items() if name == ability]
        if pairs:
            rows.append(_line(ability, pairs))
    kept = [(run["instruction"]["kept"], run["instruction"]["asked"]) for run in runs]
    return [*rows, _line(INSTRUCTION, kept)] if any(n for _, n in kept) else rows


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
