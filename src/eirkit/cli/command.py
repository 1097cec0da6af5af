"""Click command and option classes whose help shows options in groups and ends with an example."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any

import click

# The order of groups in help; a group that is not listed comes before Output.
GROUPS = ("Task", "Agent", "Memory", "Runs", "Evidence", "Spending", "Engine")
OUTPUT = "Output"
_NUMBERS = re.compile(r"\d+(,\d+)*")
_JOINED = re.compile(r"-h=?(\d+(?:,\d+)*)")


class Option(click.Option):
    """An option of a group; its help lists the names that are known, looked up when help is asked for."""

    def __init__(
        self,
        *declarations: Any,
        group: str = "Options",
        known: Callable[[], Iterable[str]] | None = None,
        **attributes: Any,
    ) -> None:
        super().__init__(*declarations, **attributes)
        self.group, self.known = group, known

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        record = super().get_help_record(ctx)
        if record is None or self.known is None:
            return record
        return record[0], f"{record[1]}  [known: {', '.join(self.known())}]"


class GroupedCommand(click.Command):
    """A command with grouped options and, where its help ends, names to choose from and an example."""

    def __init__(
        self,
        *arguments: Any,
        example: str = "",
        choices: tuple[str, Callable[[], Iterable[str]]] | None = None,
        resumed: Callable[[str, list[str]], list[str]] | None = None,
        **attributes: Any,
    ) -> None:
        super().__init__(*arguments, **attributes)
        self.example, self.choices = example, choices
        self.resumed = resumed  # the options that `--resume DIR` stands for, which come before those given

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if any("--h" in parameter.opts for parameter in self.params):
            _refuse_short_h(ctx, args)
        recorded = [] if self.resumed is None else self.resumed(self.name or "", args)
        return super().parse_args(ctx, [*recorded, *args])

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        groups: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx) if isinstance(parameter, click.Option) else None
            if record is not None:
                group = OUTPUT if "--help" in parameter.opts else getattr(parameter, "group", "Options")
                groups.setdefault(group, []).append(record)
        first = [group for group in GROUPS if group in groups]
        rest = [group for group in groups if group not in (*GROUPS, OUTPUT)]
        for group in (*first, *rest, *([OUTPUT] if OUTPUT in groups else [])):
            with formatter.section(group):
                formatter.write_dl(groups[group])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if self.choices is not None:
            with formatter.section(self.choices[0]):
                formatter.write_text(f"{', '.join(self.choices[1]())}, or module:Name, or path/file.py:Name")
        if self.example:
            with formatter.section("Example"):
                formatter.write(f"  {self.example}\n")


def command(name: str | None = None, *, example: str, **attributes: Any) -> Callable[[Any], GroupedCommand]:
    """Return a decorator that makes a function a command with an example in its help."""
    return click.command(name, cls=GroupedCommand, example=example, **attributes)


def option(*declarations: Any, group: str = "Options", **attributes: Any) -> Callable[[Any], Any]:
    """Return a decorator that adds an option to a command, in one of the groups of its help."""
    return click.option(*declarations, cls=Option, group=group, **attributes)


def options(*added: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a decorator that adds several options in the order in which they are listed."""

    def decorate(function: Any) -> Any:
        for one in reversed(added):
            function = one(function)
        return function

    return decorate


def _refuse_short_h(ctx: click.Context, args: list[str]) -> None:
    """Point to --h where a number follows -h, which is short for --help."""
    for word, following in pairwise([*args, ""]):
        if word == "--":
            return
        joined = _JOINED.fullmatch(word)
        number = joined[1] if joined else following if word == "-h" and _NUMBERS.fullmatch(following) else None
        if number is not None:
            raise click.UsageError(f"-h is short for --help; write --h {number}", ctx)
