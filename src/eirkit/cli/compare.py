"""`eirkit compare`: the differences of two folders of results, or a ranking of several."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from shlex import quote

import click
from msgspec import structs

from eirkit.cli.command import Show, command, document_options, plugins_option
from eirkit.cli.report import FOLDER, PageFiles, by_option, measure_option, page_options, ranked, where
from eirkit.errors import UsageError
from eirkit.report.comparison import (
    Comparison,
    SettingChange,
    cell_table,
    change_table,
    compare_folders,
    comparison_page,
    comparison_tables,
    fates_sentence,
    sides_of,
    verdict_of,
)
from eirkit.report.document import Document, Section
from eirkit.report.runs.choice import FOLDER as FOLDER_AXIS

_IN_MEMORY = ("policy", "condition", "panel")  # what the name of a memory condition is made of
_HASH = re.compile(r"\b[0-9a-f]{64}\b")


@command(example="eirkit compare out/run-1 out/run-2 --out comparison.html")
@click.argument("folders", metavar="A B...", type=FOLDER, nargs=-1, required=True)
@by_option
@measure_option("With --by or more than two folders: ")
@page_options("Also write the comparison as an HTML page.", "With --out: ")
@plugins_option
@document_options
def compare(
    folders: tuple[Path, ...],
    by: str | None,
    measure: str | None,
    files: PageFiles,
    plugins: bool,
    show: Show,
) -> None:
    """Compare two folders of results, paired by task: differences B − A with 95% intervals.

    Of two `lacuna run` folders: accuracy, causes of errors, what became of results that a memory had to return, time
    and cost. Of two `vestige analyze` folders: what the runs needed and how they ended. More than two sweeps, or --by,
    are ranked as `eirkit choose` does.
    """
    if by is not None or len(folders) > 2:
        show(ranked(folders, by or FOLDER_AXIS, measure, (), files, plugins=plugins))
        return
    if measure is not None:
        raise UsageError("two folders are compared in all measures; leave out --measure, or add --by")
    if len(folders) == 1:
        raise UsageError("compare takes two folders; for one folder use `eirkit choose DIR` or add --by")
    a, b = folders
    found = compare_folders(a, b, plugins=plugins)
    written = files.write(lambda: comparison_page(found, a, b))
    show(_document(found, a, b, written))


def _document(found: Comparison, a: Path, b: Path, written: list[Path]) -> Document:
    tables = [*comparison_tables(found), *filter(None, [cell_table(found)])]
    if changes := [_clipped(change) for change in found.changes if not _is_told(change, found)]:
        tables.append(replace(change_table(changes), title="What else changed"))
    sides = zip("AB", (found.a, found.b), sides_of(found), strict=True)
    words = (
        *(f"{letter}: {folder}{'' if name == folder else f' ({name})'}" for letter, folder, name in sides),
        *(f"note: {warning}" for warning in found.warnings),
        found.units.tell("from, to: the 95% interval of B − A; p: by sign flips of tasks, for each figure by itself"),
    )
    sections = [Section("", words), *(Section("", (), (table,)) for table in tables)]
    if written:
        sections.append(where(written))
    verdict = verdict_of(found)
    data = structs.replace(found.document(), verdict=verdict, out=str(written[0]) if written else None)
    answer = (verdict, *filter(None, [fates_sentence(found)]))
    then = f"eirkit {'view' if written else 'compare'} {quote(str(a))}"
    then += "" if written else f" {quote(str(b))} --out comparison.html"
    return Document("compare", f"{found.b} against {found.a}", answer, data, tuple(sections), next=then)


def _is_told(change: SettingChange, found: Comparison) -> bool:
    """Return True for a setting that the names of the sides already contain."""
    return any(
        change.name.rpartition(".")[2] in (contrast.name, *(_IN_MEMORY if contrast.name == "memory" else ()))
        and (change.a or "") in (contrast.a or "")
        and (change.b or "") in (contrast.b or "")
        for contrast in found.contrast
    )


def _clipped(change: SettingChange) -> SettingChange:
    """Return a setting with hashes shortened to their beginnings."""
    values = (change.a, change.b)
    a, b = (None if value is None else _HASH.sub(lambda found: found[0][:12], value) for value in values)
    return replace(change, a=a, b=b)
