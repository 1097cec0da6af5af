"""The report of a folder in the viewer, with links to its runs, and what an evidence folder came to."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from eirkit.show.colours import coloured_item
from eirkit.show.document import Chart, Section, drawn_json
from eirkit.show.folders import page_for, records_of
from eirkit.show.html import render
from eirkit.show.runs.evidence import SECTIONS
from eirkit.show.runs.folder import read_evidence
from eirkit.show.table import Table
from eirkit.show.viewer.folders import ViewedFolder


def report_html(place: ViewedFolder, *, plugins: bool, viewer: str = "./?") -> str:
    """Return the report of a folder; its rows link to their runs and steps. Cohort tests, which are slow, are left out.

    Args:
        viewer: how addresses in the viewer begin, relative to that of the report.
    """
    page = page_for(place.path, tests=False, plugins=plugins)
    return render(page, viewer=f"{viewer}{urlencode({'at': place.key})}")


def evidence_document(place: ViewedFolder, *, plugins: bool) -> dict[str, Any]:
    """Return the sentences, charts and tables of a rescue, capability or probe folder."""
    with records_of(place.path, plugins=plugins):
        found = read_evidence(place.path, plugins=plugins)
        return section_json(SECTIONS[found.command](found))


def section_json(section: Section) -> dict[str, Any]:
    """Return a section with its tables as texts, as the viewer shows them."""
    tables = [item for item in section.items if isinstance(item, Table)]
    return {
        "title": section.title,
        "words": list(section.words),
        "charts": [drawn_json(coloured_item(item)) for item in section.items if isinstance(item, Chart)],
        "tables": [
            {
                "title": table.title,
                "columns": [
                    {"title": one.title, "meaning": one.meaning, "figure": table.is_numeric(one)}
                    for one in table.columns
                ],
                "lines": table.lines(),
            }
            for table in tables
        ],
    }
