"""`eirkit report` and `choose`: pages about a folder of results, and rankings of what sweeps tried."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import Any

import click
from msgspec import Struct
from msgspec.structs import asdict
from msgspec.structs import replace as replaced

from eirkit.cli.command import OUTPUT, NameList, Show, command, document_options, option, options, plugins_option
from eirkit.errors import UsageError
from eirkit.lacuna.findings.conversation_measures import ABILITIES
from eirkit.lacuna.findings.conversations import INSTRUCTION
from eirkit.report.document import Document, Headline, Listing, Page, Section
from eirkit.report.exports import FIGURES, TABLES, FigureForm, TableForm, write_page
from eirkit.report.folders import kind_of, page_for
from eirkit.report.runs.choice import BY, ChoiceFigures, beside, check_measure, choose_folders, rankable
from eirkit.report.runs.page import pivoted_page
from eirkit.report.runs.pivot import read_pivot
from eirkit.report.runs.possible import PossibleFigures, possible_in, section_of
from eirkit.report.runs.ranking import answer_of, choice_section, cost_words, parts_table, ranking_table
from eirkit.report.table import listed

ACCURACY = "accuracy"  # what is ranked by unless something else is named
FOLDER = click.Path(path_type=Path, file_okay=False)


class WrittenPage(Struct, frozen=True, kw_only=True):
    """A page as scripts receive it, and where it was written."""

    out: str
    files: tuple[str, ...]
    title: str
    headline: Headline
    sections: tuple[Section, ...]
    subtitle: str
    answers: object
    kind: str


def page_option(text: str) -> Callable[[Any], Any]:
    """Return what adds --out, the page to write."""
    return option("--out", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", group=OUTPUT, help=text)


def export_options(before: str = "") -> Callable[[Any], Any]:
    """Return what adds --figures and --tables, which are written beside the page."""
    return options(
        option(
            "--figures",
            type=click.Choice(FIGURES),
            group=OUTPUT,
            help=_after(before, "also draw every chart into a folder beside the page, or write its data."),
        ),
        option(
            "--tables",
            type=click.Choice(TABLES),
            group=OUTPUT,
            help=_after(before, "also write every table into a folder beside the page."),
        ),
    )


def _after(before: str, text: str) -> str:
    return before + text if before else text.capitalize()


@command(example="eirkit report out/run-1")
@click.argument("folder", metavar="DIR", type=FOLDER)
@click.argument("others", metavar="[EVIDENCE]...", type=FOLDER, nargs=-1)
@page_option("The page to write.  [default: DIR/report.html]")
@export_options()
@option(
    "--measure",
    "measures",
    multiple=True,
    metavar="NAME",
    help="Of a sweep: what the table and figure for papers show.  [default: accuracy]  Can be repeated.",
)
@option(
    "--by",
    type=NameList("h,model"),
    metavar="SETTING[,SETTING]",
    help="Of a sweep: the setting in its columns, and one with a panel for each value.  [default: h]",
)
@option(
    "--only",
    multiple=True,
    metavar="SETTING=VALUES",
    help="Of a sweep: leave out other values, as in --only h=2,4. Can be repeated.",
)
@option(
    "--tests/--no-tests",
    default=True,
    show_default=True,
    help="For analyzed runs: compute the cohort statistics, which takes a while.",
)
@plugins_option
@document_options
def report(
    folder: Path,
    out: Path | None,
    others: tuple[Path, ...],
    figures: FigureForm | None,
    tables: TableForm | None,
    measures: tuple[str, ...],
    by: list[str] | None,
    only: tuple[str, ...],
    tests: bool,
    plugins: bool,
    show: Show,
) -> None:
    """Write an HTML page about a folder of `lacuna run`, `lacuna rescue`, `vestige analyze` or `vestige compact`.

    EVIDENCE are rescue, capability or probe folders that the report on a sweep is to contain. `reproduce` writes its
    own page, index.html in its folder.
    """
    check_exports(folder, figures, tables)
    if measures or by or only:
        across, panels = (*(by or ()), "", "")[:2]
        page = pivoted_page(folder, others, read_pivot(measures, across, panels, only), plugins=plugins)
    else:
        page = page_for(folder, others, tests=tests, plugins=plugins)
    written = write_page(page, out or folder / "report.html", figures, tables)
    page = page.anchored()
    data = WrittenPage(
        out=str(written[0]),
        files=tuple(map(str, written)),
        title=page.title,
        headline=page.headline,
        sections=page.sections,
        subtitle=page.subtitle,
        answers=page.answers,
        kind=page.kind,
    )
    is_viewed = kind_of(folder) != "compaction-benchmark"
    show(
        document_of(
            page, data, written, next=f"eirkit view {quote(str(folder))}" if is_viewed else "eirkit vestige compact -h"
        )
    )


def document_of(page: Page, data: object, written: list[Path], *, next: str) -> Document:
    """Return a page as a document; a terminal shows its first screen and where it is."""
    head = page.headline
    shown = f"{head.number} {head.caption}"
    repeats = any(sentence.startswith(shown) for sentence in head.sentences)  # then one of them says it all
    return Document(
        page.kind,
        page.title,
        head.sentences,
        data,
        (where(written),),
        details=page.sections,
        next=next,
        number="" if repeats else head.number,
        caption="" if repeats else head.caption,
    )


def where(written: list[Path]) -> Section:
    """Return where a page and the files beside it are; paths are never wrapped."""
    lines = [f"page: {written[0]}", *(f"{len(written) - 1} files in {path.parent}" for path in written[1:2])]
    return Section("", (), (Listing("written", "", "\n".join(lines)),))


by_option = option(
    "--by",
    type=click.Choice(BY),
    help="The setting whose values are ranked.  [default: memory if it varies, else model, else what varies first]",
)
ability_option = option(
    "--only",
    "abilities",
    type=NameList("update,time"),
    multiple=True,
    help="Rank by the questions in words that test these abilities alone, such as update,time. Can be repeated. Known: "
    f"{', '.join((*ABILITIES, INSTRUCTION))}.",
)


def measure_option(before: str = "") -> Callable[[Any], Any]:
    """Return what adds --measure."""
    text = f"what to rank by: {', '.join(rankable())}.  [default: accuracy]"
    return option("--measure", help=_after(before, text))


@command(example="eirkit choose out/run-1")
@click.argument("folders", metavar="DIR...", type=FOLDER, nargs=-1, required=True)
@by_option
@measure_option()
@ability_option
@page_option("Also write the ranking as an HTML page.")
@export_options("With --out: ")
@plugins_option
@document_options
def choose(
    folders: tuple[Path, ...],
    by: str | None,
    measure: str | None,
    abilities: tuple[list[str], ...],
    out: Path | None,
    figures: FigureForm | None,
    tables: TableForm | None,
    plugins: bool,
    show: Show,
) -> None:
    """Rank the memories, models or other settings of one or more `lacuna run` folders.

    Only tasks that every candidate was given count. The intervals hold for all pairs at once, so candidates whose order
    is not shown share their ranks. The result says who is best for each workload, h, model or ability, who is cheapest,
    and which command runs the leaders alone on as many tasks as would tell them apart.
    """
    check_exports(out, figures, tables)
    how = (out, figures, tables, plugins)
    show(ranked(folders, by, measure, _each(abilities), *how))


def check_exports(out: Path | None, figures: str | None, tables: str | None) -> None:
    if out is None and (figures or tables):
        raise UsageError("--figures and --tables are written beside the page; add --out FILE.html")


def _each(given: Iterable[Iterable[str]]) -> tuple[str, ...]:
    """Return the names of an option that takes lists and can be repeated, each once."""
    return tuple(dict.fromkeys(name for names in given for name in names))


class RankedFigures(ChoiceFigures, frozen=True, kw_only=True):
    """What `choose` prints for scripts."""

    possible: tuple[PossibleFigures, ...]
    answer: tuple[str, ...]
    out: str | None


def ranked(
    folders: tuple[Path, ...],
    by: str | None,
    measure: str | None,
    abilities: tuple[str, ...],
    out: Path | None,
    figures: FigureForm | None,
    tables: TableForm | None,
    plugins: bool,
) -> Document:
    found, sweeps = choose_folders(folders, by, check_measure(measure or ACCURACY), abilities, plugins=plugins)
    judged, unknown = possible_in(*sweeps)
    section, possible = choice_section(found), section_of(judged, unknown)
    judgeable = any(cell.at is not None for one in judged for cell in one.cells)
    names = listed([one.name for one in found.ranking.standings])
    title, answer = f"Which {found.by}: {names}", answer_of(found)
    page = Page(
        title,
        Headline("", "", answer),
        (section, *filter(None, [possible])),
        f"a ranking, paired by {found.units.task}",
        found.figures(),
        "choice",
    )
    written = [] if out is None else write_page(page, out, figures, tables)
    again = beside(found.again, found.folder) if found.again else ""
    then = again or f"eirkit report {quote(str(found.folder))}"
    sections = [
        Section("", tuple(f"note: {warning}" for warning in found.warnings), (ranking_table(found),)),
        *([Section("", costs)] if (costs := cost_words(found)) else []),
        *(Section("", (), (table,)) for table in filter(None, [parts_table(found)])),
        *([Section("", found.systems)] if found.systems else []),
        *([replace(possible, items=possible.items[-1:] if judgeable else ())] if possible else []),
        *([where(written)] if written else []),
    ]
    data = RankedFigures(
        **asdict(replaced(found.figures(), again=again)),
        possible=tuple(cell.figures(one.spec.workload) for one in judged for cell in one.cells),
        answer=answer,
        out=str(written[0]) if written else None,
    )
    return Document("choose", title, answer, data, tuple(sections), next=then)
