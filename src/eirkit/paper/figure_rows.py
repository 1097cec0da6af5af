"""Compares published figures of models with recorded runs: one row a distinct figure, one more for its ±.

A figure of one model is compared with runs of that model, a pooled one with runs of all models of its pool. A model
that the paper does not have is shown beside the figure and not judged.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from eirkit.paper.published import PublishedFigure, published_models
from eirkit.paper.run_measures import CARRYING, MEASURES, PaperRun, PaperRunIndex, RunMeasure
from eirkit.paper.study import NEEDS_MEMORY, NEEDS_MODEL, NEEDS_RUNS, StudyRow
from eirkit.paper.suites import SuiteCell, cells_named
from eirkit.paper.verdicts import (
    FEWER_SEEDS,
    NOT_SAME,
    PAPER_SEEDS,
    Judgement,
    SeedMeans,
    judge_bound,
    judge_counts,
    judge_deviations,
    judge_means,
    judge_rates,
)

OTHER_MODEL = "another model than the published ones"
UNNAMED = "the paper does not name the models behind it"
LACKS_MEMORY = "not asked for: --memory "
NO_RUNS = "no run of it is recorded; run the command again to finish, or see failures.jsonl"
NO_VALUE = "none of our runs has this figure; more seeds may have it"

Members = Mapping[str, Sequence[str]]  # published model → given models


@dataclass(frozen=True, slots=True)
class RecordedModels:
    """Recorded runs, the models behind them and the seeds that were planned."""

    index: PaperRunIndex
    models: Sequence[str]
    seeds: Sequence[int]
    memories: Sequence[str] = ()

    def rows(self, figures: Iterable[PublishedFigure]) -> Iterator[StudyRow]:
        """Yield the rows of all figures that can be compared."""
        for figure in figures:
            if figure.cells and not figure.reason:
                yield from self._rows(figure)

    def _rows(self, figure: PublishedFigure) -> Iterator[StudyRow]:
        needed = {cell.access.memory for group in cells_named(figure.cells) for cell in group} - {None}
        if lacking := [str(name) for name in needed if name not in self.memories]:
            yield _absent(figure, NEEDS_MEMORY, f"{LACKS_MEMORY}{','.join(lacking)}")
            return
        known = published_models()
        members = known.matching(figure.models, self.models)
        if any(members.values()):
            missing = [name for name, own in members.items() if not own]
            yield from self._judged(figure, members, f"the pool lacks {', '.join(missing)}" if missing else "")
        others = [model for model in self.models if known.find(model) is None or not members]
        for model in others:
            yield from self._judged(figure, {model: [model]}, OTHER_MODEL if members else UNNAMED)
        if not any(members.values()) and not others:
            yield _absent(figure, NEEDS_MODEL, f"a figure of {shown_models(figure)}; give it with --model")

    def _judged(self, figure: PublishedFigure, members: Members, why: str) -> Iterator[StudyRow]:
        present = {name: own for name, own in members.items() if own}
        found = FigureRuns(figure, present, self)
        judged = found.judge()
        by = ", ".join(model for own in present.values() for model in own)
        if judged is None:
            yield replace(_absent(figure, NEEDS_RUNS, NO_VALUE if found.all else NO_RUNS), ours_by=by)
            return
        yield _row(figure, judged, by, why)
        if figure.sd is not None and figure.n is not None:
            yield _deviation_row(
                figure, figure.sd, judge_deviations(figure.sd, figure.n, figure.rounding, found.values, judged), by, why
            )


@dataclass(frozen=True, slots=True)
class FigureRuns:
    """The runs behind one figure."""

    figure: PublishedFigure
    members: Members
    given: RecordedModels

    @property
    def measure(self) -> RunMeasure:
        return MEASURES[self.figure.measure]

    @property
    def groups(self) -> tuple[tuple[SuiteCell, ...], ...]:
        return cells_named(self.figure.cells)

    def runs(self, cells: Sequence[SuiteCell], models: Iterable[str]) -> list[PaperRun]:
        index = self.given.index
        return [run for cell in cells for model in models for run in index.runs(cell, model, self.given.seeds)]

    @property
    def all(self) -> list[PaperRun]:
        return [run for own in self.members.values() for run in self.runs(self.groups[0], own)]

    @property
    def values(self) -> list[float]:
        """The measure of each run by itself."""
        found = (self.measure.value([run]) for run in self.all)
        return [value for value in found if value is not None]

    def judge(self) -> Judgement | None:
        """Return the judgement; None if there is no run."""
        runs, kind = self.all, self.measure.kind
        if not runs:
            return None
        seeds = len({run.seed for run in runs})
        if kind == "mean":
            return self._judge_mean(runs)
        value = self.measure.value(runs)
        if value is None:
            return None
        if kind.endswith("bound"):
            found = judge_bound(self.figure.value, value, self.figure.rounding, upper=kind == "upper bound")
        else:
            found = self._judge_number(round(value), len(runs))
        return found if seeds >= PAPER_SEEDS else replace(found, verdict=FEWER_SEEDS, p=None, missed=None)

    def _judge_number(self, number: int, trials: int) -> Judgement:
        figure, of = self.figure, self.figure.n or 1
        if figure.measure == "scored":
            trials = sum(len(cell.seeds(self.given.seeds)) for cell in self.groups[0]) * sum(
                map(len, self.members.values())
            )
        if self.measure.kind == "rate":
            return judge_rates((round(figure.value), of), (number, trials))
        share = figure.unit == "share"
        found = judge_counts(
            (round(figure.value * of) if share else round(figure.value), of), (number, max(trials, number))
        )
        scale = 1 if share else of
        return replace(found, ours=found.ours * scale, low=found.low * scale, high=found.high * scale)

    def _judge_mean(self, runs: Sequence[PaperRun]) -> Judgement | None:
        """Judge a mean by its value without each seed in turn, of which the seeds' own values follow (jackknife)."""
        seeds = sorted({run.seed for run in runs})
        whole = self._value(frozenset(seeds))
        if whole is None:
            return None
        without = [self._value(frozenset(seeds) - {seed}) for seed in seeds] if len(seeds) > 1 else []
        each = [len(seeds) * whole - (len(seeds) - 1) * part for part in without if part is not None]
        carries = self.measure.carries and any(cell.task.workload in CARRYING for cell in self.groups[0])
        trials = max(1, round(sum(map(self.measure.trials, runs))))
        means = SeedMeans(tuple(each) or (whole,), trials, len(runs), carries)
        figure = self.figure
        found = judge_means(figure.value, figure.rounding, means, sd=figure.sd, runs=figure.n, unit=figure.unit)
        return replace(found, ours=whole)

    def _value(self, seeds: frozenset[int]) -> float | None:
        """Return the figure over some seeds: the mean over models, the second group of cells subtracted."""
        parts = []
        for cells in self.groups:
            by_model = [
                self.measure.value([run for run in self.runs(cells, own) if run.seed in seeds])
                for own in self.members.values()
            ]
            if any(value is None for value in by_model) or not by_model:
                return None
            parts.append(sum(value for value in by_model if value is not None) / len(by_model))
        return parts[0] - parts[1] if len(parts) > 1 else parts[0]


def shown_models(figure: PublishedFigure) -> str:
    """Return the models behind a figure as a reader should see them."""
    return ", ".join(published_models().members(figure.models)) or "models that the paper does not name"


def _absent(figure: PublishedFigure, verdict: str, why: str) -> StudyRow:
    return StudyRow(
        figure.label, figure.value, None, None, None, verdict, why, figure.place, shown_models(figure), figure=figure.id
    )


def _row(figure: PublishedFigure, judged: Judgement, by: str, why: str) -> StudyRow:
    return StudyRow(
        figure.label,
        figure.value,
        judged.ours,
        _finite(judged.low),
        _finite(judged.high),
        NOT_SAME if why else judged.verdict,
        why or figure.note,
        figure.place,
        shown_models(figure),
        by,
        basis=judged.basis,
        figure=figure.id,
        p=judged.p,
        agrees_if_off=judged.missed,
        off_by=judged.shift,
        n=figure.n,
        unit=figure.unit,
    )


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _deviation_row(figure: PublishedFigure, sd: float, judged: Judgement, by: str, why: str) -> StudyRow:
    row = _row(figure, judged, by, why)
    return replace(row, label=f"{row.label}, ±", published=sd, figure=f"{row.figure}|±")
