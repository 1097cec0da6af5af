"""`eirkit compare`: two folders of records, paired."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console

from eirkit.cli.output import emit, json_option, table
from eirkit.cli.report import FOLDER, plugins_option, say
from eirkit.report.comparison import Comparison, Difference
from eirkit.report.comparison_page import comparison_page, shown
from eirkit.report.exports import FIGURES, TABLES, FigureForm, TableForm
from eirkit.report.making import compare as compare_folders
from eirkit.report.page import Page
from eirkit.report.writing import write_page


@click.command()
@click.argument("a", metavar="A", type=FOLDER)
@click.argument("b", metavar="B", type=FOLDER)
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="Also write the comparison as one page.")
@click.option("--figures", type=click.Choice(FIGURES), help="With --out: also draw every chart.")
@click.option("--tables", type=click.Choice(TABLES), help="With --out: also write every table.")
@plugins_option
@json_option
def compare(
    a: Path,
    b: Path,
    out: Path | None,
    figures: FigureForm | None,
    tables: TableForm | None,
    plugins: bool,
    as_json: bool,
) -> None:
    """Print the differences B − A of two `lacuna run` or two `vestige analyze` folders, and what changed in between."""
    if out is None and (figures or tables):
        raise click.UsageError("--figures and --tables lie beside the page; add --out FILE.html")
    found = compare_folders(a, b, plugins=plugins)
    page = comparison_page(found, a, b)
    written = [] if out is None else write_page(page, out, figures, tables)
    document = {**found.as_json(), "out": str(written[0]) if written else None}
    emit(document, as_json, lambda console: _render(console, found, page, written))


def _render(console: Console, found: Comparison, page: Page, written: list[Path]) -> None:
    columns = ("measure", "pairs", found.a, found.b, "difference", "95% interval", "p")
    console.print(table(f"{found.b} − {found.a}, all pairs", columns, [_line(one) for one in found.overall]))
    if found.parts:
        first = found.overall[0].measure
        rows = [(one.where, *_line(one)[1:]) for one in found.parts if one.measure == first]
        console.print(table(f"{first}, by cell", ("cell", *columns[1:]), rows))
    if found.changes:
        changed = [(change.name, change.a, change.b) for change in found.changes]
        console.print(table("What changed", ("setting", found.a, found.b), changed))
    for warning in found.warnings:
        console.print(f"mind: {warning}", markup=False, highlight=False)
    if written:
        say(console, page, written)


def _line(one: Difference) -> tuple[object, ...]:
    ends = None
    if one.low is not None and one.high is not None:
        ends = f"{shown(one, one.low, signed=True)} … {shown(one, one.high, signed=True)}"
    p = None if one.p is None else "< 0.001" if one.p < 0.001 else f"{one.p:.3f}"
    difference = shown(one, one.difference, signed=True)
    return one.measure, one.pairs, shown(one, one.a), shown(one, one.b), difference, ends, p
