"""lacuna: the lines of a short sweep."""

from __future__ import annotations

import tempfile
from pathlib import Path

from eirkit.lacuna.runs.suite import read_suite
from eirkit.lacuna.runs.sweep import start_sweep
from eirkit.records.export import write_export

TASK = {"workload": "stepwise-sum", "n": 6, "m": 3, "h": 2, "seeds": [0], "model": "reference/calculator"}


def _sweep() -> dict[str, bytes]:
    with tempfile.TemporaryDirectory() as scratch:
        start_sweep(read_suite(TASK), Path(scratch) / "sweep")
        write_export(Path(scratch) / "sweep", Path(scratch) / "lines")
        return {path.name: path.read_bytes() for path in (Path(scratch) / "lines").iterdir()}


FILES = _sweep()
BESIDE = frozenset(FILES) - {"runs.jsonl"}
