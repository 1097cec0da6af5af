"""`eirkit reproduce`: recomputes the tables and figures of the paper and compares them, each with a verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from shlex import quote
from time import monotonic
from typing import Any

import click
import msgspec

from eirkit.cli.agent_options import known_models
from eirkit.cli.command import OUTPUT, NameList, Show, command, document_options, option, plugins_flag, repeated, say
from eirkit.cli.execution import LiveLine, bounded_engine_options
from eirkit.cli.options import SEEDS_HELP, SeedList
from eirkit.cli.runner_options import funds_options, spending_remarks
from eirkit.engine.interface import Engine, PieceLimits, make_engine
from eirkit.errors import UsageError
from eirkit.lacuna.models.model import ModelOptions
from eirkit.records.documents import MANIFEST
from eirkit.records.sweeps import Spending
from eirkit.report.document import Document, Listing, Section
from eirkit.report.exports import FIGURES, FigureForm
from eirkit.report.table import Column, Table, counted
from eirkit_paper.archive import write_archive
from eirkit_paper.cli.reproduce_models import AskedModels, settings_of, show_verification
from eirkit_paper.page import (
    Reproduction,
    overview,
    reproduction_of,
    row_tables,
    summary_sentences,
    write_overview,
    write_study,
)
from eirkit_paper.runner import StudyOutcome, StudyStore, run_studies
from eirkit_paper.studies.catalog import STUDIES, find_study, perform
from eirkit_paper.study import Findings, Setting, Study

OUT = Path("out/reproduce")
MOST_SHOWN = 3  # studies whose tables are printed in full; the page has them all
STUDY_SECONDS = 7200.0  # of one study; beyond this and the memory below, something is wrong
STUDY_MIB = 8192
AGAIN = "; run the same command again to continue"
CAPPED = "raise the cap"  # in the reason of a stop that the same command would meet again
_PATH = click.Path(path_type=Path)


@command(example="eirkit reproduce recovery-cones --seeds 0:30")
@click.argument("names", metavar="[STUDY]...", nargs=-1)
@option("--list", "listing", is_flag=True, group="Studies", help="List all studies and exit.")
@option(
    "--all",
    "everything",
    is_flag=True,
    group="Studies",
    help="Run every study; one that cannot run says what it lacks.",
)
@option("--seeds", type=SeedList(), group="Studies", help=f"{SEEDS_HELP}  [default: those of each study]")
@option(
    "--memory", "memories", type=NameList(), group="Studies", help="Also run these external memory systems: mem0,letta."
)
@option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    metavar="DIR",
    group="Studies",
    help="Recorded runs to compare, in place of new ones: a folder of analyses by `vestige analyze`, or one sweep.",
)
@option(
    "--model",
    "models",
    multiple=True,
    known=known_models,
    group="Agent",
    help="Run the paper's experiments with this model: provider/name. Can be repeated, for pooled figures.",
)
@option("--base-url", metavar="URL", group="Agent", help="An OpenAI-compatible server.")
@option("--set", "extra", multiple=True, metavar="NAME=VALUE", group="Agent", help="A setting of the models: p=0.2.")
@funds_options
@option(
    "--verify",
    common=False,
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    metavar="DIR",
    group=OUTPUT,
    help="Check the archive of a reproduction: files, answers, scores and figures.",
)
@plugins_flag
@option("--out", type=_PATH, default=OUT, show_default=True, metavar="DIR", group=OUTPUT, help="Folder for everything.")
@option("--figures", type=click.Choice(FIGURES), group=OUTPUT, help="Also draw every figure in this form.")
@bounded_engine_options(STUDY_SECONDS, STUDY_MIB)
@document_options
def reproduce(
    names: tuple[str, ...], listing: bool, everything: bool, verify: Path | None, out: Path,
    figures: FigureForm | None, plugins: bool, engine: Engine | None, show: Show, **given: Any,
) -> int:  # fmt: skip
    """Compute the paper's tables and figures and compare them: published value, ours, its range and a verdict.

    Reference agents stand in for the published models; --model runs yours instead, with the paper's own parameters.
    The HTML page in the folder is updated whenever a study ends. What the folder already holds is not computed or paid
    for again, so repeat the command to continue after an interruption.
    """
    if listing:
        show(_listing())
        return 0
    if verify is not None:
        return show_verification(verify, plugins, show)
    is_sweep = given["data"] is not None and (given["data"] / MANIFEST).is_file()
    given["source"] = given.pop("data") if is_sweep else None
    studies, asked = _chosen(names, everything), AskedModels.read(out, given)
    if asked is not None and given["dry_run"]:
        show(asked.estimate(studies))
        return 0
    setting = Setting(None, ModelOptions(), given.get("data"), given["seeds"], tuple(given["memories"] or ()))
    outcomes, stopped = _run(studies, setting, asked, _Folder(out, figures), engine)
    page = write_overview(outcomes, out)
    write_archive(out, outcomes, settings_of(setting, asked, studies))
    data = ReproductionDocument(**msgspec.structs.asdict(reproduction_of(outcomes)), page=str(page))
    if asked is not None:
        models = list(asked.recorded.models)
        data = msgspec.structs.replace(data, models=models, stopped=list(stopped), spending=asked.spending())
    show(_document(outcomes, data, asked, out, stopped))
    return 1 if data.lost or stopped else 0


class ReproductionDocument(Reproduction, frozen=True):
    """All studies, the page, and what became of the models, where some were given."""

    page: str
    models: list[str] | msgspec.UnsetType = msgspec.UNSET
    stopped: list[str] | msgspec.UnsetType = msgspec.UNSET
    spending: Spending | msgspec.UnsetType | None = msgspec.UNSET  # None if nothing was paid for


@dataclass(frozen=True, slots=True)
class _Folder:
    """Where everything goes, and in which form figures are drawn; None: not at all."""

    path: Path
    figures: FigureForm | None


def _chosen(names: Sequence[str], everything: bool) -> list[Study]:
    """Return the studies that were asked for, in the order of the paper's story."""
    if everything and names:
        raise UsageError("studies are named and --all is given; leave one of them out")
    if not everything and not names:
        raise UsageError("name a study, or give --all; `eirkit reproduce --list` shows them")
    wanted = {find_study(name).id for name in names}
    return [study for study in STUDIES if everything or study.id in wanted]


