"""The capability control: its two gates and its windows, and which models pass when nothing is missing.

The control runs cells at full information, with and without a calculator. The gate that decides is about single steps:
how often an answer is right whose inputs were all at hand and right. Errors that carry over do not count, so one slip
that spoils the rest of a run does not exclude a model. Beside it is the paper's gate on accuracy end to end. A gate
passes or fails where the whole 95% interval does. Only models that pass support claims about lost information; only
those that fail are excluded; figures of the others are shown and claim nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import msgspec
from msgspec import structs

from eirkit.errors import EirkitError
from eirkit.lacuna.findings.command_line import evidence_command
from eirkit.lacuna.findings.statistics import deviation, end_to_end_accuracy, informed_accuracy, mean
from eirkit.lacuna.findings.validity import what_decides
from eirkit.lacuna.models.factory import common_protocol, make_model
from eirkit.lacuna.models.model import Batching, ModelOptions
from eirkit.lacuna.runs.budget import is_scripted
from eirkit.lacuna.runs.cells import Cell, CellPlan, Planned
from eirkit.lacuna.runs.family import family_of
from eirkit.lacuna.runs.runner import Results, Runner, runner_or_temporary
from eirkit.lacuna.tasks.generation import generate_many
from eirkit.lacuna.tasks.task import AnySpec, GeneratedTask, spec_of
from eirkit.records.evidence import CapabilityCell, CapabilityResult, CapabilitySettings, Interval, Passing
from eirkit.records.runs import CAUSES, RunScore
from eirkit.records.settings import CalculatorAid
from eirkit.records.sweeps import Excluded, Gate, GateVerdict
from eirkit.seeds import read_seeds, show_seeds

THRESHOLD = 0.9  # of steps whose inputs were all at hand and right
PAPER_THRESHOLD = 0.75  # of the mean accuracy over windows and seeds, "Full-information capability control"
WINDOWS = (4, 8, 16)
SEEDS = (0, 1, 2)
MOST_TIMES = 100  # as many seeds as before, to decide where the interval contains the threshold
MARGIN = 3  # times the fewest that would decide if the share stayed the same, as it rarely does


CAPABILITY = "capability"  # the command


@dataclass(frozen=True, slots=True)
class Control:
    """The parameters of the control."""

    seeds: Sequence[int] = SEEDS
    windows: Sequence[int] = WINDOWS
    threshold: float = THRESHOLD
    calculator: bool = True

    def specs(self, spec: AnySpec) -> Sequence[AnySpec]:
        """Return the tasks' specifications."""
        return family_of(spec).control_specs(self.windows)

    def is_aided(self, spec: AnySpec) -> bool:
        """True if the tasks are also run with a calculator."""
        return self.calculator and family_of(spec).calculates

    def tasks(self, spec: AnySpec) -> list[GeneratedTask]:
        """Return the tasks; raises what the workload raises if it has no such tasks."""
        return [task for sized in self.specs(spec) for task in generate_many(sized, self.seeds)]

    def impossible(self, spec: AnySpec) -> str | None:
        """Return why a workload has no such tasks; None if it has them."""
        try:
            self.tasks(spec)
        except Exception as error:  # noqa: BLE001 - a user's workload may raise anything for another window
            words = str(error) if isinstance(error, EirkitError) else f"{type(error).__name__}: {error}"
            return words.partition("\n")[0]
        return None

    def cells(self, spec: AnySpec, model: str, options: ModelOptions, *, aided: bool) -> list[Planned]:
        """Return the runs of one model on one workload, without or with a calculator."""
        aid = CalculatorAid() if aided else None
        found = []
        for sized in self.specs(spec):
            access = family_of(sized).full_access()
            found.append((Cell(sized.with_seed(0), model, access, options, aid), self.seeds))
        return found

    def plan(self, models: Iterable[str], specs: Sequence[AnySpec], options: ModelOptions) -> Iterator[Planned]:
        """Yield all runs of all models; workloads without such tasks are skipped."""
        possible = [spec for spec in specs if self.impossible(spec) is None]
        for model in models:
            for spec in possible:
                for aided in (False, True) if self.is_aided(spec) else (False,):
                    yield from self.cells(spec, model, options, aided=aided)


