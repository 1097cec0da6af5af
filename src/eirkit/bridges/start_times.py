"""Finds when runs began from file times, since run records hold durations and no clock times."""

from __future__ import annotations

from pathlib import Path

from eirkit.errors import InputFileError
from eirkit.runs.manifest import FILE as MANIFEST

SECOND = 1_000_000_000  # nanoseconds


def start_time(path: Path) -> int:
    """Return when the runs at a path began, from its modification time, in nanoseconds since 1970."""
    first = path / MANIFEST
    try:
        return (first if first.is_file() else path).stat().st_mtime_ns // SECOND * SECOND
    except OSError as error:
        raise InputFileError(f"cannot read {path}: {error.strerror}; check the path") from error
