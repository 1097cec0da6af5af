"""Lists of the files of a folder with their checksums, by which others see that nothing was changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import file_digest
from pathlib import Path

from msgspec import Struct

from eirkit.records.database import LOCK


class ListedFile(Struct, frozen=True):
    """The size and the checksum of a file."""

    bytes: int
    sha256: str


def describe_file(path: Path) -> ListedFile:
    """Return the size and the checksum of a file."""
    with path.open("rb") as stream:
        return ListedFile(path.stat().st_size, file_digest(stream, "sha256").hexdigest())


def describe_files(folder: Path, name: str) -> dict[str, ListedFile]:
    """Return all files of a folder but the list itself, by their path."""
    return {path.relative_to(folder).as_posix(): describe_file(path) for path in listed_files(folder, name)}


def listed_files(folder: Path, name: str) -> Iterator[Path]:
    """Yield all files of a folder in a fixed order, without the list itself and the lock of a writer."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink() and path.name not in (LOCK, name):
            yield path


def changed_files(folder: Path, name: str, listed: Mapping[str, ListedFile]) -> Iterator[str]:
    """Yield what differs between a folder and its list of files."""
    present = {path.relative_to(folder).as_posix(): path for path in listed_files(folder, name)}
    for file, known in listed.items():
        if file not in present:
            yield f"{file}: is missing"
        elif describe_file(present[file]) != known:
            yield f"{file}: has changed since {name} was written"
    yield from (f"{file}: is not in the list of files" for file in present if file not in listed)
