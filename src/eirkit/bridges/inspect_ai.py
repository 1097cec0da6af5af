"""LACUNA in Inspect: `inspect eval eirkit/lacuna -T workload=stepwise-sum -T h=8 --model …`.

Registers a task, two solvers, two scorers, and our own models as `eirkit/reference/…`. Inspect loads it through its
entry point, and nobody else does: it needs `eirkit[inspect]`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import Any

from inspect_ai import Task, task
from inspect_ai._util.error import PrerequisiteError  # the one error that Inspect shows without a traceback
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import (
    ChatMessage,
    ChatMessageSystem,
    ChatMessageTool,
    ChatMessageUser,
    ModelAPI,
    get_model,
    modelapi,
)
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.util import LimitExceededError

from eirkit.agents.model import ModelOptions, Reply, Request
from eirkit.agents.models.inspect_ai import InspectModel, as_asked
from eirkit.agents.serving.scrubbing import Scrubber
from eirkit.agents.session import ActionTaken
from eirkit.agents.stores.pool import Memories
from eirkit.agents.telemetry import Exchange, Trace
from eirkit.bridges.inspect_model import EirkitModel
from eirkit.errors import UsageError
from eirkit.findings.causes import CAUSES, RunScore, read_score
from eirkit.runs.attempt import carry_out, finish
from eirkit.runs.cells import Cell
from eirkit.runs.manifest import SystemMessages
from eirkit.runs.sessions import check_access
from eirkit.runs.store import FinishedRun
from eirkit.runs.suite import make_cell, read_suite
from eirkit.runs.workers import Share, stage_of
from eirkit.tasks.generation import generate, generate_many
from eirkit.tasks.task import TaskInstance, TaskSpec, show_values, without_seed

RECORD, EVENTS = "eirkit:run", "eirkit:events"  # in the store of a sample
LIMIT = "limit"  # how a run ended that one of Inspect's own limits cut off


class EvaluatedModel(InspectModel):
    """The model that Inspect evaluates, asked as its own configuration says; its outputs are kept for the sample."""

    def __init__(self, name: str) -> None:
        super().__init__(name, ModelOptions())
        self._scrub = Scrubber.of_environment(os.environ)
        self.outputs: list[Any] = []

    async def reply(self, request: Request) -> Reply:
        start = perf_counter()
        output = await get_model().generate(*as_asked(request))
        self.outputs.append(output)
        read = self._read(output)
        return Reply(read.text, read.calls, read.usage, perf_counter() - start, read.finish)

    async def close(self) -> None:
        """Leave Inspect's model to Inspect."""


async def solve_sample(state: TaskState, access: Mapping[str, Any]) -> TaskState:
    """Run the task of a sample under an access, and leave its record in the sample's store.

    Args:
        access: the keys of a suite that say how earlier results are had.
    """
    spec = TaskSpec(**state.metadata["spec"])
    given = {name: value for name, value in state.metadata["spec"].items() if name != "seed" and value is not None}
    options = access.get("memory_options") or {}
    keys = {name: value for name, value in access.items() if name != "memory_options" and value is not None}
    cell = make_cell({**given, **keys, "model": f"inspect/{state.model}"}, ModelOptions(), options)
    check_access(cell.access)
    model = EvaluatedModel(str(state.model))
    stage = stage_of(Share(cell, (spec.seed,), True), model, SystemMessages(), Scrubber.of_environment(os.environ))
    task, trace, memories = generate(spec), Trace(), Memories()
    try:
        used = await carry_out(stage, task, memories, trace)
    except LimitExceededError:
        _keep(state, finish(stage, task, trace), LIMIT)
        raise
    finally:
        await memories.close()
    _keep(state, finish(stage, task, trace, used), str(trace.ending))
    state.messages = conversation(trace, model.outputs)
    if model.outputs:
        state.output = model.outputs[-1]
    state.completed = True
    return state


def _keep(state: TaskState, run: FinishedRun, ending: str) -> None:
    state.store.set(RECORD, json.loads(json.dumps({**run.record, "ending": ending})))
    state.store.set(EVENTS, [without_words(json.loads(line)) for line in run.events.splitlines()])


def without_words(event: Mapping[str, Any]) -> dict[str, Any]:
    """Return an event without what was said, which the events of the model hold already."""
    return {name: value for name, value in event.items() if name not in ("prompt", "reply", "calls")}


def conversation(trace: Trace, outputs: Sequence[Any]) -> list[ChatMessage]:
    """Return what was said, for people: the rules once, then each request and its reply.

    The model saw the rules and one request at a time, never what stands above it here.
    """
    messages: list[ChatMessage] = []
    waiting: list[Any] = []  # tool calls of the last reply
    replies = iter(outputs)
    for entry in trace.log:
        if isinstance(entry, Exchange):
            rules, asked = entry.request.messages[0], entry.request.messages[-1]
            if not messages:
                messages.append(ChatMessageSystem(content=rules.content))
            message = next(replies).message
            messages += [ChatMessageUser(content=asked.content), message]
            waiting = list(message.tool_calls or ())
        elif isinstance(entry, ActionTaken) and waiting:
            call = waiting.pop(0)
            messages.append(ChatMessageTool(content=entry.detail, tool_call_id=call.id, function=call.function))
    return messages


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
        scored = read_score(run["score"])
        told = f"{scored.correct} of {scored.steps} steps; ended: {run['ending']}"
        return Score(value=scored.accuracy, answer=f"{scored.correct}/{scored.steps}", explanation=told, metadata=run)

    return score


@scorer(metrics={"*": _MEANS})
def causes() -> Scorer:
    """Why steps were wrong, and what the run lacked: counts a run."""

    async def score(state: TaskState, target: Target) -> Score:
        run = _record(state)
        scored = read_score(run["score"])
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
