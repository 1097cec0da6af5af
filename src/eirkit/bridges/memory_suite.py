"""A memory system under test: its conformance, and its accuracy on a workload, for whoever tests one regularly.

Names and settings come in; what held, or accuracies by seed, go out. Runs are a sweep like any other, in a folder that
is gone afterwards.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from eirkit.agents.stores.memory_factory import MemoryPlan, check_plan, make_memory
from eirkit.errors import InputFileError, UsageError
from eirkit.findings.statistics import LARGEST_EXACT_SIGNS, Interval, bootstrap_mean, sign_flip
from eirkit.records import read_document, write_document
from eirkit.runs.attempt import cause_of
from eirkit.runs.budget import SpendingLimits
from eirkit.runs.cells import Cell
from eirkit.runs.store import RUNS, read_failures, scan_runs
from eirkit.runs.suite import Suite, read_suite
from eirkit.runs.sweep import start_sweep
from eirkit.testing import Conformance, check_memory

SCHEMA = "memory-record/1"

Accuracies = Mapping[int, float]  # by seed


@dataclass(frozen=True, slots=True)
class RegressionCase:
    """What came of one memory system on one workload."""

    memory: str
    workload: str
    conditions: Mapping[str, Any]  # everything else that must be equal for runs to pair
    runs: Accuracies
    errors: Mapping[str, int]  # by cause, over all runs
    lost: Mapping[str, int]  # runs that the world broke, by reason

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
    dropped: bool  # it is lower, and by more than chance explains


def accuracy_of(case: RegressionCase) -> Interval:
    """Return the mean accuracy with an interval over seeds."""
    return bootstrap_mean(list(case.runs.values()), list(case.runs))


def compare(now: Accuracies, then: Accuracies, alpha: float) -> CaseChange:
    """Return how accuracies changed, paired by seed.

    Args:
        alpha: the two-sided level below which a lower mean is a drop.

    Raises:
        UsageError: there are so few pairs that no drop could be told from chance.
    """
    seeds = sorted(now.keys() & then.keys())
    needed = least_pairs(alpha)
    if len(seeds) < needed:
        raise UsageError(
            f"{len(seeds)} seeds have runs now and then, and {needed} are needed for a verdict at this level; "
            "give more --eirkit-seeds and record again"
        )
    differences = [now[seed] - then[seed] for seed in seeds]
    test, interval = sign_flip(differences), bootstrap_mean(differences, seeds)
    return CaseChange(
        now=sum(now[seed] for seed in seeds) / len(seeds),
        then=sum(then[seed] for seed in seeds) / len(seeds),
        difference=interval,
        p=test.p,
        seeds=len(seeds),
        dropped=test.estimate < 0 and test.p < alpha,
    )


def least_pairs(alpha: float) -> int:
    """Return how many pairs it takes until even the clearest drop, in every pair, has a p-value below alpha."""
    if not 0 < alpha < 1:
        raise UsageError(f"a level of {alpha:g} is none; give one between 0 and 1, such as 0.05")
    # Of the 2^n ways to choose signs, two are as extreme as all alike.
    return next((n for n in range(1, LARGEST_EXACT_SIGNS + 1) if 2 / 2**n < alpha), LARGEST_EXACT_SIGNS + 1)


def pair_up(now: RegressionCase, then: Mapping[str, RegressionCase], baseline: Path) -> RegressionCase:
    """Return the earlier case that a case compares with.

    Raises:
        UsageError: there is none, or it was recorded under other conditions.
    """
    earlier = then.get(now.key)
    if earlier is None:
        raise UsageError(f"{baseline} has no runs of {now.memory} on {now.workload}; record them first")
    differing = sorted(
        name
        for name in now.conditions.keys() | earlier.conditions.keys()
        if now.conditions.get(name) != earlier.conditions.get(name)
    )
    if differing:
        raise UsageError(f"{baseline} was recorded with another {differing[0]}; record again, or give the same options")
    return earlier


def write_cases(path: Path, cases: Mapping[str, RegressionCase]) -> None:
    """Write cases to a file, all of them or nothing."""
    listed = [{**asdict(case), "runs": sorted(case.runs.items())} for _, case in sorted(cases.items())]
    check_writable(path)
    write_document(path, SCHEMA, {"cases": listed})


def check_writable(path: Path) -> None:
    """Make the folder of a record; UsageError where the record could not be written there."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}; choose another place for the record") from error
    if path.is_dir() or not os.access(path.parent, os.W_OK | os.X_OK):
        why = "it is a folder" if path.is_dir() else f"{path.parent} takes no new files"
        raise UsageError(f"cannot write {path}: {why}; choose another place for the record")


def read_cases(path: Path) -> dict[str, RegressionCase]:
    """Return the cases in a file by their key.

    Raises:
        InputFileError: it is missing or not such a file.
    """
    document = read_document(path, SCHEMA)
    try:
        cases = [case_of(given) for given in document["cases"]]
    except (KeyError, TypeError, ValueError) as error:
        raise InputFileError(f"{path} is damaged ({type(error).__name__}: {error}); record again") from error
    return {case.key: case for case in cases}


def case_of(given: Mapping[str, Any]) -> RegressionCase:
    """Return a case from its plain form."""
    return RegressionCase(**{**given, "runs": {int(seed): float(accuracy) for seed, accuracy in given["runs"]}})


Settings = Mapping[str, Any]


def conform(name: str, settings: Settings) -> Conformance:
    """Return which requirements a memory system keeps.

    Raises:
        AssertionError: it does not keep all of them.
    """
    plan = MemoryPlan(name, settings)
    check_plan(plan)
    return check_memory(lambda: make_memory(plan), seconds=plan.seconds)


def run_case(
    name: str, workload: str, settings: Settings, grid: Settings, cap_usd: float | None = None
) -> RegressionCase:
    """Run the seeds of one case.

    Args:
        grid: the other keys of a suite: model, seeds, h, m, n.

    Raises:
        AssertionError: the memory system itself failed.
    """
    suite = suite_of(name, workload, settings, grid)
    with TemporaryDirectory(prefix="eirkit-") as scratch:
        start_sweep(suite, Path(scratch), SpendingLimits(cap_usd=cap_usd), control=False)
        return _case(name, workload, suite, Path(scratch))


def suite_of(name: str, workload: str, settings: Settings, grid: Settings) -> Suite:
    """Return the sweep of one case, checked: UsageError where the system or the workload cannot be had."""
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
    """Return why a run failed, ending in what to do here: there is no folder to resume or to begin anew."""
    cause = cause_of(message)
    return message if cause == message else f"{cause}; correct it and run the test again"


def _conditions(cell: Cell) -> dict[str, Any]:
    """Return what must be the same for runs to pair; the system's own settings may have been improved since."""
    known = cell.as_json()
    access = {key: value for key, value in known["access"].items() if key not in ("memory", "memory_settings")}
    return {"task": known["task"], "model": known["model"], "settings": known["settings"], **access}
