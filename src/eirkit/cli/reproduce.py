"""`eirkit reproduce`: recomputes the tables and figures of the paper and compares them, each with a verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from shlex import quote
from time import monotonic
from typing import Any

import click

from eirkit.agents.model import Batching, ModelOptions
from eirkit.agents.serving.model_factory import make_model, preflight
from eirkit.cli.agent_options import known_models, read_setting
from eirkit.cli.command import OUTPUT, Show, command, document_options, option, say
from eirkit.cli.execution import LiveLine, bounded_engine_options, is_watched
from eirkit.cli.options import SEEDS_HELP, Dollars, NameList, SeedList
from eirkit.engine.engine_factory import make_engine
from eirkit.engine.interface import Engine, PieceLimits
from eirkit.errors import UsageError
from eirkit.paper.page import document_of_all, overview, row_tables, write_overview, write_study
from eirkit.paper.runner import StudyOutcome, StudyStore, run_studies
from eirkit.paper.studies.catalogue import STUDIES, find_study, perform
from eirkit.paper.study import Findings, Setting, Study
from eirkit.runs.budget import Budget, SpendingLimits, is_scripted
from eirkit.show.document import Document, Listing, Section
from eirkit.show.exports import FIGURES, FigureForm
from eirkit.show.table import Column, Table, counted

OUT = Path("out/reproduce")
MOST_SHOWN = 3  # studies whose tables are printed in full; the page has them all
STUDY_SECONDS, STUDY_MIB = 7200.0, 8192  # of one study; beyond them something is wrong
_PATH = click.Path(path_type=Path)


@command(example="eirkit reproduce recovery-cones --seeds 0:30")
@click.argument("names", metavar="[STUDY]...", nargs=-1)
@option("--list", "listing", is_flag=True, group="Studies", help="List all studies and exit.")
@option(
    "--all", "everything", is_flag=True, group="Studies", help="Run every study; those that lack something say what."
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
    help="A folder of analyses by `vestige analyze`, for the studies of recorded runs.",
)
@option("--model", known=known_models, group="Agent", help="Run the studies of agents with this model: provider/name.")
@option("--base-url", metavar="URL", group="Agent", help="An OpenAI-compatible server.")
@option("--set", "extra", multiple=True, metavar="NAME=VALUE", group="Agent", help="A setting of the model: p=0.2.")
@option("--cap-usd", type=Dollars(), metavar="DOLLARS", group="Spending", help="Stop before the model costs more.")
@option("--cache", type=_PATH, metavar="FILE", group="Spending", help="Keep replies in a file and reuse them.")
@option("--out", type=_PATH, default=OUT, show_default=True, metavar="DIR", group=OUTPUT, help="Folder for everything.")
@option("--fresh", is_flag=True, group=OUTPUT, help="Compute studies again that the folder holds already.")
@option("--figures", type=click.Choice(FIGURES), group=OUTPUT, help="Also draw every figure in this form.")
@bounded_engine_options(STUDY_SECONDS, STUDY_MIB)
@document_options
def reproduce(
    names: tuple[str, ...], listing: bool, everything: bool, out: Path, fresh: bool, figures: FigureForm | None,
    engine: Engine | None, show: Show, **given: Any,
) -> int:  # fmt: skip
    """Compute the paper's tables and figures and compare them: published value, ours, its range and a verdict.

    Reference agents stand in for the published models; --model runs one of yours instead. The HTML page in the folder
    is updated whenever a study ends. Studies that the folder holds already are not computed again, so an interrupted
    command continues when it is started again.
    """
    if listing:
        show(_listing())
        return 0
    studies = _chosen(names, everything)
    outcomes = _run(studies, _setting(out, **given), _Folder(out, figures), engine, fresh)
    page = write_overview(outcomes, out)
    data = {**document_of_all(outcomes), "page": str(page)}
    show(_document(outcomes, data, out))
    return 1 if data["lost"] else 0


@dataclass(frozen=True, slots=True)
class _Folder:
    """Where everything goes, and in which form figures are drawn; None: not at all."""

    path: Path
    figures: FigureForm | None


def _setting(
    out: Path, model: str | None, base_url: str | None, extra: Sequence[str], cap_usd: Decimal | None,
    cache: Path | None, memories: list[str] | None, data: Path | None, seeds: Sequence[int] | None,
) -> Setting:  # fmt: skip
    """Return what studies are computed with; a model that cannot be had is refused before any is."""
    options = ModelOptions(base_url=base_url, extra=dict(map(read_setting, extra)))
    if model is None:
        if base_url or extra or cache or cap_usd is not None:
            raise UsageError("--base-url, --set, --cap-usd and --cache need a model; add --model PROVIDER/NAME")
        return Setting(None, options, data, seeds, tuple(memories or ()))
    budget, made = None, make_model(model, options)
    is_free = is_scripted(made) or (isinstance(made, Batching) and cap_usd is None and cache is None)
    if is_free:
        preflight(made)
    else:
        out.mkdir(parents=True, exist_ok=True)
        budget = Budget(SpendingLimits(cap_usd, None, cache), out)
        budget.make(model, options)
        budget.open()
    return Setting(model, options, data, seeds, tuple(memories or ()), budget)


def _chosen(names: Sequence[str], everything: bool) -> list[Study]:
    """Return the studies that were asked for, in the order of the paper's story."""
    if everything and names:
        raise UsageError("studies are named and --all is given; leave one of them out")
    if not everything and not names:
        raise UsageError("name a study, or give --all; `eirkit reproduce --list` shows them")
    wanted = {find_study(name).id for name in names}
    return [study for study in STUDIES if everything or study.id in wanted]


