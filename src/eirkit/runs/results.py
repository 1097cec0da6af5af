"""Reads the runs of a folder by cell and seed: records, scores, traces, or the reason why a run is missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from eirkit.agents.telemetry import Trace, trace_of
from eirkit.findings.causes import RunScore, read_score
from eirkit.runs.attempt import cause_of
from eirkit.runs.cells import Cell, Planned
from eirkit.runs.store import RUNS, read_events, read_failures, scan_runs

PLUG_INS = ("memory", "model", "policy", "workload", "harness")  # kinds of failures that name the code that raised
NOT_RUN = "not run: pending, or skipped after other runs failed; run the command again to finish"


class Results:
    """The runs that are in a folder so far; every lookup reads new records first."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._records: dict[str, Mapping[str, Any]] = {}  # by run
        self._end = 0  # bytes read so far

    def record(self, cell: Cell, seed: int) -> Mapping[str, Any] | None:
        """Return the record of a run; None if it has not finished."""
        run = cell.run_id(seed)
        if run not in self._records:
            self._read_on()
        return self._records.get(run)

    def score(self, cell: Cell, seed: int) -> RunScore | None:
        record = self.record(cell, seed)
        return None if record is None else read_score(record["score"])

    def trace(self, cell: Cell, seed: int) -> Trace | None:
        """Return the decisions and actions of a run; None if it has not finished."""
        record = self.record(cell, seed)
        return None if record is None else trace_of(read_events(self.folder, record["events"]), record["ending"])

    def losses(self, planned: Iterable[Planned]) -> dict[tuple[str, int], str]:
        """Return why runs have not finished, by cell and seed, in the order of the plan."""
        missing = [(cell, seed) for cell, seeds in planned for seed in seeds if self.record(cell, seed) is None]
        last = {failure["run"]: _words(failure) for failure in read_failures(self.folder)} if missing else {}
        return {(cell.id, seed): last.get(cell.run_id(seed), NOT_RUN) for cell, seed in missing}

    def _read_on(self) -> None:
        if not (self.folder / RUNS).exists():
            return
        for record, end in scan_runs(self.folder / RUNS, self._end, len(self._records)):
            self._records[record["run"]], self._end = record, end


def counted_losses(losses: Iterable[str]) -> dict[str, int]:
    """Return the number of runs lost for each reason."""
    return dict(Counter(losses))


def _words(failure: Mapping[str, Any]) -> str:
    said, kind = cause_of(str(failure["message"])), failure["kind"]
    return f"{kind} failed: {said}; fix it and run again" if kind in PLUG_INS else said
