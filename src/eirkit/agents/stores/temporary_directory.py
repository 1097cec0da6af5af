"""A temporary folder for a store: removed by its owner, or by the next one to come where the owner was killed.

Whose owner lives is told by a lock that the system gives back with the process, whatever ended it.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

LOCK = ".lock"
PREFIX = "eirkit-"


class StoreDirectory:
    """A folder `eirkit-NAME-…` that nobody else uses; `enter` makes it, `leave` removes it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._lock: int | None = None
        self._path: Path | None = None

    @property
    def path(self) -> Path:
        assert self._path is not None, "enter comes first"
        return self._path

    def enter(self) -> Path:
        """Remove what dead owners left, make the folder and return it."""
        remove_abandoned()
        making = Path(tempfile.mkdtemp(prefix=f".{PREFIX}"))
        self._lock = os.open(making / LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        # Under this name only now: a folder whose lock is free is taken for a dead owner's.
        self._path = making.rename(making.with_name(f"{PREFIX}{self.name}-{making.name.removeprefix(f'.{PREFIX}')}"))
        return self._path

    def leave(self) -> None:
        """Remove the folder; also twice, and where it was never made."""
        path, self._path = self._path, None
        lock, self._lock = self._lock, None
        if path is not None:
            shutil.rmtree(path, ignore_errors=True)
        if lock is not None:
            os.close(lock)


def remove_abandoned() -> list[Path]:
    """Remove the folders of owners that are gone, and return them."""
    found = [path for path in Path(tempfile.gettempdir()).glob(f"{PREFIX}*-*") if _is_ours(path)]
    return [path for path in found if _remove_if_left(path)]


def _is_ours(path: Path) -> bool:
    """True for a folder of this user's; whoever can write there can also make links."""
    with suppress(OSError):
        return path.is_dir() and not path.is_symlink() and path.lstat().st_uid == os.geteuid()
    return False


def _remove_if_left(path: Path) -> bool:
    try:
        lock = os.open(path / LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return False  # gone meanwhile, or none of these folders
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(path, ignore_errors=True)
        return True
    except OSError:
        return False  # its owner lives
    finally:
        os.close(lock)


def size_of(folder: Path) -> int:
    """Return the bytes of all files below a folder; databases make and remove some all the time."""
    total = 0
    for path in folder.rglob("*"):
        with suppress(OSError):
            total += path.stat().st_size if path.is_file() else 0
    return total
