"""How commands are declared (groups of options, examples in help), `--json` and `--format`."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Iterable
from functools import wraps
from itertools import pairwise
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

import click

from eirkit.cli.help_all import help_all_option, is_whole
from eirkit.errors import UsageError
from eirkit.folders import replace_file
from eirkit.registry import records_read
from eirkit.report.document import Document
from eirkit.report.showing import FORMS, TEXT_WIDTH, Form, shown
from eirkit.report.table import clean
from eirkit.report.terminal import Line, document_lines
from eirkit.streams import PrintsOnStderr

if TYPE_CHECKING:
    ParamType = click.ParamType[Any]
else:
    ParamType = click.ParamType  # older versions of click cannot be subscripted


# The order of groups in help; a group that is not listed comes before Output.
GROUPS = ("Task", "Agent", "Memory", "Runs", "Evidence", "Spending", "Engine")
OUTPUT = "Output"
_NUMBERS = re.compile(r"\d+(,\d+)*")
_JOINED = re.compile(r"-h=?(\d+(?:,\d+)*)")


class Option(click.Option):
    """An option of a group.

    Args:
        common: whether `-h` shows it; `--help-all` shows every option.
        known: the names that may be given, which `--help-all` lists.
    """

    def __init__(
        self,
        *declarations: Any,
        group: str = "Options",
        common: bool = True,
        known: Callable[[], Iterable[str]] | None = None,
        **attributes: Any,
    ) -> None:
        super().__init__(*declarations, **attributes)
        self.group, self.common, self.known = group, common, known

    def type_cast_value(self, ctx: click.Context, value: Any) -> Any:
        if value == "" and isinstance(self.type, click.Path):  # an unset variable; Path("") would be the current folder
            raise click.BadParameter("a name is missing.", ctx, self)
        found = super().type_cast_value(ctx, value)
        if isinstance(found, float) and not isfinite(found):  # no range refuses NaN
            raise click.BadParameter(f"{value!r} is not a finite number.", ctx, self)
        return found

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        record = super().get_help_record(ctx)
        if record is None or self.known is None or not is_whole(ctx):
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

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        return [*super().get_params(ctx), help_all_option(hidden=not self._has_more)]

    @property
    def _has_more(self) -> bool:
        """True if `--help-all` shows more than `-h`."""
        ours = [parameter for parameter in self.params if isinstance(parameter, Option) and not parameter.hidden]
        return self.choices is not None or any(
            not parameter.common or parameter.known is not None for parameter in ours
        )

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        groups: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx) if isinstance(parameter, click.Option) else None
            if record is not None and (is_whole(ctx) or getattr(parameter, "common", True)):
                group = getattr(parameter, "group", OUTPUT)
                groups.setdefault(group, []).append(record)
        first = [group for group in GROUPS if group in groups]
        rest = [group for group in groups if group not in (*GROUPS, OUTPUT)]
        for group in (*first, *rest, *([OUTPUT] if OUTPUT in groups else [])):
            with formatter.section(group):
                formatter.write_dl(groups[group])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if self.choices is not None and is_whole(ctx):
            with formatter.section(self.choices[0]):
                formatter.write_text(f"{', '.join(self.choices[1]())}, or module:Name, or path/file.py:Name")
        if self.example:
            with formatter.section("Example"):
                formatter.write(f"  {self.example}\n")
        left = sum(
            isinstance(parameter, Option) and not parameter.hidden and not parameter.common for parameter in self.params
        )
        if self._has_more and not is_whole(ctx):
            more = f"{left} more option{'' if left == 1 else 's'}" if left else "All names that may be given"
            verb = "is" if left == 1 else "are"
            formatter.write_paragraph()
            formatter.write_text(f"{more} {verb} shown by `{ctx.command_path} --help-all`.")


def command(name: str | None = None, *, example: str, **attributes: Any) -> Callable[[Any], GroupedCommand]:
    """Return a decorator that makes a function a command with an example in its help."""
    return click.command(name, cls=GroupedCommand, example=example, **attributes)


def option(*declarations: Any, group: str = "Options", **attributes: Any) -> Callable[[Any], Any]:
    """Return a decorator that adds an option to a command, in one of the groups of its help."""
    return click.option(*declarations, cls=Option, group=group, **attributes)


def options(*added: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a decorator that adds several options in the order in which they are listed."""

    def decorate(function: Any) -> Any:
        for decorator in reversed(added):
            function = decorator(function)
        return function

    return decorate


plugins_flag = option(
    "--plugins",
    is_flag=True,
    help="Run code and open files that the records name, such as a workload file.py:Name; only if you trust them.",
)


