"""Tests a memory system for conformance and for regressions of its accuracy against a recorded baseline.

The pytest plugin uses it. Runs are an ordinary sweep in a temporary directory.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from eirkit.errors import InputFileError, UsageError
from eirkit.lacuna.findings.intervals import mean_difference, mean_share
from eirkit.lacuna.findings.statistics import LARGEST_EXACT_SIGNS, Interval, sign_flip
from eirkit.lacuna.memories.factory import check_plan, make_memory
from eirkit.lacuna.runs.attempt import cause_of
from eirkit.lacuna.runs.budget import SpendingLimits
from eirkit.lacuna.runs.cells import Cell
from eirkit.lacuna.runs.store import RUNS, read_failures, scan_runs
from eirkit.lacuna.runs.suite import Suite, read_suite
from eirkit.lacuna.runs.sweep import start_sweep
from eirkit.records.lines import read_document, write_document
from eirkit.testing import Conformance, check_memory

SCHEMA = "memory-record/1"

Accuracies = Mapping[int, float]  # by seed


@dataclass(frozen=True, slots=True)
class RegressionCase:
    """The results of one memory system on one workload."""

    memory: str
    workload: str
    conditions: Mapping[str, Any]  # everything else that must be equal for runs to be paired
    runs: Accuracies
    errors: Mapping[str, int]  # by cause, over all runs
    lost: Mapping[str, int]  # runs lost to infrastructure failures, by reason

    @property
    def key(self) -> str:
        return f"{self.memory} {self.workload}"


@dataclass(frozen=True, slots=True)
class CaseChange:
    """How a case compares with an earlier one, over the seeds that both have."""

    now: float
    then: float
    difference: Interval  # now − then
    p: float
    seeds: int
    dropped: bool  # significantly lower


def accuracy_of(case: RegressionCase) -> Interval:
    """Return the mean accuracy with an interval over seeds."""
    steps = case.conditions.get("task", {}).get("n", 1)
    return mean_share(list(case.runs.values()), list(case.runs), steps * len(case.runs))


def compare(now: Accuracies, then: Accuracies, alpha: float) -> CaseChange:
    """Return how accuracies changed, paired by seed.

    Args:
        alpha: the two-sided level below which a lower mean is a drop.

    Raises:
        UsageError: there are too few pairs for any drop to be significant.
    """
    seeds = sorted(now.keys() & then.keys())
    needed = least_pairs(alpha)
    if len(seeds) < needed:
        raise UsageError(
            f"{len(seeds)} seeds have runs both now and in the baseline, and {needed} are needed at this level; "
            "give more --eirkit-seeds and record again"
        )
    differences = [now[seed] - then[seed] for seed in seeds]
    test, interval = sign_flip(differences), mean_difference(differences, seeds)
    return CaseChange(
        now=sum(now[seed] for seed in seeds) / len(seeds),
        then=sum(then[seed] for seed in seeds) / len(seeds),
        difference=interval,
        p=test.p,
        seeds=len(seeds),
        dropped=test.estimate < 0 and test.p < alpha,
    )


def least_pairs(alpha: float) -> int:
    """Return the smallest number of pairs at which a drop in every pair has a p-value below alpha."""
    if not 0 < alpha < 1:
        raise UsageError(f"--eirkit-alpha is {alpha:g}; give a level between 0 and 1, such as 0.05")
    # Of the 2^n ways to choose signs, two are as extreme as all alike.
    return next((n for n in range(1, LARGEST_EXACT_SIGNS + 1) if 2 / 2**n < alpha), LARGEST_EXACT_SIGNS + 1)


def pair_up(now: RegressionCase, then: Mapping[str, RegressionCase], baseline: Path) -> RegressionCase:
    """Return the baseline of a case.

    Raises:
        UsageError: the baseline has no such case, or it was recorded under other conditions.
    """
    earlier = then.get(now.key)
    if earlier is None:
        raise UsageError(f"{baseline} has no runs of {now.memory} on {now.workload}; record them with --eirkit-record")
    differing = sorted(
        name
        for name in now.conditions.keys() | earlier.conditions.keys()
        if now.conditions.get(name) != earlier.conditions.get(name)
    )
    if differing:
        raise UsageError(
            f"{baseline} was recorded with a different {differing[0]}; record it again, or give the same options"
        )
    return earlier


def write_cases(path: Path, cases: Mapping[str, RegressionCase]) -> None:
    """Write cases to a file atomically."""
    listed = [{**asdict(case), "runs": sorted(case.runs.items())} for _, case in sorted(cases.items())]
    check_writable(path)
    write_document(path, SCHEMA, {"cases": listed})


def check_writable(path: Path) -> None:
    """Create the folder of a record; raise UsageError if the record could not be written there."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}; choose another path for --eirkit-record") from error
    if path.is_dir() or not os.access(path.parent, os.W_OK | os.X_OK):
        why = "it is a folder" if path.is_dir() else f"{path.parent} is not writable"
        raise UsageError(f"cannot write {path}: {why}; choose another path for --eirkit-record")


