"""Finds the recorded runs that some tests read: real logs, never part of the project; tests skip where they are absent.

They lie in the folder that EIRKIT_DATA names, or as archives in ../shared/data, unpacked once to a temporary folder.
"""

from __future__ import annotations

import os
import tarfile
import tempfile
from pathlib import Path

import pytest

ARCHIVES = Path(__file__).parents[3] / "shared" / "data"


def recorded(name: str) -> Path:
    """Return the folder of one set of recorded runs, such as `mini-swe-agent-v1`; skip the test where it is absent."""
    folder = find_recorded(name)
    if folder is None:
        pytest.skip(f"the recorded runs {name} are absent; EIRKIT_DATA may name their folder")
    return folder


def find_recorded(name: str) -> Path | None:
    """Return the folder of one set of recorded runs, or None."""
    given = os.environ.get("EIRKIT_DATA")
    if given:
        folder = Path(given) / name
        return folder if folder.is_dir() else None
    archive = ARCHIVES / f"{name}.tar.xz"
    return _unpacked(archive, name) if archive.is_file() else None


def _unpacked(archive: Path, name: str) -> Path:
    state = archive.stat()
    home = Path(tempfile.gettempdir()) / f"eirkit-recorded-{os.getuid() if hasattr(os, 'getuid') else 0}"
    target = home / f"{name}-{state.st_size}-{state.st_mtime_ns}"
    if not target.is_dir():
        home.mkdir(mode=0o700, exist_ok=True)
        # Several test processes may come here at once: each unpacks for itself, and one of them moves in.
        with tempfile.TemporaryDirectory(dir=home) as scratch:
            with tarfile.open(archive) as content:
                content.extractall(scratch, filter="data")
            try:
                Path(scratch, name).rename(target)
            except OSError:
                if not target.is_dir():
                    raise
    return target
