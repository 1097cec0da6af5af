"""Folders of `eirkit vestige analyze`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from eirkit.report.analysed import read_analysed
from eirkit.report.comparing_analyses import compare_analyses
from eirkit.report.comparison import Comparison
from eirkit.report.making import comparers, pages
from eirkit.report.page import Page
from eirkit.report.pages.refusal import refuse_others
from eirkit.report.vestige_page import page_of


@pages.add("vestige-analysis")
def page(folder: Path, others: Sequence[Path], *, tests: bool, plugins: bool = False) -> Page:
    """Return the page of analysed runs."""
    refuse_others(others)
    return page_of(read_analysed(folder, tests=tests), str(folder))


@comparers.add("vestige-analysis")
def compare_folders(a: Path, b: Path, *, plugins: bool) -> Comparison:
    """Return the differences of two analyses, which name no code."""
    return compare_analyses(a, b)
