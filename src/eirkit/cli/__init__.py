"""The command line: parse, call one function, print. Command modules are imported when their command is used."""

from __future__ import annotations

import os
import sys
from io import TextIOWrapper

import click

from eirkit import __version__
from eirkit.cli.lazy import LazyGroup, ReaderLeftError
from eirkit.errors import EirkitError

ROOT = LazyGroup(
    "eirkit",
    help="How much must an agent remember, does its memory keep it, and what did recorded runs lose?",
    commands={
        "demo": ("eirkit.cli.demo:demo", "The main questions answered on embedded defaults."),
        "eir": ("eirkit.cli.eir:group", "Exact bits that must survive a point in a task."),
        "lacuna": ("eirkit.cli.lacuna:group", "Generated tasks with controlled access to earlier results."),
        "doctor": ("eirkit.cli.doctor:doctor", "What can be used here, what is missing, and how to get it."),
        "vestige": ("eirkit.cli.vestige:group", "What recorded agent runs needed, and what they lost."),
        "export": ("eirkit.cli.export:group", "Tasks and runs in the forms that other tools take."),
        "mcp": ("eirkit.cli.mcp:group", "Tasks for whole agents that speak the Model Context Protocol."),
        "report": ("eirkit.cli.report:report", "One page from a folder of records, and its figures and tables."),
        "compare": ("eirkit.cli.compare:compare", "What differs between two folders, paired, with intervals."),
        "view": ("eirkit.cli.view:view", "Look at a folder of runs in a browser."),
        "watch": ("eirkit.cli.watch:watch", "Watch a sweep in the terminal while it runs."),
        "reproduce": ("eirkit.cli.reproduce:reproduce", "The paper's tables and figures beside ours."),
        "completion": ("eirkit.cli.completion:completion", "Print the completion script of your shell."),
    },
)
click.version_option(__version__, message="eirkit %(version)s")(ROOT)


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit: 0 done, 1 a check failed or the world did, 2 wrong usage or input."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal whose encoding lacks a character gets a question mark, not a traceback; also in the C locale, which
        # knows only how to give back bytes that it could not read.
        if isinstance(stream, TextIOWrapper) and stream.errors in ("strict", "surrogateescape"):
            stream.reconfigure(errors="replace")
    sys.exit(run(arguments))


def run(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code; every foreseen failure becomes one line on stderr."""
    try:
        result = ROOT.main(arguments, prog_name="eirkit", standalone_mode=False)
        sys.stdout.flush()  # here, where a closed pipe is still foreseen
        return result if isinstance(result, int) else 0
    except click.exceptions.NoArgsIsHelpError as shown:
        click.echo(shown.format_message(), err=True)
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
            return _complain(f"{error}; make room or try again", 1)
        return _complain(f"{error.filename}: {error.strerror}; check the path and its permissions", 2)
    # Anything else is a fault of ours and keeps its traceback; what plug-ins raise is a PluginError.


def _with_remedy(error: click.ClickException) -> str:
    message = " ".join(error.format_message().split())
    context = getattr(error, "ctx", None)
    where = context.command_path if context is not None else "eirkit"
    return f"{message.rstrip('.')}{'' if message.endswith('?') else ';'} see `{where} --help`"


def _complain(message: str, code: int) -> int:
    click.echo(f"eirkit: {' '.join(message.split())}", err=True)
    return code
