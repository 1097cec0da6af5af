"""Compares compactors over the records of a benchmark: shares kept, regret and gain, paired over cuts.

A cut counts where something was needed and the context was larger than the budget. Cuts of one run are not independent:
intervals are clustered by run, and hold for all compactors of all budgets together (Bonferroni).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from eirkit.lacuna.findings.intervals import FEWEST_CLUSTERS, LEVEL, half_width
from eirkit.lacuna.findings.ranking import OUTSIDE, Ranking, rank
from eirkit_coding.compaction import CompactionStatus
from eirkit_coding.compactors.records import (
    CompactionRow,
    CompactorRow,
    Comparison,
    CutFacts,
    ExampleCut,
    ExampleLine,
    Failures,
    RunRecord,
    joined,
    marked,
    read_seconds,
)

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
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    rules: int = 0  # instructions in the contexts; after it, how many of them were kept in which form
    verbatim: int = 0
    substance: int = 0
    paths: int = 0
    kept_paths: int = 0
    names: int = 0
    kept_names: int = 0
    read_tokens: int = 0  # needed ones, and how many of them were kept
    kept_read_tokens: int = 0
    written_tokens: int = 0
    kept_written_tokens: int = 0
    statuses: Counter[CompactionStatus] = field(default_factory=Counter)
    reasons: dict[CompactionStatus, str] = field(default_factory=dict)  # the first reason of each failure
    cost_usd: float | None = 0.0

    def add(self, run_id: str, row: CompactionRow, cut: CutFacts) -> None:
        self.statuses[row.status] += 1
        if row.reason:
            self.reasons.setdefault(row.status, row.reason)
        self.cost_usd = None if self.cost_usd is None or row.cost_usd is None else self.cost_usd + row.cost_usd
        self.calls += row.calls
        self.input_tokens += row.input_tokens
        self.output_tokens += row.output_tokens
        self.rules += cut.instructions
        self.verbatim += row.verbatim
        self.substance += row.substance
        self.paths += cut.paths
        self.kept_paths += row.paths
        self.names += cut.names
        self.kept_names += row.names
        if not cut.needed_tokens:
            return
        self.read_tokens += cut.read_tokens
        self.kept_read_tokens += row.read_tokens
        self.written_tokens += cut.written_tokens
        self.kept_written_tokens += row.written_tokens
        self.kept.append(row.kept_tokens / cut.needed_tokens)
        self.regret.append((row.best_tokens - row.kept_tokens) / cut.needed_tokens)
        self.gain.append((row.kept_tokens - row.sham_tokens) / cut.needed_tokens)
        self.beyond_random.append((row.kept_tokens - row.random_tokens) / cut.needed_tokens)
        self.used.append(row.used_tokens)
        self.places.append((run_id, row.turn))


def compare_compactors(folder: Path, labels: Sequence[str], budgets: Sequence[int]) -> Comparison:
    """Return the results of a benchmark, with the cut on which the compactors differ most."""
    series: dict[tuple[str, int], _Series] = {(label, budget): _Series() for budget in budgets for label in labels}
    cuts, runs, needing, example, difference = 0, set[str](), 0, None, -1.0
    for record in joined(folder):
        facts = {cut.turn: cut for cut in record.cuts}
        cuts += len(facts)
        needing += sum(cut.needed_tokens > 0 for cut in record.cuts)
        runs.add(record.run_id)
        for row in record.rows:
            if (found := series.get((row.compactor, row.budget))) is not None:
                found.add(record.run_id, row, facts[row.turn])
        for cut, rows, differs in _compared(record, max(budgets)):
            if differs > difference:  # the earlier of two alike
                example, difference = _example(record.run_id, cut, rows, labels, max(budgets)), differs
    outside = (1 - LEVEL) / max(1, len(series))
    seconds: dict[str, float] = {}
    for times in read_seconds(folder):
        for label, took in times.seconds.items():
            seconds[label] = seconds.get(label, 0.0) + took
    return Comparison(
        runs=len(runs),
        cuts=cuts,
        needing_cuts=needing,
        level=LEVEL,
        rows=tuple(_row(label, budget, own, outside, seconds.get(label)) for (label, budget), own in series.items()),
        rankings={str(budget): _ranking(series, labels, budget, len(budgets)) for budget in budgets},
        example=example,
    )


def _compared(record: RunRecord, budget: int) -> Iterator[tuple[CutFacts, dict[str, CompactionRow], float]]:
    """Yield the cuts that can be shown, with their rows and how much candidates differ in what they keep."""
    for cut in record.cuts:
        rows = {row.compactor: row for row in record.rows if row.turn == cut.turn and row.budget == budget}
        kept = [row.kept_tokens for label, row in rows.items() if label not in BOUNDS and row.status == "ok"]
        if kept and cut.needed_tokens and len(cut.needed) == cut.needed_lines and 10 <= len(cut.needed) <= 200:
            yield cut, rows, (max(kept) - min(kept)) / cut.needed_tokens


def _example(
    run_id: str, cut: CutFacts, rows: Mapping[str, CompactionRow], labels: Sequence[str], budget: int
) -> ExampleCut:
    kept = {label: marked(rows[label].kept, len(cut.needed)) for label in labels if label in rows}
    lines = (
        ExampleLine(line.text, line.paths, line.tokens, {label: marks[place] for label, marks in kept.items()})
        for place, line in enumerate(cut.needed)
    )
    return ExampleCut(run_id, cut.turn, budget, tuple(lines))


def _row(label: str, budget: int, series: _Series, outside: float, seconds: float | None) -> CompactorRow:
    clusters = [run for run, _ in series.places]
    failures: dict[CompactionStatus, Failures] = {
        status: Failures(count, series.reasons.get(status, ""))
        for status, count in sorted(series.statuses.items())
        if status != "ok"
    }
    kept, regret, gain, beyond_random = (
        _interval(values, clusters, outside)
        for values in (series.kept, series.regret, series.gain, series.beyond_random)
    )
    return CompactorRow(
        compactor=label,
        budget=budget,
        tried=sum(series.statuses.values()),
        cuts=len(series.kept),
        runs=len(set(clusters)),
        failed=sum(failure.cuts for failure in failures.values()),
        failures=failures,
        used_tokens=_mean(series.used),
        kept_share=kept.middle,
        kept_low=kept.low,
        kept_high=kept.high,
        regret_share=regret.middle,
        regret_low=regret.low,
        regret_high=regret.high,
        gain_share=gain.middle,
        gain_low=gain.low,
        gain_high=gain.high,
        beyond_random_share=beyond_random.middle,
        beyond_random_low=beyond_random.low,
        beyond_random_high=beyond_random.high,
        worst_regret=max(series.regret, default=None),
        least_regret=min(series.regret, default=None),
        read_kept=_share(series.kept_read_tokens, series.read_tokens),
        written_kept=_share(series.kept_written_tokens, series.written_tokens),
        rules_verbatim=_share(series.verbatim, series.rules),
        rules_kept=_share(series.verbatim + series.substance, series.rules),
        paths_kept=_share(series.kept_paths, series.paths),
        names_kept=_share(series.kept_names, series.names),
        calls=series.calls,
        input_tokens=series.input_tokens,
        output_tokens=series.output_tokens,
        cost_usd=series.cost_usd,
        seconds=seconds,
    )


@dataclass(frozen=True, slots=True)
class _Interval:
    """The mean of a measure with its simultaneous interval; without one below six runs."""

    middle: float | None
    low: float | None = None
    high: float | None = None


def _interval(values: Sequence[float], runs: Sequence[str], outside: float) -> _Interval:
    middle = _mean(values)
    half = half_width(values, runs, 1 - outside) if middle is not None and len(set(runs)) >= FEWEST_CLUSTERS else None
    return _Interval(middle) if middle is None or half is None else _Interval(middle, middle - half, middle + half)


def _ranking(
    series: Mapping[tuple[str, int], _Series], labels: Sequence[str], budget: int, budgets: int
) -> Ranking | None:
    """Return the candidates by what they keep, each compared with the best; bounds take no part."""
    values = {label: series[label, budget] for label in labels if label not in BOUNDS and series[label, budget].kept}
    places = [set(own.places) for own in values.values()]
    if len(values) < 2 or any(own != places[0] for own in places):
        return None
    order = sorted(places[0])
    kept = {label: dict(zip(own.places, own.kept, strict=True)) for label, own in values.items()}
    paired = {label: [by_place[at] for at in order] for label, by_place in kept.items()}
    return rank(paired, [run for run, _ in order], outside=OUTSIDE / budgets)


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
