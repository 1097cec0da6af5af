"""lacuna: the folder of a short sweep, made by the command itself."""

from __future__ import annotations

import contextlib
import io
import tempfile
from pathlib import Path

from eirkit.cli import run

TASK = ["--workload", "stepwise-sum", "--n", "6", "--m", "3", "--h", "2", "--seeds", "0"]


def _sweep() -> dict[str, bytes]:
    with tempfile.TemporaryDirectory() as scratch, contextlib.redirect_stdout(io.StringIO()):
        folder = Path(scratch) / "sweep"
        assert run(["lacuna", "run", *TASK, "--model", "reference/calculator", "--out", str(folder)]) == 0
        return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


FILES = _sweep()
BESIDE = frozenset(FILES) - {"runs.jsonl"}
