"""Runs that differ from one in a single respect: the arms of a rescue, or the same task under another access."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from eirkit.report.viewer.columns import label
from eirkit.report.viewer.run_index import OF_TASK, RunIndex

MOST = 60
# What a task is; runs that share it all can stand side by side.
_TASK = (*OF_TASK, "seed")
_ACCESS = ("arm", "model", "condition", "policy", "memory", "h")


def siblings(index: RunIndex, record: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return runs of the same task and seed, each with what is different about it, the nearest first."""
    own = index.place(record["run"])
    same = [place for place in range(len(index)) if place != own and _same_task(index, place, own)]
    found = []
    for place in same:
        columns = {key: index.column(key) for key in _ACCESS}
        different = [key for key, column in columns.items() if column[place] != column[own]]
        words = [f"h = {columns[key][place]}" if key == "h" else label(columns[key][place]) for key in different]
        found.append({"run": index.column("run")[place], "different": different, "words": ", ".join(words) or "again"})
    return sorted(found, key=lambda one: len(one["different"]))[:MOST]


def _same_task(index: RunIndex, place: int, own: int) -> bool:
    return all(index.column(key)[place] == index.column(key)[own] for key in reversed(_TASK))  # seeds differ soonest


def own_words(record: Mapping[str, Any]) -> str:
    """Return a run's name among its siblings."""
    trial = record.get("trial", {})
    access = record.get("access", trial)
    parts = [trial.get("arm") or trial.get("evidence"), access.get("memory") or access.get("policy"), record["model"]]
    h = access.get("h")
    return ", ".join([str(part) for part in parts if part] + ([f"h = {h}"] if h is not None else []))
