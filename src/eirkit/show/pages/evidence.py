"""Registers the page of `eirkit lacuna rescue`, `capability` and `probe` folders."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from eirkit.show.document import Page
from eirkit.show.folders import pages, refuse_others
from eirkit.show.runs.evidence import evidence_page
from eirkit.show.runs.folder import read_evidence


@pages.add("lacuna-evidence")
def page(folder: Path, others: Sequence[Path], *, tests: bool, plugins: bool = False) -> Page:
    """Return the page of a rescue, capability or probe folder."""
    refuse_others(others)
    return evidence_page(read_evidence(folder, plugins=plugins))
