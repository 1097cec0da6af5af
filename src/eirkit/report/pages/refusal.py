"""What only a sweep's page takes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from eirkit.errors import UsageError


def refuse_others(others: Sequence[Path]) -> None:
    """Raise UsageError where evidence is to be added to something else than a sweep."""
    if others:
        raise UsageError("--with adds evidence to the page of a sweep, which this folder is not; leave it out")
