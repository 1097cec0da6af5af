"""Recovery probes: how many reads a model needs to rebuild one lost answer, compared with the minimum.

A probe is a cell with a probe session; its measures are computed from the recorded actions. The minimum is the recovery
cone cut at the resident records, which includes the target and excludes residents.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from eirkit.errors import SpecError
from eirkit.lacuna.agents.probe_session import find_lost_answer
from eirkit.lacuna.agents.session import ActionTaken, LostAnswer
from eirkit.lacuna.agents.telemetry import Trace
from eirkit.lacuna.findings.statistics import mean
from eirkit.lacuna.models.model import ModelOptions
from eirkit.lacuna.runs.cells import Access, Cell, CellPlan, RecoveryProbe
from eirkit.lacuna.runs.runner import Results, Runner, counted_losses, runner_or_temporary
from eirkit.lacuna.runs.values import read_seeds, show_seeds
from eirkit.lacuna.tasks.cones import cone_of
from eirkit.lacuna.tasks.generation import generate_many, graph_of
from eirkit.lacuna.tasks.task import TaskInstance, TaskSpec, without_seed

FAN_INS = (2, 4)  # a chain (fan-in 1) has no shared ancestors that could be read twice


@dataclass(frozen=True, slots=True)
class ProbeScore:
    """One probe."""

    seed: int
    fan_in: int
    target: int
    resident: tuple[int, ...]
    minimum: int  # reads that the cone requires
    order: tuple[int, ...]  # what was read, in order
    redundant: int  # repeated reads of a step
    off_cone: int  # first reads of steps that the target does not need, residents included
    success: bool  # the target became known
    early_stop: bool  # DONE came before the target was known

    @property
    def overhead(self) -> float:
        """Reads / minimum; 1 is optimal."""
        return len(self.order) / self.minimum


def score_probe(task: TaskInstance, lost: LostAnswer, trace: Trace) -> ProbeScore:
    """Return the score of a finished probe from its actions and the graph."""
    order = tuple(int(a.action.removeprefix("READ ")) for a in trace.actions if _is_read(a))
    graph, read, resident = graph_of(task), set(order), set(lost.resident)
    cone = set(cone_of(graph, lost.target, resident).nodes)
    success = cone <= read
    return ProbeScore(
        seed=task.spec.seed,
        fan_in=task.spec.fan_in,
        target=lost.target,
        resident=lost.resident,
        minimum=len(cone),
        order=order,
        redundant=len(order) - len(read),
        off_cone=len(read - cone),
        success=success,
        early_stop=not success and trace.ending == "done",
    )


def _is_read(action: ActionTaken) -> bool:
    return action.outcome == "done" and action.action.startswith("READ ")


@dataclass(frozen=True, slots=True)
class ProbeRow:
    """All probes of one model on one workload, fan-ins pooled."""

    workload: str
    model: str
    probes: int  # scored
    attempted: int
    successful: int
    early_stops: int
    at_limit: int  # ended by the limit of actions, the target unknown
    read_overhead: float | None  # mean over successes of reads / minimum
    redundant: int
    off_cone: int
    minimum: float | None  # mean
    failures: dict[str, int]  # reasons of failed probes and their numbers

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class ProbePlan:
    """Which lost answers are probed."""

    policy: str = "lru"  # not fifo, whose residents are newer than lost answers and never cut their cones
    h: int = 8
    fan_ins: tuple[int, ...] = FAN_INS
    from_step: int | None = None  # default: half of the task

    def lost_answers(self, spec: TaskSpec, seeds: Sequence[int]) -> list[tuple[TaskInstance, LostAnswer]]:
        """Return a lost answer for every fan-in and seed that has one.

        Raises:
            SpecError: there is none.
        """
        tasks = (task for fan_in in self.fan_ins for task in generate_many(replace(spec, fan_in=fan_in), seeds))
        found = ((task, find_lost_answer(task, self.policy, self.h, self._first(spec))) for task in tasks)
        if lost_answers := [(task, lost) for task, lost in found if lost is not None]:
            return lost_answers
        where = f"{spec.workload} loses no answer this late under {self.policy} with h = {self.h}"
        raise SpecError(f"{where}; lower --h or --from-step")

    def cell(self, spec: TaskSpec, model: str, options: ModelOptions) -> Cell:
        """Return the cell of one fan-in."""
        access, probe = Access(policy=self.policy, h=self.h), RecoveryProbe(self._first(spec))
        return Cell(spec.with_seed(0), model, access, options, probe)

    def _first(self, spec: TaskSpec) -> int:
        return spec.n // 2 if self.from_step is None else self.from_step


Probed = tuple[tuple[ProbeRow, ...], tuple[tuple[str, str, ProbeScore], ...]]


@dataclass(frozen=True, slots=True)
class ProbeExperiment:
    """Probes of some models on some workloads."""

    specs: Sequence[TaskSpec]
    seeds: Sequence[int]
    models: Sequence[str]
    options: ModelOptions
    probes: ProbePlan = ProbePlan()

    @classmethod
    def read(cls, settings: Mapping[str, Any]) -> ProbeExperiment:
        """Return the probes that the settings of a plan describe."""
        given = settings["plan"]
        probes = ProbePlan(**{**given, "fan_ins": tuple(given["fan_ins"])})
        specs = [TaskSpec(**task) for task in settings["tasks"]]
        options = ModelOptions(**settings["options"])
        return cls(specs, read_seeds(settings["seeds"]), settings["models"], options, probes)

    def plan(self) -> CellPlan:
        """Return every probe of every model."""
        lost: dict[TaskSpec, list[int]] = {}
        for spec in self.specs:
            for task, _ in self.probes.lost_answers(spec, self.seeds):
                lost.setdefault(task.spec.with_seed(0), []).append(task.spec.seed)
        planned = [
            (self.probes.cell(spec, model, self.options), own) for model in self.models for spec, own in lost.items()
        ]
        settings = {
            "tasks": [without_seed(spec) for spec in self.specs],
            "plan": asdict(self.probes),
            "seeds": show_seeds(self.seeds),
            "models": list(self.models),
            "options": self.options.asked(),
        }
        return CellPlan("probe", tuple(planned), settings)

    def measure(self, results: Results) -> Probed:
        """Return a row for each workload and model, and every probe with its workload and model."""
        rows, probes = [], []
        lost_answers = [(spec.workload, self.probes.lost_answers(spec, self.seeds)) for spec in self.specs]
        for model in self.models:
            for name, probed in lost_answers:
                cells = [(self.probes.cell(task.spec, model, self.options), task, lost) for task, lost in probed]
                traces = [(task, lost, results.trace(cell, task.spec.seed)) for cell, task, lost in cells]
                scores = [score_probe(task, lost, trace) for task, lost, trace in traces if trace is not None]
                lost = results.losses((cell, [task.spec.seed]) for cell, task, _ in cells)
                rows.append(_row(name, model, scores, counted_losses(lost.values())))
                probes += [(name, model, score) for score in scores]
        return tuple(rows), tuple(probes)

    def document(self, rows: Sequence[ProbeRow], probes: Sequence[tuple[str, str, ProbeScore]]) -> dict[str, Any]:
        """Return the result as one document."""
        return {
            "rows": [row.as_json() for row in rows],
            "plan": asdict(self.probes),
            "probes": [
                {"workload": workload, "model": model, **asdict(found), "reads": len(found.order)}
                for workload, model, found in probes
            ],
        }

    def answer(self, results: Results) -> dict[str, Any]:
        """Return the result of the runs so far."""
        return self.document(*self.measure(results))


def run_probes(question: ProbeExperiment, runner: Runner | None = None) -> Probed:
    """Run all probes and measure them; without a runner, runs are not kept."""
    with runner_or_temporary(runner) as chosen:
        return question.measure(chosen.complete(question.plan()))


def _row(workload: str, model: str, scores: Sequence[ProbeScore], lost: dict[str, int]) -> ProbeRow:
    stops = sum(score.early_stop for score in scores)
    successes = sum(score.success for score in scores)
    return ProbeRow(
        workload=workload,
        model=model,
        probes=len(scores),
        attempted=len(scores) + sum(lost.values()),
        successful=successes,
        early_stops=stops,
        at_limit=len(scores) - successes - stops,
        read_overhead=mean(score.overhead for score in scores if score.success),
        redundant=sum(score.redundant for score in scores),
        off_cone=sum(score.off_cone for score in scores),
        minimum=mean(float(score.minimum) for score in scores),
        failures=lost,
    )
