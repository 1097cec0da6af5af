"""What the studies with agents share: who is run, runs of one cell over seeds, and figures in threes of seeds.

Reference agents stand in for the published models unless a model is given; then it alone is run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from statistics import fmean

from eirkit.agents.model import ModelOptions
from eirkit.errors import InfrastructureError
from eirkit.findings.behaviour import Behaviour, behave
from eirkit.findings.causes import RunScore, Verdict, judge
from eirkit.findings.pooling import mean
from eirkit.paper.studies.judging import THREE, By, compare, trait
from eirkit.paper.study import Setting, StudyRow
from eirkit.runs.cells import Access, Cell
from eirkit.runs.plan import CellPlan, Planned
from eirkit.runs.results import Results
from eirkit.runs.runner import Runner, running
from eirkit.tasks.generation import generate_many, graph_of, prepare
from eirkit.tasks.task import TaskInstance, TaskSpec

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
    runner: Runner | None = None  # where its runs are kept and paid for; None: nowhere

    def cell(self, spec: TaskSpec, access: Access) -> Cell:
        return Cell(spec.with_seed(0), self.model, access, self.options)

    def called(self, name: str) -> Who:
        """Return the same agent under the name of a column."""
        return replace(self, name=name)

    @property
    def is_reference(self) -> bool:
        return self.model.startswith("reference/")


@dataclass(frozen=True, slots=True)
class Run:
    """One agent on one task under one access."""

    score: RunScore
    verdicts: tuple[Verdict, ...]
    behaviour: Behaviour


def reference(agent: str, p: float | None = None, runner: Runner | None = None) -> Who:
    """Return a reference agent, with the probability of its trait where one is given."""
    return Who(agent, f"reference/{agent}", ModelOptions() if p is None else ModelOptions(extra={"p": p}), runner)


def cast(setting: Setting, *agents: str) -> tuple[Who, ...]:
    """Return who is run: the model that was given, or these reference agents."""
    if setting.model is not None:
        return (Who(setting.model, setting.model, setting.options, setting.runner),)
    return tuple(reference(agent, runner=setting.runner) for agent in agents)


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
    cell, tasks = who.cell(spec, access), list(generate_many(spec, seeds))
    with running(who.runner) as runner:
        results = runner.complete(study_plan((cell, seeds)))
        found = [_read_run(task, cell, results) for task in tasks]
        lost = list(results.losses([(cell, seeds)]).values())
    if lost and who.is_reference:
        raise InfrastructureError(lost[0])
    if len(lost) == len(seeds):
        raise InfrastructureError(f"every run of {who.model} on {spec.workload} was lost; try again")
    return [run for run in found if run is not None]


def study_plan(*planned: Planned) -> CellPlan:
    """Return cells of a study as a plan; what reference agents are told and say can be had again for nothing."""
    return CellPlan("study", planned, texts=not all(cell.model.startswith("reference/") for cell, _ in planned))


def _read_run(task: TaskInstance, cell: Cell, results: Results) -> Run | None:
    trace, score = results.trace(cell, task.spec.seed), results.score(cell, task.spec.seed)
    if trace is None or score is None:
        return None
    verdicts = judge(task, prepare(task.spec), trace.decisions, trace.actions)
    return Run(score, verdicts, behave(graph_of(task), trace.actions, trace.decisions, verdicts))


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