def _run(
    studies: Sequence[Study], setting: Setting, folder: _Folder, engine: Engine | None, fresh: bool
) -> list[StudyOutcome]:
    """Run studies on all cores, and write the page anew whenever one ends.

    With a model that has a server behind it they run here, where its spending is counted.
    """
    if engine is None and setting.budget is None:
        engine = make_engine("local", bounds=PieceLimits(STUDY_SECONDS, STUDY_MIB << 20))
    found = {study.id: StudyOutcome(study, None, is_awaited=True) for study in studies}
    with StudyProgress(len(studies)) as progress, closing(engine) if engine else nullcontext():
        running = engine if setting.budget is None else None
        for outcome in run_studies(studies, setting, StudyStore(folder.path), running, perform, fresh=fresh):
            found[outcome.study.id] = outcome
            write_study(outcome, folder.path, folder.figures)
            if not outcome.was_kept:  # those come first and at once
                write_overview(list(found.values()), folder.path)
            progress(outcome)
    return list(found.values())


class StudyProgress(LiveLine):
    """Shows studies as they end: on a terminal in a live line, otherwise one line for each study."""

    def __init__(self, studies: int) -> None:
        super().__init__("reproducing", studies)
        self._studies, self._ended, self._is_watched = studies, 0, is_watched()

    def __call__(self, outcome: StudyOutcome) -> None:
        self._ended += 1
        state = f"{self._ended} of {self._studies} studies"
        if self._is_watched:
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
    data = {"studies": [study.as_json() for study in STUDIES]}
    section = Section("", (), (Table("studies", "Studies", columns, rows),))
    said = f"{counted(len(rows), 'study', 'studies')} can be run."
    then = f"eirkit reproduce {STUDIES[0].id}"
    return Document("reproduce-list", "Studies", (said,), data, (section,), next=then)


def _document(outcomes: Sequence[StudyOutcome], data: dict[str, Any], out: Path) -> Document:
    verdicts = Counter(outcome.verdict for outcome in outcomes)
    told = ", ".join(f"{number} {verdict}" for verdict, number in verdicts.items())
    said = f"{counted(len(outcomes), 'study', 'studies')}: {told}."
    sections = [_study_section(one.study, one.findings) for one in outcomes if one.findings is not None]
    lost = tuple(f"failed: {one.study.id}: {one.reason}" for one in outcomes if one.findings is None)
    summary = Section("", lost, (overview(outcomes),))
    where = Section("", (), (Listing("page", "", f"page: {data['page']}"),))
    few = len(outcomes) <= MOST_SHOWN
    commands = [command for one in outcomes if one.findings is not None for command in one.findings.commands]
    return Document(
        "reproduce",
        "The paper's tables and figures",
        (said,),
        data,
        (*sections, summary, where) if few else (summary, where),
        details=() if few else tuple(sections),
        next=commands[0] if commands else f"eirkit reproduce --all --out {quote(str(out))}",
    )


def _study_section(study: Study, found: Findings) -> Section:
    words = (*found.words, *(f"why: {reason}" for reason in found.reasons))
    words += tuple(f"with what is missing here: {command}" for command in found.commands)
    return Section(study.title, words, (*row_tables(study.id, found), *found.tables))
