"""The paper's experiments with models: the plan of all runs that some studies need, its execution, and what it found.

All runs go to DIR/runs, each once, whichever studies share them. A command that is repeated continues there, also with
further models, studies or seeds: a run that was cut short goes on with its next call.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from shlex import quote

from eirkit import __version__
from eirkit.agents.model import ModelOptions
from eirkit.engine.interface import Engine
from eirkit.errors import UsageError
from eirkit.paper.figure_rows import LACKS_MEMORY, RecordedModels
from eirkit.paper.published import PublishedFigure, figures_of
from eirkit.paper.run_measures import PaperRunIndex
from eirkit.paper.study import NEEDS_MEMORY, Findings, Study
from eirkit.paper.suites import PaperPlan, cells_named, paper_suites
from eirkit.records import read_document, write_document
from eirkit.runs.budget import Budget, ModelPool, SpendingLimits
from eirkit.runs.cells import CellPlan
from eirkit.runs.estimate import CellEstimate, estimate_plan, read_recorded
from eirkit.runs.manifest import FILE, PLAN_SCHEMA, describe_plan
from eirkit.runs.runner import Observer, PlanOutcome, Runner, ignore_progress
from eirkit.runs.values import show_seeds
from eirkit.show.table import Column, Table

FOLDER = "runs"
UNFINISHED = "unfinished.sqlite"  # replies of runs that have not ended
MODEL_SEEDS: Sequence[int] = range(3)  # as many as in the paper


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
        settings = {
            "studies": [study.id for study in studies],
            "models": list(self.models),
            "seeds": show_seeds(self.seeds),
            "memories": list(self.memories),
            "options": self.options.asked(),
        }
        return CellPlan("study", tuple(planned), settings)


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
        is_new = not (self.runs / FILE).exists()
        unfinished = self.runs / UNFINISHED
        budget = Budget(self.limits, self.runs, is_new=is_new, unfinished=unfinished)
        pool = ModelPool(self.plan, budget)
        manifest = describe_plan(self.plan, self.limits.prices, os.environ)
        if not is_new:
            self._refuse_other_version()
        with Runner(self.runs, budget, observe, engine) as runner:
            budget.open()
            write_document(self.runs / FILE, PLAN_SCHEMA, manifest, sealed=True)
            outcome = runner.run(self.plan, pool)
            if not outcome.stopped and not runner.results.losses(self.plan.cells):
                unfinished.unlink(missing_ok=True)  # what it holds is in the transcripts now
            return outcome

    def _refuse_other_version(self) -> None:
        then = read_document(self.runs / FILE, PLAN_SCHEMA).get("eirkit")
        if then != __version__:
            raise UsageError(
                f"{self.runs} holds runs of eirkit {then}; choose another --out for those of {__version__}"
            )


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
