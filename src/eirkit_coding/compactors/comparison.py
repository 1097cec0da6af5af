"""Compares compactors over the records of a benchmark: shares kept, regret and gain, paired over cuts.

A cut counts where something was needed and the context was larger than the budget. Cuts of one run are not independent:
intervals are clustered by run, and hold for all compactors of all budgets together (Bonferroni).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from eirkit.lacuna.findings.intervals import FEWEST_CLUSTERS, LEVEL, half_width
from eirkit.lacuna.findings.ranking import rank
from eirkit.records.lines import read_records
from eirkit_coding.compactors.records import TIMES, TIMES_SCHEMA, CompactionRow, CutFacts, RunRecord, read_runs

ORACLE, SHAM = "oracle", "random"
BOUNDS = (ORACLE, "null", SHAM)  # not candidates


@dataclass(slots=True)
class _Series:
    """The values of one compactor within one budget, cut by cut."""

    kept: list[float] = field(default_factory=list)  # share of the needed tokens
    regret: list[float] = field(default_factory=list)
    gain: list[float] = field(default_factory=list)
    beyond_random: list[float] = field(default_factory=list)
    used: list[int] = field(default_factory=list)
    places: list[tuple[str, int]] = field(default_factory=list)  # run and turn
    totals: Counter[str] = field(default_factory=Counter)
    statuses: Counter[str] = field(default_factory=Counter)
    reasons: dict[str, str] = field(default_factory=dict)  # the first reason of each failure
    cost_usd: float | None = 0.0

    def add(self, row: CompactionRow, cut: CutFacts) -> None:
        self.statuses[row.status] += 1
        if row.reason:
            self.reasons.setdefault(row.status, row.reason)
        self.cost_usd = None if self.cost_usd is None or row.cost_usd is None else self.cost_usd + row.cost_usd
        for name in ("calls", "input_tokens", "output_tokens", "verbatim", "substance", "paths", "names"):
            self.totals[name] += getattr(row, name)
        for name in ("instructions", "paths", "names"):
            self.totals[f"given_{name}"] += getattr(cut, name)
        if not cut.needed_tokens:
            return
        for kind in ("read", "written"):
            self.totals[f"kept_{kind}"] += getattr(row, f"{kind}_tokens")
            self.totals[f"needed_{kind}"] += getattr(cut, f"{kind}_tokens")
        self.kept.append(row.kept_tokens / cut.needed_tokens)
        self.regret.append((row.best_tokens - row.kept_tokens) / cut.needed_tokens)
        self.gain.append((row.kept_tokens - row.sham_tokens) / cut.needed_tokens)
        self.beyond_random.append((row.kept_tokens - row.random_tokens) / cut.needed_tokens)
        self.used.append(row.used_tokens)
        self.places.append((row.run_id, row.turn))


@dataclass(frozen=True, slots=True)
class ComparedCut:
    """One cut as it is shown: its needed lines, and which of them each compactor kept."""

    facts: CutFacts
    budget: int
    lines: tuple[Mapping[str, Any], ...]
    kept: Mapping[str, int]  # by compactor: bit i says that line i was kept
    disagreement: float


def compare_compactors(folder: Path, labels: Sequence[str], budgets: Sequence[int]) -> dict[str, Any]:
    """Return the results of a benchmark as JSON data, and the cut on which the compactors differ most."""
    series: dict[tuple[str, int], _Series] = {(label, budget): _Series() for budget in budgets for label in labels}
    cuts, runs, needing, shown = 0, set[str](), 0, None
    for record in joined(folder):
        facts = {cut.turn: cut for cut in record.cuts}
        cuts += len(facts)
        needing += sum(cut.needed_tokens > 0 for cut in record.cuts)
        runs.add(record.run_id)
        for row in record.rows:
            if (found := series.get((row.compactor, row.budget))) is not None:
                found.add(row, facts[row.turn])
        shown = _most_telling(shown, record, labels, max(budgets))
    outside = (1 - LEVEL) / max(1, len(series))
    seconds = _seconds(folder)
    rows = [_row(label, budget, one, outside, seconds.get(label)) for (label, budget), one in series.items()]
    return {
        "runs": len(runs),
        "cuts": cuts,
        "needing_cuts": needing,
        "level": LEVEL,
        "rows": rows,
        "rankings": {str(budget): _ranking(series, labels, budget, len(budgets)) for budget in budgets},
        "example": None if shown is None else _example(shown),
    }


def joined(folder: Path) -> Iterator[RunRecord]:
    """Yield one record for each run: the newest state of its log, with the rows of all records of that state.

    Only of runs that were extended, only rows wait for their others: texts of lines are in memory of one run at a time.
    """
    newest: dict[str, tuple[str, int]] = {}  # by run: its last digest, and how many records have it
    for record in read_runs(folder):
        digest, several = newest.get(record.run_id, ("", 0))
        newest[record.run_id] = record.digest, several + 1 if digest == record.digest else 1
    waiting: dict[str, list[tuple[tuple[CompactionRow, ...], tuple[tuple[str, int], ...]]]] = {}
    for record in read_runs(folder):
        digest, several = newest[record.run_id]
        if record.digest != digest:
            continue
        found = [*waiting.pop(record.run_id, ()), (record.rows, record.tried)]
        if len(found) < several:
            waiting[record.run_id] = found
            continue
        rows = {(row.turn, row.compactor, row.budget): row for own, _ in found for row in own}
        tried = tuple(dict.fromkeys(pair for _, own in found for pair in own))
        yield replace(record, tried=tried, rows=tuple(rows.values()))


def _row(label: str, budget: int, one: _Series, outside: float, seconds: float | None) -> dict[str, Any]:
    totals, cuts = one.totals, len(one.kept)
    clusters = [run for run, _ in one.places]
    failures = {status: count for status, count in sorted(one.statuses.items()) if status != "ok"}
    return {
        "compactor": label,
        "budget": budget,
        "tried": sum(one.statuses.values()),
        "cuts": cuts,
        "runs": len(set(clusters)),
        "failed": sum(failures.values()),
        "failures": {
            status: {"cuts": count, "first": one.reasons.get(status, "")} for status, count in failures.items()
        },
        "used_tokens": _mean(one.used),
        **_interval("kept", one.kept, clusters, outside),
        **_interval("regret", one.regret, clusters, outside),
        **_interval("gain", one.gain, clusters, outside),
        **_interval("beyond_random", one.beyond_random, clusters, outside),
        "worst_regret": max(one.regret, default=None),
        "least_regret": min(one.regret, default=None),
        "read_kept": _share(totals["kept_read"], totals["needed_read"]),
        "written_kept": _share(totals["kept_written"], totals["needed_written"]),
        "rules_verbatim": _share(totals["verbatim"], totals["given_instructions"]),
        "rules_kept": _share(totals["verbatim"] + totals["substance"], totals["given_instructions"]),
        "paths_kept": _share(totals["paths"], totals["given_paths"]),
        "names_kept": _share(totals["names"], totals["given_names"]),
        **{name: totals[name] for name in ("calls", "input_tokens", "output_tokens")},
        "cost_usd": one.cost_usd,
        "seconds": seconds,
    }


def _interval(name: str, values: Sequence[float], runs: Sequence[str], outside: float) -> dict[str, float | None]:
    """Return the mean of a measure with its simultaneous interval; without one below six runs."""
    middle = _mean(values)
    half = half_width(values, runs, 1 - outside) if middle is not None and len(set(runs)) >= FEWEST_CLUSTERS else None
    is_known = middle is not None and half is not None
    return {
        f"{name}_share": middle,
        f"{name}_low": middle - half if is_known else None,  # type: ignore[operator]
        f"{name}_high": middle + half if is_known else None,  # type: ignore[operator]
    }


def _ranking(
    series: Mapping[tuple[str, int], _Series], labels: Sequence[str], budget: int, budgets: int
) -> dict[str, Any] | None:
    """Return the candidates by what they keep, with what is shown about each pair; bounds take no part."""
    values = {label: series[label, budget] for label in labels if label not in BOUNDS}
    values = {label: one for label, one in values.items() if one.kept}
    places = [set(one.places) for one in values.values()]
    if len(values) < 2 or any(one != places[0] for one in places):
        return None
    order = sorted(places[0])
    kept = {label: dict(zip(one.places, one.kept, strict=True)) for label, one in values.items()}
    paired = {label: [by_place[at] for at in order] for label, by_place in kept.items()}
    return rank(paired, [run for run, _ in order], rankings=budgets).as_json()


def _most_telling(
    before: ComparedCut | None, record: RunRecord, labels: Sequence[str], budget: int
) -> ComparedCut | None:
    """Return the cut on which candidates differ most in what they keep, the earlier of two alike."""
    best = before
    for cut, lines in zip(record.cuts, record.lines, strict=True):
        rows = {row.compactor: row for row in record.rows if row.turn == cut.turn and row.budget == budget}
        shares = [row.kept_tokens for label, row in rows.items() if label not in BOUNDS and row.status == "ok"]
        if not shares or not cut.needed_tokens or len(lines) < cut.needed_lines or not 10 <= len(lines) <= 200:
            continue
        differs = (max(shares) - min(shares)) / cut.needed_tokens
        if best is None or differs > best.disagreement:
            kept = {label: int(rows[label].kept, 16) for label in labels if label in rows}
            best = ComparedCut(cut, budget, lines, kept, differs)
    return best


def _example(shown: ComparedCut) -> dict[str, Any]:
    lines = [
        {**line, "kept": {label: bool(bits >> place & 1) for label, bits in shown.kept.items()}}
        for place, line in enumerate(shown.lines)
    ]
    return {"run_id": shown.facts.run_id, "turn": shown.facts.turn, "budget": shown.budget, "lines": lines}


def _seconds(folder: Path) -> dict[str, float]:
    found: dict[str, float] = {}
    path = folder / TIMES
    for record in read_records(path, TIMES_SCHEMA) if path.is_file() else ():
        for label, took in record["seconds"].items():
            found[label] = found.get(label, 0.0) + took
    return found


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
