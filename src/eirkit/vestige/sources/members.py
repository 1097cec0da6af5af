"""Folders inside an archive, with what readers use of a Path; nothing is unpacked, and no name is a path on disk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol, TypeAlias

from eirkit.folders import DEEPEST_FOLDER


class Member(Protocol):
    """A file inside an archive."""

    inner: str  # its path in the archive


class ArchiveTree:
    """The files of an archive by the folders that their names describe.

    Of files with equal names the first counts; one in more than `DEEPEST_FOLDER` folders is in none of them.
    """

    def __init__(self, members: Sequence[Member]) -> None:
        self.files: dict[str, Member] = {}
        self.folders: dict[str, dict[str, None]] = {"": {}}  # names in each folder
        for member in members:
            path = _plain(member.inner)
            if path.count("/") <= DEEPEST_FOLDER and path not in self.files:
                self.files[path] = member
                self._enter(path)

    def _enter(self, path: str) -> None:
        while path:
            folder, _, name = path.rpartition("/")
            names = self.folders.setdefault(folder, {})
            if name in names:
                break
            names[name] = None
            path = folder

    def path_of(self, member: Member) -> MemberPath | None:
        """Return where a file lies; None if it is in no folder."""
        path = _plain(member.inner)
        return MemberPath(self, path) if self.files.get(path) is member else None


def _plain(inner: str) -> str:
    return "/".join(part for part in inner.replace("\\", "/").split("/") if part)


class MemberPath:
    """A file or folder inside an archive."""

    def __init__(self, tree: ArchiveTree, inner: str) -> None:
        self.tree, self.inner = tree, inner

    def __truediv__(self, name: str) -> MemberPath:
        return MemberPath(self.tree, f"{self.inner}/{name}" if self.inner else name)

    @property
    def name(self) -> str:
        """The last part of its path; empty for the archive itself."""
        return self.inner.rpartition("/")[2]

    @property
    def suffix(self) -> str:
        """The ending of its name, with the dot."""
        return Path(self.name).suffix

    @property
    def parent(self) -> MemberPath:
        """The folder that contains it; the archive contains itself."""
        return MemberPath(self.tree, self.inner.rpartition("/")[0])

    def is_file(self) -> bool:
        """Return whether it is a file of the archive."""
        return self.inner in self.tree.files

    def is_dir(self) -> bool:
        """Return whether a file of the archive lies in it."""
        return self.inner in self.tree.folders

    def names(self) -> list[str]:
        """Return the names in a folder, sorted."""
        return sorted(self.tree.folders.get(self.inner, ()))

    def iterdir(self) -> Iterator[MemberPath]:
        """Yield what lies in a folder, by name."""
        return (self / name for name in self.names())


Folder: TypeAlias = Path | MemberPath
"""Where a log lies: a folder on disk, or one inside an archive."""


def path_within(path: Folder, folder: Folder) -> str:
    """Return a path as seen from a folder that contains it, with slashes."""
    if isinstance(path, MemberPath) and isinstance(folder, MemberPath):
        return path.inner.removeprefix(folder.inner).lstrip("/")
    return Path(str(path)).relative_to(str(folder)).as_posix()
