"""Runs the agents of a study over seeds, and averages their figures over three seeds at a time as the paper does.

Reference agents replace the published models unless a model is given, which then runs alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from statistics import fmean

from eirkit.errors import InfrastructureError
from eirkit.lacuna.findings.behavior import Behavior, measure_behavior
from eirkit.lacuna.findings.causes import Verdict, judge
from eirkit.lacuna.findings.statistics import mean
from eirkit.lacuna.models.model import ModelOptions
from eirkit.lacuna.runs.cells import Cell, CellPlan, Planned
from eirkit.lacuna.runs.runner import Results, Runner, runner_or_temporary
from eirkit.lacuna.tasks.generation import generate_many, graph_of, prepare
from eirkit.lacuna.tasks.task import TaskInstance, TaskSpec
from eirkit.records.runs import RunScore
from eirkit.records.settings import Access
from eirkit_paper.studies.comparison import THREE, stand_in
from eirkit_paper.study import Setting, StudyRow

GPT, OPUS, HAIKU, MINI = "GPT-5.6", "Claude Opus 4.6", "Claude Haiku 4.5", "GPT-4.1 Mini"
CODES = {GPT: "Gpt56Reasoning", OPUS: "ClaudeOpus46", HAIKU: "ClaudeHaiku45", MINI: "Gpt41Mini"}  # in its tables
STRONG = f"{GPT}, {OPUS}, {HAIKU}"
FOUR = f"{STRONG}, {MINI}"
MODEL_SEEDS = range(THREE)  # for a model that is given: as many as in the paper


@dataclass(frozen=True, slots=True)
class StudyAgent:
    """An agent of a study: the name shown in tables, the model and its options."""

    name: str
    model: str
    options: ModelOptions
    runner: Runner | None = None  # stores its runs and counts their cost; None: a temporary one

    def cell(self, spec: TaskSpec, access: Access) -> Cell:
        return Cell(spec.with_seed(0), self.model, access, self.options)

    def renamed(self, name: str) -> StudyAgent:
        """Return the same agent under another name."""
        return replace(self, name=name)

    @property
    def is_reference(self) -> bool:
        return self.model.startswith("reference/")


@dataclass(frozen=True, slots=True)
class Run:
    """One agent on one task under one access."""

    score: RunScore
    verdicts: tuple[Verdict, ...]
    behavior: Behavior


def reference(name: str, p: float | None = None, runner: Runner | None = None) -> StudyAgent:
    """Return a reference agent, optionally with the probability of its trait."""
    options = ModelOptions() if p is None else ModelOptions(extra={"p": float(p)})
    return StudyAgent(name, f"reference/{name}", options, runner)


def agents_for(setting: Setting, *names: str) -> tuple[StudyAgent, ...]:
    """Return the agents to run: the model of the setting, or these reference agents."""
    if setting.model is not None:
        return (StudyAgent(setting.model, setting.model, setting.options, setting.runner),)
    return tuple(reference(name, runner=setting.runner) for name in names)


def seeds_of(setting: Setting, own: int) -> Sequence[int]:
    """Return the seeds of the setting, or a default: `own` for reference agents, the paper's number for a model."""
    if setting.seeds is not None:
        return setting.seeds
    return range(own) if setting.model is None else MODEL_SEEDS


def commands(setting: Setting, *studies: str) -> tuple[str, ...]:
    """Return the commands that compute the figures with a model; none if one was given."""
    return () if setting.model is not None else (f"eirkit reproduce {' '.join(studies)} --model PROVIDER/NAME",)


def run_cell(spec: TaskSpec, access: Access, agent: StudyAgent, seeds: Sequence[int]) -> list[Run]:
    """Return the runs of one agent in the order of the seeds, without those lost to infrastructure failures."""
    cell, tasks = agent.cell(spec, access), list(generate_many(spec, seeds))
    with runner_or_temporary(agent.runner) as runner:
        results = runner.complete(study_plan((cell, seeds)))
        found = [_read_run(task, cell, results) for task in tasks]
        lost = list(results.losses([(cell, seeds)]).values())
    if lost and agent.is_reference:
        raise InfrastructureError(lost[0])
    if len(lost) == len(seeds):
        raise InfrastructureError(f"every run of {agent.model} on {spec.workload} was lost; run the command again")
    return [run for run in found if run is not None]


def study_plan(*planned: Planned) -> CellPlan:
    """Return the plan of a study's cells; texts of reference agents are not stored, since they cost nothing."""
    return CellPlan("study", planned, texts=not all(cell.model.startswith("reference/") for cell, _ in planned))


def _read_run(task: TaskInstance, cell: Cell, results: Results) -> Run | None:
    trace, score = results.trace(cell, task.spec.seed), results.score(cell, task.spec.seed)
    if trace is None or score is None:
        return None
    verdicts = judge(task, prepare(task.spec), trace.decisions, trace.actions)
    return Run(score, verdicts, measure_behavior(graph_of(task), trace.actions, trace.decisions, verdicts))


def in_threes(runs: Iterable[Run], figure: Callable[[Run], float | None]) -> list[float]:
    """Return a figure for each repetition of the published experiment."""
    return repeated([figure(run) for run in runs])


def repeated(values: Sequence[float | None]) -> list[float]:
    """Return means over consecutive groups of three seeds, without groups that have no figure.

    Fewer than two groups have no spread; then the means of all draws of three from the values take their place.
    """
    if len(values) < 2 * THREE:
        present = [value for value in values if value is not None]
        return [fmean(drawn) for drawn in product(present, repeat=THREE)]
    means = [mean(values[start : start + THREE]) for start in range(0, len(values) - THREE + 1, THREE)]
    return [value for value in means if value is not None]


def groups(seeds: Sequence[int]) -> list[Sequence[int]]:
    """Return the seeds in groups of three, for figures pooled within a group; single seeds if groups are too few."""
    size = THREE if len(seeds) >= 2 * THREE else 1
    return [seeds[start : start + size] for start in range(0, len(seeds) - size + 1, size)]


def of_groups(values: Sequence[float | None], seeds: Sequence[int]) -> list[float]:
    """Return one figure per repetition from one figure per group."""
    if len(seeds) < 2 * THREE:
        return repeated(values)
    return [value for value in values if value is not None]


def pooled(cells: Iterable[Sequence[Run]], figure: Callable[[Run], float | None]) -> list[float]:
    """Return one mean over cells for each repetition."""
    return [fmean(levels) for levels in zip(*(in_threes(runs, figure) for runs in cells), strict=False)]


def accuracy(run: Run) -> float:
    return run.score.accuracy


def row_of(
    agent: StudyAgent,
    label: str,
    published: float,
    repetitions: Sequence[float],
    by: str,
    reason: str = "",
    also: str = "",
) -> StudyRow:
    """Return the figure of an agent beside that of the published models, for which it stands in.

    Args:
        reason: computed reason of a difference; without one it is unknown.
        also: what else is not the same, with its numbers.
    """
    why = STANDS_IN if agent.is_reference else OTHER_MODEL
    return stand_in(label, published, repetitions, (by, agent.name), f"{why}; {also}" if also else why, reason)


STANDS_IN = "a reference agent stands in for the published models, run yours with --model"
OTHER_MODEL = "another model than the published ones"
