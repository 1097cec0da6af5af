"""Registers the page and the comparison of `eirkit vestige analyze` folders."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from eirkit.show.comparison.analyses import compare_analyses
from eirkit.show.differences import Comparison
from eirkit.show.document import Page
from eirkit.show.folders import comparers, pages, refuse_others
from eirkit.show.logs.analysed import read_analysed
from eirkit.show.logs.page import page_of


@pages.add("vestige-analysis")
def page(folder: Path, others: Sequence[Path], *, tests: bool, plugins: bool = False) -> Page:
    """Return the page of analysed runs."""
    refuse_others(others)
    return page_of(read_analysed(folder, tests=tests), str(folder))


@comparers.add("vestige-analysis")
def compare_folders(a: Path, b: Path, *, plugins: bool) -> Comparison:
    """Return the comparison of two analyses, which never refer to plug-in code."""
    return compare_analyses(a, b)
