"""Measures of recorded runs that answer to published figures, and the index by which runs are found.

Runs are found by what they are (task, access, intervention, model, seed) and not by where they were made, so that a
sweep that was run otherwise serves as well as the folder of `eirkit reproduce`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

from eirkit.lacuna.agents.session import LostAnswer
from eirkit.lacuna.agents.telemetry import Trace, trace_of
from eirkit.lacuna.findings.causes import RunScore, Verdict, judge, read_score
from eirkit.lacuna.findings.prediction import PressureRun, no_cascade, pressure_correlation, store_recall_accuracy
from eirkit.lacuna.findings.statistics import mean
from eirkit.lacuna.models.model import ModelOptions, canonical
from eirkit.lacuna.runs.probe import ProbeScore, score_probe
from eirkit.lacuna.runs.store import RUNS, read_events, scan_runs
from eirkit.lacuna.tasks.generation import generate, prepare
from eirkit.lacuna.tasks.task import TaskInstance, without_seed
from eirkit_paper.suites import SuiteCell

CARRYING = ("stepwise-sum", "stepwise-max", "stepwise-topk", "running-max")  # answers are operands of later steps
_MOST_DEPTH = 3  # of folders inside the given one


@dataclass(frozen=True)
class PaperRun:
    """One recorded run of a cell."""

    cell: SuiteCell
    model: str
    seed: int
    record: Mapping[str, Any]
    folder: Path

    @cached_property
    def score(self) -> RunScore:
        return read_score(self.record["score"])

    @cached_property
    def task(self) -> TaskInstance:
        return generate(self.cell.task.with_seed(self.seed))

    @property
    def trace(self) -> Trace:
        return trace_of(read_events(self.folder, self.record["events"]), self.record["ending"])

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
        moment = self.record["moment"]
        lost = LostAnswer(moment["at"], moment["target"], tuple(moment["resident"]))
        return score_probe(self.task, lost, self.trace)


class PaperRunIndex:
    """The runs of a folder and of folders inside it, by cell, model and seed; the first of several is taken."""

    def __init__(self, folder: Path) -> None:
        self.models: list[str] = []
        self.seeds: set[int] = set()
        self.memories: set[str] = set()
        self.count = 0
        self._found: dict[tuple[bytes, str], dict[int, tuple[Mapping[str, Any], Path]]] = {}
        self._made: dict[tuple[str, str, int], PaperRun] = {}  # so that each is judged once
        for path in sorted(folder.rglob(RUNS)):
            if len(path.relative_to(folder).parts) <= _MOST_DEPTH:
                self._read(path)

    def _read(self, path: Path) -> None:
        for record, _ in scan_runs(path):
            if "repeat" in record:
                continue
            key = (_key(record), record["model"])
            found = self._found.setdefault(key, {})
            if record["seed"] not in found:
                found[record["seed"]] = (record, path.parent)
                self.count += 1
                self.seeds.add(record["seed"])
                if (memory := record["access"]["memory"]) is not None:
                    self.memories.add(memory)
                if record["model"] not in self.models:
                    self.models.append(record["model"])

    def runs(self, cell: SuiteCell, model: str, seeds: Sequence[int] | None = None) -> Iterator[PaperRun]:
        """Yield the runs of a cell by a model, in the order of seeds."""
        found = self._found.get((_cell_key(cell), model), {})
        for seed in sorted(found) if seeds is None else seeds:
            if seed in found:
                key = (cell.id, model, seed)
                if key not in self._made:
                    self._made[key] = PaperRun(cell, model, seed, *found[seed])
                yield self._made[key]


def _key(record: Mapping[str, Any]) -> bytes:
    return canonical({"task": record["task"], "access": record["access"], "done": record.get("intervention")})


def _cell_key(cell: SuiteCell) -> bytes:
    made = cell.cell("", _NOBODY).as_json()
    return canonical({"task": without_seed(cell.task), "access": made["access"], "done": made.get("intervention")})


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
        behaviour = run.record["behaviour"]
        return behaviour[part] / behaviour[whole] if behaviour.get(whole) else None

    return _mean(rate, lambda run: float(run.record["behaviour"].get(whole, 0)))


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
    trials = [PressureRun(run.score.steps, run.cell.task.m / run.cell.access.h, run.score.accuracy) for run in runs]
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
