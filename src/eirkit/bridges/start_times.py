"""When runs began, as far as the file system knows: a path comes in, a time goes out. Records hold no clock times."""

from __future__ import annotations

from pathlib import Path

from eirkit.errors import InputFileError
from eirkit.runs.manifest import FILE as MANIFEST

SECOND = 1_000_000_000  # nanoseconds


def begun_at(path: Path) -> int:
    """Return when runs at a path began, as far as the file system knows, in nanoseconds since 1970."""
    first = path / MANIFEST
    try:
        return (first if first.is_file() else path).stat().st_mtime_ns // SECOND * SECOND
    except OSError as error:
        raise InputFileError(f"cannot read {path}: {error.strerror}; check the path") from error
