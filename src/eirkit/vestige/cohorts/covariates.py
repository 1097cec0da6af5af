"""Covariates of a task: sizes of its reference patch and files, and how often runs outside the analyzed set solve it.

Missing values are imputed by the median over tasks, with an indicator column.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eirkit.errors import InputFileError
from eirkit.folders import read_small
from eirkit.vestige.cohorts.finding import log2_1p
from eirkit.vestige.cohorts.run_columns import Floats, RunColumns
from eirkit.vestige.inference.design import Columns, as_binary, as_codes, impute_median
from eirkit.vestige.inference.results import join_notes


@dataclass(frozen=True, slots=True)
class Difficulty:
    """One value per analyzed run, in their order."""

    success_logit: Floats  # 0 where unknown
    known: NDArray[np.bool_]  # False: the task has no run outside the analyzed set
    n: int  # analyzed runs with a value
    excluded: int  # analyzed runs without
    tasks: int  # tasks of the analyzed runs
    note: str = ""


def disjoint_difficulty(tasks: Any, resolved: ArrayLike, analyzed: ArrayLike) -> Difficulty:
    """Return the smoothed log-odds of success of each analyzed run's task, from the other runs of that task."""
    outcome = as_binary("resolved", resolved)
    inside = as_binary("analyzed", analyzed, len(outcome)) == 1
    codes = as_codes("tasks", tasks, len(outcome))
    count = int(codes.max()) + 1 if len(codes) else 0
    runs = np.bincount(codes[~inside], minlength=count)
    wins = np.bincount(codes[~inside], outcome[~inside], minlength=count)
    logit = np.where(runs > 0, np.log((wins + 0.5) / (runs - wins + 0.5)), 0.0)
    mine = codes[inside]
    known = runs[mine] > 0
    lost = int((~known).sum())
    note = f"{lost} of {len(mine)} analyzed runs belong to tasks without other runs" if lost else ""
    note = note if len(mine) else "no runs to analyze"
    return Difficulty(logit[mine], known, len(mine) - lost, lost, len(np.unique(mine)), note)


BASE_LINES = "log2 base lines"


@dataclass(frozen=True, slots=True)
class Covariates:
    """Columns without missing values, and a note on what was imputed or is unknown."""

    columns: Columns
    note: str


def read_base_lines(path: Path) -> dict[str, float]:
    """Return the source lines of the gold files by task, from JSON or from a CSV with the columns task_id and lines."""
    try:
        text = read_small(path)
        if text.lstrip().startswith("{"):
            given = json.loads(text)
        else:
            given = {row["task_id"]: row["lines"] for row in csv.DictReader(text.splitlines())}
        return {str(task): _lines(value) for task, value in given.items()}
    except (OSError, UnicodeError, ValueError, KeyError, TypeError) as error:
        cause = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        wanted = "give a JSON object that maps tasks to lines, or a CSV with the columns task_id,lines"
        raise InputFileError(f"cannot read base lines from {path} ({cause}); {wanted}") from error


def with_base_lines(runs: RunColumns, lines: Mapping[str, float]) -> RunColumns:
    """Return the runs with the base lines of their tasks."""
    return replace(runs, base_lines=np.array([lines.get(task, np.nan) for task in runs.task_id], dtype=np.float64))


def patch_covariates(runs: RunColumns, *, base_lines: bool = True) -> Covariates:
    """Return the sizes of the reference solution: log2 of base lines, files, and log2 of lines changed."""
    wanted = {
        "gold files": runs.gold_files,
        "log2 gold lines changed": log2_1p(runs.gold_changes),
    }
    if base_lines:
        wanted = {BASE_LINES: log2_1p(runs.base_lines), **wanted}
    columns: dict[str, Floats] = {}
    notes = []
    for name, values in wanted.items():
        made = impute_median(values, runs.task)
        if made.values is None:
            if len(runs):
                notes.append(f"{name} unknown for every run, so not adjusted for")
            continue
        columns[name] = made.values
        if made.imputed:
            columns[f"{name} imputed"] = made.missing
            notes.append(f"{name}: {made.note}")
    return Covariates(columns, join_notes(notes))


def success_elsewhere(runs: RunColumns, others: RunColumns) -> Difficulty:
    """Return how often other runs resolve the runs' tasks; runs in both sets are left out, and the note says so."""
    is_same = np.isin(others.identity, runs.identity)
    apart = others.at(~is_same & ~np.isnan(others.failed))
    tasks = np.concatenate([runs.task, apart.task])
    resolved = np.concatenate([np.zeros(len(runs)), 1 - apart.failed])
    analyzed = np.concatenate([np.ones(len(runs)), np.zeros(len(apart))])
    same = int(is_same.sum())
    left_out = "1 run is" if same == 1 else f"{same:,} runs are"
    note = f"{left_out} left out of the difficulty estimate, being in the analyzed set itself" if same else ""
    return replace(disjoint_difficulty(tasks, resolved, analyzed), note=note)


def _lines(value: Any) -> float:
    lines = float(value)
    if not 0 <= lines < 1e12:
        raise ValueError(f"{value!r} is not a number of lines")
    return lines
