"""Entry point of the command line: runs a command and turns expected errors into one line and an exit code."""

from __future__ import annotations

import os
import sys
from io import TextIOWrapper

import click

from eirkit.cli.catalogue import ROOT
from eirkit.cli.lazy import LazyGroup, ReaderLeftError
from eirkit.errors import EirkitError
from eirkit.show.html import clean


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit: 0 done, 1 a check or the infrastructure failed, 2 wrong usage or input."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal whose encoding lacks a character gets a question mark, not a traceback. "surrogateescape" is the
        # handler of the C locale.
        if isinstance(stream, TextIOWrapper) and stream.errors in ("strict", "surrogateescape"):
            stream.reconfigure(errors="replace")
    sys.exit(run(arguments))


def run(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code; every expected failure becomes one line on stderr."""
    try:
        typed = list(sys.argv[1:] if arguments is None else arguments)
        result = ROOT.main(typed, prog_name="eirkit", standalone_mode=False, obj=typed)
        sys.stdout.flush()  # here, where a closed pipe is still handled
        return result if isinstance(result, int) else 0
    except click.exceptions.NoArgsIsHelpError as shown:
        if shown.ctx is not None and isinstance(shown.ctx.command, LazyGroup):
            click.echo(shown.ctx.command.first_steps(shown.ctx), err=True)
        return 2
    except click.ClickException as error:
        return _complain(_with_remedy(error), 2)
    except EirkitError as error:
        return _complain(str(error), error.exit_code)
    except (KeyboardInterrupt, click.Abort):
        return _complain("interrupted", 130)
    except (ReaderLeftError, BrokenPipeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the interpreter's last flush stays quiet
        return 0
    except OSError as error:
        if error.filename is None:
            return _complain(f"{error}; free some space or try again", 1)
        return _complain(f"{error.filename}: {error.strerror}; check the path and its permissions", 2)
    # Anything else is a bug in eirkit and keeps its traceback; what plug-ins raise is a PluginError.


def _with_remedy(error: click.ClickException) -> str:
    message = " ".join(error.format_message().split())
    context = getattr(error, "ctx", None)
    where = context.command_path if context is not None else "eirkit"
    return f"{message.rstrip('.')}{'' if message.endswith('?') else ';'} see `{where} --help`"


def _complain(message: str, code: int) -> int:
    click.echo(f"eirkit: {clean(' '.join(message.split()))}", err=True)
    return code
