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
from eirkit.report.runs.possible import possible_in, section_of
from eirkit.report.table import Table
from eirkit.report.viewer.documents import (
    Evidence,
    PlacedCell,
    Possible,
    ShownColumn,
    ShownTable,
)
from eirkit.report.viewer.folders import ViewedFolder

MOST_RUNS = 20_000  # read whole to answer one request; more take longer than a reader waits


def report_html(place: ViewedFolder, *, plugins: bool, viewer: str = "./?") -> str:
    """Return the report of a folder; its rows link to their runs and steps. Cohort tests, which are slow, are left out.

    Args:
        viewer: how addresses in the viewer begin, relative to that of the report.
    """
    page = page_for(place.path, tests=False, plugins=plugins)
    return render(page, viewer=f"{viewer}{urlencode({'at': place.key})}")


def evidence_document(place: ViewedFolder, *, plugins: bool) -> Evidence:
    """Return the sentences, charts and tables of a rescue, capability or probe folder."""
    with records_of(place.path, plugins=plugins):
        return shown_section(evidence.section_of(read_evidence(place.path, plugins=plugins).result))


def shown_section(section: Section) -> Evidence:
    """Return a section with its tables as texts."""
    charts = [drawn(colored_item(item)) for item in section.items if isinstance(item, Chart)]
    return Evidence(
        section.title,
        section.words,
        tuple(chart for chart in charts if isinstance(chart, DrawnChart)),
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


def possible_document(folder: Path, runs: int, *, plugins: bool) -> Possible:
    """Return the picture of a sweep, its sentences, and its cells as rows; only the reason where there is none."""
    if runs > MOST_RUNS:
        reason = f"With more than {MOST_RUNS:,} runs, `eirkit report` draws what was possible."
        return Possible((reason,), None, ())
    found, unknown = possible_in(read_sweep(folder, plugins=plugins))
    section = section_of(found, unknown)
    first = (
        drawn(colored_item(section.items[0]))
        if section and section.items and isinstance(section.items[0], Figure)
        else None
    )
    cells = tuple(
        PlacedCell(
            workload=task.spec.workload,
            cell=cell.label,
            bits_at_most=cell.held.bits,
            step_accuracy=cell.accuracy.estimate,
            low=cell.accuracy.low,
            high=cell.accuracy.high,
            keeping=None if cell.at is None else cell.at.kept,
            ceiling=None if cell.at is None else cell.at.upper,
            share=None if cell.share is None else cell.share_in_words,
        )
        for task in found
        for cell in task.cells
    )
    return Possible(section.words if section else (), first if isinstance(first, Figure) else None, cells)
