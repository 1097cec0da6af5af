"""The models of `eirkit reproduce`: what they would cost, their runs, and the studies that follow; and --verify."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from shutil import copytree
from typing import Any

from msgspec.structs import replace

from eirkit.cli.agent_options import read_setting
from eirkit.cli.command import Show
from eirkit.cli.runner_options import PlanEstimate, SweepProgress, estimate_document, totals, unpriced
from eirkit.engine.interface import Engine
from eirkit.errors import UsageError
from eirkit.lacuna.models.model import ModelOptions
from eirkit.lacuna.runs.budget import SpendingLimits
from eirkit.lacuna.runs.estimate import read_recorded
from eirkit.lacuna.runs.journal import read_journal
from eirkit.records.settings import TEXT
from eirkit.records.sweeps import Spending
from eirkit.report.document import Document, Section
from eirkit.report.folders import records_of
from eirkit.report.table import counted
from eirkit.seeds import show_seeds
from eirkit_paper.archive import FOLDER, ArchiveSettings
from eirkit_paper.model_runs import (
    MODEL_SEEDS,
    ModelRuns,
    ModelSetting,
    RecordedModels,
    foreign_models,
    model_findings,
    recorded_models,
    takes_models,
)
from eirkit_paper.runner import StudyOutcome
from eirkit_paper.studies.catalog import find_study
from eirkit_paper.study import Setting, Study
from eirkit_paper.verification import verify_archive

MOST_PROBLEMS = 20  # that are printed; --json has them all


@dataclass(frozen=True, slots=True)
class AskedModels:
    """The models that are to be run, or the folder of a sweep in their place."""

    out: Path
    setting: ModelSetting
    limits: SpendingLimits
    source: Path | None = None

    @classmethod
    def read(cls, out: Path, given: Mapping[str, Any]) -> AskedModels | None:
        """Return the models of the command; None if it names none.

        Raises:
            UsageError: an option needs a model, or a model is given twice or beside a folder.
        """
        models, source, limits = given["models"], given["source"], given["funds"]
        options = ModelOptions(
            base_url=given["base_url"],
            protocol=TEXT,  # the paper's, which does not ask again
            reask=False,
            extra=dict(map(read_setting, given["extra"])),
        )
        if source is not None:
            if models:
                raise UsageError("a sweep in --data is compared, and --model makes new ones; leave one of them out")
            return cls(out, ModelSetting(()), limits, source)
        if not models:
            if given["base_url"] or given["extra"] or given["dry_run"] or limits != SpendingLimits():
                names = "--base-url, --set, --cap-usd, --prices, --cache and --dry-run"
                raise UsageError(f"{names} need a model; add --model PROVIDER/NAME")
            return None
        if len(set(models)) < len(models):
            raise UsageError("a model is given twice; give each model once")
        seeds = MODEL_SEEDS if given["seeds"] is None else given["seeds"]
        setting = ModelSetting(tuple(models), options, seeds, tuple(given["memories"] or ()))
        return cls(out, setting, limits)

    def answers(self, study: Study) -> bool:
        """True if a study consists of nothing but figures of models, or draws such figures again."""
        return study.has_agents

    def _compared(self, studies: Sequence[Study]) -> list[Study]:
        chosen = [study for study in studies if takes_models(study)]
        if not chosen and all(study.has_agents for study in studies):
            names = ", ".join(study.id for study in studies)
            raise UsageError(
                f"{names}: the figures are those of other studies; `eirkit reproduce --list` shows them all"
            )
        return chosen

    def _runs(self, studies: Sequence[Study]) -> ModelRuns:
        return ModelRuns(self.out, self.setting.plan(self._compared(studies)), self.limits)

    def estimate(self, studies: Sequence[Study]) -> Document:
        """Return what the runs that are left would cost."""
        runs = self._runs(studies)
        estimates = runs.estimate()
        known = read_recorded(runs.runs) if runs.runs.is_dir() else None
        data = ReproductionEstimate.of_plan(estimates, known, planned=len(runs.plan))
        return estimate_document("reproduce", data, totals(data, unpriced=unpriced(data.rows)))

    def run(self, studies: Sequence[Study], engine: Engine | None) -> tuple[str, ...]:
        """Run what is left, and return why runs were left out; a sweep that was made otherwise is copied instead."""
        if self.source is not None:
            foreign_models(self.source)
            if not (self.out / FOLDER).exists():
                copytree(
                    self.source, self.out / FOLDER, ignore=lambda folder, names: [n for n in names if n == ".lock"]
                )
            return ()
        chosen = self._compared(studies)
        if not chosen:
            return ()
        with SweepProgress() as progress:
            return self._runs(chosen).run(progress, engine).stopped

    @property
    def recorded(self) -> RecordedModels:
        folder = self.out / FOLDER
        return recorded_models(self.setting, folder) if self.source is None else foreign_models(folder)

    def outcomes(self, studies: Sequence[Study]) -> Iterator[StudyOutcome]:
        """Yield the studies that consist of figures of models."""
        given = self.recorded
        for study in studies:
            if self.answers(study) and takes_models(study):
                found = model_findings(study, given, only_present=self.source is not None)
                if found.rows:
                    yield StudyOutcome(study, found)

    def completed(self, outcome: StudyOutcome) -> StudyOutcome:
        """Return a study without agents with its figures of models, where it has some."""
        if outcome.findings is None or self.answers(outcome.study) or not takes_models(outcome.study):
            return outcome
        more = model_findings(outcome.study, self.recorded, only_present=self.source is not None)
        findings = replace(outcome.findings, rows=(*outcome.findings.rows, *more.rows))
        return replace(outcome, findings=findings)

    def spending(self) -> Spending | None:
        """Return what the runs of models cost; None if nothing was paid for."""
        journal = read_journal(self.out / FOLDER)
        return None if journal is None else journal.sums()


class ReproductionEstimate(PlanEstimate, frozen=True, kw_only=True):
    """What the runs that are left would take."""

    planned: int


def settings_of(setting: Setting, asked: AskedModels | None, studies: Sequence[Study]) -> ArchiveSettings:
    """Return what a reproduction was made with, as its archive records it."""
    own = None if setting.seeds is None else show_seeds(setting.seeds)
    data = None if setting.data is None else setting.data.name
    if asked is None:
        return ArchiveSettings(study_seeds=own, data=data, memories=tuple(setting.memories))
    given = asked.recorded
    return ArchiveSettings(
        study_seeds=own,
        data=data,
        models=tuple(given.models),
        options=asked.setting.options.asked(TEXT),
        seeds=tuple(int(seed) for seed in given.seeds),
        memories=tuple(given.memories),
        compared=tuple(study.id for study in studies if takes_models(study)),
        source=asked.source is not None,
    )


def show_verification(folder: Path, plugins: bool, show: Show) -> int:
    """Check an archive, show what was found, and return the exit code."""
    with records_of(folder, plugins=plugins):
        found = verify_archive(folder, find_study, plugins=plugins)
    checked = (
        f"{counted(found.files, 'file')}, {counted(found.runs, 'run')} scored again "
        f"({found.replayed} of them played again from their replies), {counted(found.rows, 'figure')} derived again"
    )
    said = f"{folder} is verified: {checked}."
    if found.problems:
        said = f"{folder} is refused: {counted(len(found.problems), 'problem')} in {checked}."
    listed = found.problems[:MOST_PROBLEMS]
    more = len(found.problems) - len(listed)
    lines = (*listed, *((f"and {more} more; --json lists them",) if more else ()))
    document = Document(
        "reproduce-verify", "Archive", (said,), {"folder": str(folder), **asdict(found)}, (Section("", lines),)
    )
    show(document)
    return 1 if found.problems else 0
