"""`eirkit report`, `compare` and `choose`: pages about one, two or more folders of results."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import Any

import click

from eirkit.cli.command import OUTPUT, Show, command, document_options, option, options, plugins_option
from eirkit.cli.options import NameList
from eirkit.errors import UsageError
from eirkit.lacuna.conversation import ABILITIES
from eirkit.lacuna.conversation.totals import INSTRUCTION
from eirkit.report.comparison import (
    Comparison,
    SettingChange,
    cell_table,
    change_table,
    comparison_page,
    comparison_tables,
    fates_sentence,
    sides_of,
    verdict_of,
)
from eirkit.report.document import Document, Headline, Listing, Page, Section
from eirkit.report.exports import FIGURES, TABLES, WIDTHS, FigureForm, FigureWidth, TableForm, write_page
from eirkit.report.folders import compare as compare_folders
from eirkit.report.folders import kind_of, page_for
from eirkit.report.runs.candidates import FOLDER as FOLDER_AXIS
from eirkit.report.runs.choice import BY, check_measure, choose_folders, rankable
from eirkit.report.runs.next_runs import beside
from eirkit.report.runs.page import pivoted_page
from eirkit.report.runs.pivot import read_pivot
from eirkit.report.runs.possible import possible_in, section_of
from eirkit.report.runs.ranking import answer_of, choice_section, cost_words, parts_table, ranking_table
from eirkit.report.table import listed

ACCURACY = "accuracy"  # what is ranked by unless something else is named
FOLDER = click.Path(path_type=Path, file_okay=False)


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
            "--figure-width",
            type=click.Choice(tuple(WIDTHS)),
            group=OUTPUT,
            help="With --figures: the width of a column, or of a page with two.  [default: as wide as it is best read]",
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
@page_option("The page to write.  [default: DIR/report.html]")
@option(
    "--with",
    "others",
    type=FOLDER,
    multiple=True,
    metavar="DIR",
    help="Add a rescue, capability or probe folder to the report on a sweep. Can be repeated.",
)
@export_options()
@option(
    "--measure",
    "measures",
    multiple=True,
    metavar="NAME",
    help="Of a sweep: what the table and figure for papers show.  [default: accuracy]  Can be repeated.",
)
@option("--across", default="", metavar="SETTING", help="Of a sweep: the setting in its columns.  [default: h]")
@option("--panels", default="", metavar="SETTING", help="Of a sweep: the setting with a panel for each value.")
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
    help="For analysed runs: compute the cohort statistics, which takes a while.",
)
@plugins_option
@document_options
def report(
    folder: Path,
    out: Path | None,
    others: tuple[Path, ...],
    figures: FigureForm | None,
    figure_width: FigureWidth | None,
    tables: TableForm | None,
    measures: tuple[str, ...],
    across: str,
    panels: str,
    only: tuple[str, ...],
    tests: bool,
    plugins: bool,
    show: Show,
) -> None:
    """Write an HTML page about a folder of `lacuna run`, `lacuna rescue`, `vestige analyze` or `vestige compact`.

    `reproduce` writes its own page, index.html in its folder.
    """
    _check_exports(folder, figures, figure_width, tables)
    if measures or across or panels or only:
        page = pivoted_page(folder, others, read_pivot(measures, across, panels, only), plugins=plugins)
    else:
        page = page_for(folder, others, tests=tests, plugins=plugins)
    written = write_page(page, out or folder / "report.html", figures, tables, figure_width)
    data = {"out": str(written[0]), "files": [str(path) for path in written], **page.as_json()}
    is_viewed = kind_of(folder) != "compaction-benchmark"
    show(
        document_of(
            page, data, written, next=f"eirkit view {quote(str(folder))}" if is_viewed else "eirkit vestige compact -h"
        )
    )


def document_of(page: Page, data: dict[str, Any], written: list[Path], *, next: str) -> Document:
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
    "--ability",
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
    figure_width: FigureWidth | None,
    tables: TableForm | None,
    plugins: bool,
    show: Show,
) -> None:
    """Rank the memories, models or other settings of one or more `lacuna run` folders.

    Only tasks that every candidate was given count. The intervals hold for all pairs at once, so candidates whose order
    is not shown share their ranks. The result says who is best for each workload, h, model or ability, who is cheapest,
    and which command runs the leaders alone on as many tasks as would tell them apart.
    """
    _check_exports(out, figures, figure_width, tables)
    how = (out, figures, figure_width, tables, plugins)
    show(_ranked(folders, by, measure, _each(abilities), *how))


def _check_exports(out: Path | None, figures: str | None, width: str | None, tables: str | None) -> None:
    if out is None and (figures or tables):
        raise UsageError("--figures and --tables are written beside the page; add --out FILE.html")
    if width and not figures:
        raise UsageError("--figure-width is of --figures; add --figures svg, or leave it out")


def _each(given: Iterable[Iterable[str]]) -> tuple[str, ...]:
    """Return the names of an option that takes lists and can be repeated, each once."""
    return tuple(dict.fromkeys(name for names in given for name in names))


def _ranked(
    folders: tuple[Path, ...],
    by: str | None,
    measure: str | None,
    abilities: tuple[str, ...],
    out: Path | None,
    figures: FigureForm | None,
    figure_width: FigureWidth | None,
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
        found.as_json(),
        "choice",
    )
    written = [] if out is None else write_page(page, out, figures, tables, figure_width)
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
    cells = [{"workload": one.spec.workload, **cell.as_json()} for one in judged for cell in one.cells]
    more = {"possible": cells, "answer": list(answer), "out": str(written[0]) if written else None}
    data = {**found.as_json(), "again": again, **more}
    return Document("choose", title, answer, data, tuple(sections), next=then)


_IN_MEMORY = ("policy", "condition", "panel")  # what the name of a memory condition is made of
_HASH = re.compile(r"\b[0-9a-f]{64}\b")


@command(example="eirkit compare out/run-1 out/run-2 --out comparison.html")
@click.argument("folders", metavar="A B...", type=FOLDER, nargs=-1, required=True)
@by_option
@measure_option("With --by or more than two folders: ")
@page_option("Also write the comparison as an HTML page.")
@export_options("With --out: ")
@plugins_option
@document_options
def compare(
    folders: tuple[Path, ...],
    by: str | None,
    measure: str | None,
    out: Path | None,
    figures: FigureForm | None,
    figure_width: FigureWidth | None,
    tables: TableForm | None,
    plugins: bool,
    show: Show,
) -> None:
    """Compare two folders of results, paired by task: differences B − A with 95% intervals.

    Of two `lacuna run` folders: accuracy, causes of errors, what became of results that a memory had to return, time
    and cost. Of two `vestige analyze` folders: what the runs needed and how they ended. More than two sweeps, or --by,
    are ranked as `eirkit choose` does.
    """
    _check_exports(out, figures, figure_width, tables)
    if by is not None or len(folders) > 2:
        show(_ranked(folders, by or FOLDER_AXIS, measure, (), out, figures, figure_width, tables, plugins))
        return
    if measure is not None:
        raise UsageError("two folders are compared in all measures; leave out --measure, or add --by")
    if len(folders) == 1:
        raise UsageError("compare takes two folders; for one folder use `eirkit choose DIR` or add --by")
    a, b = folders
    found = compare_folders(a, b, plugins=plugins)
    written = [] if out is None else write_page(comparison_page(found, a, b), out, figures, tables, figure_width)
    data = {**found.as_json(), "verdict": verdict_of(found), "out": str(written[0]) if written else None}
    show(_document(found, a, b, data, written))


def _document(found: Comparison, a: Path, b: Path, data: dict[str, object], written: list[Path]) -> Document:
    tables = [*comparison_tables(found), *(one.reworded(found.units.tell) for one in [cell_table(found)] if one)]
    if changes := [_clipped(change) for change in found.changes if not _is_told(change, found)]:
        tables.append(replace(change_table(changes), title="What else changed"))
    sections = [Section("", tuple(_sides(found))), *(Section("", (), (table,)) for table in tables)]
    if written:
        sections.append(where(written))
    answer = (verdict_of(found), *filter(None, [fates_sentence(found)]))
    then = f"eirkit {'view' if written else 'compare'} {quote(str(a))}"
    then += "" if written else f" {quote(str(b))} --out comparison.html"
    return Document("compare", f"{found.b} against {found.a}", answer, data, tuple(sections), next=then)


def _sides(found: Comparison) -> Iterator[str]:
    for letter, folder, name in zip("AB", (found.a, found.b), sides_of(found), strict=True):
        yield f"{letter}: {folder}{'' if name == folder else f' ({name})'}"
    yield from (f"note: {warning}" for warning in found.warnings)
    yield found.units.tell("from, to: the 95% interval of B − A; p: by sign flips of tasks, for each figure by itself")


def _is_told(change: SettingChange, found: Comparison) -> bool:
    """Return True for a setting that the names of the sides already contain."""
    return any(
        change.name.rpartition(".")[2] in (one.name, *(_IN_MEMORY if one.name == "memory" else ()))
        and (change.a or "") in (one.a or "")
        and (change.b or "") in (one.b or "")
        for one in found.contrast
    )


def _clipped(change: SettingChange) -> SettingChange:
    """Return a setting with hashes shortened to their beginnings."""
    a, b = (None if one is None else _HASH.sub(lambda found: found[0][:12], one) for one in (change.a, change.b))
    return replace(change, a=a, b=b)
