"""Which models can do which task when nothing is missing. Only such cells may carry claims about lost information.

Models and workloads come in. Full-information accuracy, the same with a calculator at hand, and a verdict for each
cell go out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from eirkit.agents.model import Message, ModelOptions, Reply, Request
from eirkit.agents.protocol import read_answers
from eirkit.agents.session import ControlledSession
from eirkit.agents.telemetry import Trace
from eirkit.errors import EirkitError
from eirkit.findings.causes import CAUSES, RunScore, judge, score
from eirkit.findings.pooling import deviation, mean
from eirkit.runs.trial import Bench, Result, Trial, Workbench, losses
from eirkit.tasks.generation import generate_many, prepare
from eirkit.tasks.policies.fifo import Fifo
from eirkit.tasks.retention import Retention
from eirkit.tasks.task import TaskInstance, TaskSpec
from eirkit.tasks.view import PublicTask, publish

THRESHOLD = 0.75  # the floor that was registered before the published runs
WINDOWS = (4, 8, 16)
LOOKUP_WINDOWS = (16,)  # where m counts stored labels, a smaller one is another task, not a smaller window
SEEDS = (0, 1, 2)
MOST_CALCULATIONS = 4  # a step; beyond it the reply counts as it stands

_CALCULATE = re.compile(r"^[ \t>*`_#\-]*CALCULATE\b[ \t:]*([^\n]*)$", re.ASCII | re.IGNORECASE | re.MULTILINE)
_USAGE = "CALCULATE t t: apply the rule to this step's input and the answers of the steps named, see it, then answer"


class CalculatorSession(ControlledSession):
    """Controlled Retention with a calculator: the model names operands that it sees, the harness applies the rule."""

    def __init__(self, task: PublicTask, retention: Retention) -> None:
        super().__init__(task, retention)
        self._results: list[str] = []  # of the current step

    def request(self) -> Request | None:
        request = super().request()
        if request is None:
            return None
        system, state = request.messages
        shown = "".join(f"\nRESULT {result}" for result in self._results[-1:])
        return Request(
            (Message("system", f"{system.content}\n{_USAGE}"), Message("user", f"{state.content}{shown}")),
            request.tools,
            request.max_tokens,
        )

    def receive(self, reply: Reply) -> None:
        asked = _CALCULATE.findall(reply.text)
        if asked and not read_answers(reply)[0] and len(self._results) < MOST_CALCULATIONS:
            self._results.append(self._calculate(asked[-1]))
            return
        self._results = []
        super().receive(reply)

    def _calculate(self, named: str) -> str:
        if self._visible is None or self._visible.step is None:
            raise ValueError("nothing was requested; call request first")
        spec, values = self.task.spec, dict(self._visible.records)
        labels = [int(label) for label in re.findall(r"\d{1,6}", named)]
        if unseen := [label for label in labels if label not in values]:
            return f"refused: the answer of step {unseen[0]} is not shown"
        operands = [values[label] for label in dict.fromkeys(labels)]
        result = self.task.workload.operate(spec, self._visible.step.input, operands)
        return " ".join(f"{value:0{spec.digits}d}" for value in result)


@dataclass(frozen=True, slots=True)
class CapabilityCell:
    """One model on one workload at full information, recovery off."""

    model: str
    workload: str
    accuracy: float | None  # mean over windows and seeds; None where no run was scored
    accuracy_sd: float | None
    by_window: dict[int, float | None]
    scored: int  # runs
    attempted: int
    steps: int
    errors: dict[str, int]
    calculator_accuracy: float | None  # the same with a calculator; None where it was not tried
    passes: bool
    reason: str  # why the cell may carry claims about lost information, or may not
    failures: dict[str, int]  # why runs were lost, those with the calculator included, and how many

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    def standing(self) -> dict[str, Any]:
        """Return what the row of another command says about this control."""
        return {"accuracy": self.accuracy, "passes": self.passes, "reason": self.reason}


@dataclass(frozen=True, slots=True)
class Control:
    """How the control is run."""

    seeds: Sequence[int] = SEEDS
    windows: Sequence[int] = WINDOWS
    threshold: float = THRESHOLD
    calculator: bool = True

    def specs(self, spec: TaskSpec) -> list[TaskSpec]:
        """Return the tasks' specifications: h = m = lookback for each window."""
        lookup = "query" in prepare(spec).kinds(spec)
        return [replace(spec, m=m, lookback=None) for m in (LOOKUP_WINDOWS if lookup else self.windows)]

    def tasks(self, spec: TaskSpec) -> list[TaskInstance]:
        """Return the tasks; raises what a workload raises that does not have them."""
        return [task for sized in self.specs(spec) for task in generate_many(sized, self.seeds)]