def _run(
    studies: Sequence[Study],
    setting: Setting,
    asked: AskedModels | None,
    folder: _Folder,
    engine: Engine | None,
) -> tuple[list[StudyOutcome], tuple[str, ...]]:
    """Run the models, then all other studies on all cores, and write the page anew whenever one ends.

    Returns the outcomes, and why runs of models were left out.
    """
    if engine is None:
        engine = make_engine("local", bounds=PieceLimits(STUDY_SECONDS, STUDY_MIB << 20))
    with closing(engine):
        stopped = () if asked is None else asked.run(studies, engine)
        return _studied(studies, setting, asked, folder, engine), stopped


def _studied(
    studies: Sequence[Study],
    setting: Setting,
    asked: AskedModels | None,
    folder: _Folder,
    engine: Engine,
) -> list[StudyOutcome]:
    """Return what came of each study; with models, without those that draw the figures of others again."""
    found = {study.id: StudyOutcome(study, None, is_awaited=True) for study in studies}
    with StudyProgress(len(studies)) as progress:
        done = () if asked is None else asked.outcomes(studies)
        left = [study for study in studies if asked is None or not asked.answers(study)]
        computed = run_studies(left, setting, StudyStore(folder.path), engine, perform)
        for outcome in chain(done, computed):
            whole = outcome if asked is None else asked.completed(outcome)
            found[whole.study.id] = whole
            write_study(whole, folder.path, folder.figures)
            if not outcome.was_kept:  # those come first and at once
                write_overview(list(found.values()), folder.path)
            progress(whole)
    return [one for one in found.values() if asked is None or not one.is_awaited]


