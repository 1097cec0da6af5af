"""LACUNA as an Inspect task: `inspect eval eirkit/lacuna -T workload=stepwise-sum -T h=8 --model …`.

Registers a task, two solvers, two scorers, and eirkit's models as `eirkit/reference/…`. Only Inspect loads this module,
through an entry point; it needs `eirkit[inspect]`.
"""

from __future__ import annotations

import os
from asyncio import CancelledError
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from time import perf_counter
from typing import Any, TypeVar

import msgspec
from inspect_ai import Task, task
from inspect_ai._util.error import PrerequisiteError  # shown by Inspect without a traceback
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import (
    ChatCompletionChoice,
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageTool,
    ChatMessageUser,
    GenerateConfig,
    ModelAPI,
    ModelOutput,
    ModelUsage,
    get_model,
    modelapi,
)
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.tool import ToolCall as InspectCall
from inspect_ai.tool import ToolChoice, ToolInfo
from inspect_ai.util import LimitExceededError
from msgspec.structs import replace

from eirkit.errors import ModelError, PluginError, UsageError
from eirkit.lacuna.agents.telemetry import Exchange, Trace
from eirkit.lacuna.memories.plan import MemoryPool
from eirkit.lacuna.models.factory import make_model
from eirkit.lacuna.models.inspect_ai import InspectModel, ask_inspect
from eirkit.lacuna.models.message import Message
from eirkit.lacuna.models.model import Model, ModelOptions, Reply, Request, Tool, Usage
from eirkit.lacuna.models.scrubber import Scrubber
from eirkit.lacuna.runs.attempt import finished_run, run_session
from eirkit.lacuna.runs.cells import Cell
from eirkit.lacuna.runs.manifest import SystemMessages
from eirkit.lacuna.runs.sessions import check_access
from eirkit.lacuna.runs.suite import make_cell, read_suite
from eirkit.lacuna.runs.workers import CellBatch, cell_context_of
from eirkit.lacuna.tasks.generation import generate, generate_many
from eirkit.lacuna.tasks.task import TaskInstance, TaskSpec, number_spec, show_values
from eirkit.records.database import FinishedRun
from eirkit.records.events import ActionTaken, decode_events
from eirkit.records.runs import RunScore
from eirkit_bridges.inspect_export import EVENTS, RECORD, counts_of, without_texts

Named = TypeVar("Named", bound=Callable[..., Any])
LIMIT = "limit"  # ending of a run that a limit of Inspect cut off


# What is asked of the evaluated model: one of eirkit's own, in this process, takes what is visible as objects.
_SHOWN: ContextVar[Request] = ContextVar("shown")


class EvaluatedModel(InspectModel):
    """The model that Inspect evaluates, with Inspect's configuration; its outputs are kept for the sample."""

    def __init__(self, name: str) -> None:
        super().__init__(name, ModelOptions())
        self._scrub = Scrubber.of_environment(os.environ)
        self.outputs: list[Any] = []

    async def reply(self, request: Request) -> Reply:
        start = perf_counter()
        _SHOWN.set(request)
        output = await ask_inspect(get_model(), request)
        self.outputs.append(output)
        read = self._read(output)
        return replace(read, latency_seconds=perf_counter() - start)

    async def close(self) -> None:
        """Do nothing: Inspect owns the model."""


async def solve_sample(state: TaskState, access: Mapping[str, Any]) -> TaskState:
    """Run the task of a sample and put its record into the sample's store.

    Args:
        access: the keys of a suite that configure access to earlier results.
    """
    spec = TaskSpec(**state.metadata["spec"])
    given = {name: value for name, value in state.metadata["spec"].items() if name != "seed" and value is not None}
    options = access.get("memory_options") or {}
    apart = ("memory_options", "protocol")
    keys = {name: value for name, value in access.items() if name not in apart and value is not None}
    asked = ModelOptions(protocol=access.get("protocol"))
    cell = make_cell({**given, **keys, "model": f"inspect/{state.model}"}, asked, options)
    check_access(cell.access)
    model = EvaluatedModel(str(state.model))
    stage = cell_context_of(
        CellBatch(cell, (spec.seed,), True), model, SystemMessages(), Scrubber.of_environment(os.environ)
    )

    def make(string: str, options: ModelOptions) -> Model:
        """Return the model of a memory system; the one that is evaluated is called as Inspect calls it."""
        return model if string == cell.model else make_model(string, options)

    task, trace, memories = generate(spec), Trace(), MemoryPool(make)
    try:
        used = await run_session(stage, task, memories, trace)
    except (PluginError, CancelledError) as error:
        limit = error.__cause__ if isinstance(error, PluginError) else error  # limits of time cancel
        if not isinstance(limit, LimitExceededError | CancelledError):
            raise
        _keep(state, finished_run(stage, task, trace), LIMIT)
        raise limit from None
    finally:
        await memories.close()
    _keep(state, finished_run(stage, task, trace, used), str(trace.ending))
    state.messages = conversation(trace, model.outputs)
    if model.outputs:
        state.output = model.outputs[-1]
    state.completed = True
    return state


