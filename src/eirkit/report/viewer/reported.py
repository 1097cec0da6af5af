"""The report of a folder for the viewer: its page, its evidence, and what was possible."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlencode

from eirkit.report.colors import colored_item
from eirkit.report.document import Chart, DrawnChart, Figure, Section, drawn
from eirkit.report.folders import page_for, records_of
from eirkit.report.html import render
from eirkit.report.runs import evidence
from eirkit.report.runs.folder import read_evidence, read_sweep
from eirkit.report.runs.page import headline_in
from eirkit.report.runs.possible import POSSIBLE, possible_section
from eirkit.report.table import Table
from eirkit.report.viewer.documents import ShownColumn, ShownSection, ShownTable
from eirkit.report.viewer.folders import ViewedFolder

MOST_RUNS = 20_000  # read whole to answer one request; more take longer than a reader waits


def report_html(place: ViewedFolder, *, plugins: bool, viewer: str = "./?") -> str:
    """Return the report of a folder; its rows link to their runs and steps. Cohort tests, which are slow, are left out.

    Args:
        viewer: how addresses in the viewer begin, relative to that of the report.
    """
    page = page_for(place.path, tests=False, plugins=plugins)
    return render(page, viewer=f"{viewer}{urlencode({'at': place.key})}")


def evidence_document(place: ViewedFolder, *, plugins: bool) -> ShownSection:
    """Return the sentences, charts and tables of a rescue, capability or probe folder."""
    with records_of(place.path, plugins=plugins):
        return shown_section(evidence.section_of(read_evidence(place.path, plugins=plugins).result))


def answer_of(folder: Path, runs: int, *, plugins: bool) -> tuple[str, ...]:
    """Return the answer of a sweep as its report begins: number and caption, and the first sentence."""
    if runs > MOST_RUNS:
        return ()
    headline = headline_in(read_sweep(folder, plugins=plugins))
    return f"{headline.number} {headline.caption}.", *headline.sentences[:1]


def possible_document(folder: Path, runs: int, *, plugins: bool) -> ShownSection:
    """Return the picture of a sweep, its sentences, and its cells as rows; only the reason where there is none."""
    if runs > MOST_RUNS:
        reason = f"With more than {MOST_RUNS:,} runs, `eirkit report` draws what was possible."
        return ShownSection(POSSIBLE, (reason,), (), (), ())
    return shown_section(possible_section(read_sweep(folder, plugins=plugins)) or Section(POSSIBLE))


def shown_section(section: Section) -> ShownSection:
    """Return a section with its tables as texts."""
    pictures = [drawn(colored_item(item)) for item in section.items if isinstance(item, (Chart, Figure))]
    return ShownSection(
        section.title,
        section.words,
        tuple(item for item in pictures if isinstance(item, DrawnChart)),
        tuple(item for item in pictures if isinstance(item, Figure)),
        tuple(
            ShownTable(
                table.title,
                tuple(ShownColumn(column.title, column.meaning, table.is_numeric(column)) for column in table.columns),
                tuple(map(tuple, table.lines())),
            )
            for table in section.items
            if isinstance(table, Table)
        ),
    )
