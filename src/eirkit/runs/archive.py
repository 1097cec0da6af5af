"""A sealed list of the files of a folder with their checksums, by which others see that nothing was changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from eirkit.records import write_document
from eirkit.runs.store import LOCK


def write_list(folder: Path, name: str, schema: str, document: Mapping[str, Any]) -> Path:
    """Write a document with the list of all other files of its folder; return its path."""
    listed = {path.relative_to(folder).as_posix(): describe_file(path) for path in archived_files(folder, name)}
    write_document(folder / name, schema, {**document, "files": listed}, sealed=True)
    return folder / name


def archived_files(folder: Path, name: str) -> Iterator[Path]:
    """Yield all files of a folder in a fixed order, without the list itself and the lock of a writer."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink() and path.name not in (LOCK, name):
            yield path


def describe_file(path: Path) -> dict[str, Any]:
    """Return the size and the checksum of a file."""
    digest = sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return {"bytes": path.stat().st_size, "sha256": digest.hexdigest()}


def changed_files(folder: Path, name: str, listed: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield what differs between a folder and its list of files."""
    present = {path.relative_to(folder).as_posix(): path for path in archived_files(folder, name)}
    for file, known in listed.items():
        if file not in present:
            yield f"{file}: is missing"
        elif describe_file(present[file]) != known:
            yield f"{file}: has changed since {name} was written"
    yield from (f"{file}: is not in the list of files" for file in present if file not in listed)
