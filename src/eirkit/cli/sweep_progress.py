"""Progress of a sweep on stderr: cells, runs, steps per second, cost and time left; nothing without a terminal."""

from __future__ import annotations

from eirkit.cli.live_line import LiveLine
from eirkit.runs.runner import Progress as Sweep


class SweepProgress(LiveLine):
    """Shows the progress of a sweep; use it in a with statement."""

    def __init__(self) -> None:
        super().__init__("running")

    def __call__(self, now: Sweep) -> None:
        self.show(now.runs, self._state(now), now.planned_runs)

    def _state(self, now: Sweep) -> str:
        if now.control:
            return now.control
        parts = [
            f"cells {now.cells}/{now.planned_cells}",
            f"runs {now.runs}/{now.planned_runs}",
            f"{self.rate(now.steps):,.0f} steps/s",
        ]
        if now.spent_usd:
            parts.append(f"${now.spent_usd:.2f}")
        if now.failed:
            parts.append(f"{now.failed} failed")
        return "  ".join(parts)
