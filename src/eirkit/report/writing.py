"""A page on disk: its HTML, and its charts and tables in a folder beside it."""

from __future__ import annotations

from pathlib import Path

from eirkit.report.exports import FigureForm, TableForm, write_figures, write_tables
from eirkit.report.html import render
from eirkit.report.page import Page


def write_page(
    page: Page, path: Path, figures: FigureForm | None = None, tables: TableForm | None = None
) -> list[Path]:
    """Write a page and return what was written, the page first; exports lie in `<name>-files` beside it."""
    folder = path.parent / f"{path.stem}-files"
    drawn = [] if figures is None else write_figures(page, folder, figures)
    listed = [] if tables is None else write_tables(page, folder, tables)
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.unfinished")
    unfinished.write_text(render(page), "utf-8")
    unfinished.replace(path)  # whoever reads meanwhile finds the old page or the new one
    return [path, *drawn, *listed]
