"""LACUNA in Inspect: `inspect eval eirkit/lacuna -T workload=stepwise-sum -T h=8 --model …`.

Registers a task, two solvers, two scorers, and our own models as `eirkit/reference/…`. Inspect loads it through its
entry point, and nobody else does: it needs `eirkit[inspect]`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from inspect_ai import Task, task
from inspect_ai._util.error import PrerequisiteError  # the one error that Inspect shows without a traceback
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ModelAPI, modelapi
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
from inspect_ai.solver import Generate, Solver, TaskState, solver

from eirkit.bridges.inspect_model import EirkitModel
from eirkit.bridges.inspect_solving import RECORD, solve_sample
from eirkit.errors import UsageError
from eirkit.lacuna.evidence.attribution import CAUSES, RunScore
from eirkit.lacuna.generation import generate_many
from eirkit.lacuna.sweeps.cells import Cell
from eirkit.lacuna.sweeps.suite import read_suite
from eirkit.lacuna.task import TaskInstance, show_values, without_seed

ACCESS = (
    "condition",
    "policy",
    "memory",
    "panel",
    "b_oracle",
    "b",
    "actions",
    "tool_calls",
    "context_tokens",
    "summary_prompt",
    "h",
    "memory_options",
)
_PLACEHOLDER = "reference/calculator"  # a suite names its model; here Inspect does
_MEANS = [mean(), stderr()]


@task
def lacuna(workload: str = "stepwise-sum", seeds: Any = "0:3", **options: Any) -> Task:
    """Tasks of many steps in which access to earlier results is controlled.

    Args:
        workload: a registered workload, or package.module:Name.
        seeds: one sample each: 3, 0,4,9 or 0:30.
        options: any other key of a grid in a suite with one value: n, m, h, fan_in, condition, memory, b_oracle, …
    """
    given = {name: value for name, value in options.items() if value is not None}
    try:
        cell, listed = _planned({"workload": workload, **given, "seeds": _seeds(seeds)})
    except UsageError as error:
        raise PrerequisiteError(f"eirkit: {error}") from error
    if cell.access.is_controlled:
        chosen = controlled(cell.access.h, cell.access.policy or "window")
    else:
        chosen = managed(**{"h": cell.access.h, **{name: given[name] for name in ACCESS if name in given}})
    samples = [_sample(instance) for instance in generate_many(cell.task, listed)]
    return Task(
        dataset=MemoryDataset(samples, name=workload),
        solver=chosen,
        scorer=[accuracy(), causes()],
        metadata={"task": without_seed(cell.task), "h": cell.access.h},
    )


def _planned(keys: Mapping[str, Any]) -> tuple[Cell, Sequence[int]]:
    planned = list(read_suite({"model": _PLACEHOLDER, **keys}).plan())
    if len(planned) != 1:
        raise UsageError("a task has one value for each option; give one, and evaluate the task again for another")
    return planned[0]


def _seeds(given: Any) -> Any:
    """Return seeds as a suite takes them; Inspect makes a list of texts of what has commas."""
    return [int(seed) for seed in given] if isinstance(given, list | tuple) else given


def _sample(instance: TaskInstance) -> Sample:
    spec = instance.spec
    last = instance.steps[-1]
    return Sample(
        id=f"{spec.workload}-n{spec.n}-m{spec.m}-fan{spec.fan_in}-seed{spec.seed}",
        input=f"{spec.workload}: {spec.n} steps, dependency window {spec.m}, seed {spec.seed}",
        target=show_values(spec.digits, last.answer),  # for people; steps are scored one by one
        metadata={"spec": {**without_seed(spec), "seed": spec.seed}, "fingerprint": instance.fingerprint},
    )


@solver
def controlled(h: int = 16, policy: str = "window") -> Solver:
    """Controlled Retention: at each step the model sees the rules, h retained records and the step, and nothing else.

    Args:
        h: records that are retained.
        policy: which ones.
    """

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        return await solve_sample(state, {"h": h, "policy": policy})

    return solve


@solver
def managed(**access: Any) -> Solver:
    """Agent-Managed Retention: the model reveals steps, recovers what it lacks and answers, in a loop of actions.

    Args:
        access: condition or memory, h, b_oracle, b, actions, tool_calls, context_tokens, summary_prompt, panel.
    """
    chosen = access if "condition" in access or "memory" in access else {"condition": "lru", **access}

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        return await solve_sample(state, chosen)

    return solve


@scorer(metrics=_MEANS)
def accuracy() -> Scorer:
    """Correct answers / scored steps."""

    async def score(state: TaskState, target: Target) -> Score:
        run = _record(state)
        scored = RunScore(**run["score"])
        told = f"{scored.correct} of {scored.steps} steps; ended: {run['ending']}"
        return Score(value=scored.accuracy, answer=f"{scored.correct}/{scored.steps}", explanation=told, metadata=run)

    return score


@scorer(metrics={"*": _MEANS})
def causes() -> Scorer:
    """Why steps were wrong, and what the run lacked: counts a run."""

    async def score(state: TaskState, target: Target) -> Score:
        run = _record(state)
        scored = RunScore(**run["score"])
        return Score(value=_counts(scored), explanation=_explained(scored))

    return score


def _record(state: TaskState) -> Mapping[str, Any]:
    run = state.store.get(RECORD)
    if run is None:
        raise UsageError("the sample holds no run of eirkit; solve it with eirkit/controlled or eirkit/managed")
    found: Mapping[str, Any] = run
    return found


def _counts(scored: RunScore) -> dict[str, float]:
    return {
        **{cause: float(scored.errors[cause]) for cause in CAUSES},
        "missed_steps": float(scored.missed),
        "final_correct": float(scored.final_correct),
        "answered": scored.answered_fraction,
        "reads": float(scored.reads),
        "recomputations": float(scored.recomputations),
    }


def _explained(scored: RunScore) -> str:
    kinds = ", ".join(f"{count} {kind}" for kind, count in scored.kinds.items()) or "none"
    return f"first miss: {scored.first_miss}; first error: {scored.first_error}; wrong steps: {kinds}"


@modelapi(name="eirkit")
def eirkit_models() -> type[ModelAPI]:
    """Our own models, reference agents above all: `--model eirkit/reference/calculator`."""
    return EirkitModel
