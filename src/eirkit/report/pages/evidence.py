"""Folders of `eirkit lacuna rescue`, `capability` and `probe`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from eirkit.report.lacuna_evidence import evidence_page
from eirkit.report.making import pages
from eirkit.report.page import Page
from eirkit.report.pages.refusal import refuse_others
from eirkit.report.sweep_folder import read_evidence


@pages.add("lacuna-evidence")
def page(folder: Path, others: Sequence[Path], *, tests: bool, plugins: bool = False) -> Page:
    """Return the page of one evidence command."""
    refuse_others(others)
    return evidence_page(read_evidence(folder))
