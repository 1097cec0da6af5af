"""`eirkit report`: writes a result folder as one HTML page, and its tables and charts for papers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from shlex import quote
from typing import Any

import click

from eirkit.cli.command import OUTPUT, command, option, options
from eirkit.cli.output import Show, document_options
from eirkit.show.document import Document
from eirkit.show.exports import FIGURES, TABLES, FigureForm, TableForm, write_page
from eirkit.show.page import Listing, Page, Section
from eirkit.show.pages.page_factory import page_for

FOLDER = click.Path(path_type=Path, file_okay=False)
plugins_option = option(
    "--plugins",
    is_flag=True,
    help="Execute workloads and policies that the records name as Python files; only for records you trust.",
)


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
            help=f"{before}also draw every chart into a folder beside the page.",
        ),
        option(
            "--tables",
            type=click.Choice(TABLES),
            group=OUTPUT,
            help=f"{before}also write every table into a folder beside the page.",
        ),
    )


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
    tables: TableForm | None,
    tests: bool,
    plugins: bool,
    show: Show,
) -> None:
    """Write an HTML page about a folder of `lacuna run`, `lacuna rescue` or `vestige analyze`.

    `reproduce` writes its own page, index.html in its folder.
    """
    page = page_for(folder, others, tests=tests, plugins=plugins)
    written = write_page(page, out or folder / "report.html", figures, tables)
    data = {"out": str(written[0]), "files": [str(path) for path in written], **page.as_json()}
    show(document_of(page, data, written, next=f"eirkit view {quote(str(folder))}"))


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
