"""`eirkit report`: a folder of records as one page that opens anywhere, and its tables and charts for papers."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console

from eirkit.cli.output import emit, json_option
from eirkit.show.exports import FIGURES, TABLES, FigureForm, TableForm, write_page
from eirkit.show.page import Page
from eirkit.show.pages.page_factory import page_for

FOLDER = click.Path(path_type=Path, file_okay=False)
plugins_option = click.option(
    "--plugins", is_flag=True, help="Run workloads and policies that runs name as files; only for runs of your own."
)


@click.command()
@click.argument("folder", metavar="DIR", type=FOLDER)
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="The page.  [default: DIR/report.html]")
@click.option("--with", "others", type=FOLDER, multiple=True, help="A rescue, capability or probe folder, for a sweep.")
@click.option("--figures", type=click.Choice(FIGURES), help="Also draw every chart into a folder beside the page.")
@click.option("--tables", type=click.Choice(TABLES), help="Also write every table into a folder beside the page.")
@click.option(
    "--tests/--no-tests", default=True, show_default=True, help="Of analysed runs: run all cohort statistics."
)
@plugins_option
@json_option
def report(
    folder: Path,
    out: Path | None,
    others: tuple[Path, ...],
    figures: FigureForm | None,
    tables: TableForm | None,
    tests: bool,
    plugins: bool,
    as_json: bool,
) -> None:
    """Write what a folder of `lacuna run`, `lacuna rescue` or `vestige analyze` says as one HTML page.

    `reproduce` writes its own page: index.html in its folder.
    """
    page = page_for(folder, others, tests=tests, plugins=plugins)
    written = write_page(page, out or folder / "report.html", figures, tables)
    document = {"out": str(written[0]), "files": [str(path) for path in written], **page.as_json()}
    emit(document, as_json, lambda console: say(console, page, written))


def say(console: Console, page: Page, written: list[Path]) -> None:
    """Print the first screen of a page and where it is."""
    head = page.headline
    console.print(f"{head.number}  {head.caption}", markup=False, highlight=False, style="bold")
    for sentence in head.sentences:
        console.print(sentence, markup=False, highlight=False)
    say_where(console, written)


def say_where(console: Console, written: list[Path]) -> None:
    """Print where a page and what lies beside it are."""
    if len(written) > 1:
        console.print(f"{len(written) - 1} files in {written[1].parent}", markup=False, highlight=False)
    console.print(f"{written[0]}", markup=False, highlight=False, soft_wrap=True)
