"""The runs of a folder by cell and seed: what was recorded of each, or why there is nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from eirkit.agents.telemetry import Trace, trace_of
from eirkit.findings.causes import RunScore, read_score
from eirkit.runs.attempt import cause_of
from eirkit.runs.cells import Cell
from eirkit.runs.plan import Planned
from eirkit.runs.store import RUNS, read_events, read_failures, scan_runs

PLUG_INS = ("memory", "model", "policy", "workload", "harness")  # kinds of failures that say whose code raised
NOT_RUN = "not run: still to come, or given up after others failed; run the command again to finish"


class Results:
    """What a runner has written so far; everything that asks for a run reads on first."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._records: dict[str, Mapping[str, Any]] = {}  # by run
        self._end = 0  # bytes of the records that were read

    def record(self, cell: Cell, seed: int) -> Mapping[str, Any] | None:
        """Return the record of a run; None where it has not come to its end."""
        run = cell.run_id(seed)
        if run not in self._records:
            self._read_on()
        return self._records.get(run)

    def score(self, cell: Cell, seed: int) -> RunScore | None:
        record = self.record(cell, seed)
        return None if record is None else read_score(record["score"])

    def trace(self, cell: Cell, seed: int) -> Trace | None:
        """Return the decisions and actions of a run; None where it has not come to its end."""
        record = self.record(cell, seed)
        return None if record is None else trace_of(read_events(self.folder, record["events"]), record["ending"])

    def losses(self, planned: Iterable[Planned]) -> dict[tuple[str, int], str]:
        """Return why runs have not come to their end, by cell and seed, in the plan's order."""
        missing = [(cell, seed) for cell, seeds in planned for seed in seeds if self.record(cell, seed) is None]
        last = {failure["run"]: _words(failure) for failure in read_failures(self.folder)} if missing else {}
        return {(cell.id, seed): last.get(cell.run_id(seed), NOT_RUN) for cell, seed in missing}

    def _read_on(self) -> None:
        if not (self.folder / RUNS).exists():
            return
        for record, end in scan_runs(self.folder / RUNS, self._end):
            self._records[record["run"]], self._end = record, end


def counted_losses(losses: Iterable[str]) -> dict[str, int]:
    """Return how many runs were lost to each failure, in its own words."""
    return dict(Counter(losses))


def _words(failure: Mapping[str, Any]) -> str:
    said, kind = cause_of(str(failure["message"])), failure["kind"]
    return f"{kind} failed: {said}; fix it and run again" if kind in PLUG_INS else said
