"""Finds the log files in folders and archives; those that are read together with another one are left out."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path

from eirkit.folders import DEEPEST_FOLDER
from eirkit.vestige.sources.documents import ReadLimits, Skipped, StoredDocument, open_document
from eirkit.vestige.sources.members import Folder, MemberPath
from eirkit.vestige.sources.remote import Location, Remote
from eirkit.vestige.sources.streams import as_label, why_not_a_file

_AIDER_HISTORY = ".aider.chat.history.md"  # a log whose own name begins with a dot
Claims = Callable[[Folder, Sequence[str]], Collection[str]]
"""Returns which of a folder's names are read together with another document there."""


def unclaimed_members(archive: StoredDocument, claims: Claims) -> Iterator[StoredDocument]:
    """Yield the documents inside an archive that are not read together with another one there."""
    claimed: dict[str, bool] = {"": False}  # by path in the archive

    def is_claimed(path: MemberPath) -> bool:
        if path.inner not in claimed:
            folder = path.parent
            inherited, names = is_claimed(folder), folder.names()
            mine = () if inherited else claims(folder, names)
            claimed.update({(folder / name).inner: inherited or name in mine for name in names})
        return claimed[path.inner]

    return (member for member in archive.members() if member.place is None or not is_claimed(member.place))


def find_documents(
    paths: Sequence[Location],
    limits: ReadLimits = ReadLimits(),  # noqa: B008 - frozen
    claims: Claims | None = None,
) -> Iterator[StoredDocument | Skipped]:
    """Yield the documents at the paths and in the folders there, in name order.

    Claimed names are left out, and names that begin with a dot but for histories of aider. Links inside a folder are
    not followed: one that leads out is yielded as skipped, and the target of any other is read at its own path.

    Raises:
        InputFileError: a given path is missing, a pipe, a socket or a device, or a store reports an error.
    """
    for path in paths:
        if not path.is_dir():
            yield open_document(path, limits)
        elif isinstance(path, Remote):
            yield from (open_document(file, limits, f"{path.name}/{inside}") for inside, file in path.files())
        else:
            yield from _walk(path, limits, claims or _claim_nothing)


def _claim_nothing(_folder: Folder, _names: Sequence[str]) -> Collection[str]:
    return ()


def _walk(folder: Path, limits: ReadLimits, claims: Claims) -> Iterator[StoredDocument | Skipped]:
    home = folder.resolve()
    waiting = [(folder, home.name, 0)]
    while waiting:
        path, source, depth = waiting.pop()
        if depth and path.is_symlink():
            if (reason := _why_not_inside(path, home)) is not None:
                yield Skipped(as_label(source), reason)
        elif not path.is_dir():
            yield _document_or_reason(path, limits, source)
        elif depth > DEEPEST_FOLDER:
            yield Skipped(as_label(source), f"is nested in more than {DEEPEST_FOLDER} folders; give it by its own path")
        else:
            try:
                names = sorted(entry.name for entry in path.iterdir())
            except OSError as error:
                yield Skipped(as_label(source), f"cannot be listed ({error.strerror}); check its permissions")
                continue
            claimed = claims(path, names)
            mine = (name for name in reversed(names) if not _is_hidden(name) and name not in claimed)
            waiting += [(path / name, f"{source}/{name}", depth + 1) for name in mine]


def _is_hidden(name: str) -> bool:
    return name.startswith(".") and not name.startswith(_AIDER_HISTORY)


def _why_not_inside(link: Path, home: Path) -> str | None:
    """Return why a link in a folder is reported; None if its target is in the same folder and read there."""
    try:
        inside = link.resolve().is_relative_to(home)
    except (OSError, RuntimeError):  # RuntimeError: a loop, before Python 3.13
        return "is a link that leads back to itself; remove it"
    return None if inside else "is a link that leads out of the folder; give its target as well"


def _document_or_reason(path: Path, limits: ReadLimits, source: str) -> StoredDocument | Skipped:
    reason = why_not_a_file(path)
    return Skipped(as_label(source), reason) if reason else open_document(path, limits, source)