def assess(
    models: Iterable[str],
    specs: Sequence[TaskSpec],
    control: Control,
    options: ModelOptions,
    bench: Bench | None = None,
) -> tuple[CapabilityCell, ...]:
    """Return a cell for every model and specification.

    A workload for which no full-information task can be made has a cell too, which says so.
    """
    bench = bench or Workbench()
    return tuple(cell for model in models for cell in _assess(model, specs, control, options, bench))


def _assess(
    model: str, specs: Sequence[TaskSpec], control: Control, options: ModelOptions, bench: Bench
) -> list[CapabilityCell]:
    tools = (False, True) if control.calculator else (False,)
    prepared = [_prepare(spec, control) for spec in specs]
    jobs = [
        (place, tool, task)
        for place, tasks in enumerate(prepared)
        if not isinstance(tasks, str)
        for task in tasks
        for tool in tools
    ]
    results = bench.run(model, options, [_trial(task, tool) for _, tool, task in jobs])
    runs: dict[tuple[int, bool], list[tuple[TaskInstance, Result]]] = {}
    for (place, tool, task), result in zip(jobs, results, strict=True):
        runs.setdefault((place, tool), []).append((task, result))
    return [
        _impossible(model, spec.workload, tasks)
        if isinstance(tasks, str)
        else _cell(model, spec.workload, runs[place, False], runs.get((place, True), []), control.threshold)
        for place, (spec, tasks) in enumerate(zip(specs, prepared, strict=True))
    ]


def _prepare(spec: TaskSpec, control: Control) -> list[TaskInstance] | str:
    """Return the tasks of the control, or why there are none."""
    try:
        return control.tasks(spec)
    except Exception as error:  # noqa: BLE001 - a user's workload may raise anything where its window is another
        words = str(error) if isinstance(error, EirkitError) else f"{type(error).__name__}: {error}"
        return words.partition("\n")[0]


def _trial(task: TaskInstance, calculator: bool) -> Trial:
    what = {"evidence": "capability", "calculator": calculator, "task": task.spec.as_json()}
    return Trial(what, full_information(task, calculator=calculator))


def full_information(task: TaskInstance, *, calculator: bool) -> ControlledSession:
    """Return a session in which every eligible answer is shown: h = m."""
    public, retention = publish(task, prepare(task.spec)), Retention(Fifo(), task.spec.m)
    return CalculatorSession(public, retention) if calculator else ControlledSession(public, retention)


def _cell(
    model: str,
    workload: str,
    plain: list[tuple[TaskInstance, Result]],
    tool: list[tuple[TaskInstance, Result]],
    threshold: float,
) -> CapabilityCell:
    scores = _scores(plain)
    accuracies = [run.accuracy for _, run in scores]
    accuracy, with_tool = mean(accuracies), mean(run.accuracy for _, run in _scores(tool))
    passes = accuracy is not None and accuracy >= threshold
    windows = dict.fromkeys(task.spec.m for task, _ in plain)
    return CapabilityCell(
        model=model,
        workload=workload,
        accuracy=accuracy,
        accuracy_sd=deviation(accuracies),
        by_window={m: mean(run.accuracy for task, run in scores if task.spec.m == m) for m in windows},
        scored=len(scores),
        attempted=len(plain),
        steps=sum(run.steps for _, run in scores),
        errors={cause: sum(run.errors[cause] for _, run in scores) for cause in CAUSES},
        calculator_accuracy=with_tool,
        passes=passes,
        reason=_reason(accuracy, with_tool, threshold),
        failures=losses(result for _, result in (*plain, *tool)),
    )


def _impossible(model: str, workload: str, why: str) -> CapabilityCell:
    nothing = {str(cause): 0 for cause in CAUSES}
    reason = f"excluded: the control cannot be run here: {why}"
    return CapabilityCell(model, workload, None, None, {}, 0, 0, 0, nothing, None, False, reason, {})


def _scores(runs: list[tuple[TaskInstance, Result]]) -> list[tuple[TaskInstance, RunScore]]:
    return [
        (task, score(judge(task, prepare(task.spec), result.decisions), result.decisions))
        for task, result in runs
        if isinstance(result, Trace)
    ]


def _reason(accuracy: float | None, with_tool: float | None, threshold: float) -> str:
    if accuracy is None:
        return "excluded: no run was scored"
    if accuracy >= threshold:
        return f"may carry claims about lost information: reaches {accuracy:.3f} at full information"
    cause = ""
    if with_tool is not None:
        doing = "it is the computation" if with_tool >= threshold else "a calculator does not help"
        cause = f"; with a calculator {with_tool:.3f}, so {doing}"
    return f"excluded: only {accuracy:.3f} at full information, below {threshold}{cause}"
