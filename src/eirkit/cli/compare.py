"""`eirkit compare`: two folders of records, paired."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click
from rich.console import Console

from eirkit.cli.memory_table import meanings
from eirkit.cli.output import emit, json_option, legend, table
from eirkit.cli.report import FOLDER, plugins_option, say_where
from eirkit.findings.fates import FATE_MEASURES
from eirkit.show.comparison.measures import group_of, measure_of, title_of
from eirkit.show.comparison.page import comparison_page
from eirkit.show.comparison.pairs import Comparison, Difference, SettingChange
from eirkit.show.comparison.verdict import fates_sentence, grouped, shown, shown_difference, sides_of, verdict_of
from eirkit.show.exports import FIGURES, TABLES, FigureForm, TableForm, write_page
from eirkit.show.pages.page_factory import compare as compare_folders

WIDEST_NAME, WIDEST_SETTING = 30, 28  # characters, so that a table stays within a hundred columns
_IN_MEMORY = ("policy", "condition", "panel")  # what the name of a memory condition is made of
_HASH = re.compile(r"\b[0-9a-f]{64}\b")


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
    """Print which of two folders is ahead, and their differences B − A, paired by task, with intervals.

    Two of `lacuna run`: accuracy, causes, what became of results that a memory had to bring, time and cost. Two of
    `vestige analyze`: what the runs needed and came to.
    """
    if out is None and (figures or tables):
        raise click.UsageError("--figures and --tables lie beside the page; add --out FILE.html")
    found = compare_folders(a, b, plugins=plugins)
    written = [] if out is None else write_page(comparison_page(found, a, b), out, figures, tables)
    told = {"verdict": verdict_of(found), "out": str(written[0]) if written else None}
    emit({**found.as_json(), **told}, as_json, lambda console: _render(console, found, written))


def _render(console: Console, found: Comparison, written: list[Path]) -> None:
    console.print(verdict_of(found), style="bold", markup=False, highlight=False)
    for line in _beside(found):
        console.print(line, markup=False, highlight=False)
    console.print()
    for group, rows in grouped(found.overall):
        shown_rows = [(measure_of(one.measure).heading, one) for one in rows if _is_shown(one)]
        _show(console, title_of(group), "", shown_rows)
    first = measure_of(found.overall[0].measure)
    cells = [(one.where, one) for one in found.parts if one.measure == first.id]
    if len(cells) > 1:
        _show(console, f"{first.label}, by cell", "cell", cells)
    _legend(console, found)
    if changes := [change for change in found.changes if not _is_told(change, found)]:
        settings = [(change.name, _clipped(change.a), _clipped(change.b)) for change in changes]
        console.print(table("What else changed", ("setting", "A", "B"), settings))
    if written:
        say_where(console, written)


def _beside(found: Comparison) -> Iterator[str]:
    yield from filter(None, [fates_sentence(found)])
    for letter, folder, name in zip("AB", (found.a, found.b), sides_of(found), strict=True):
        yield f"{letter}: {folder}{'' if name == folder else f' ({name})'}"
    yield from (f"mind: {warning}" for warning in found.warnings)


def _show(console: Console, title: str, heading: str, rows: list[tuple[str, Difference]]) -> None:
    if rows:
        shares = all(measure_of(one.measure).unit == "share" for _, one in rows)
        difference = "B − A, points" if shares else "B − A"
        columns = (heading, "pairs", "A", "B", difference, "95% interval", "p")
        lines = [(name, *_line(one, bare=shares)) for name, one in rows]
        console.print(table(title, columns, lines, folded={heading: WIDEST_NAME}))


def _is_shown(one: Difference) -> bool:
    """True unless it is a fate that no record had."""
    return group_of(one.measure) is not FATE_MEASURES or bool(one.a or one.b)


def _line(one: Difference, *, bare: bool) -> tuple[object, ...]:
    ends = None
    if one.low is not None and one.high is not None:
        ends = " … ".join(shown_difference(one, end, bare=True) for end in (one.low, one.high))
    p = None if one.p is None else "< 0.001" if one.p < 0.001 else f"{one.p:.3f}"
    sides = (shown(one, value, exact=True) for value in (one.a, one.b))
    return one.pairs, *sides, shown_difference(one, bare=bare), ends, p


def _legend(console: Console, found: Comparison) -> None:
    """Say once what the measures mean, and that times are of the machine that ran them."""
    shown_ones = [measure_of(one.measure) for one in found.overall if _is_shown(one)]
    told = meanings(one for one in shown_ones if one.unit == "share")
    if any(one.unit == "milliseconds" for one in shown_ones):
        told["ms"] = "as measured while each folder was made, so only folders of one machine compare"
    told["p"] = "sign flips of tasks, each figure by itself"
    legend(console, **told)


def _is_told(change: SettingChange, found: Comparison) -> bool:
    """True for a setting that the names of the sides say already."""
    return any(
        change.name.rpartition(".")[2] in (one.name, *(_IN_MEMORY if one.name == "memory" else ()))
        and (change.a or "") in (one.a or "")
        and (change.b or "") in (one.b or "")
        for one in found.contrast
    )


def _clipped(value: str | None) -> str | None:
    """Return a setting as it fits into a table: a hash by its beginning, a long text with its middle left out."""
    if value is None:
        return None
    short = _HASH.sub(lambda found: found[0][:12], value)
    half = WIDEST_SETTING // 2 - 1
    return short if len(short) <= WIDEST_SETTING else f"{short[:half]} … {short[-half:]}"
