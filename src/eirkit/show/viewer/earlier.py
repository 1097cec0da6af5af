"""Converts run records of the previous version, which had a `trial`, to the current format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from eirkit.experiments.rescue import RescueSetup
from eirkit.runs.cells import Access


def as_today(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a run record in the current format."""
    if "trial" not in record:
        return dict(record)
    trial = record["trial"]
    task = {name: value for name, value in trial["task"].items() if name != "seed"}
    return {**{name: value for name, value in record.items() if name != "trial"}, "task": task, **_done(trial, task)}


def _done(trial: Mapping[str, Any], task: Mapping[str, Any]) -> dict[str, Any]:
    kind = trial["evidence"]
    if kind == "probe":
        moment = {name: trial[name] for name in ("at", "target", "resident")}
        return {"access": {}, "moment": moment, "intervention": {"kind": "probe", "from_step": trial["at"]}}
    if kind == "capability":
        access = asdict(Access(policy="fifo", h=task["m"]))
        return {"access": access, **({"intervention": {"kind": "calculator"}} if trial["calculator"] else {})}
    arm = {"kind": "rescue", "arm": trial["arm"], "truth": trial["truth"], "only_lacking": "memory" in trial}
    injected = {"injected": trial["injected"]} if "injected" in trial else {}
    return {"access": asdict(RescueSetup.read({**trial, "task": task}).access), "intervention": arm, **injected}