def _keep(state: TaskState, run: FinishedRun, ending: str) -> None:
    state.store.set(RECORD, {**msgspec.to_builtins(run.record), "ending": ending})
    events = [without_texts(event) for event in decode_events(run.events, run.record.run)]
    state.store.set(EVENTS, msgspec.to_builtins(events))


def conversation(trace: Trace, outputs: Sequence[Any]) -> list[ChatMessage]:
    """Return the conversation for display: the rules once, then each request and its reply.

    The model saw the rules and one request at a time, never the earlier messages.
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
    "context_tokens",
    "summary_prompt",
    "h",
    "budget",
    "memory_options",
)
_PLACEHOLDER = "reference/calculator"  # a suite needs a model, but Inspect provides it here
_MEANS = [mean(), stderr()]


def _of_eirkit(function: Named) -> Named:
    """Let Inspect call it `eirkit/…`: it takes the package of the module, and this one is known by its distribution."""
    function.__module__ = "eirkit"
    return function


@task
@_of_eirkit
def lacuna(workload: str = "stepwise-sum", seeds: Any = "0:3", **options: Any) -> Task:
    """Tasks of many steps in which access to earlier results is controlled.

    Args:
        workload: a registered workload, or package.module:Name.
        seeds: one sample each: 3, 0,4,9 or 0:30.
        options: any other key of a suite's grid, with one value: n, m, h, fan_in, condition, memory, b_oracle, …; and
            protocol, how the model answers.
    """
    given = {name: value for name, value in options.items() if value is not None}
    protocol = given.pop("protocol", None)
    try:
        cell, listed = _planned({"workload": workload, **given, "seeds": _seeds(seeds)})
    except UsageError as error:
        raise PrerequisiteError(f"eirkit: {error}") from error
    if cell.access.is_controlled:
        chosen = controlled(cell.access.h, cell.access.policy or "window", protocol)
    else:
        chosen = managed(
            **{"h": cell.access.h, "protocol": protocol, **{name: given[name] for name in ACCESS if name in given}}
        )
    samples = [_sample(instance) for instance in generate_many(number_spec(cell.task, "Inspect"), listed)]
    return Task(
        dataset=MemoryDataset(samples, name=workload),
        solver=chosen,
        scorer=[accuracy(), causes()],
        metadata={"task": msgspec.to_builtins(cell.setting.task), "h": cell.access.h},
    )


def _planned(keys: Mapping[str, Any]) -> tuple[Cell, Sequence[int]]:
    planned = list(read_suite({"model": _PLACEHOLDER, **keys}).plan())
    if len(planned) != 1:
        raise UsageError(
            "an Inspect task takes one value for each option; give one, and run `inspect eval` again for another"
        )
    return planned[0]


def _seeds(given: Any) -> Any:
    """Return seeds in the form of a suite; Inspect splits values with commas into lists of strings."""
    return [int(seed) for seed in given] if isinstance(given, list | tuple) else given


def _sample(instance: TaskInstance) -> Sample:
    spec = instance.spec
    last = instance.steps[-1]
    return Sample(
        id=f"{spec.workload}-n{spec.n}-m{spec.m}-fan{spec.fan_in}-seed{spec.seed}",
        input=f"{spec.workload}: {spec.n} steps, dependency window {spec.m}, seed {spec.seed}",
        target=show_values(spec.digits, last.answer),  # for display; steps are scored one by one
        metadata={"spec": msgspec.to_builtins(spec.as_document()), "fingerprint": instance.fingerprint},
    )


@solver
@_of_eirkit
def controlled(h: int = 16, policy: str = "window", protocol: str | None = None) -> Solver:
    """Controlled Retention: at each step the model sees the rules, h retained records and the step, and nothing else.

    Args:
        h: number of retained records.
        policy: retention policy that chooses them.
        protocol: how the model answers: schema, tools or text; None: the first that its provider takes.
    """

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        return await solve_sample(state, {"h": h, "policy": policy, "protocol": protocol})

    return solve


@solver
@_of_eirkit
def managed(**access: Any) -> Solver:
    """Agent-Managed Retention: the model reveals steps, recovers missing inputs and answers, in a loop of actions.

    Args:
        access: condition or memory, h, b_oracle, b, actions, context_tokens, summary_prompt, panel, budget, protocol.
    """
    chosen = access if "condition" in access or "memory" in access else {"condition": "lru", **access}

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        return await solve_sample(state, chosen)

    return solve


@scorer(metrics=_MEANS)
@_of_eirkit
def accuracy() -> Scorer:
    """Correct answers / scored steps."""

    async def score(state: TaskState, target: Target) -> Score:
        run = _stored(state)
        right = f"{run.score.correct}/{run.score.steps}"
        told = f"{run.score.correct} of {run.score.steps} steps; ended: {run.ending}"
        return Score(value=run.score.accuracy, answer=right, explanation=told, metadata=state.store.get(RECORD))

    return score


@scorer(metrics={"*": _MEANS})
@_of_eirkit
def causes() -> Scorer:
    """Wrong steps by cause, and steps with missing inputs: counts per run."""

    async def score(state: TaskState, target: Target) -> Score:
        scored = _stored(state).score
        kinds = ", ".join(f"{count} {kind}" for kind, count in scored.kinds.items()) or "none"
        return Score(
            value=counts_of(scored),
            explanation=f"first miss: {scored.first_miss}; first error: {scored.first_error}; wrong steps: {kinds}",
        )

    return score


class _StoredRun(msgspec.Struct):
    score: RunScore
    ending: str  # that of a run, or of a limit of Inspect


def _stored(state: TaskState) -> _StoredRun:
    run = state.store.get(RECORD)
    if run is None:
        raise UsageError("the sample holds no eirkit run; use the solver eirkit/controlled or eirkit/managed")
    return msgspec.convert(run, _StoredRun)


class EirkitModel(ModelAPI):
    """An eirkit model as a model of Inspect, named as for `eirkit lacuna run --model`."""

    def __init__(
        self,
        model_name: str,
        base_url: str | None = None,
        api_key: str | None = None,
        config: GenerateConfig = GenerateConfig(),  # noqa: B008 - Inspect's own signature
        **model_args: Any,
    ) -> None:
        super().__init__(model_name, base_url, api_key, [], config)
        # On the command line every setting is a string.
        extra = {name: str(value) for name, value in model_args.items()}
        self.model = make_model(model_name, ModelOptions(base_url=base_url, extra=extra))
        self._calls = 0

    async def generate(
        self, input: list[ChatMessage], tools: list[ToolInfo], tool_choice: ToolChoice, config: GenerateConfig
    ) -> ModelOutput:
        """Return the model's reply."""
        offered = tuple(
            Tool(tool.name, tool.description, tool.parameters.model_dump(exclude_none=True)) for tool in tools
        )
        messages = tuple(
            Message(one.role if one.role in ("system", "assistant") else "user", one.text) for one in input
        )
        request = Request(messages, offered, config.max_tokens)
        if (shown := _SHOWN.get(None)) is not None and shown.messages == messages:
            request = replace(request, form=shown.form, visible=shown.visible)
        try:
            reply = await self.model.reply(request)
        except ModelError as failure:
            if not failure.is_adapted:
                raise
            reply = await self.model.reply(request)
        return self._output(reply)

    def _output(self, reply: Reply) -> ModelOutput:
        calls = []
        for call in reply.calls:
            self._calls += 1
            calls.append(InspectCall(f"call_{self._calls}", call.name, dict(call.arguments)))
        message = ChatMessageAssistant(
            content=reply.text, tool_calls=calls or None, model=self.model_name, source="generate"
        )
        choice = ChatCompletionChoice(message=message, stop_reason="tool_calls" if calls else "stop")
        return ModelOutput(model=self.model_name, choices=[choice], usage=_usage(reply.usage))


def _usage(usage: Usage) -> ModelUsage:
    """Return the counts; Inspect's input tokens exclude cached ones, ours include them."""
    return ModelUsage(
        input_tokens=usage.input_tokens - usage.cached_tokens,
        output_tokens=usage.output_tokens,
        total_tokens=usage.input_tokens + usage.output_tokens,
        input_tokens_cache_read=usage.cached_tokens,
    )


@modelapi(name="eirkit")
def eirkit_models() -> type[ModelAPI]:
    """eirkit's models, such as the reference agents: `--model eirkit/reference/calculator`."""
    return EirkitModel