def plugins_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --plugins to a command, which without it follows no name of code or of a file in what it reads."""

    @wraps(command)
    def reading(*arguments: Any, plugins: bool, **given: Any) -> Any:
        with records_read(plugins=plugins):
            return command(*arguments, plugins=plugins, **given)

    added: Callable[..., Any] = plugins_flag(reading)
    return added


def _refuse_short_h(ctx: click.Context, args: list[str]) -> None:
    """Point to --h where a number follows -h, which is short for --help."""
    for word, following in pairwise([*args, ""]):
        if word == "--":
            return
        joined = _JOINED.fullmatch(word)
        number = joined[1] if joined else following if word == "-h" and _NUMBERS.fullmatch(following) else None
        if number is not None:
            raise click.UsageError(f"-h is short for --help; write --h {number}", ctx)


Decorated = TypeVar("Decorated", bound=Callable[..., Any])
Show = Callable[[Document], None]

_STYLES = {"bold": "\x1b[1m", "dim": "\x1b[2m"}


class Output:
    """Where the document of one command goes, and in which form.

    In every form but text, stdout belongs to the document while the command runs: what plug-ins print goes to stderr.
    """

    def __init__(self, form: Form, *, explain: bool = False) -> None:
        self.form, self.explain = form, explain
        self.stdout: TextIO = sys.stdout
        self.spared = PrintsOnStderr()

    @property
    def is_text(self) -> bool:
        return self.form == "text"

    def show(self, document: Document) -> None:
        """Print the document."""
        if self.is_text:
            lines = document_lines(document, width_of(self.stdout), explain=self.explain)
            print_lines(list(lines), self.stdout)
        else:
            text = _encodable(shown(document, self.form), self.form, self.stdout)
            with self.spared.paused():
                click.echo(text, file=self.stdout)


def document_options(command: Decorated) -> Decorated:
    """Add --format, --json and --explain; the command receives `show`, to be called with its document."""

    @wraps(command)
    def with_show(form: Form | None, as_json: bool, explain: bool, **given: Any) -> Any:
        if as_json and form not in (None, "json"):
            raise UsageError(f"--json and --format {form} contradict each other; give one of them")
        output = Output("json" if as_json else form or "text", explain=explain)
        if output.is_text:
            return command(show=output.show, **given)
        with output.spared:
            return command(show=output.show, **given)

    said = f"How the result is printed: {', '.join(FORMS)}.  [default: text]"
    return options(  # type: ignore[no-any-return]
        option("--format", "form", group=OUTPUT, metavar="FORM", type=click.Choice(FORMS), help=said),
        option("--json", "as_json", group=OUTPUT, is_flag=True, help="Short for --format json."),
        option("--explain", group=OUTPUT, is_flag=True, help="Say below each table what its columns mean."),
    )(with_show)


class NameList(ParamType):
    """`fifo,lru`: comma-separated names.

    Args:
        example: what an error shows.
    """

    name = "names"

    def __init__(self, example: str = "fifo,lru") -> None:
        self._example = example

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[str]:
        if isinstance(value, list):
            return value
        names = [part.strip() for part in str(value).split(",")]
        if not all(names):
            self.fail(f"{value!r} is not a list such as {self._example}", param, ctx)
        return names


def write_file(path: Path, text: str) -> None:
    """Write a result with a newline at its end; a reader sees the old file or the whole new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, f"{text}\n".encode("utf-8", "backslashreplace"))


def print_lines(lines: list[Line], stream: TextIO) -> None:
    """Print lines, with bold and dim type where a terminal shows it."""
    styled = stream.isatty() and os.environ.get("TERM") != "dumb" and "NO_COLOR" not in os.environ
    for text, style in lines:
        click.echo(f"{_STYLES[style]}{text}\x1b[0m" if styled and style and text else text, file=stream, color=styled)


def width_of(stream: TextIO) -> int:
    """Return how many columns a stream has: a terminal's own, COLUMNS where it is set, else 80."""
    if not stream.isatty() and not os.environ.get("COLUMNS", "").isdigit():
        return TEXT_WIDTH
    return max(20, shutil.get_terminal_size((TEXT_WIDTH, 24)).columns)


def repeated(*without: str) -> str:
    """Return the command that was typed, without some of its words."""
    typed = click.get_current_context().find_root().obj
    return shlex.join(["eirkit", *(word for word in typed or () if word not in without)])


def say(line: str) -> None:
    """Print a line on stderr without control characters."""
    click.echo(clean(" ".join(line.split())), err=True)


def _encodable(text: str, form: Form, stream: TextIO) -> str:
    """Return JSON with everything beyond ASCII escaped where the stream is not Unicode; any other text as it is."""
    if form != "json" or (stream.encoding or "").lower().startswith("utf"):
        return text
    return "".join(letter if letter.isascii() else _escaped(letter) for letter in text)


def _escaped(letter: str) -> str:
    units = letter.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
