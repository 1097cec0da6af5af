"""Options of one task, as in `eir curve`, and parameter types that several commands share (seeds, lists, dollars)."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import wraps
from pathlib import Path
from shlex import quote
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from eirkit.cli.command import GroupedCommand, ParamType, option, options
from eirkit.errors import UsageError
from eirkit.lacuna.tasks.task import TaskSpec
from eirkit.lacuna.tasks.workload import conversations, workloads

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

LARGEST_SEED_RANGE = 10_000_000
_DEFAULT = TaskSpec("")
_TASK = {  # the fields of a task that have an option, with its help
    "n": "Number of steps.",
    "m": "Dependency window: how many recent results a step may need.",
    "lookback": "How many steps back references reach.",
    "fan_in": "Earlier results that each step uses.",
    "digits": "Decimal digits of each value.",
    "slots": "Values in each record.",
    "k": "Values in each answer (stepwise-topk only).",
    "seed": "Seed of the task.",
    "queries": "Distribution of queries: uniform or zipf (full-lookup only).",
    "warm_up": "Steps at the start that are not scored.",
    "overwrites": "Of 100 steps, how many overwrite a record (record-store only).",
    "deletes": "Of 100 steps, how many delete a record (record-store only).",
    "expiry": "Steps for which a record holds; 0: for ever (record-store only).",
    "users": "Users of the memory at the same time (record-store only).",
    "rereads": "Queries in a row about one record (record-store only).",
}
_COMMON = ("n", "m", "seed")


class IntegerList(ParamType):
    """`16,12,8`: a comma-separated list of integers, each at least `least`."""

    name = "integers"

    def __init__(self, least: int) -> None:
        self.least = least

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[int]:
        if isinstance(value, list):
            return value
        try:
            numbers = [int(part) for part in str(value).split(",")]
        except ValueError:
            self.fail(f"{value!r} is not a list such as 16,12,8", param, ctx)
        if low := [number for number in numbers if number < self.least]:
            self.fail(f"{low[0]} is below {self.least}", param, ctx)
        return numbers


class SeedList(ParamType):
    """`3`, `0,4,9` or `0:300` (300 excluded): seeds, not counts."""

    name = "seeds"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[int] | range:
        if not isinstance(value, str):
            return value  # type: ignore[no-any-return]
        try:
            if ":" in value:
                first, last = (int(part) for part in value.split(":"))
                seeds: list[int] | range = range(first, last)
            else:
                seeds = [int(part) for part in value.split(",")]
        except ValueError:
            self.fail(f"{value!r} is not a list of seeds such as 3, 0,4,9 or 0:300", param, ctx)
        if not _are_seeds(seeds):
            self.fail(
                f"{value!r} must name 1 to {LARGEST_SEED_RANGE:,} different seeds between 0 and 2^64 − 1", param, ctx
            )
        return seeds


def _are_seeds(seeds: list[int] | range) -> bool:
    if isinstance(seeds, range):  # by its ends: a range may be far too long to count
        return 0 <= seeds.start < seeds.stop <= min(seeds.start + LARGEST_SEED_RANGE, 1 << 64)
    return 0 <= min(seeds) <= max(seeds) < 1 << 64 and len(set(seeds)) == len(seeds)


class Dollars(ParamType):
    """An amount of money, exactly as it is written."""

    name = "dollars"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Decimal:
        try:
            amount = Decimal("Infinity") if value == "none" else Decimal(value)
        except ArithmeticError:
            self.fail(f"{value!r} is no amount; give dollars, such as 2.50, or none", param, ctx)
        if amount.is_nan() or amount < 0:
            self.fail(f"{value} is below 0; give 0 or more dollars", param, ctx)
        return amount


class WorkloadName(ParamType):
    """A registered workload, or module:Name; completes in the shell."""

    name = "workload"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        workloads.get(str(value))
        return str(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(n) for n in workloads.names() if n.startswith(incomplete)]


class TaskName(WorkloadName):
    """A registered workload, conversations included."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return str(value) if value in conversations else super().convert(value, param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        told = [CompletionItem(n) for n in conversations.names() if n.startswith(incomplete)]
        return [*super().shell_complete(ctx, param, incomplete), *told]


SEEDS_HELP = "Seeds, as 3, 0,4,9 or 0:300 (300 excluded)."