@dataclass(frozen=True, slots=True)
class CapabilityExperiment:
    """The control of some models on some workloads."""

    specs: Sequence[AnySpec]
    models: Sequence[str]
    options: ModelOptions
    control: Control = Control()

    @classmethod
    def of(cls, settings: CapabilitySettings) -> CapabilityExperiment:
        """Return the control that the settings of a plan describe."""
        seeds = read_seeds(settings.seeds)
        control = Control(seeds, settings.windows, settings.threshold, settings.calculator)
        specs = [spec_of(task) for task in settings.tasks]
        return cls(specs, settings.models, ModelOptions.of(settings.options), control)

    def plan(self) -> CellPlan:
        planned = tuple(self.control.plan(self.models, self.specs, self.options))
        settings = _settings(self.specs, self.models, self.options, self.control)
        return CellPlan(CAPABILITY, planned, msgspec.to_builtins(settings))

    def measure(self, results: Results) -> tuple[CapabilityCell, ...]:
        return measure_capability(self.models, self.specs, self.control, self.options, results)

    def result(self, cells: Sequence[CapabilityCell]) -> CapabilityResult:
        """Return the result as one document."""
        return CapabilityResult(
            rows=tuple(cells),
            threshold=self.control.threshold,
            eligible=tuple(Passing(cell.model, cell.workload) for cell in cells if cell.passes),
            excluded=judged_as("fails", cells),
            undecided=judged_as("undecided", cells),
        )

    def answer(self, results: Results) -> CapabilityResult:
        """Return the result of the runs so far."""
        return self.result(self.measure(results))


def judged_as(verdict: GateVerdict, cells: Iterable[CapabilityCell]) -> tuple[Excluded, ...]:
    """Return the models and workloads with a verdict, and why they have it."""
    return tuple(Excluded(cell.model, cell.workload, cell.reason) for cell in cells if cell.verdict == verdict)


def _settings(
    specs: Sequence[AnySpec], models: Sequence[str], options: ModelOptions, control: Control
) -> CapabilitySettings:
    return CapabilitySettings(
        tasks=tuple(spec.parameters() for spec in specs),
        windows=tuple(control.windows),
        threshold=control.threshold,
        calculator=control.calculator,
        seeds=show_seeds(control.seeds),
        models=tuple(models),
        options=options.asked(common_protocol(models, options)),
    )


def assess(
    models: Sequence[str],
    specs: Sequence[AnySpec],
    control: Control,
    options: ModelOptions,
    runner: Runner | None = None,
) -> tuple[CapabilityCell, ...]:
    """Run the control of every model and specification; without a runner, runs are not kept."""
    question = CapabilityExperiment(specs, models, options, control)
    with runner_or_temporary(runner) as chosen:
        return question.measure(chosen.complete(question.plan()))


def measure_capability(
    models: Iterable[str], specs: Sequence[AnySpec], control: Control, options: ModelOptions, results: Results
) -> tuple[CapabilityCell, ...]:
    """Return a cell for every model and specification from the recorded runs.

    A workload without full-information tasks has a cell that says so.
    """
    whys = [control.impossible(spec) for spec in specs]
    return tuple(
        _measured(model, spec, control, options, results) if why is None else _impossible(model, spec.workload, why)
        for model in models
        for spec, why in zip(specs, whys, strict=True)
    )


def _measured(model: str, spec: AnySpec, control: Control, options: ModelOptions, results: Results) -> CapabilityCell:
    plain = control.cells(spec, model, options, aided=False)
    tool = control.cells(spec, model, options, aided=True) if control.is_aided(spec) else []
    scores = _scores(plain, results)
    runs = [run for _, run in scores]
    windows = dict.fromkeys(cell.access.h for cell, _ in plain if cell.access.h is not None)
    accuracies = [run.accuracy for run in runs]
    aided = [run for _, run in _scores(tool, results)]

    def judged(measure: str, pooled: Callable[[Sequence[RunScore]], Interval], threshold: float) -> Gate:
        """Return a gate with the command that decides it, which has more seeds, whatever window the sweep has."""
        gate = _gate(measure, pooled(runs), threshold)
        if gate.verdict != "undecided" or gate.estimate is None:
            return gate
        times = _times_to_decide(lambda times: pooled(times * runs), threshold)
        more = replace(control, seeds=range((times or MOST_TIMES) * len(control.seeds)))
        command = evidence_command(_settings(control.specs(spec)[-1:], [model], options, more))
        return structs.replace(gate, command=command, is_enough=times is not None)

    ours = judged("informed_accuracy", informed_accuracy, control.threshold)
    papers = judged("accuracy", end_to_end_accuracy, PAPER_THRESHOLD)
    return CapabilityCell(
        model=model,
        workload=spec.workload,
        accuracy=mean(accuracies),
        accuracy_sd=deviation(accuracies),
        by_window={h: mean(run.accuracy for held, run in scores if held == h) for h in windows},
        scored=len(scores),
        attempted=sum(len(seeds) for _, seeds in plain),
        steps=sum(run.steps for run in runs),
        errors={cause: sum(run.errors[cause] for run in runs) for cause in CAUSES},
        calculator_accuracy=mean(run.accuracy for run in aided),
        gates=(ours, papers),
        verdict=ours.verdict,
        passes=ours.verdict == "passes",
        reason=_reason(ours, informed_accuracy(aided) if aided else None) if scores else NOT_SCORED,
        failures=dict(Counter(results.losses([*plain, *tool]).values())),
    )


