"""Temporary folders of stores, removed by their owner or, if the owner was killed, by the next store.

A lock, which the operating system releases when the process ends, shows whether the owner is alive.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

from eirkit.folders import files_below

LOCK = ".lock"
PREFIX = "eirkit-"


class StoreDirectory:
    """A private folder `eirkit-NAME-…`; `create` makes it, `remove` deletes it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._lock: int | None = None
        self._path: Path | None = None

    @property
    def path(self) -> Path:
        assert self._path is not None, "call create first"
        return self._path

    def create(self) -> Path:
        """Remove abandoned folders, create this one and return it."""
        remove_abandoned()
        making = Path(tempfile.mkdtemp(prefix=f".{PREFIX}"))
        self._lock = os.open(making / LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        # Renamed only now, because a folder with a free lock counts as abandoned.
        self._path = making.rename(making.with_name(f"{PREFIX}{self.name}-{making.name.removeprefix(f'.{PREFIX}')}"))
        return self._path

    def remove(self) -> None:
        """Delete the folder; does nothing if it does not exist."""
        path, self._path = self._path, None
        lock, self._lock = self._lock, None
        if path is not None:
            shutil.rmtree(path, ignore_errors=True)
        if lock is not None:
            os.close(lock)


def remove_abandoned() -> list[Path]:
    """Remove the folders whose owners are dead, and return them."""
    found = [path for path in Path(tempfile.gettempdir()).glob(f"{PREFIX}*-*") if _is_ours(path)]
    return [path for path in found if _remove_if_left(path)]


def _is_ours(path: Path) -> bool:
    """True for a real folder of this user; other users could place links in the temporary directory."""
    with suppress(OSError):
        return path.is_dir() and not path.is_symlink() and path.lstat().st_uid == os.geteuid()
    return False


def _remove_if_left(path: Path) -> bool:
    try:
        lock = os.open(path / LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return False  # removed meanwhile, or not a store's folder
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(path, ignore_errors=True)
        return True
    except OSError:
        return False  # its owner is alive
    finally:
        os.close(lock)


def size_of(folder: Path) -> int:
    """Return the bytes of all files below a folder; files that disappear meanwhile are skipped."""
    total = 0
    for path in files_below(folder):
        with suppress(OSError):
            total += path.stat().st_size
    return total
