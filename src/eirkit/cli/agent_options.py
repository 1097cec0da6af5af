"""Options of the commands that run agents: which tasks, which models, which seeds.

The names after `--model` are `provider/name`; how a model is made from one is not decided here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import wraps
from typing import Any, TypeVar

import click

from eirkit.agents.model import ModelOptions, models
from eirkit.agents.models.reference import AGENTS
from eirkit.agents.prompt import DIALECTS
from eirkit.cli.options import NameList, NamingOption, SeedList, WorkloadName, task_options_of_many
from eirkit.errors import UsageError
from eirkit.tasks.task import TaskSpec
from eirkit.tasks.workload import workloads

Command = TypeVar("Command", bound=Callable[..., Any])

_DEFAULT = ModelOptions()


class WorkloadNames(NameList):
    """`store-recall` or `stepwise-sum,stepwise-max`: registered workloads, or module:Name."""

    name = "workloads"
    shell_complete = WorkloadName.shell_complete

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[str]:
        return [WorkloadName().convert(name, param, ctx) for name in super().convert(value, param, ctx)]


def workload_options(default: str | None = None) -> Callable[[Command], Command]:
    """Add --workload, one or several, and the task options; the command receives `specs`, one for each workload."""

    def decorate(command: Command) -> Command:
        @wraps(command)
        def with_specs(spec: TaskSpec, workload_names: Sequence[str], **given: Any) -> Any:
            if spec.seed:
                raise UsageError(f"agents take many seeds; write --seeds {spec.seed} instead of --seed {spec.seed}")
            return command(specs=tuple(replace(spec, workload=name) for name in workload_names), **given)

        with_spec = task_options_of_many(with_specs)

        @wraps(with_spec)
        def without_argument(**given: Any) -> Any:
            return with_spec(workload="", **given)

        option = click.option(
            "--workload",
            "workload_names",
            cls=NamingOption,
            known=workloads.names,
            type=WorkloadNames(),
            default=default,
            required=default is None,
            show_default=default is not None,
            help="One, or several separated by commas.",
        )
        return option(without_argument)  # type: ignore[return-value]

    return decorate


def seeds_option(default: str = "0:3") -> Callable[[Command], Command]:
    """Add --seeds; the command receives `seeds`."""
    return click.option(
        "--seeds", type=SeedList(), default=default, show_default=True, help="3, 0,4,9 or 0:300 (300 excluded)."
    )


def model_options(default: str | None = None) -> Callable[[Command], Command]:
    """Add --model, repeated or separated by commas, and how models are asked.

    The command receives `model_names`, each once and in order, and `model_options`, the same for all of them.
    """

    def decorate(command: Command) -> Command:
        @wraps(command)
        def with_models(named: Sequence[Sequence[str]], extra: Sequence[str], **given: Any) -> Any:
            names = tuple(dict.fromkeys(name for listed in named for name in listed))
            fields = ("base_url", "temperature", "max_tokens", "timeout_seconds", "retries", "connections", "dialect")
            chosen = {name: given.pop(name) for name in fields}
            options = ModelOptions(**chosen, seed=given.pop("model_seed"), extra=dict(map(read_setting, extra)))
            return command(model_names=names, model_options=options, **given)

        decorated: Any = with_models
        for option in reversed(_model_options(default)):
            decorated = option(decorated)
        return decorated  # type: ignore[no-any-return]

    return decorate


def _model_options(default: str | None) -> tuple[Callable[[Any], Any], ...]:
    return (
        click.option(
            "--model",
            "named",
            cls=NamingOption,
            known=known_models,
            type=NameList(),
            multiple=True,
            default=None if default is None else [default],
            required=default is None,
            show_default=default is not None,
            help="provider/name; may be given again.",
        ),
        click.option("--base-url", help="An OpenAI-compatible server."),
        click.option(
            "--temperature", type=float, default=_DEFAULT.temperature, show_default=True, help="Where it is taken."
        ),
        click.option("--max-tokens", type=int, default=_DEFAULT.max_tokens, show_default=True, help="A reply."),
        click.option("--timeout-seconds", type=float, default=_DEFAULT.timeout_seconds, show_default=True),
        click.option("--retries", type=int, default=_DEFAULT.retries, show_default=True),
        click.option("--connections", type=int, default=_DEFAULT.connections, show_default=True, help="At most."),
        click.option("--model-seed", type=int, default=_DEFAULT.seed, help="For models that draw at random."),
        click.option(
            "--dialect", type=click.Choice(list(DIALECTS)), help="Of the prompts.  [default: the model's own]"
        ),
        click.option(
            "--set", "extra", multiple=True, metavar="NAME=VALUE", help="A setting of the model, such as p=0.2."
        ),
    )


def known_models() -> list[str]:
    """Return how models may be named: the agents that come with us, and the providers of others."""
    return [*(f"reference/{name}" for name in AGENTS), *(f"{p}/…" for p in models.names() if p != "reference")]


def read_setting(text: str, option: str = "--set", example: str = "p=0.2") -> tuple[str, Any]:
    """Return the name and the value of `name=value`; a value that is a JSON object becomes one."""
    name, separator, value = text.partition("=")
    if not separator or not name:
        raise UsageError(f"{option} {text} has no value; write it like {option} {example}")
    if not value.startswith("{"):
        return name, value
    try:
        return name, json.loads(value)
    except ValueError:
        raise UsageError(f"{option} {text} is no JSON object; write it like {option} 'body={{\"seed\": 1}}'") from None
