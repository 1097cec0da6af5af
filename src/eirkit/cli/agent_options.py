"""Options of models and memories of commands that run agents: how models are called, settings of memories."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import wraps
from typing import Any, TypeVar

import click

from eirkit.cli.command import NameList, option, options
from eirkit.cli.options import SEEDS_HELP, SeedList, WorkloadName, task_options, workload_argument
from eirkit.errors import UsageError
from eirkit.lacuna import READER
from eirkit.lacuna.agents.reference import AGENTS
from eirkit.lacuna.memories.plan import MemoryPlan
from eirkit.lacuna.models.model import ModelOptions, models
from eirkit.lacuna.runs.values import read_memory_options, read_model_options
from eirkit.lacuna.tasks.task import AnySpec, TaskSpec
from eirkit.lacuna.tasks.workload import conversations, find_workload
from eirkit.records.budgets import check_budget
from eirkit.records.settings import DOCUMENTED, NATIVE, PROTOCOLS, STRICT

Command = TypeVar("Command", bound=Callable[..., Any])

MODEL_SETTINGS = tuple(
    field.name for field in fields(ModelOptions) if field.name not in ("base_url", "extra", "protocol")
)


class WorkloadNames(NameList):
    """`store-recall` or `stepwise-sum,stepwise-max`: registered workloads, or module:Name."""

    name = "workloads"
    shell_complete = WorkloadName.shell_complete

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[str]:
        names = super().convert(value, param, ctx)
        return [name if name in conversations else WorkloadName().convert(name, param, ctx) for name in names]


def workload_options(default: str | None = None, *, pooled: bool = False) -> Callable[[Command], Command]:
    """Add WORKLOAD, one or several, and the task options; the command receives `specs`, one for each workload.

    Args:
        pooled: --fan-in takes several values, which the command receives as `fan_ins`.
    """

    def decorate(command: Command) -> Command:
        @wraps(command)
        def with_specs(spec: TaskSpec, workload_names: Sequence[str], **given: Any) -> Any:
            if spec.seed:
                raise UsageError(f"agents take many seeds; write --seeds {spec.seed} instead of --seed {spec.seed}")
            return command(specs=tuple(replace(spec, workload=name) for name in workload_names), **given)

        with_spec = task_options(with_specs, hide_seed=True, pooled=pooled)

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
    """Add --model, repeated or separated by commas, --base-url and --set.

    The command receives `model_names`, each once and in order, and `model_options`, the same for all of them.
    """

    def decorate(command: Command) -> Command:
        @wraps(command)
        def with_models(
            named: Sequence[Sequence[str]],
            base_url: str | None,
            protocol: str | None,
            settings: Sequence[str],
            **given: Any,
        ) -> Any:
            names = tuple(dict.fromkeys(name for listed in named for name in listed))
            asked, kept = read_settings(settings, base_url, protocol)
            if kept:
                raise UsageError(f"{next(iter(kept))} is no memory of this command; leave its settings out")
            return command(model_names=names, model_options=read_model_options(asked), **given)

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
        return options(model, *call_options)(with_models)  # type: ignore[no-any-return]

    return decorate


call_options = (
    option("--base-url", type=str, group="Agent", help="An OpenAI-compatible server.", metavar="URL"),
    option(
        "--protocol",
        type=click.Choice(PROTOCOLS),
        metavar="NAME",
        group="Agent",
        common=False,
        help=f"How models answer: {', '.join(PROTOCOLS)}.  [default: the first that the provider takes]",
    ),
    option(
        "--set",
        "settings",
        multiple=True,
        metavar="NAME=VALUE",
        group="Agent",
        known=lambda: MODEL_SETTINGS,
        help="A setting of the model, as in a suite's model_options: temperature=0.7; or of a memory, after its name "
        "and a dot: vector.embedding=minilm. Can be repeated.",
    ),
)


def known_models() -> list[str]:
    """Return how models may be named: the reference agents, the reader of conversations, and providers of others."""
    agents = [*(f"reference/{name}" for name in AGENTS), READER]
    return [*agents, *(f"{p}/…" for p in models.names() if p != "reference")]


def read_settings(
    settings: Sequence[str], base_url: str | None = None, protocol: str | None = None
) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Return what `--set` says of models, as a suite's model_options, and of memories, by their names."""
    given = {"base_url": base_url, "protocol": protocol}
    asked: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    kept: dict[str, dict[str, Any]] = {}
    for setting in settings:
        name, value = read_setting(setting)
        memory, dot, key = name.rpartition(".")
        if dot:
            kept.setdefault(memory, {})[key] = typed_value(value)
        elif name in MODEL_SETTINGS:
            asked[name] = typed_value(value)
        else:
            asked.setdefault("extra", {})[name] = value
    return asked, kept


def read_setting(text: str) -> tuple[str, Any]:
    """Return the name and the value of `name=value`; a value that is a JSON object becomes one."""
    name, separator, value = text.partition("=")
    if not separator or not name:
        raise UsageError(f"--set {text} has no value; write it like --set p=0.2")
    if not value.startswith("{"):
        return name, value
    try:
        return name, json.loads(value)
    except ValueError:
        raise UsageError(f"--set {text} is no JSON object; write it like --set 'body={{\"seed\": 1}}'") from None


@dataclass(frozen=True, slots=True)
class Chosen:
    """A memory system and its settings, as given on the command line."""

    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    panel: str = NATIVE
    budget: str = DOCUMENTED

    def plan(self, h: int) -> MemoryPlan:
        return MemoryPlan(self.name, self.settings, h if self.panel == STRICT else None)


def memory_options(command: Command) -> Command:
    """Add --memory, --panel and --budget; the command receives `memory`, which is None unless one was named.

    What --set says of it is taken from the `settings` of the command, which models get without it.
    """

    @wraps(command)
    def with_memory(
        memory: str | None, panel: str | None, budget: str | None, settings: Sequence[str], **given: Any
    ) -> Any:
        own = [setting for setting in settings if "." in setting.partition("=")[0]]
        others = tuple(setting for setting in settings if setting not in own)
        chosen = None
        if memory is not None:
            if "," in memory:
                raise UsageError("one memory at a time; run the command again for another")
            asked = read_memory_options(read_settings(own)[1], (memory,))
            chosen = Chosen(memory, asked.get(memory, {}), panel or NATIVE, check_budget(budget or DOCUMENTED))
        elif own or panel or budget:
            raise UsageError("--panel, --budget and settings of a memory need one; add --memory NAME")
        return command(memory=chosen, settings=others, **given)

    return options(  # type: ignore[no-any-return]
        option(
            "--memory",
            metavar="NAME",
            group="Memory",
            help="A memory system; `eirkit doctor` lists them.  [default: none]",
        ),
        panel_option(click.Choice([NATIVE, STRICT])),
        budget_option(str, common=False),
    )(with_memory)


def budget_option(kind: Any, *, common: bool = True) -> Callable[[Any], Any]:
    """Return what adds --budget."""
    return option(
        "--budget",
        common=common,
        type=kind,
        group="Memory",
        help="What is put into a prompt: documented, k=10, tokens=2000.",
    )


def panel_option(kind: Any) -> Callable[[Any], Any]:
    """Return what adds --panel."""
    return option(
        "--panel",
        common=False,
        type=kind,
        group="Memory",
        help="strict: the memory may hold h records and the agent sees no others.  [default: native]",
    )


def typed_value(value: Any) -> Any:
    """Return a number, true, false, null or a list where a text is one in JSON; any other text as it is."""
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return value
