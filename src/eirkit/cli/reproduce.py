"""`eirkit reproduce`: the paper's tables and figures beside ours, each with a verdict; ends in one page."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from eirkit.agents.model import Batching, ModelOptions
from eirkit.agents.serving.model_factory import make_model, preflight
from eirkit.cli.agent_options import known_models, read_setting
from eirkit.cli.engine_options import bounded_engine_options
from eirkit.cli.options import NameList, NamingOption, SeedList
from eirkit.cli.output import emit, json_option, table
from eirkit.cli.study_progress import StudyProgress
from eirkit.engine.engine_factory import make_engine
from eirkit.engine.mapping import Bounds, Engine
from eirkit.errors import UsageError
from eirkit.paper.page import document_of_all, overview, row_tables, write_overview, write_study
from eirkit.paper.runner import StudyOutcome, StudyStore, run_studies
from eirkit.paper.studies.catalogue import STUDIES, find_study, perform
from eirkit.paper.study import Setting, Study
from eirkit.runs.budget import Budget, SpendingLimits, is_scripted
from eirkit.show.exports import FIGURES, FigureForm
from eirkit.show.table import Table

OUT = Path("out/reproduce")
STUDY_SECONDS, STUDY_MIB = 7200.0, 8192  # of one study; beyond them something is wrong
_PATH = click.Path(path_type=Path)


@click.command()
@click.argument("names", metavar="[STUDY]...", nargs=-1)
@click.option("--list", "listing", is_flag=True, help="Print all studies and run none.")
@click.option("--all", "everything", is_flag=True, help="Every study; what is not configured says what it needs.")
@click.option("--model", cls=NamingOption, known=known_models, help="Run studies with agents with it: provider/name.")
@click.option("--base-url", help="An OpenAI-compatible server.")
@click.option("--set", "extra", multiple=True, metavar="NAME=VALUE", help="A setting of the model, such as p=0.2.")
@click.option("--cap-usd", type=click.FloatRange(0), help="Stop cleanly before the model costs more than this.")
@click.option("--cache", type=_PATH, help="A file that keeps replies; what it holds is not asked again.")
@click.option("--memory", "memories", type=NameList(), help="External memory systems to run as well: mem0,letta.")
@click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="A folder of analyses of recorded runs.",
)
@click.option("--seeds", type=SeedList(), help="Instead of each study's own: 3, 0,4,9 or 0:300 (300 excluded).")
@click.option("--out", type=_PATH, default=OUT, show_default=True, help="Where studies, tables and the page are kept.")
@click.option("--fresh", is_flag=True, help="Compute again what the folder holds already.")
@click.option("--figures", type=click.Choice(FIGURES), help="Also draw every figure in this form.")
@bounded_engine_options(STUDY_SECONDS, STUDY_MIB)
@json_option
def reproduce(
    names: tuple[str, ...], listing: bool, everything: bool, out: Path, fresh: bool, figures: FigureForm | None,
    engine: Engine | None, as_json: bool, **given: Any,
) -> int:  # fmt: skip
    """Put the paper's tables and figures beside ours: published value, ours, its range and a verdict.

    Reference agents stand in for the published models; --model runs a model of yours instead. The page is written anew
    whenever a study ends. Neither a study nor a run of an agent that is in the folder already is computed again, so a
    killed command goes on when it is started again.
    """
    if listing:
        _emit_list(as_json)
        return 0
    studies = _chosen(names, everything)
    outcomes = _run(studies, _setting(out, **given), _Folder(out, figures), engine, fresh)
    page = write_overview(outcomes, out)
    document = {**document_of_all(outcomes), "page": str(page)}
    emit(document, as_json, lambda console: _render(console, outcomes, page))
    return 1 if document["lost"] else 0


@dataclass(frozen=True, slots=True)
class _Folder:
    """Where everything goes, and in which form figures are drawn; None: not at all."""

    path: Path
    figures: FigureForm | None


def _setting(
    out: Path, model: str | None, base_url: str | None, extra: Sequence[str], cap_usd: float | None,
    cache: Path | None, memories: list[str] | None, data: Path | None, seeds: Sequence[int] | None,
) -> Setting:  # fmt: skip
    """Return what studies are computed with; a model that cannot be had is refused before any is."""
    options = ModelOptions(base_url=base_url, extra=dict(map(read_setting, extra)))
    if model is None:
        if base_url or extra or cache or cap_usd is not None:
            raise UsageError("--base-url, --set, --cap-usd and --cache go with a model; add --model PROVIDER/NAME")
        return Setting(None, options, data, seeds, tuple(memories or ()))
    budget, made = None, make_model(model, options)
    is_free = is_scripted(made) or (isinstance(made, Batching) and cap_usd is None and cache is None)
    if is_free:
        preflight(made)
    else:
        out.mkdir(parents=True, exist_ok=True)
        budget = Budget(SpendingLimits(cap_usd, None, cache), out)
        budget.ledger.read()
        budget.make(model, options)
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
        engine = make_engine("local", bounds=Bounds(STUDY_SECONDS, STUDY_MIB << 20))
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


def _emit_list(as_json: bool) -> None:
    rows = [(study.id, study.kind, study.title, ", ".join(study.labels) or study.place) for study in STUDIES]
    columns = ("study", "kind", "what", "in the paper")
    document = {"studies": [study.as_json() for study in STUDIES]}
    emit(document, as_json, lambda console: console.print(table(f"{len(rows)} studies", columns, rows)))


def _render(console: Console, outcomes: Sequence[StudyOutcome], page: Path) -> None:
    for outcome in outcomes if len(outcomes) <= MOST_SHOWN else ():
        if outcome.findings is not None:
            for shown in (*row_tables(outcome.study.id, outcome.findings), *outcome.findings.tables):
                _show_table(console, shown)
            for words in (*outcome.findings.words, *(f"why: {reason}" for reason in outcome.findings.reasons)):
                _say(console, words)
            for command in outcome.findings.commands:
                _say(console, f"with what is not configured here: {command}")
    _show_table(console, overview(outcomes))
    for outcome in outcomes:
        if outcome.findings is None:
            _say(console, f"lost: {outcome.study.id}: {outcome.reason}")
    _say(console, f"The page with every table and figure: {page}")


MOST_SHOWN = 3  # studies whose tables are printed in full; the page has them all


def _show_table(console: Console, shown: Table) -> None:
    console.print(table(shown.title, [column.title for column in shown.columns], shown.lines()))
    if shown.note:
        _say(console, shown.note)


def _say(console: Console, line: str) -> None:
    console.print(line, markup=False, highlight=False, soft_wrap=True)
