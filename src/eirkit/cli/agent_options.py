"""Options of models and memories of commands that run agents: how models are called, settings of memories."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import wraps
from typing import Any, TypeVar

import click

from eirkit.cli.command import NameList, option, options
from eirkit.cli.options import SEEDS_HELP, SeedList, WorkloadName, task_options_of_many, workload_argument
from eirkit.errors import UsageError
from eirkit.lacuna.agents.prompt import DIALECTS
from eirkit.lacuna.agents.reference import AGENTS
from eirkit.lacuna.memories.plan import MemoryPlan
from eirkit.lacuna.models.model import ModelOptions, models
from eirkit.lacuna.runs.cells import READER
from eirkit.lacuna.runs.values import read_memory_options
from eirkit.lacuna.tasks.task import AnySpec, TaskSpec
from eirkit.lacuna.tasks.workload import conversations, find_workload
from eirkit.records.settings import NATIVE, PROTOCOLS, STRICT

Command = TypeVar("Command", bound=Callable[..., Any])

_DEFAULT = ModelOptions()
_LIMITS = ("max_tokens", "timeout_seconds", "retries", "connections")
CALL_OPTIONS = ("base_url", "temperature", *_LIMITS, "dialect", "protocol")  # names of options, as suites have them


class WorkloadNames(NameList):
    """`store-recall` or `stepwise-sum,stepwise-max`: registered workloads, or module:Name."""

    name = "workloads"
    shell_complete = WorkloadName.shell_complete

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[str]:
        names = super().convert(value, param, ctx)
        return [name if name in conversations else WorkloadName().convert(name, param, ctx) for name in names]


def workload_options(default: str | None = None) -> Callable[[Command], Command]:
    """Add WORKLOAD, one or several, and the task options; the command receives `specs`, one for each workload."""

    def decorate(command: Command) -> Command:
        @wraps(command)
        def with_specs(spec: TaskSpec, workload_names: Sequence[str], **given: Any) -> Any:
            if spec.seed:
                raise UsageError(f"agents take many seeds; write --seeds {spec.seed} instead of --seed {spec.seed}")
            return command(specs=tuple(replace(spec, workload=name) for name in workload_names), **given)

        with_spec = task_options_of_many(with_specs)

        @wraps(with_spec)
        def with_names(workload: Sequence[str], **given: Any) -> Any:
            return with_spec(workload="", workload_names=workload, **given)

        names = None if default is None else default.split(",")
        return workload_argument(WorkloadNames(), names)(with_names)  # type: ignore[return-value]

    return decorate


def with_preset(spec: TaskSpec, preset: str | None) -> AnySpec:
    """Return conversations with this preset, or with the usual one; tasks of numbers as they are."""
    if preset is None and spec.workload not in conversations:
        return spec
    given = {} if preset is None else {"preset": preset}
    return find_workload(spec.workload).specify({"workload": spec.workload, **given})


def seeds_option(default: str = "0:3") -> Callable[[Command], Command]:
    """Add --seeds; the command receives `seeds`."""
    return option("--seeds", type=SeedList(), default=default, show_default=True, group="Runs", help=SEEDS_HELP)


def model_options(default: str | None = None) -> Callable[[Command], Command]:
    """Add --model, repeated or separated by commas, and how models are called.

    The command receives `model_names`, each once and in order, and `model_options`, the same for all of them.
    """

    def decorate(command: Command) -> Command:
        @wraps(command)
        def with_models(named: Sequence[Sequence[str]], extra: Sequence[str], **given: Any) -> Any:
            names = tuple(dict.fromkeys(name for listed in named for name in listed))
            chosen = {**{name: given.pop(name) for name in CALL_OPTIONS}, "seed": given.pop("model_seed")}
            given_ones = {name: value for name, value in chosen.items() if value is not None}
            made = ModelOptions(**given_ones, extra=dict(map(read_setting, extra)))
            return command(model_names=names, model_options=made, **given)

        model = option(
            "--model",
            "named",
            known=known_models,
            type=NameList(),
            multiple=True,
            default=None if default is None else [default],
            required=default is None,
            show_default=default is not None,
            group="Agent",
            help="Models, as provider/name; separated by commas or repeated.",
        )
        return options(model, *call_options())(with_models)  # type: ignore[no-any-return]

    return decorate


def call_options() -> tuple[Callable[[Any], Any], ...]:
    """Return the options for how models are called; what is not given arrives as None."""
    return (
        _agent("--base-url", str, "An OpenAI-compatible server.", metavar="URL"),
        _agent(
            "--temperature",
            float,
            f"Sampling temperature; ignored by models without one.  [default: {_DEFAULT.temperature:g}]",
        ),
        _agent("--max-tokens", int, f"Most tokens in one reply.  [default: {_DEFAULT.max_tokens}]"),
        _agent("--timeout-seconds", float, f"Longest wait for one reply.  [default: {_DEFAULT.timeout_seconds:g}]"),
        _agent("--retries", int, f"How often a failed call is repeated.  [default: {_DEFAULT.retries}]"),
        _agent("--connections", int, f"Most calls at the same time.  [default: {_DEFAULT.connections}]"),
        _agent("--model-seed", int, f"Seed for models that sample.  [default: {_DEFAULT.seed}]"),
        _agent("--dialect", click.Choice(list(DIALECTS)), "Style of the prompts.  [default: the model's own]"),
        _agent(
            "--protocol",
            click.Choice(PROTOCOLS),
            "How models answer: a JSON object under a schema, a tool call, or a line of text.  "
            "[default: the first of these that the provider takes]",
        ),
        option(
            "--set",
            "extra",
            multiple=True,
            metavar="NAME=VALUE",
            group="Agent",
            help="A setting of the model: p=0.2. Can be repeated.",
        ),
    )


def _agent(name: str, kind: Any, text: str, *, metavar: str | None = None) -> Callable[[Any], Any]:
    return option(name, type=kind, group="Agent", help=text, metavar=metavar)


def known_models() -> list[str]:
    """Return how models may be named: the reference agents, the reader of conversations, and providers of others."""
    agents = [*(f"reference/{name}" for name in AGENTS), READER]
    return [*agents, *(f"{p}/…" for p in models.names() if p != "reference")]


def read_setting(text: str, flag: str = "--set", example: str = "p=0.2") -> tuple[str, Any]:
    """Return the name and the value of `name=value`; a value that is a JSON object becomes one."""
    name, separator, value = text.partition("=")
    if not separator or not name:
        raise UsageError(f"{flag} {text} has no value; write it like {flag} {example}")
    if not value.startswith("{"):
        return name, value
    try:
        return name, json.loads(value)
    except ValueError:
        raise UsageError(f"{flag} {text} is no JSON object; write it like {flag} 'body={{\"seed\": 1}}'") from None


memory_set_option = option(
    "--memory-set",
    multiple=True,
    metavar="MEMORY.NAME=VALUE",
    group="Memory",
    help="A setting of a memory system: vector.embedding=minilm. Can be repeated.",
)


@dataclass(frozen=True, slots=True)
class Chosen:
    """A memory system and its settings, as given on the command line."""

    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    panel: str = NATIVE

    def plan(self, h: int) -> MemoryPlan:
        return MemoryPlan(self.name, self.settings, h if self.panel == STRICT else None)


def memory_options(command: Command) -> Command:
    """Add --memory, --memory-set and --panel; the command receives `memory`, which is None unless one was named."""

    @wraps(command)
    def with_memory(memory: str | None, memory_set: Sequence[str], panel: str | None, **given: Any) -> Any:
        return command(memory=_chosen(memory, memory_set, panel), **given)

    return options(  # type: ignore[no-any-return]
        option(
            "--memory",
            metavar="NAME",
            group="Memory",
            help="A memory system; `eirkit doctor` lists them.  [default: none]",
        ),
        memory_set_option,
        option(
            "--panel",
            type=click.Choice([NATIVE, STRICT]),
            group="Memory",
            help="strict: the memory may hold h records and the agent sees no others.  [default: native]",
        ),
    )(with_memory)


def _chosen(memory: str | None, settings: Sequence[str], panel: str | None) -> Chosen | None:
    if memory is None:
        if settings or panel:
            raise UsageError("--memory-set and --panel need a memory system; add --memory NAME")
        return None
    if "," in memory:
        raise UsageError("one memory at a time; run the command again for another")
    given = read_memory_options(read_memory_settings(settings), (memory,))
    return Chosen(memory, given.get(memory, {}), panel or NATIVE)


def read_memory_settings(settings: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return settings by memory, whose name stands before the last dot."""
    found: dict[str, dict[str, Any]] = {}
    for setting in settings:
        name, value = read_setting(setting, "--memory-set", "vector.embedding=minilm")
        memory, dot, key = name.rpartition(".")
        if not dot:
            raise UsageError(f"{setting!r} names no memory; write MEMORY.NAME=VALUE, such as vector.embedding=minilm")
        found.setdefault(memory, {})[key] = _typed(value)
    return found


def _typed(value: Any) -> Any:
    """Return a number, true, false, null or a list where a text is one in JSON; any other text as it is."""
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return value
