"""The paper's experiments with models: the plan of their runs, its execution, and rows beside the published figures.

All runs go to DIR/runs, each once, whichever studies share them. A command that is repeated continues there, also with
further models, studies or seeds: a run that was cut short goes on with its next call.

A figure of one model is compared with runs of that model, a pooled one with runs of all models of its pool: one row a
distinct figure, one more for its ±. A model that the paper does not have is shown beside the figure and not judged.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from shlex import quote

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from eirkit import __version__
from eirkit.engine.interface import Engine
from eirkit.errors import UsageError
from eirkit.lacuna.models.model import ModelOptions
from eirkit.lacuna.runs.budget import Budget, ModelPool, SpendingLimits
from eirkit.lacuna.runs.cells import CellPlan
from eirkit.lacuna.runs.estimate import CellEstimate, estimate_plan, read_recorded
from eirkit.lacuna.runs.manifest import describe, read_manifest, write_manifest
from eirkit.lacuna.runs.runner import Observer, PlanOutcome, Runner, ignore_progress
from eirkit.records.documents import MANIFEST
from eirkit.records.evidence import Seeds
from eirkit.records.settings import TEXT, ModelSettings
from eirkit.report.table import Column, Table
from eirkit.seeds import show_seeds
from eirkit_paper.archive import FOLDER
from eirkit_paper.published import PublishedFigure, figures_of, published_models
from eirkit_paper.run_measures import CARRYING, MEASURES, PaperRun, PaperRunIndex, RunMeasure
from eirkit_paper.study import NEEDS_MEMORY, NEEDS_MODEL, NEEDS_RUNS, NO_REASON, Findings, Study, StudyRow
from eirkit_paper.suites import PaperPlan, SuiteCell, cells_named, paper_suites
from eirkit_paper.verdicts import (
    DIFFERS,
    FEWER_SEEDS,
    NOT_SAME,
    PAPER_SEEDS,
    Judgment,
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
NO_RUNS = "no run of it is recorded; run the command again to finish, or see `eirkit show`"
NO_VALUE = "none of our runs has this figure; more seeds may have it"

Members = Mapping[str, Sequence[str]]  # published model → given models
UNFINISHED = "unfinished.sqlite"  # replies of runs that have not ended
MODEL_SEEDS: Sequence[int] = range(3)  # as many as in the paper


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
            row = _row(figure, judge_deviations(figure.sd, figure.n, figure.rounding, found.values, judged), by, why)
            yield replace(row, label=f"{row.label}, ±", published=figure.sd, figure=f"{row.figure}|±")


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

    def judge(self) -> Judgment | None:
        """Return the judgment; None if there is no run."""
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

    def _judge_number(self, number: int, trials: int) -> Judgment:
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

    def _judge_mean(self, runs: Sequence[PaperRun]) -> Judgment | None:
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


def _row(figure: PublishedFigure, judged: Judgment, by: str, why: str) -> StudyRow:
    unexplained = NO_REASON if judged.verdict == DIFFERS else ""
    return StudyRow(
        figure.label,
        figure.value,
        judged.ours,
        _finite(judged.low),
        _finite(judged.high),
        NOT_SAME if why else judged.verdict,
        why or "; ".join(filter(None, (figure.note, unexplained))),
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


@dataclass(frozen=True, slots=True)
class ModelSetting:
    """What the paper's experiments are run with."""

    models: tuple[str, ...]
    options: ModelOptions = field(default_factory=ModelOptions)
    seeds: Sequence[int] = MODEL_SEEDS
    memories: tuple[str, ...] = ()

    def plan(self, studies: Sequence[Study]) -> CellPlan:
        """Return every run that the studies need, each once."""
        figures = [figure for study in studies for figure in compared_figures(study)]
        planned = PaperPlan(self.models, self.options, self.memories).cells(figures, self.seeds)
        settings = ModelStudySettings(
            tuple(study.id for study in studies),
            self.models,
            show_seeds(self.seeds),
            self.memories,
            self.options.asked(TEXT),
        )
        return CellPlan("study", tuple(planned), msgspec.to_builtins(settings))


class ModelStudySettings(Struct, frozen=True):
    """What determines the runs of models, as their manifest states it."""

    studies: tuple[str, ...]
    models: tuple[str, ...]
    seeds: Seeds
    memories: tuple[str, ...]
    options: ModelSettings


