"""The report of a folder for the viewer: its page, its evidence, what was possible, and long texts in pieces."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from eirkit.errors import InputFileError
from eirkit.report.colours import coloured_item
from eirkit.report.document import Chart, Figure, Section, drawn_json
from eirkit.report.folders import page_for, records_of
from eirkit.report.html import render
from eirkit.report.runs.evidence import SECTIONS
from eirkit.report.runs.folder import read_evidence, read_sweep
from eirkit.report.runs.possible import possible_in, section_of
from eirkit.report.table import Table
from eirkit.report.viewer.folders import ViewedFolder

MOST_RUNS = 20_000  # read whole to answer one request; more take longer than a reader waits
LONGEST = 20_000  # characters of one text in one answer


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


def possible_document(folder: Path, runs: int, *, plugins: bool) -> dict[str, Any]:
    """Return the picture of a sweep, its sentences, and its cells as rows; only the reason where there is none."""
    if runs > MOST_RUNS:
        said = f"With more than {MOST_RUNS:,} runs, `eirkit report` draws what was possible."
        return {"words": [said], "figure": None, "cells": []}
    found, unknown = possible_in(read_sweep(folder, plugins=plugins))
    section = section_of(found, unknown)
    figures = (
        [drawn_json(coloured_item(item)) for item in section.items[:1] if isinstance(item, Figure)] if section else []
    )
    cells = [
        {
            "workload": one.spec.workload,
            **cell.as_json(),
            "share": None if cell.share is None else cell.share_in_words,
        }
        for one in found
        for cell in one.cells
    ]
    return {"words": list(section.words) if section else [], "figure": figures[0] if figures else None, "cells": cells}


def shorten(value: Any, part: str = "") -> Any:
    """Return a document with each long text replaced by its beginning, its length and its path in the document."""
    if isinstance(value, str):
        return value if len(value) <= LONGEST else _begun(value, part)
    if isinstance(value, dict):
        return {key: shorten(one, f"{part}/{key}" if part else str(key)) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [shorten(one, f"{part}/{place}" if part else str(place)) for place, one in enumerate(value)]
    return value


def _begun(value: str, part: str) -> dict[str, Any]:
    return {"text": value[:LONGEST], "length": len(value), "next": LONGEST, "part": part}


def more_of(document: Any, part: str, offset: int) -> dict[str, Any]:
    """Return the next piece of a long text, found by the path that `shorten` gave it.

    Offsets count Python characters; JavaScript counts differently, so the page sends back the `next` it received.
    """
    value = document
    for name in part.split("/"):
        try:
            value = value[int(name)] if isinstance(value, (list, tuple)) else value[name]
        except (KeyError, IndexError, ValueError, TypeError):
            raise InputFileError(f"there is no text at {part!r}; reload the page") from None
    if not isinstance(value, str):
        raise InputFileError(f"there is no text at {part!r}; reload the page")
    end = min(offset + LONGEST, len(value))
    return {"text": value[offset:end], "offset": offset, "next": end, "length": len(value)}
