"""Options and parameter types that several commands share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.shell_completion import CompletionItem

from eirkit.tasks.task import TaskSpec
from eirkit.tasks.workload import workloads

Command = TypeVar("Command", bound=Callable[..., Any])

LARGEST_SEED_RANGE = 10_000_000
_DEFAULT = TaskSpec("")

if TYPE_CHECKING:
    ParamType = click.ParamType[Any]
else:
    ParamType = click.ParamType  # older versions of click cannot be subscripted


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
            self.fail(f"{value!r} is none of 3, 0,4,9 or 0:300", param, ctx)
        if not _are_seeds(seeds):
            self.fail(f"{value!r} must name 1 … {LARGEST_SEED_RANGE} different seeds in 0 … 2^64 − 1", param, ctx)
        return seeds


def _are_seeds(seeds: list[int] | range) -> bool:
    if isinstance(seeds, range):  # by its ends: a range may be far too long to count
        return 0 <= seeds.start < seeds.stop <= min(seeds.start + LARGEST_SEED_RANGE, 1 << 64)
    return 0 <= min(seeds) <= max(seeds) < 1 << 64 and len(set(seeds)) == len(seeds)


class NameList(ParamType):
    """`fifo,lru`: comma-separated names."""

    name = "names"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[str]:
        if isinstance(value, list):
            return value
        names = [part.strip() for part in str(value).split(",")]
        if not all(names):
            self.fail(f"{value!r} is not a list such as fifo,lru", param, ctx)
        return names


class WorkloadName(ParamType):
    """A registered workload, or module:Name; completes in the shell."""

    name = "workload"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        workloads.get(str(value))
        return str(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(n) for n in workloads.names() if n.startswith(incomplete)]


class NamingOption(click.Option):
    """An option whose help lists the names that are known, looked up when help is asked for."""

    def __init__(self, *declarations: Any, known: Callable[[], Iterable[str]], **attributes: Any) -> None:
        super().__init__(*declarations, **attributes)
        self.known = known

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        record = super().get_help_record(ctx)
        return None if record is None else (record[0], f"{record[1]}  [known: {', '.join(self.known())}]")


class WorkloadCommand(click.Command):
    """A command with an argument WORKLOAD, whose help lists the known ones."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("WORKLOAD"):
            formatter.write_text(f"{', '.join(workloads.names())}, or module:Name, or path/file.py:Name")


def task_options_of_many(command: Command) -> Command:
    """Add the task options to a command that takes many seeds; --seed is out of sight, and refused with advice."""
    return task_options(command, hide_seed=True)


def task_options(command: Command, *, hide_seed: bool = False) -> Command:
    """Add the task options; the command receives one `spec` whose workload is its `workload` argument."""

    @wraps(command)
    def with_spec(workload: str, **given: Any) -> Any:
        names = ("n", "m", "lookback", "fan_in", "digits", "slots", "k", "seed", "queries", "warm_up")
        spec = TaskSpec(workload, **{name: given.pop(name) for name in names})
        return command(spec=spec, **given)

    options = (
        click.option("--n", type=int, default=_DEFAULT.n, show_default=True, help="Steps."),
        click.option("--m", type=int, default=_DEFAULT.m, show_default=True, help="Dependency window."),
        click.option("--lookback", type=int, help="How far back references reach; m unless given."),
        click.option("--fan-in", type=int, default=_DEFAULT.fan_in, show_default=True, help="References a step."),
        click.option("--digits", type=int, default=_DEFAULT.digits, show_default=True, help="Digits a value."),
        click.option("--slots", type=int, default=_DEFAULT.slots, show_default=True, help="Values a record."),
        click.option("--k", type=int, default=_DEFAULT.k, show_default=True, help="Values a frontier (top-k)."),
        click.option("--seed", type=int, default=_DEFAULT.seed, show_default=True, hidden=hide_seed),
        click.option("--queries", default=_DEFAULT.queries, show_default=True, help="Full Lookup: uniform or zipf."),
        click.option("--warm-up", type=int, default=_DEFAULT.warm_up, help="Leading steps left unscored."),
    )
    decorated: Any = with_spec
    for option in reversed(options):
        decorated = option(decorated)
    return decorated  # type: ignore[no-any-return]
