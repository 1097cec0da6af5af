"""`eirkit report` and `choose`: pages about a folder of results, and rankings of what sweeps tried."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import wraps
from pathlib import Path
from shlex import quote
from typing import Any

import click
from msgspec.structs import asdict
from msgspec.structs import replace as replaced

from eirkit.cli.command import OUTPUT, NameList, Show, command, document_options, option, options, plugins_option
from eirkit.errors import UsageError
from eirkit.lacuna.findings.conversation_measures import ABILITIES
from eirkit.lacuna.findings.conversations import INSTRUCTION
from eirkit.lacuna.findings.ranking import MARGIN
from eirkit.report.document import Document, Headline, Listing, Page, Section
from eirkit.report.exports import FIGURES, TABLES, FigureForm, TableForm, write_page
from eirkit.report.folders import kind_of, page_for
from eirkit.report.runs.choice import BY, ChoiceFigures, beside, check_measure, choose_folders, rankable
from eirkit.report.runs.page import pivoted_page
from eirkit.report.runs.pivot import read_pivot
from eirkit.report.runs.possible import PossibleFigures, possible_in, section_of
from eirkit.report.runs.ranking import (
    answer_of,
    choice_section,
    cost_words,
    parts_table,
    ranking_table,
    systems_section,
)
from eirkit.report.table import listed

ACCURACY = "accuracy"  # what is ranked by unless something else is named
FOLDER = click.Path(path_type=Path, file_okay=False)


@dataclass(frozen=True, slots=True)
class PageFiles:
    """Where a page goes, and in which forms its charts and tables are written beside it."""

    out: Path | None
    figures: FigureForm | None
    tables: TableForm | None

    def write(self, page: Callable[[], Page]) -> list[Path]:
        """Write a page, if one was asked for, and return the written paths, the page first."""
        return [] if self.out is None else write_page(page(), self.out, self.figures, self.tables)


def page_options(text: str, before: str = "", *, required: bool = True) -> Callable[[Any], Any]:
    """Add --out, --figures and --tables; the command receives them as `files`.

    Args:
        text: what --out is.
        before: what the others need.
        required: whether they need --out.
    """

    def decorate(command: Callable[..., Any]) -> Any:
        @wraps(command)
        def with_files(out: Path | None, figures: FigureForm | None, tables: TableForm | None, **given: Any) -> Any:
            if required and out is None and (figures or tables):
                raise UsageError("--figures and --tables are written beside the page; add --out FILE.html")
            return command(files=PageFiles(out, figures, tables), **given)

        chart, table = (
            "also draw every chart into a folder beside the page, or write its data.",
            "also write every table",
        )
        return options(
            option("--out", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", group=OUTPUT, help=text),
            option("--figures", type=click.Choice(FIGURES), group=OUTPUT, help=_after(before, chart)),
            option(
                "--tables",
                type=click.Choice(TABLES),
                group=OUTPUT,
                help=_after(before, f"{table} into a folder beside the page."),
            ),
        )(with_files)

    return decorate


def _after(before: str, text: str) -> str:
    return before + text if before else text.capitalize()


@command(example="eirkit report out/run-1")
@click.argument("folder", metavar="DIR", type=FOLDER)
@click.argument("others", metavar="[EVIDENCE]...", type=FOLDER, nargs=-1)
@page_options("The page to write.  [default: DIR/report.html]", required=False)
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
    others: tuple[Path, ...],
    files: PageFiles,
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
    if measures or by or only:
        across, panels = (*(by or ()), "", "")[:2]
        page = pivoted_page(folder, others, read_pivot(measures, across, panels, only), plugins=plugins)
    else:
        page = page_for(folder, others, tests=tests, plugins=plugins)
    written = write_page(page, files.out or folder / "report.html", files.figures, files.tables)
    page = page.anchored()
    own = {part.name: getattr(page, part.name) for part in fields(page)}
    data = {"out": str(written[0]), "files": list(map(str, written)), **own}
    is_viewed = kind_of(folder) != "compaction-benchmark"
    then = f"eirkit view {quote(str(folder))}" if is_viewed else "eirkit vestige compact -h"
    head = page.headline
    # Where a sentence says it all, a terminal does not repeat it above.
    repeats = any(sentence.startswith(f"{head.number} {head.caption}") for sentence in head.sentences)
    number, caption = ("", "") if repeats else (head.number, head.caption)
    show(
        Document(
            page.kind,
            page.title,
            head.sentences,
            data,
            (where(written),),
            details=page.sections,
            next=then,
            number=number,
            caption=caption,
        )
    )


def where(written: list[Path]) -> Section:
    """Return where a page and the files beside it are; paths are never wrapped."""
    lines = [f"page: {written[0]}", *(f"{len(written) - 1} files in {path.parent}" for path in written[1:2])]
    return Section("", (), (Listing("written", "", "\n".join(lines)),))


by_option = option(
    "--by",
    type=click.Choice(BY),
    metavar="SETTING",
    help=f"The setting whose values are ranked: {', '.join(BY)}.  "
    "[default: memory if it varies, else model, else what varies first]",
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
@option(
    "--margin",
    type=click.FloatRange(0, 1, min_open=True),
    default=MARGIN,
    show_default=True,
    metavar="SHARE",
    help="a difference that does not matter: 0.02 is two points of accuracy, or 2% of the best of another measure",
)
@page_options("Also write the ranking as an HTML page.", "With --out: ")
@plugins_option
@document_options
def choose(
    folders: tuple[Path, ...],
    by: str | None,
    measure: str | None,
    abilities: tuple[list[str], ...],
    margin: float,
    files: PageFiles,
    plugins: bool,
    show: Show,
) -> None:
    """Rank the memories, models or other settings of one or more `lacuna run` folders.

    Every candidate is compared with the best, on tasks that all were given. The result says who may be best, who is
    worse and by how much, for each workload, h, model or ability; who is cheapest; and whether more tasks are worth
    their cost, with the command that runs the leaders alone on them. Give its folder together with the first.
    """
    named = tuple(dict.fromkeys(name for names in abilities for name in names))
    show(ranked(folders, by, measure, named, files, margin, plugins=plugins))


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
    files: PageFiles,
    margin: float = MARGIN,
    *,
    plugins: bool,
) -> Document:
    """Return the ranking of what some sweeps tried, and write its page."""
    found, sweeps = choose_folders(folders, by, check_measure(measure or ACCURACY), abilities, margin, plugins=plugins)
    judged, unknown = possible_in(*sweeps)
    section, possible = choice_section(found), section_of(judged, unknown)
    judgeable = any(cell.at is not None for task in judged for cell in task.cells)
    names = listed([standing.name for standing in found.ranking.standings])
    title, answer = f"Which {found.by}: {names}", answer_of(found)
    page = Page(
        title,
        Headline("", "", answer),
        (section, *filter(None, [possible, systems_section(found.systems)])),
        f"a ranking, paired by {found.units.task}",
        found.figures(),
        "choice",
    )
    written = files.write(lambda: page)
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
        possible=tuple(cell.figures(task.spec.workload) for task in judged for cell in task.cells),
        answer=answer,
        out=str(written[0]) if written else None,
    )
    return Document("choose", title, answer, data, tuple(sections), next=then)
