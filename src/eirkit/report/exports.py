"""Writes a page as an HTML file, and its tables and charts as separate files for papers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Literal

from eirkit.folders import replace_file
from eirkit.report import RENDERERS
from eirkit.report.colors import colored
from eirkit.report.document import Chart, Figure, Page
from eirkit.report.html import render
from eirkit.report.table import Table

FigureForm = Literal["svg", "png", "pdf", "csv"]
FigureWidth = Literal["column", "page"]
WIDTHS: dict[FigureWidth, float] = {"column": 3.3, "page": 6.8}  # inches, of usual papers in two columns
TableForm = Literal["latex", "markdown", "csv"]
FIGURES: tuple[FigureForm, ...] = ("svg", "png", "pdf", "csv")
_TABLES: dict[TableForm, tuple[str, Callable[[Table], str]]] = {
    "latex": (".tex", lambda table: str(import_module(RENDERERS["latex"]).latex_float(table)) + "\n"),
    "markdown": (".md", lambda table: f"**{table.title}**\n\n{table.markdown()}\n"),
    "csv": (".csv", Table.csv),
}
TABLES: tuple[TableForm, ...] = tuple(_TABLES)


def write_figures(page: Page, folder: Path, form: FigureForm, width: FigureWidth | None = None) -> list[Path]:
    """Draw every chart of a page into a folder, or write its data.

    Args:
        width: as wide as a column or the text of a page; by default as wide as it is best read.
    """
    written = []
    for name, item in _named(colored(page)):
        if isinstance(item, Table):
            continue
        if form != "csv":
            path = folder / f"{name}.{form}"
            import_module(RENDERERS["figures"]).save(item, path, None if width is None else WIDTHS[width])
            written.append(path)
            continue
        folder.mkdir(parents=True, exist_ok=True)
        charts = (
            [(f"{name}-{panel.id}", panel) for panel in item.panels] if isinstance(item, Figure) else [(name, item)]
        )
        for own, chart in charts:
            replace_file(folder / f"{own}.csv", chart.csv().encode())
            written.append(folder / f"{own}.csv")
    return written


def write_tables(page: Page, folder: Path, form: TableForm) -> list[Path]:
    """Write every table of a page into a folder."""
    ending, text_of = _TABLES[form]
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, item in _named(page):
        if isinstance(item, Table):
            path = folder / f"{name}{ending}"
            path.write_text(text_of(item), "utf-8")
            written.append(path)
    return written


def _named(page: Page) -> Iterator[tuple[str, Table | Chart | Figure]]:
    """Yield tables and charts with unique names."""
    seen: dict[str, int] = {}
    for item in (*page.tables(), *page.charts()):
        seen[item.id] = seen.get(item.id, 0) + 1
        yield item.id if seen[item.id] == 1 else f"{item.id}-{seen[item.id]}", item


def write_page(
    page: Page,
    path: Path,
    figures: FigureForm | None = None,
    tables: TableForm | None = None,
    width: FigureWidth | None = None,
) -> list[Path]:
    """Write a page and its exports (into `<name>-files` beside it), and return the written paths, the page first."""
    folder = path.parent / f"{path.stem}-files"
    drawn = [] if figures is None else write_figures(page, folder, figures, width)
    listed = [] if tables is None else write_tables(page, folder, tables)
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, render(page).encode())
    return [path, *drawn, *listed]
