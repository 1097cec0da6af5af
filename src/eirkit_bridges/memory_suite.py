"""Tests a memory system for conformance and for regressions of its accuracy against a recorded baseline.

The pytest plugin uses it. Runs are an ordinary sweep in a temporary directory.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from msgspec import Struct, structs

from eirkit.errors import UsageError
from eirkit.lacuna.findings.intervals import mean_difference, mean_share
from eirkit.lacuna.findings.statistics import LARGEST_EXACT_SIGNS, sign_flip
from eirkit.lacuna.memories.factory import check_plan, make_memory
from eirkit.lacuna.runs.attempt import cause_of
from eirkit.lacuna.runs.budget import SpendingLimits
from eirkit.lacuna.runs.suite import Suite, read_suite
from eirkit.lacuna.runs.sweep import start_sweep
from eirkit.records.database import SweepDatabase
from eirkit.records.documents import read_struct, write_struct
from eirkit.records.evidence import Interval
from eirkit.records.settings import Setting
from eirkit.testing import Conformance, check_memory

SCHEMA = "memory-record/1"

Accuracies = Mapping[int, float]  # by seed


class RegressionCase(Struct, frozen=True):
    """The results of one memory system on one workload."""

    memory: str
    workload: str
    setting: Setting  # without the memory: all that must be equal for runs to be paired
    runs: dict[int, float]  # accuracy by seed
    errors: dict[str, int]  # by cause, over all runs
    lost: dict[str, int]  # runs lost to infrastructure failures, by reason

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
    return mean_share(list(case.runs.values()), list(case.runs), case.setting.task.length * len(case.runs))


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
    parts = [(getattr(now.setting, part), getattr(earlier.setting, part)) for part in ("task", "settings", "access")]
    differing = [] if now.setting.model == earlier.setting.model else ["model"]
    differing += [name for a, b in parts for name in a.__struct_fields__ if getattr(a, name) != getattr(b, name)]
    if differing:
        raise UsageError(
            f"{baseline} was recorded with a different {differing[0]}; record it again, or give the same options"
        )
    return earlier


def write_cases(path: Path, cases: Mapping[str, RegressionCase]) -> None:
    """Write cases to a file atomically."""
    check_writable(path)
    write_struct(path, SCHEMA, _Cases(tuple(case for _, case in sorted(cases.items()))))


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
    return {case.key: case for case in read_struct(path, SCHEMA, _Cases).cases}


class _Cases(Struct, frozen=True):
    cases: tuple[RegressionCase, ...]


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
    with SweepDatabase(folder) as database:
        scores = {record.seed: record.score for record in database.records() if record.score is not None}
        failures = database.failures()
    for failure in failures:
        if failure.kind == "memory":
            raise AssertionError(f"the memory system failed at seed {failure.seed}: {_told(failure.message)}")
    errors: Counter[str] = Counter()
    for score in scores.values():
        errors.update(score.errors)
    lost = Counter(failure.message for failure in failures)
    ((cell, _),) = suite.plan()
    runs = {seed: score.accuracy for seed, score in scores.items()}
    # The settings of the memory system itself may differ between runs that are paired.
    setting = structs.replace(
        cell.setting, access=structs.replace(cell.setting.access, memory=None, memory_settings={})
    )
    return RegressionCase(name, workload, setting, runs, dict(errors), dict(lost))


def _told(message: str) -> str:
    """Return why a run failed, with a remedy that fits a test, where there is no folder to resume."""
    cause = cause_of(message)
    return message if cause == message else f"{cause}; correct it and run the test again"
