"""The live line of a sweep on stderr: cells, runs, steps a second, cost, time left; silent without a terminal."""

from __future__ import annotations

import sys
from time import monotonic
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from eirkit.lacuna.sweeps.experiment import Progress as Sweep


class SweepProgress:
    """Shows a sweep as it goes; use it in a with statement."""

    def __init__(self) -> None:
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[state]}"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
            disable=not sys.stderr.isatty(),
        )
        self._task = self._bar.add_task("running", total=None, state="")
        self._started = monotonic()

    def __enter__(self) -> SweepProgress:
        self._bar.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.__exit__(kind, error, trace)

    def __call__(self, now: Sweep) -> None:
        if not self._bar.disable:
            self._bar.update(self._task, completed=now.runs, total=now.planned_runs, state=self._state(now))

    def _state(self, now: Sweep) -> str:
        if now.control:
            return now.control
        rate = now.steps / max(1e-9, monotonic() - self._started)
        parts = [
            f"cells {now.cells}/{now.planned_cells}",
            f"runs {now.runs}/{now.planned_runs}",
            f"{rate:,.0f} steps/s",
        ]
        if now.spent_usd:
            parts.append(f"${now.spent_usd:.2f}")
        if now.failed:
            parts.append(f"{now.failed} failed")
        return "  ".join(parts)
