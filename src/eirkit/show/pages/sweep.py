"""Registers the page and the comparison of `eirkit lacuna run` folders."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from eirkit.show.comparison.runs import compare_sweeps
from eirkit.show.differences import Comparison
from eirkit.show.document import Page
from eirkit.show.folders import comparers, pages
from eirkit.show.runs.folder import read_sweep
from eirkit.show.runs.page import page_of


@pages.add("lacuna-run")
def sweep_page(folder: Path, others: Sequence[Path], *, tests: bool, plugins: bool = False) -> Page:
    """Return the page of a sweep, with evidence from its subfolders and from other folders."""
    return page_of(read_sweep(folder, others, plugins=plugins))


@comparers.add("lacuna-run")
def compare_folders(a: Path, b: Path, *, plugins: bool) -> Comparison:
    """Return the comparison of two sweeps."""
    return compare_sweeps(read_sweep(a, plugins=plugins), read_sweep(b, plugins=plugins))
