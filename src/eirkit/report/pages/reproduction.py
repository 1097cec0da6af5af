"""Folders of `eirkit reproduce`, which writes its own page beside its studies."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from eirkit.errors import InputFileError
from eirkit.report.making import pages
from eirkit.report.page import Page


@pages.add("reproduction")
def page(folder: Path, others: Sequence[Path], *, tests: bool, plugins: bool = False) -> Page:
    """Refuse in favour of the page that is there."""
    raise InputFileError(
        f"{folder} is a reproduction, whose page is {folder / 'index.html'}; "
        f"open that one, or make it anew with `eirkit reproduce --out {folder}`"
    )
