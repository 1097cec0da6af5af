"""Small logs of every format, written for these tests: one module for each, named like the format.

Such a module has `FILES`, the paths and contents of what a scaffold leaves, and may name in `BESIDE` those of them that
no format reads as runs of their own.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def sample_files(name: str) -> Mapping[str, bytes]:
    """Return the files of a format's sample by path."""
    files: Mapping[str, bytes] = _module(name).FILES
    return files


def run_paths(name: str) -> list[str]:
    """Return the paths of the files in a format's sample that are runs."""
    beside = getattr(_module(name), "BESIDE", ())
    return [path for path in sample_files(name) if path not in beside]


def write_sample(name: str, folder: Path) -> list[Path]:
    """Write a format's sample into a folder and return the files that are runs."""
    for path, content in sample_files(name).items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    return [folder / path for path in run_paths(name)]


def as_json(value: Any) -> bytes:
    """Return a value as the JSON of one file."""
    return json.dumps(value).encode()


def as_lines(*values: Any) -> bytes:
    """Return values as JSON lines."""
    return b"".join(json.dumps(value).encode() + b"\n" for value in values)


def _module(name: str) -> Any:
    return importlib.import_module(f"{__name__}.{name.replace('-', '_')}")
