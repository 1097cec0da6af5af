"""What an external memory did over the runs of one cell, as one part of a summary row."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from eirkit.findings.fates import FATES, diagnose, pool_fates
from eirkit.findings.floor import pool_floors
from eirkit.runs.cells import NATIVE, STRICT, Access

_SUMS = ("writes", "searches", "confused", "flooded", "model_calls", "input_tokens", "output_tokens")
_UNBOUNDED = ("paging", "compaction", "scratch", "scratch-lru")  # not held to a number of records


@dataclass(slots=True)
class MemoryTotals:
    """Sums over runs, and the largest of what was held."""

    runs: int = 0
    sums: Counter[str] = field(default_factory=Counter)
    fates: list[Mapping[str, int]] = field(default_factory=list)  # of each run
    seconds: dict[str, list[float]] = field(default_factory=lambda: {"write": [], "search": []})
    slowest: float = 0.0
    held: dict[str, list[int]] = field(default_factory=lambda: {"records": [], "bytes": []})
    costs: list[float | None] = field(default_factory=list)
    floors: list[Mapping[str, Any]] = field(default_factory=list)
    limited: bool = False  # held to a number of records

    def add(self, record: Mapping[str, Any] | None) -> None:
        """Take in what a run record says about its memory; runs without one say nothing."""
        if record is None:
            return
        self.runs += 1
        self.sums.update({name: record[name] for name in _SUMS})
        self.fates.append(record["fates"])
        for verb, taken in self.seconds.items():
            taken.append(record[f"{verb}_seconds"])
        self.slowest = max(self.slowest, record["slowest_seconds"])
        for unit, most in self.held.items():
            if record[unit] is not None:
                most.append(record[unit])
        self.costs.append(record["cost_usd"])
        self.limited = record.get("limit") is not None
        if record.get("floor") is not None:
            self.floors.append(record["floor"])

    def row(self, failed: Iterable[Mapping[str, Any]]) -> dict[str, Any] | None:
        """Return the figures; None where the cell has no external memory.

        Args:
            failed: failure records of runs that are not scored.
        """
        lost = Counter(str(record["message"]) for record in failed if record["kind"] == "memory")
        if not self.runs and not lost:
            return None
        fates = {fate: sum(run[fate] for run in self.fates) for fate in FATES}
        pooled = pool_fates(self.fates)
        return {
            "fates": fates,
            "fate_shares": dict(pooled.shares),
            "needing_runs": pooled.runs,
            **{name: self.sums[name] for name in _SUMS},
            "write_seconds": _mean(self.seconds["write"], self.sums["writes"]),
            "search_seconds": _mean(self.seconds["search"], self.sums["searches"]),
            "slowest_seconds": self.slowest,
            "records": max(self.held["records"], default=None),
            "bytes": max(self.held["bytes"], default=None),
            "cost_usd": None if None in self.costs else math.fsum(cost for cost in self.costs if cost is not None),
            "floor": pool_floors(self.floors),
            "diagnosis": diagnose(fates, self.sums["flooded"], lost, limited=self.limited),
        }


def _mean(sums: list[float], calls: int) -> float | None:
    return math.fsum(sums) / calls if calls else None


def panel_of(access: Access) -> str:
    """Return strict where an access is held to h records in all, native where it is not and does not compare."""
    if access.memory is not None:
        return access.panel
    return NATIVE if access.condition in _UNBOUNDED else STRICT
