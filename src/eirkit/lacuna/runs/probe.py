"""Recovery probes: how many reads a model needs to rebuild one lost answer, compared with the minimum.

A probe is a cell with a probe session; its measures are computed from the recorded actions. The minimum is the recovery
cone cut at the resident records, which includes the target and excludes residents.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec
from msgspec import structs

from eirkit.errors import SpecError
from eirkit.lacuna.agents.probe_session import find_lost_answer
from eirkit.lacuna.agents.telemetry import Trace
from eirkit.lacuna.findings.statistics import mean
from eirkit.lacuna.models.factory import common_protocol
from eirkit.lacuna.models.model import ModelOptions
from eirkit.lacuna.runs.cells import Cell, CellPlan
from eirkit.lacuna.runs.runner import Results, Runner, runner_or_temporary
from eirkit.lacuna.tasks.cones import cone_of
from eirkit.lacuna.tasks.generation import generate_many, graph_of
from eirkit.lacuna.tasks.task import TaskInstance, TaskSpec
from eirkit.records.evidence import Probe, ProbeResult, ProbeRow, ProbeScore, ProbeSettings, ProbeSetup
from eirkit.records.runs import LostAnswer
from eirkit.records.settings import Access, RecoveryProbe
from eirkit.seeds import read_seeds, show_seeds


def score_probe(task: TaskInstance, lost: LostAnswer, trace: Trace) -> ProbeScore:
    """Return the score of a finished probe from its actions and the graph."""
    done = (action.action for action in trace.actions if action.outcome == "done")
    order = tuple(int(text.removeprefix("READ ")) for text in done if text.startswith("READ "))
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


def lost_answers(plan: ProbeSetup, spec: TaskSpec, seeds: Sequence[int]) -> list[tuple[TaskInstance, LostAnswer]]:
    """Return a lost answer for every fan-in and seed that has one.

    Raises:
        SpecError: there is none.
    """
    tasks = (task for fan_in in plan.fan_ins for task in generate_many(replace(spec, fan_in=fan_in), seeds))
    found = ((task, find_lost_answer(task, plan.policy, plan.h, _first(plan, spec))) for task in tasks)
    if lost_answers := [(task, lost) for task, lost in found if lost is not None]:
        return lost_answers
    where = f"{spec.workload} loses no answer this late under {plan.policy} with h = {plan.h}"
    raise SpecError(f"{where}; lower --h or --from-step")


def probe_cell(plan: ProbeSetup, spec: TaskSpec, model: str, options: ModelOptions) -> Cell:
    """Return the cell of one fan-in."""
    access, probe = Access(policy=plan.policy, h=plan.h), RecoveryProbe(_first(plan, spec))
    return Cell(spec.with_seed(0), model, access, options, probe)


def _first(plan: ProbeSetup, spec: TaskSpec) -> int:
    return spec.n // 2 if plan.from_step is None else plan.from_step


USUAL_PROBES = ProbeSetup()
Probed = tuple[tuple[ProbeRow, ...], tuple[Probe, ...]]


@dataclass(frozen=True, slots=True)
class ProbeExperiment:
    """Probes of some models on some workloads."""

    specs: Sequence[TaskSpec]
    seeds: Sequence[int]
    models: Sequence[str]
    options: ModelOptions
    probes: ProbeSetup = USUAL_PROBES

    @classmethod
    def of(cls, settings: ProbeSettings) -> ProbeExperiment:
        """Return the probes that the settings of a plan describe."""
        specs = [TaskSpec.of(task) for task in settings.tasks]
        options = ModelOptions.of(settings.options)
        return cls(specs, read_seeds(settings.seeds), settings.models, options, settings.plan)

    def plan(self) -> CellPlan:
        """Return every probe of every model."""
        lost: dict[TaskSpec, list[int]] = {}
        for spec in self.specs:
            for task, _ in lost_answers(self.probes, spec, self.seeds):
                lost.setdefault(task.spec.with_seed(0), []).append(task.spec.seed)
        planned = [
            (probe_cell(self.probes, spec, model, self.options), own)
            for model in self.models
            for spec, own in lost.items()
        ]
        settings = ProbeSettings(
            tasks=tuple(spec.parameters() for spec in self.specs),
            plan=self.probes,
            seeds=show_seeds(self.seeds),
            models=tuple(self.models),
            options=self.options.asked(common_protocol(self.models, self.options)),
        )
        return CellPlan("probe", tuple(planned), msgspec.to_builtins(settings))

    def measure(self, results: Results) -> Probed:
        """Return a row for each workload and model, and every probe."""
        rows, probes = [], []
        by_workload = [(spec.workload, lost_answers(self.probes, spec, self.seeds)) for spec in self.specs]
        for model in self.models:
            for name, probed in by_workload:
                cells = [(probe_cell(self.probes, task.spec, model, self.options), task, lost) for task, lost in probed]
                traces = [(task, lost, results.trace(cell, task.spec.seed)) for cell, task, lost in cells]
                scores = [score_probe(task, lost, trace) for task, lost, trace in traces if trace is not None]
                lost = results.losses((cell, [task.spec.seed]) for cell, task, _ in cells)
                rows.append(_row(name, model, scores, dict(Counter(lost.values()))))
                for score in scores:
                    found = structs.asdict(score)
                    probes.append(Probe(workload=name, model=model, reads=len(score.order), **found))
        return tuple(rows), tuple(probes)

    def result(self, rows: Sequence[ProbeRow], probes: Sequence[Probe]) -> ProbeResult:
        """Return the result as one document."""
        return ProbeResult(rows=tuple(rows), plan=self.probes, probes=tuple(probes))

    def answer(self, results: Results) -> ProbeResult:
        """Return the result of the runs so far."""
        return self.result(*self.measure(results))


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
