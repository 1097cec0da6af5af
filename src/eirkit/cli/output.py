"""Prints the document of a command to stdout or a file in the chosen --format; other output goes to stderr."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from functools import wraps
from pathlib import Path
from typing import Any, TextIO, TypeVar

import click

from eirkit.cli.command import OUTPUT, option, options
from eirkit.errors import UsageError
from eirkit.show.document import Document
from eirkit.show.html import clean
from eirkit.show.showing import FORMS, TEXT_WIDTH, Form, shown
from eirkit.show.terminal import Line, document_lines

Decorated = TypeVar("Decorated", bound=Callable[..., Any])
Show = Callable[[Document], None]

_STYLES = {"bold": "\x1b[1m", "dim": "\x1b[2m"}


class Output:
    """Where the document of one command goes, and in which form.

    In every form but text, stdout belongs to the document while the command runs: what plug-ins print goes to stderr.
    """

    def __init__(self, form: Form, file: Path | None) -> None:
        self.form, self.file = form, file
        self.stdout: TextIO = sys.stdout

    @property
    def is_text(self) -> bool:
        return self.form == "text"

    def show(self, document: Document) -> None:
        """Print the document, or write it to the file that was named."""
        if self.file is not None:
            write_file(self.file, shown(document, self.form))
            say(f"written to {self.file}")
        elif self.is_text:
            print_lines(list(document_lines(document, width_of(self.stdout))), self.stdout)
        else:
            click.echo(_encodable(shown(document, self.form), self.form, self.stdout), file=self.stdout)


def document_options(command: Decorated) -> Decorated:
    """Add --format, --json and --output; the command receives `show`, to be called with its document."""
    return document_options_with(click.Choice(FORMS))(command)


def document_options_with(form_type: Any) -> Callable[[Decorated], Decorated]:
    """Return the same for a command whose --format takes other names as well, which it must deal with first."""

    def decorate(command: Decorated) -> Decorated:
        @wraps(command)
        def with_show(form: Form | None, as_json: bool, output_file: Path | None, **given: Any) -> Any:
            if as_json and form not in (None, "json"):
                raise UsageError(f"--json and --format {form} contradict each other; give one of them")
            output = Output("json" if as_json else form or "text", output_file)
            if output.is_text:
                return command(show=output.show, **given)
            with redirect_stdout(sys.stderr):
                return command(show=output.show, **given)

        said = f"How the result is printed: {', '.join(FORMS)}.  [default: text]"
        form = option("--format", "form", group=OUTPUT, metavar="FORM", type=form_type, help=said)
        return options(form, *_OUTPUT)(with_show)  # type: ignore[no-any-return]

    return decorate


_OUTPUT = (
    option("--json", "as_json", group=OUTPUT, is_flag=True, help="Short for --format json."),
    option(
        "--output",
        "output_file",
        group=OUTPUT,
        metavar="FILE",
        type=click.Path(path_type=Path, dir_okay=False),
        help="Write the result to FILE instead of stdout.",
    ),
)


def write_file(path: Path, text: str) -> None:
    """Write a result with a newline at its end; a reader sees the old file or the whole new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.unfinished")
    unfinished.write_text(text + "\n", "utf-8", errors="backslashreplace")
    unfinished.replace(path)


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