def workload_command(
    name: str | None = None, *, example: str, told: bool = False, **attributes: Any
) -> Callable[[Any], GroupedCommand]:
    """Return a decorator for a command about a WORKLOAD, whose help lists the registered workloads.

    Args:
        told: whether it takes conversations too.
    """

    def known() -> list[str]:
        more = conversations.names() if told else ()
        return [*workloads.names(), *(f"{name} (conversations)" for name in more)]

    return click.command(name, cls=GroupedCommand, example=example, choices=("WORKLOAD", known), **attributes)


def workload_argument(
    kind: ParamType, default: Any = None, metavar: str = "WORKLOAD"
) -> Callable[[Decorated], Decorated]:
    """Return a decorator that adds the argument WORKLOAD or --workload; the command receives `workload`."""

    def decorate(command: Decorated) -> Decorated:
        @wraps(command)
        def with_workload(workload: Any, workload_option: Any, **given: Any) -> Any:
            return command(workload=_workload(workload, workload_option, default), **given)

        shown = metavar if default is None else f"[{metavar}]"
        return options(  # type: ignore[no-any-return]
            click.argument("workload", metavar=shown, type=kind, required=False),
            option("--workload", "workload_option", type=kind, hidden=True, help="The same as WORKLOAD."),
        )(with_workload)

    return decorate


def _workload(argument: Any, option: Any, default: Any) -> Any:
    if argument is not None and option is not None and argument != option:
        raise UsageError(f"two workloads are given, {argument} and --workload {option}; give one of them")
    if (chosen := argument if argument is not None else option) is not None:
        return chosen
    if default is None:
        context = click.get_current_context()
        raise click.MissingParameter(ctx=context, param_hint="'WORKLOAD'", param_type="argument")
    return default


def task_options(command: Decorated, *, hide_seed: bool = False, pooled: bool = False) -> Decorated:
    """Add the task options; the command receives one `spec` whose workload is its `workload` argument.

    Args:
        hide_seed: the command takes many seeds, and refuses --seed with advice.
        pooled: --fan-in takes several values, which the command receives as `fan_ins`.
    """

    @wraps(command)
    def with_spec(workload: str, **given: Any) -> Any:
        values = {name: given.pop(name) for name in _TASK}
        if pooled:
            given["fan_ins"] = fan_ins = values["fan_in"]
            values["fan_in"] = fan_ins[0] if fan_ins and len(fan_ins) == 1 else _DEFAULT.fan_in
        return command(spec=TaskSpec(workload, **values), **given)

    named = dict.fromkeys(_TASK) | {"fan_in": IntegerList(1) if pooled else None}
    return options(  # type: ignore[no-any-return]
        *(
            task_option(name, kind, default="2,4" if kind else None, hidden=hide_seed and name == "seed")
            for name, kind in named.items()
        )
    )(with_spec)


def task_option(
    name: str, kind: ParamType | None = None, *, default: Any = None, hidden: bool = False
) -> Callable[[Any], Any]:
    """Return what adds the option of one field of a task.

    Args:
        kind: takes several values, and nothing where the option is not given; by default it takes one.
        default: where it is not the usual one of a task.
    """
    usual = getattr(_DEFAULT, name) if default is None else default
    text = _TASK[name]
    if kind is not None or name == "lookback":
        text += f"  [default: {'m' if name == 'lookback' else usual}]"
    return option(
        f"--{name.replace('_', '-')}",
        type=kind or (str if name == "queries" else int),
        default=None if kind is not None or name == "lookback" else usual,
        show_default=kind is None and name != "lookback",
        common=name in _COMMON,
        group="Task",
        help=text,
        hidden=hidden,
    )


preset_option = option(
    "--preset", group="Task", help="Size of conversations and what differs from it, as small+level=3+language=german."
)


def typed_task_options() -> list[str]:
    """Return the names of task options that were typed, --seed left out."""
    context = click.get_current_context()
    typed = click.core.ParameterSource.COMMANDLINE
    return [name for name in _TASK if name != "seed" and context.get_parameter_source(name) == typed]


def task_words(spec: TaskSpec) -> str:
    """Return a workload and the options that differ from the defaults, as they are typed."""
    words = [quote(spec.workload)]
    for name in ("n", "m", "fan_in", "digits", "slots", "k"):
        if getattr(spec, name) != getattr(_DEFAULT, name):
            words += [f"--{name.replace('_', '-')}", str(getattr(spec, name))]
    return " ".join(words)


graph_option = option(
    "--graph",
    type=click.Path(path_type=Path),
    group="Task",
    help='Take references from a JSON file: {"steps": [{"t": 1, "refs": []}, …]}.',
)