def _scores(planned: Iterable[Planned], results: Results) -> list[tuple[int | None, RunScore]]:
    """Return the scores of runs that have ended, each with its window, where tasks have one."""
    found = ((cell.access.h, results.score(cell, seed)) for cell, seeds in planned for seed in seeds)
    return [(h, score) for h, score in found if score is not None]


def _impossible(model: str, workload: str, why: str) -> CapabilityCell:
    return CapabilityCell(
        model=model,
        workload=workload,
        accuracy=None,
        accuracy_sd=None,
        by_window={},
        scored=0,
        attempted=0,
        steps=0,
        errors=dict.fromkeys(CAUSES, 0),
        calculator_accuracy=None,
        gates=(
            _gate("informed_accuracy", informed_accuracy(()), THRESHOLD),
            _gate("accuracy", end_to_end_accuracy(()), PAPER_THRESHOLD),
        ),
        verdict="undecided",
        passes=False,
        reason=f"undecided: the control cannot be run here: {why}",
        failures={},
    )


def _gate(measure: str, interval: Interval, threshold: float) -> Gate:
    return Gate(
        measure=measure,
        threshold=threshold,
        estimate=interval.estimate if interval.clusters else None,
        low=interval.low,
        high=interval.high,
        counted=interval.clusters,
        verdict=_verdict(interval, threshold),
    )


def _verdict(interval: Interval, threshold: float) -> GateVerdict:
    if interval.low >= threshold:
        return "passes"
    return "fails" if interval.high < threshold else "undecided"


def _times_to_decide(repeated: Callable[[int], Interval], threshold: float) -> int | None:
    """Return how many times as many seeds should decide a gate; None if that is more than a hundred.

    Args:
        repeated: the interval if the same had been seen that many times.
    """
    tried = range(2, MOST_TIMES // MARGIN)
    return next((MARGIN * times for times in tried if _verdict(repeated(times), threshold) != "undecided"), None)


def _reason(gate: Gate, with_tool: Interval | None) -> str:
    if gate.estimate is None:
        return "undecided: no step was scored whose inputs were all at hand and right"
    figures = f"{gate.estimate:.3f} of {gate.counted:,} steps right from right inputs"
    ends = f"95% interval {gate.low:.3f} to {gate.high:.3f}"
    if gate.verdict == "passes":
        return f"may carry claims about lost information: {figures} ({ends})"
    cause = ""
    if with_tool is not None and gate.estimate < gate.threshold:
        doing = "it is the computation" if with_tool.estimate >= gate.threshold else "a calculator does not help"
        cause = f"; with a calculator {with_tool.estimate:.3f}, so {doing}"
    if gate.verdict == "undecided":
        return f"undecided: {figures} ({ends}) may reach {gate.threshold} or not{cause}; {what_decides(gate)}"
    return f"excluded: only {figures} ({ends}), below {gate.threshold}{cause}"


NOT_SCORED = "undecided: no run of the control was scored"
GATE = Control(calculator=False)
NO_CONTROL = "no capability control was run"


def assess_gate(model: str, spec: AnySpec, options: ModelOptions, runner: Runner | None = None) -> CapabilityCell:
    """Run the control of one model and workload without the calculator; `passes` says whether claims are supported."""
    (cell,) = assess([model], [spec], GATE, options, runner)
    return cell


def measure_gates(
    models: Iterable[str], spec: AnySpec, options: ModelOptions, results: Results
) -> dict[str, CapabilityCell]:
    """Return the controls of some models from what was recorded."""
    return {cell.model: cell for cell in measure_capability(models, [spec], GATE, options, results)}


def models_to_control(models: Sequence[str], options: ModelOptions, control: bool | None) -> list[str]:
    """Return the models for which the control is run."""
    return [model for model in models if wants_control(model, options, control)]


def wants_control(model: str, options: ModelOptions, control: bool | None) -> bool:
    """True if the control is run: as `control` says, or, if it is None, for models that are free."""
    if control is not None:
        return control
    made = make_model(model, options)
    return is_scripted(made) or isinstance(made, Batching)