def compared_figures(study: Study) -> list[PublishedFigure]:
    """Return the figures of a study that runs of models are compared with."""
    return [figure for figure in figures_of(study.id) if figure.cells and not figure.reason]


def takes_models(study: Study) -> bool:
    """True if a study has figures of models of its own; others draw those of another study again."""
    return bool(compared_figures(study))


@dataclass(frozen=True, slots=True)
class ModelRuns:
    """The runs of a plan in the folder of a reproduction."""

    folder: Path
    plan: CellPlan
    limits: SpendingLimits

    @property
    def runs(self) -> Path:
        return self.folder / FOLDER

    def estimate(self) -> list[CellEstimate]:
        """Return what the rest of the plan would cost; nothing is written."""
        known = read_recorded(self.runs) if self.runs.is_dir() else None
        return estimate_plan(self.plan, Budget(self.limits, self.runs if self.runs.is_dir() else None), known)

    def run(self, observe: Observer = ignore_progress, engine: Engine | None = None) -> PlanOutcome:
        """Run the rest of the plan.

        Raises:
            UsageError: a model or a memory system cannot be made, or the folder is of another version.
        """
        is_new = not (self.runs / MANIFEST).exists()
        unfinished = self.runs / UNFINISHED
        budget = Budget(self.limits, self.runs, is_new=is_new, unfinished=unfinished)
        pool = ModelPool(self.plan, budget)
        manifest = describe(self.plan, self.limits.prices, os.environ)
        if not is_new:
            then = read_manifest(self.runs).eirkit
            if then != __version__:
                raise UsageError(
                    f"{self.runs} holds runs of eirkit {then}; choose another --out for those of {__version__}"
                )
        with Runner(self.runs, budget, observe, engine, is_new=is_new) as runner:
            write_manifest(manifest, self.runs)
            outcome = runner.run(self.plan, pool)
            if not outcome.stopped and not runner.results.losses(self.plan.cells):
                unfinished.unlink(missing_ok=True)  # what it holds is in the transcripts now
            return outcome


def recorded_models(setting: ModelSetting, folder: Path) -> RecordedModels:
    """Return the runs of a plan that are in a folder."""
    return RecordedModels(PaperRunIndex(folder), setting.models, setting.seeds, setting.memories)


def foreign_models(folder: Path) -> RecordedModels:
    """Return the runs of a folder that was made otherwise: its own models, seeds and memory systems.

    Raises:
        UsageError: it has no run.
    """
    index = PaperRunIndex(folder)
    if not index.count:
        raise UsageError(f"{folder} has no runs; give the folder of a sweep, such as `eirkit lacuna run` writes")
    return RecordedModels(index, index.models, sorted(index.seeds), sorted(index.memories))


def model_findings(study: Study, given: RecordedModels, *, only_present: bool = False) -> Findings:
    """Return the rows of a study from recorded runs.

    Args:
        only_present: leave out figures of which there is no run, as in a sweep that was made for something else.
    """
    rows = tuple(given.rows(compared_figures(study)))
    if only_present:
        rows = tuple(row for row in rows if row.ours is not None)
    suites = {cell.suite for figure in compared_figures(study) for group in cells_named(figure.cells) for cell in group}
    notes = tuple(paper_suites()[name].note for name in sorted(suites) if paper_suites()[name].note)
    lacking = {row.why.removeprefix(LACKS_MEMORY) for row in rows if row.verdict == NEEDS_MEMORY}
    wanted = sorted({*given.memories, *(name for names in lacking for name in names.split(","))}) if lacking else []
    models = "".join(f" --model {quote(model)}" for model in given.models)
    again = (f"eirkit reproduce {study.id}{models} --memory {','.join(wanted)}",) if wanted else ()
    return Findings(rows, _left_out(study), words=notes, commands=again)


def _left_out(study: Study) -> tuple[Table, ...]:
    """Return the published figures that are not compared, with the reason of each."""
    lines = tuple(
        {"figure": figure.label, "published": figure.printed, "why": figure.reason}
        for figure in figures_of(study.id)
        if figure.reason
    )
    columns = (
        Column("figure", "figure", role="text"),
        Column("published", "published"),
        Column("why", "why", role="text"),
    )
    return (Table("not-compared", "Published and not compared", columns, lines),) if lines else ()
