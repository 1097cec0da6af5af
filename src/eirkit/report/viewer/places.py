"""What a folder holds that can be looked at: sweeps, evidence and analyses, and whether they change.

Nothing is opened but the first bytes of documents that say what a folder is, and links out of the folder are not
followed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from eirkit.errors import InputFileError, UsageError
from eirkit.lacuna.sweeps.run_store import FAILURES, RUNS, SUMMARY
from eirkit.vestige.tables import FILE as ANALYSIS
from eirkit.vestige.tables import is_analysis

Kind = Literal["sweep", "evidence", "analysis"]
MANIFEST = "manifest.json"
SCHEMAS: dict[str, Kind] = {"manifest/1": "sweep", "evidence/1": "evidence"}
DEEPEST = 3  # folders below the one that was given
MOST = 200  # places
STAMPED = (MANIFEST, RUNS, FAILURES, SUMMARY, ANALYSIS)  # files whose growth changes what is shown
OPENED = (".json", ".jsonl", ".parquet")  # how the names of files end that are read
_HEAD_BYTES = 64


@dataclass(frozen=True, slots=True)
class Place:
    """One folder that can be looked at."""

    key: str  # its path seen from the folder that was given, "." for that one itself
    path: Path
    kind: Kind


def find_places(root: Path) -> list[Place]:
    """Return what can be looked at in a folder, itself first, then by path."""
    return [place for place, _ in zip(_walk(root), range(MOST), strict=False)]


def open_root(root: Path) -> Path:
    """Return a folder that can be looked at.

    Raises:
        UsageError: it is missing, no folder, or holds nothing of ours.
    """
    if not root.is_dir():
        raise UsageError(f"{root} is no folder; give one that `lacuna run --out` or `vestige analyze --out` wrote")
    if not find_places(root):
        raise UsageError(
            f"{root} holds no sweep, evidence or analysis; write one with `lacuna run` or `vestige analyze`"
        )
    return root.resolve()


def place_at(root: Path, key: str) -> Place:
    """Return the place under a key; only keys that `find_places` gave are known, so nothing else is ever opened."""
    for place in find_places(root):
        if place.key == key:
            return place
    raise InputFileError(f"no sweep, evidence or analysis at {key!r}; reload the page")


def stamp(place: Place) -> str:
    """Return a text that changes whenever a record is added or a document written anew."""
    return "-".join(_stamp(place.path / name) for name in STAMPED)


def changed_at(place: Place) -> float:
    """Return when something was last written, in seconds of the clock of files."""
    times = [path.stat().st_mtime for name in STAMPED if (path := place.path / name).exists()]
    return max(times, default=0.0)


def _stamp(path: Path) -> str:
    try:
        found = path.stat()
    except OSError:
        return ""
    return f"{found.st_size:x}.{found.st_mtime_ns:x}"


def _walk(root: Path) -> Iterator[Place]:
    waiting = [(root, ".", 0)]
    while waiting:
        folder, key, depth = waiting.pop()
        if (kind := _kind(folder, root)) is not None:
            yield Place(key, folder, kind)
        if depth < DEEPEST and kind != "analysis":
            inside = [path for path in _folders(folder) if not path.name.startswith(".")]
            waiting += [
                (path, path.name if key == "." else f"{key}/{path.name}", depth + 1) for path in reversed(inside)
            ]


def _folders(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
    except OSError:
        return []
    return [folder / name for name in names]


def _kind(folder: Path, root: Path) -> Kind | None:
    if _leads_out(folder, root):
        return None
    if is_analysis(folder):
        return "analysis"
    try:
        with (folder / MANIFEST).open("rb") as stream:
            head = stream.read(_HEAD_BYTES)
    except OSError:
        return None
    return next((kind for schema, kind in SCHEMAS.items() if f'"{schema}"'.encode() in head), None)


def _leads_out(folder: Path, root: Path) -> bool:
    """Tell whether a file that would be read is a link to somewhere outside the folder that was given."""
    try:
        with os.scandir(folder) as entries:
            links = [folder / entry.name for entry in entries if entry.name.endswith(OPENED) and entry.is_symlink()]
        return not all(link.resolve().is_relative_to(root.resolve()) for link in links)
    except (OSError, RuntimeError):
        return True  # a link that leads to itself, or a folder that cannot be read
