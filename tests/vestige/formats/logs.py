"""Small logs, written by hand in the shapes of real ones, and how a test reads them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from eirkit.vestige.sources.documents import Skipped, open_document
from eirkit.vestige.trajectory import Recording, formats


def read_with(name: str, path: Path) -> list[Recording | Skipped]:
    """Return everything that a format yields for a file."""
    return list(formats.get(name)().read(open_document(path)))


def only_run(name: str, path: Path) -> Recording:
    """Return the one run in a file that has nothing else."""
    (run,) = read_with(name, path)
    assert isinstance(run, Recording), run
    return run


def who_recognizes(path: Path) -> list[str]:
    """Return the names of the formats that are surest that a file is theirs."""
    document = open_document(path)
    sure = {name: formats.get(name)().recognizes(document) for name in formats.names()}
    return [name for name, certainty in sure.items() if certainty == max(sure.values()) > 0]


def as_json(path: Path, value: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))
    return path


def as_lines(path: Path, values: Iterable[Any]) -> Path:
    """Write JSON lines; a text is a line as it stands."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{value if isinstance(value, str) else json.dumps(value)}\n" for value in values))
    return path