class StudyProgress(LiveLine):
    """Shows studies as they end: on a terminal in a live line, otherwise one line for each study."""

    def __init__(self, studies: int) -> None:
        super().__init__("reproducing", studies)
        self._studies, self._ended = studies, 0

    def __call__(self, outcome: StudyOutcome) -> None:
        self._ended += 1
        state = f"{self._ended} of {self._studies} studies"
        if self.is_watched:
            self.show(self._ended, f"{state}, last {outcome.study.id}")
            return
        when = "kept" if outcome.was_kept else f"{monotonic() - self.started:.0f} s"
        say(f"{state}, {when}: {outcome.study.id}: {outcome.verdict}")


def _listing() -> Document:
    columns = (
        Column("id", "study"),
        Column("kind", "kind", priority=1),
        Column("title", "what it shows", role="text"),
        Column("place", "in the paper", role="text", priority=2),
    )
    rows = tuple(
        {"id": s.id, "kind": s.kind, "title": s.title, "place": ", ".join(s.labels) or s.place} for s in STUDIES
    )
    data = {"studies": [study.entry for study in STUDIES]}
    section = Section("", (), (Table("studies", "Studies", columns, rows),))
    said = f"{counted(len(rows), 'study', 'studies')} can be run."
    then = f"eirkit reproduce {STUDIES[0].id}"
    return Document("reproduce-list", "Studies", (said,), data, (section,), next=then)


def _document(
    outcomes: Sequence[StudyOutcome],
    data: ReproductionDocument,
    asked: AskedModels | None,
    out: Path,
    stopped: Sequence[str],
) -> Document:
    verdicts = Counter(outcome.verdict for outcome in outcomes)
    told = ", ".join(f"{number} {verdict}" for verdict, number in verdicts.items())
    said = f"{counted(len(outcomes), 'study', 'studies')}: {told}."
    lead, *told_more = summary_sentences([one.findings for one in outcomes if one.findings is not None])
    sections = [_study_section(one.study, one.findings) for one in outcomes if one.findings is not None]
    lost = tuple(f"failed: {one.study.id}: {one.reason}" for one in outcomes if one.findings is None)
    left = tuple(f"stopped: {reason}{'' if CAPPED in reason else AGAIN}" for reason in stopped)
    spent = tuple(spending_remarks(data.spending or None))
    summary = Section("", (*lost, *left, *told_more, *spent), (overview(outcomes),))
    where = Section("", (), (Listing("page", "", f"page: {data.page}"),))
    few = len(outcomes) <= MOST_SHOWN
    return Document(
        "reproduce",
        "The paper's tables and figures",
        (lead, said),
        data,
        (*sections, summary, where) if few else (summary, where),
        details=() if few else tuple(sections),
        next=_next(outcomes, asked, out, stopped),
    )


def _next(outcomes: Sequence[StudyOutcome], asked: AskedModels | None, out: Path, stopped: Sequence[str]) -> str:
    """Return what to do next, with every option that was given: finish, run what is missing, check what there is."""
    commands = [command for one in outcomes if one.findings is not None for command in one.findings.commands]
    checked = f"eirkit reproduce --verify {quote(str(out))}"
    if stopped:  # the same command would meet the same cap; what is left has a price
        return f"{repeated()} --dry-run" if any(CAPPED in reason for reason in stopped) else repeated()
    if not commands:
        return checked
    start, _, lacking = commands[0].rpartition(" --")
    if not start.startswith("eirkit reproduce "):
        return commands[0]
    return f"{repeated()} --{lacking}" if asked is None or asked.source is None else checked


def _study_section(study: Study, found: Findings) -> Section:
    words = (*found.words, *(f"why: {reason}" for reason in found.reasons))
    words += tuple(f"with what is missing here: {command}" for command in found.commands)
    return Section(study.title, words, (*row_tables(study.id, found), *found.tables))