def read_cases(path: Path) -> dict[str, RegressionCase]:
    """Return the cases in a file by their key.

    Raises:
        InputFileError: the file is missing or not a record.
    """
    document = read_document(path, SCHEMA)
    try:
        cases = [case_of(given) for given in document["cases"]]
    except (KeyError, TypeError, ValueError) as error:
        raise InputFileError(f"{path} is damaged ({type(error).__name__}: {error}); record it again") from error
    return {case.key: case for case in cases}


def case_of(given: Mapping[str, Any]) -> RegressionCase:
    """Return a case from its JSON form."""
    return RegressionCase(**{**given, "runs": {int(seed): float(accuracy) for seed, accuracy in given["runs"]}})


Settings = Mapping[str, Any]


def conform(suite: Suite, records: int) -> Conformance:
    """Return the requirements that the memory system of a suite meets, with the models and servers of its runs.

    Args:
        records: how many are written where it is tried with many.

    Raises:
        AssertionError: it fails one of them.
    """
    cell, _ = next(suite.plan())
    assert cell.memory_plan is not None  # the suite names a memory
    plan = replace(cell.memory_plan, limit=None)
    check_plan(plan)
    return check_memory(lambda: make_memory(plan), seconds=plan.seconds, records=records, reuse=True)


def run_case(name: str, workload: str, settings: Settings, grid: Settings, funds: SpendingLimits) -> RegressionCase:
    """Run the seeds of one case.

    Args:
        grid: the other keys of a suite: model, model_options, seeds, h, m, n.

    Raises:
        AssertionError: the memory system itself failed.
    """
    suite = suite_of(name, workload, settings, grid)
    with TemporaryDirectory(prefix="eirkit-") as scratch:
        start_sweep(suite, Path(scratch), funds, control=False)
        return _case(name, workload, suite, Path(scratch))


def suite_of(name: str, workload: str, settings: Settings, grid: Settings) -> Suite:
    """Return the suite of one case; raise UsageError if the memory system or the workload is not available."""
    named = {"workload": workload, "memory": name, "memory_options": {name: dict(settings)}, "texts": False}
    return read_suite({**grid, **named})


def _case(name: str, workload: str, suite: Suite, folder: Path) -> RegressionCase:
    records, failures = [record for record, _ in scan_runs(folder / RUNS)], list(read_failures(folder))
    for failure in failures:
        if failure["kind"] == "memory":
            raise AssertionError(f"the memory system failed at seed {failure['seed']}: {_told(failure['message'])}")
    errors: Counter[str] = Counter()
    for record in records:
        errors.update(record["score"]["errors"])
    lost = Counter(str(failure["message"]) for failure in failures)
    ((cell, _),) = suite.plan()
    runs = {record["seed"]: record["score"]["correct"] / max(1, record["score"]["steps"]) for record in records}
    return RegressionCase(name, workload, _conditions(cell), runs, dict(errors), dict(lost))


def _told(message: str) -> str:
    """Return why a run failed, with a remedy that fits a test, where there is no folder to resume."""
    cause = cause_of(message)
    return message if cause == message else f"{cause}; correct it and run the test again"


def _conditions(cell: Cell) -> dict[str, Any]:
    """Return what must be equal for runs to be paired; the settings of the memory system itself may differ."""
    known = cell.as_json()
    access = {key: value for key, value in known["access"].items() if key not in ("memory", "memory_settings")}
    return {"task": known["task"], "model": known["model"], "settings": known["settings"], **access}
