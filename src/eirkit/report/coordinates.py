"""What tells the cells of a sweep apart: rows come in; shared settings in words and short labels go out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from eirkit.lacuna.sweeps.suite_values import UNLIMITED
from eirkit.lacuna.task import TaskSpec
from eirkit.report.sweep_folder import TASK_AXES

Row = Mapping[str, Any]


def condition_of(row: Row) -> str:
    """Return how an agent gets at its earlier results, in one or two words."""
    if row["policy"] is None:
        panel = " (strict)" if row["memory"] is not None and row["panel"] == "strict" else ""
        return f"{row['memory'] or row['condition']}{panel}"
    return str(row["condition"]) if row["policy"] == "window" else f"{row['condition']} {row['policy']}"


def _of_task(name: str, row: Row) -> int | str:
    """Return a setting of the row's task; of a cell without a run, which does not say, the usual one."""
    value: int | str = row.get(name, _USUAL[name])
    return value


def _budget(value: int | str) -> int | str:
    return "∞" if value == UNLIMITED else value


_USUAL = {name: getattr(TaskSpec(""), name) for name in TASK_AXES}  # what goes without saying
_AXES: dict[str, Callable[[Row], int | str]] = {
    "workload": lambda row: str(row["workload"]),
    "model": lambda row: str(row["model"]),
    "memory": condition_of,
    "n": lambda row: int(row["n"]),
    "m": lambda row: int(row["m"]),
    "lookback": lambda row: int(row["lookback"]),
    "fan-in": lambda row: int(row["fan_in"]),
    "B_oracle": lambda row: _budget(row["b_oracle"]),
    "B": lambda row: _budget(row["b"]),
    "h": lambda row: int(row["h"]),
    **{name: partial(_of_task, name) for name in TASK_AXES},
}
_NAMED = ("workload", "model", "memory")  # say themselves what they are


class Coordinates:
    """The axes of some rows: those on which they differ, and those which they share."""

    def __init__(self, rows: Sequence[Row]) -> None:
        values = {name: [of(row) for row in rows] for name, of in _AXES.items()}
        self.varying = tuple(name for name, found in values.items() if len(set(found)) > 1)
        self._shared = {name: found[0] for name, found in values.items() if found and name not in self.varying}

    @property
    def shared(self) -> str:
        """What all rows have in common, in words; what follows from the rest is left out."""
        told = dict(self._shared)
        if told.get("lookback") == told.get("m"):
            told.pop("lookback", None)
        return ", ".join(_said(name, value) for name, value in told.items() if value not in (0, _USUAL.get(name, 0)))

    def label(self, row: Row, without: Sequence[str] = ()) -> str:
        """Return a short name of a row among the others."""
        shown = [_said(name, _AXES[name](row)) for name in self.varying if name not in without]
        return " · ".join(shown) or str(row["workload"])

    def cells(self, row: Row) -> dict[str, int | str]:
        """Return the row's places on the axes that vary."""
        return {name: _AXES[name](row) for name in self.varying}


def _said(name: str, value: int | str) -> str:
    return str(value) if name in _NAMED else f"{name} = {value}"
