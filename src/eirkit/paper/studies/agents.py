"""What the studies with agents share: who is run, runs of one cell over seeds, and figures in threes of seeds.

Reference agents stand in for the published models unless a model is given; then it alone is run.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from statistics import fmean

from eirkit.agents.model import Model, ModelOptions
from eirkit.agents.telemetry import Trace
from eirkit.errors import InfrastructureError
from eirkit.findings.behaviour import Behaviour, behave
from eirkit.findings.causes import RunScore, Verdict, judge, score
from eirkit.findings.pooling import mean
from eirkit.paper.studies.judging import THREE, By, compare, trait
from eirkit.paper.study import Setting, StudyRow
from eirkit.runs.budget import Budget
from eirkit.runs.cells import Access
from eirkit.runs.sessions import make_session
from eirkit.runs.trial import Bench, Result, Trial, Workbench
from eirkit.tasks.generation import generate_many, graph_of, prepare
from eirkit.tasks.task import TaskSpec

GPT, OPUS, HAIKU, MINI = "GPT-5.6", "Claude Opus 4.6", "Claude Haiku 4.5", "GPT-4.1 Mini"
STRONG = f"{GPT}, {OPUS}, {HAIKU}"
FOUR = f"{STRONG}, {MINI}"
MODEL_SEEDS = range(THREE)  # of a model that is given: as many as the paper has


@dataclass(frozen=True, slots=True)
class Who:
    """An agent: the name that tables show, the model, and what it is asked with."""

    name: str
    model: str
    options: ModelOptions
    purse: Budget | None = None  # from which it is paid; None: nothing is capped

    @property
    def bench(self) -> Bench:
        return Workbench(self.purse)

    def remembering_bench(self) -> Bench:
        """Return a bench that runs no trial twice: all at once, then again in groups."""
        return Workbench(self.purse, _Remembered())

    def make(self) -> Model:
        return (self.purse or Budget()).make(self.model, self.options)

    def called(self, name: str) -> Who:
        """Return the same agent under the name of a column."""
        return replace(self, name=name)

    @property
    def is_reference(self) -> bool:
        return self.model.startswith("reference/")


class _Remembered:
    """Trials in memory; those that the world broke are tried again."""

    def __init__(self) -> None:
        self._traces: dict[str, Trace] = {}

    def find(self, model: str, options: ModelOptions, trial: Trial) -> Trace | None:
        return self._traces.get(_name(model, trial))

    def keep(self, model: str, options: ModelOptions, trial: Trial, result: Result) -> None:
        if isinstance(result, Trace):
            self._traces[_name(model, trial)] = result


def _name(model: str, trial: Trial) -> str:
    return json.dumps([model, trial.what], sort_keys=True)


@dataclass(frozen=True, slots=True)
class Run:
    """One agent on one task under one access."""

    score: RunScore
    verdicts: tuple[Verdict, ...]
    behaviour: Behaviour


def reference(agent: str, p: float | None = None) -> Who:
    """Return a reference agent, with the probability of its trait where one is given."""
    return Who(agent, f"reference/{agent}", ModelOptions() if p is None else ModelOptions(extra={"p": p}))


def cast(setting: Setting, *agents: str) -> tuple[Who, ...]:
    """Return who is run: the model that was given, or these reference agents."""
    if setting.model is not None:
        return (Who(setting.model, setting.model, setting.options, setting.purse),)
    return tuple(reference(agent) for agent in agents)


def seeds_of(setting: Setting, own: int) -> Sequence[int]:
    """Return the seeds that were given, or as many as the study takes; a model gets as many as the paper has."""
    if setting.seeds is not None:
        return setting.seeds
    return range(own) if setting.model is None else MODEL_SEEDS


def commands(setting: Setting, *studies: str) -> tuple[str, ...]:
    """Return what would compute figures of a model; nothing where one was given."""
    return () if setting.model is not None else (f"eirkit reproduce {' '.join(studies)} --model PROVIDER/NAME",)


def run_cell(spec: TaskSpec, access: Access, who: Who, seeds: Sequence[int]) -> list[Run]:
    """Return the runs of one agent in the order of the seeds; one that the world broke is left out."""
    workload, runs = prepare(spec), []
    tasks = list(generate_many(spec, seeds))
    trials = [Trial({}, make_session(access, task, workload)) for task in tasks]
    for task, trace in zip(tasks, who.bench.run(who.model, who.options, trials), strict=True):
        if isinstance(trace, InfrastructureError):
            if who.is_reference:
                raise trace
            continue
        verdicts = judge(task, workload, trace.decisions, trace.actions)
        scored = score(verdicts, trace.decisions, max_turn=trace.ending == "action-limit")
        runs.append(Run(scored, verdicts, behave(graph_of(task), trace.actions, trace.decisions, verdicts)))
    if not runs:
        raise InfrastructureError(f"every run of {who.model} on {spec.workload} was lost; try again")
    return runs


def in_threes(runs: Iterable[Run], figure: Callable[[Run], float | None]) -> list[float]:
    """Return a figure for each repetition of the published experiment."""
    return repeated([figure(run) for run in runs])


def repeated(values: Sequence[float | None]) -> list[float]:
    """Return means over consecutive threes of seeds; threes without a figure are left out.

    Fewer than two threes do not spread: then all means of three draws from what there is stand for them.
    """
    if len(values) < 2 * THREE:
        present = [value for value in values if value is not None]
        return [fmean(drawn) for drawn in product(present, repeat=THREE)]
    means = [mean(values[start : start + THREE]) for start in range(0, len(values) - THREE + 1, THREE)]
    return [value for value in means if value is not None]


def groups(seeds: Sequence[int]) -> list[Sequence[int]]:
    """Return the seeds in threes, for figures that are pooled within a three; one by one where threes are too few."""
    size = THREE if len(seeds) >= 2 * THREE else 1
    return [seeds[start : start + size] for start in range(0, len(seeds) - size + 1, size)]


def of_groups(values: Sequence[float | None], seeds: Sequence[int]) -> list[float]:
    """Return a figure for each repetition from one for each group."""
    if len(seeds) < 2 * THREE:
        return repeated(values)
    return [value for value in values if value is not None]


def pooled(cells: Iterable[Sequence[Run]], figure: Callable[[Run], float | None]) -> list[float]:
    """Return means over repetitions and over cells that share them."""
    return [fmean(levels) for levels in zip(*(in_threes(runs, figure) for runs in cells), strict=False)]


def accuracy(run: Run) -> float:
    return run.score.accuracy


def row_of(
    who: Who, label: str, published: float, repetitions: Sequence[float], by: str, why: str, *, is_trait: bool = False
) -> StudyRow:
    """Return a judged row, or, for a trait of models that a reference agent does not claim to have, one that is not."""
    names: By = (by, who.name)
    if is_trait and who.is_reference:
        return trait(label, published, repetitions, names, why)
    return compare(label, published, repetitions, names, why if who.is_reference else OTHER_MODEL)


OTHER_MODEL = "another model than the published ones"
