"""Measures of recorded runs that answer to published figures, and the index by which runs are found.

Runs are found by what they are (task, access, intervention, model, seed) and not by where they were made, so that a
sweep that was run otherwise serves as well as the folder of `eirkit reproduce`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from statistics import fmean
from typing import Literal

import msgspec

from eirkit.lacuna.agents.telemetry import Trace, trace_of
from eirkit.lacuna.findings.causes import Verdict, judge
from eirkit.lacuna.findings.prediction import PressureRun, no_cascade, pressure_correlation, store_recall_accuracy
from eirkit.lacuna.findings.statistics import mean
from eirkit.lacuna.models.model import ModelOptions
from eirkit.lacuna.runs.probe import score_probe
from eirkit.lacuna.tasks.generation import generate, prepare
from eirkit.lacuna.tasks.task import TaskInstance, number_spec
from eirkit.records.database import DATABASE, SweepDatabase
from eirkit.records.events import Event, decode_events, pack, unpack
from eirkit.records.evidence import ProbeScore
from eirkit.records.export import RUNS, read_runs
from eirkit.records.runs import RunRecord, RunScore
from eirkit.records.settings import Setting
from eirkit_paper.suites import SuiteCell

CARRYING = ("stepwise-sum", "stepwise-max", "stepwise-topk", "running-max")  # answers are operands of later steps
_MOST_DEPTH = 3  # of folders inside the given one
Events = Callable[[], list[Event]]  # reads the events of a run


@dataclass(frozen=True)
class PaperRun:
    """One recorded run of a cell."""

    cell: SuiteCell
    model: str
    seed: int
    record: RunRecord
    events: Events

    @property
    def score(self) -> RunScore:
        if self.record.score is None:
            raise ValueError(f"run {self.record.run} is a probe, which has no score")
        return self.record.score

    @cached_property
    def task(self) -> TaskInstance:
        return generate(self.cell.task.with_seed(self.seed))

    @property
    def trace(self) -> Trace:
        return trace_of(self.events(), self.record.ending)

    @cached_property
    def verdicts(self) -> tuple[Verdict, ...]:
        trace = self.trace
        return judge(self.task, prepare(self.task.spec), trace.decisions, trace.actions)

    @cached_property
    def missed_steps(self) -> tuple[int, int]:
        """Right answers at scored steps with a missing input, and all of those."""
        missed = [verdict.correct for verdict in self.verdicts if verdict.missed and verdict.scored]
        return sum(missed), len(missed)

    @cached_property
    def probe(self) -> ProbeScore:
        if self.record.lost is None:
            raise ValueError(f"run {self.record.run} is no probe")
        return score_probe(self.task, self.record.lost, self.trace)


class PaperRunIndex:
    """The runs of a folder and of folders inside it, by cell, model and seed; the first of several is taken."""

    def __init__(self, folder: Path) -> None:
        self.models: list[str] = []
        self.seeds: set[int] = set()
        self.memories: set[str] = set()
        self.count = 0
        self._found: dict[tuple[bytes, str], dict[int, tuple[RunRecord, Events]]] = {}
        self._made: dict[tuple[str, str, int], PaperRun] = {}  # so that each is judged once
        for path in sorted([*folder.rglob(DATABASE), *folder.rglob(RUNS)]):
            if len(path.relative_to(folder).parts) <= _MOST_DEPTH:
                for record, events in _stored(path.parent) if path.name == DATABASE else _exported(path.parent):
                    self._add(record, events)

    def _add(self, record: RunRecord, events: Events) -> None:
        setting = record.setting
        if setting.repeat is not None:
            return
        found = self._found.setdefault((_key(setting), setting.model), {})
        if record.seed not in found:
            found[record.seed] = (record, events)
            self.count += 1
            self.seeds.add(record.seed)
            if setting.access.memory is not None:
                self.memories.add(setting.access.memory)
            if setting.model not in self.models:
                self.models.append(setting.model)

    def runs(self, cell: SuiteCell, model: str, seeds: Sequence[int] | None = None) -> Iterator[PaperRun]:
        """Yield the runs of a cell by a model, in the order of seeds."""
        found = self._found.get((_key(cell.cell("", _NOBODY).setting), model), {})
        for seed in sorted(found) if seeds is None else seeds:
            if seed in found:
                key = (cell.id, model, seed)
                if key not in self._made:
                    self._made[key] = PaperRun(cell, model, seed, *found[seed])
                yield self._made[key]


def _stored(folder: Path) -> Iterator[tuple[RunRecord, Events]]:
    """Yield the runs of a database, those of its control last."""
    with SweepDatabase(folder) as database:
        for control in (False, True):
            for record in database.records(control=control):
                yield record, partial(_stored_events, folder, record.run, control)


def _stored_events(folder: Path, run: str, control: bool) -> list[Event]:
    with SweepDatabase(folder) as database:
        return database.events(run, control=control)


def _exported(folder: Path) -> Iterator[tuple[RunRecord, Events]]:
    """Yield the runs of exported lines, whose events are kept packed."""
    for run in read_runs(folder):
        yield run.record, partial(_packed_events, pack(run.lines), f"{folder}: run {run.record.run}")


def _packed_events(block: bytes, where: str) -> list[Event]:
    return decode_events(unpack(block, where), where)


def _key(setting: Setting) -> bytes:
    return msgspec.json.encode((setting.task, setting.access, setting.intervention), order="sorted")


_NOBODY = ModelOptions()

Runs = Sequence[PaperRun]
Kind = Literal["mean", "count", "rate", "upper bound", "lower bound"]


@dataclass(frozen=True, slots=True)
class RunMeasure:
    """How a figure follows from runs.

    A mean is taken model by model and then over models. A count is of trials, a rate of events in trials; they are
    summed over models. A bound is of all runs together.
    """

    kind: Kind
    value: Callable[[Runs], float | None]
    trials: Callable[[PaperRun], float] = lambda run: 1.0
    carries: bool = False  # where the workload does


def _mean(
    figure: Callable[[PaperRun], float | None], trials: Callable[[PaperRun], float], *, carries: bool = False
) -> RunMeasure:
    return RunMeasure("mean", lambda runs: mean(figure(run) for run in runs), trials, carries)


def _steps(run: PaperRun) -> float:
    return float(run.score.steps)


def _one(run: PaperRun) -> float:
    return 1.0


def _habit(part: str, whole: str) -> RunMeasure:
    def rate(run: PaperRun) -> float | None:
        behavior = run.record.behavior
        return behavior[part] / behavior[whole] if behavior.get(whole) else None

    return _mean(rate, lambda run: float(run.record.behavior.get(whole, 0)))


def _missed_accuracy(runs: Runs) -> float | None:
    right, of = (sum(part) for part in zip(*(run.missed_steps for run in runs), strict=True)) if runs else (0, 0)
    return right / of if of else None


def _aligned(run: PaperRun) -> float | None:
    return None if run.score.aligned is None else float(run.score.aligned)


def _alone(run: PaperRun) -> float:
    score = run.score
    return no_cascade(score.missed, score.steps, score.consuming_all).of_consuming


def _cascade_ratio(runs: Runs) -> float | None:
    observed = mean(run.score.accuracy for run in runs)
    predicted = mean(map(_alone, runs))
    return predicted / observed if observed and predicted is not None else None


def _theory_error(runs: Runs) -> float | None:
    cells: dict[str, list[PaperRun]] = {}
    for run in runs:
        cells.setdefault(run.cell.name, []).append(run)
    gaps = [
        abs(fmean(run.score.accuracy for run in own) - store_recall_accuracy(fmean(r.score.miss_rate for r in own)))
        for own in cells.values()
    ]
    return mean(gaps)


def _rank_p(runs: Runs) -> float | None:
    trials = [
        PressureRun(
            run.score.steps, number_spec(run.cell.task, "a study").m / run.cell.access.capacity, run.score.accuracy
        )
        for run in runs
    ]
    return pressure_correlation(trials).p if len(trials) > 2 else None


def _share_of_errors(cause: str) -> Callable[[PaperRun], float]:
    return lambda run: run.score.errors[cause] / max(1, run.score.steps)  # type: ignore[index]


def _worst(
    figure: Callable[[PaperRun], float | None], by: Callable[[PaperRun], str], *, largest: bool
) -> Callable[[Runs], float | None]:
    """Return the largest or smallest mean over groups of runs."""

    def extreme(runs: Runs) -> float | None:
        groups: dict[str, list[float | None]] = {}
        for run in runs:
            groups.setdefault(by(run), []).append(figure(run))
        means = [found for found in map(mean, groups.values()) if found is not None]
        return (max if largest else min)(means) if means else None

    return extreme


def _total(figure: Callable[[PaperRun], float]) -> Callable[[Runs], float | None]:
    return lambda runs: sum(map(figure, runs))


MEASURES: Mapping[str, RunMeasure] = {
    "accuracy": _mean(lambda run: run.score.accuracy, _steps, carries=True),
    "step-accuracy": _mean(lambda run: run.score.step_accuracy, lambda run: float(run.score.consuming), carries=True),
    "self-consistent": _mean(lambda run: run.score.self_consistent_accuracy, _steps),
    "answered": _mean(lambda run: run.score.answered_fraction, _steps, carries=True),
    "missed-accuracy": RunMeasure("mean", _missed_accuracy, lambda run: float(run.missed_steps[1])),
    "missed-steps": _mean(lambda run: float(run.score.missed), _one),
    "computation-errors": _mean(_share_of_errors("computation"), _steps),
    "aligned": _mean(_aligned, lambda run: float(run.score.aligned is not None)),
    "theory-error": RunMeasure("mean", _theory_error, _steps),
    "no-cascade": _mean(_alone, _steps),
    "cascade-ratio": RunMeasure("mean", _cascade_ratio),
    "just-in-time": _habit("just_in_time", "retrievals"),
    "write-through": _habit("written", "correct"),
    "reads": _mean(lambda run: float(run.score.reads + run.score.recomputations), _one),
    "overhead": _mean(lambda run: run.probe.overhead if run.probe.success else None, _one),
    "scored": RunMeasure("count", _total(_one)),
    "max-turn": RunMeasure("count", _total(lambda run: float(run.score.max_turn))),
    "probe-success": RunMeasure("count", _total(lambda run: float(run.probe.success))),
    "premature": RunMeasure("count", _total(lambda run: float(not run.probe.success))),
    "early-stops": RunMeasure("count", _total(lambda run: float(run.probe.early_stop))),
    "rereads": RunMeasure("rate", _total(lambda run: float(run.probe.redundant))),
    "off-cone": RunMeasure("rate", _total(lambda run: float(run.probe.off_cone))),
    "cascade-errors": RunMeasure(
        "upper bound", _worst(_share_of_errors("cascade"), lambda run: run.model, largest=True)
    ),
    "least-step-accuracy": RunMeasure(
        "lower bound", _worst(lambda run: run.score.step_accuracy, lambda run: run.cell.name, largest=False)
    ),
    "rank-p": RunMeasure("upper bound", _rank_p),
    "probes": RunMeasure("count", _total(_one)),
}  # fmt: skip
