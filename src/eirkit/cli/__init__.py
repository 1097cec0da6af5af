"""The tree of commands with its groups and their help; turns expected errors into one line and an exit code."""

from __future__ import annotations

import errno
import os
import re
import signal
import sys
import textwrap
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from importlib import import_module
from io import TextIOWrapper
from shutil import get_terminal_size
from typing import Any, TextIO

import click
from click.shell_completion import CompletionItem

from eirkit import __version__
from eirkit.cli.help_all import help_all_option, is_whole
from eirkit.errors import EirkitError
from eirkit.report.table import clean
from eirkit.streams import COMMAND, open_closed_streams

CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


class ReaderLeftError(Exception):
    """The reader of our output closed the pipe, as `head` does; not an error."""


class LazyGroup(click.Group):
    """A group whose commands are given as {name: (module:object, one line of help)} or as groups.

    Args:
        headings: the commands of the first screen under headings; the others are shown by `--help-all`. Without it
            all are shown.
        ending: the last paragraph of the first screen.
    """

    def __init__(
        self,
        name: str,
        *,
        help: str,
        commands: Mapping[str, tuple[str, str] | LazyGroup],
        headings: Mapping[str, Sequence[str]] | None = None,
        ending: str = "",
    ) -> None:
        super().__init__(name, help=help, no_args_is_help=True, context_settings=dict(CONTEXT))
        self.table = dict(commands)
        self.headings = headings or {}
        self.ending = ending

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.table)

    def summary(self, name: str) -> str:
        """Return the line of help of one command."""
        entry = self.table[name]
        return (entry.help or "") if isinstance(entry, LazyGroup) else entry[1]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.table:
            return None
        entry = self.table[cmd_name]
        if isinstance(entry, LazyGroup):
            return entry
        module, _, attribute = entry[0].partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0] if args else ""
        if name and name not in self.table and not name.startswith("-") and not ctx.resilient_parsing:
            raise click.UsageError(f"no command named {name!r}; {self._hint(name, ctx.command_path)}", ctx)
        return super().resolve_command(ctx, args)

    def _hint(self, name: str, path: str) -> str:
        """Return the command that was probably meant: one of this group, or of a group in it."""
        below = {
            verb: f"{path} {group} {verb}"
            for group, entry in self.table.items()
            if isinstance(entry, LazyGroup)
            for verb in entry.table
        }
        if name in below:
            return f"did you mean `{below[name]}`?"
        own = {verb: f"{path} {verb}" for verb in self.table}
        known = {**below, **own}
        near = get_close_matches(name, known, n=1)
        return f"did you mean `{known[near[0]]}`?" if near else f"known: {', '.join(self.table)}"

    def invoke(self, ctx: click.Context) -> Any:
        # Left alone, click ends the process with exit code 1.
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise ReaderLeftError from None
        except SystemExit as leaving:
            if isinstance(leaving.__context__, BrokenPipeError):
                raise ReaderLeftError from None
            raise

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        # click's own way imports every command to ask for its help, at each press of the key.
        own = [CompletionItem(n, help=self.summary(n)) for n in self.table if n.startswith(incomplete)]
        return own + click.Command.shell_complete(self, ctx, incomplete)

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        return [*super().get_params(ctx), help_all_option(hidden=not self.headings)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        named = {name for names in self.headings.values() for name in names}
        more = [name for name in self.table if name not in named]
        rest = {"More" if self.headings else "Commands": more} if is_whole(ctx) or not self.headings else {}
        for heading, names in {**self.headings, **rest}.items():
            with formatter.section(heading):
                formatter.write_dl([(name, self.summary(name)) for name in names], col_max=12)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if self.ending:
            formatter.write_paragraph()
            formatter.write_text(self.ending)


EIR = LazyGroup(
    "eir",
    help="Count the bits that an agent must remember.",
    commands={
        "curve": ("eirkit.cli.eir:curve", "Bits that must survive each step of a generated task."),
        "count": ("eirkit.cli.eir:count", "Bits that a contract of your own requires."),
        "frontier": ("eirkit.cli.eir_frontier:frontier", "How often a memory of a given size can be right."),
    },
)

LACUNA = LazyGroup(
    "lacuna",
    help="Test agents and memory systems on generated tasks.",
    commands={
        "run": ("eirkit.cli.lacuna_run:run", "Run agents under a memory condition; can be resumed."),
        "rescue": ("eirkit.cli.experiments:rescue", "Test whether restoring a lost result repairs the answer."),
        "capability": (
            "eirkit.cli.experiments:capability",
            "Test which models can do which task with nothing missing.",
        ),
        "probe": ("eirkit.cli.experiments:probe", "Test whether a model can recompute a lost result."),
        "generate": ("eirkit.cli.tasks:generate", "Print or write tasks with their answers."),
        "simulate": ("eirkit.cli.simulate:simulate", "Miss rates of retention policies, without an agent."),
        "cones": ("eirkit.cli.tasks:cones", "What it costs to recompute a lost result."),
        "audit": ("eirkit.cli.experiments:audit", "Check that the task interface leaks nothing."),
    },
)

VESTIGE = LazyGroup(
    "vestige",
    help="Analyze recorded agent runs for what they needed and lost.",
    commands={
        "analyze": ("eirkit.cli.vestige.analyze:analyze", "Read logs and write tables of what each run needed."),
        "cohort": ("eirkit.cli.vestige.cohort:cohort", "Statistics: did failed runs need more than resolved ones?"),
        "compact": ("eirkit_coding.cli.compact:compact", "How much of what recorded runs needed compactors keep."),
        "query": ("eirkit.cli.vestige.cohort:run_query", "SQL over the tables of an analysis."),
        "formats": ("eirkit.cli.doctor:list_formats", "The log formats that can be read."),
    },
)

EXPORT = LazyGroup(
    "export",
    help="Convert tasks and runs for other tools.",
    commands={
        "jsonl": ("eirkit_bridges.cli.export:export_jsonl", "Runs as lines of JSON, for archives and other programs."),
        "harbor": ("eirkit_bridges.cli.export:harbor", "Tasks as folders for Harbor and Terminal-Bench."),
        "inspect": ("eirkit_bridges.cli.export:export_inspect", "Runs as logs that `inspect view` opens."),
        "otel": ("eirkit_bridges.cli.export:export_otel", "Runs as OpenTelemetry traces."),
    },
)

MCP = LazyGroup(
    "mcp",
    help="Give tasks to agents over the Model Context Protocol.",
    commands={"serve": ("eirkit_bridges.cli.mcp_serve:serve", "Serve tasks to an agent as MCP tools.")},
)

GUARD = LazyGroup(
    "guard",
    help="Restore what compactions drop, inside a coding agent.",
    commands={
        "install": ("eirkit_coding.cli.guard:install", "Install the guard into an agent."),
        "uninstall": ("eirkit_coding.cli.guard:uninstall", "Remove the guard from an agent."),
        "status": ("eirkit_coding.cli.guard:status", "Where the guard is installed, and what it failed to do."),
        "watch": ("eirkit_coding.cli.guard:watch", "Watch a live agent and report what its context drops."),
        "results": ("eirkit_coding.cli.guard_results:results", "What a trial of the guard shows."),
        "hook": ("eirkit_coding.cli.guard:hook", "Answer one event of an agent; the hooks call this."),
    },
)

ROOT = LazyGroup(
    "eirkit",
    help="Measure what an agent must remember, what its memory keeps, and what recorded runs lost.",
    headings={
        "Measure": ("demo", "eir", "lacuna", "vestige"),
        "Look at results": ("choose", "show", "report", "view"),
        "Your coding agents": ("week", "guard"),
        "Connect": ("mcp", "export"),
    },
    ending="`eirkit doctor` says what is usable here; `eirkit --help-all` lists the other commands.",
    commands={
        "demo": ("eirkit.cli.demo:demo", "Answer the three questions on built-in examples, offline."),
        "eir": EIR,
        "lacuna": LACUNA,
        "vestige": VESTIGE,
        "week": (
            "eirkit_coding.cli.week:week",
            "What the coding agents of this machine used, cost and lost in a week.",
        ),
        "report": ("eirkit.cli.report:report", "Write one HTML page about a folder of results."),
        "compare": ("eirkit.cli.compare:compare", "Compare two folders of results, paired, with intervals."),
        "choose": ("eirkit.cli.report:choose", "Rank memories, models or settings, with ties and what to run next."),
        "submit": ("eirkit_bridges.cli.board:submit", "Make a folder of results that others can check."),
        "board": ("eirkit_bridges.cli.board:board", "Check submissions and write a site that ranks those that pass."),
        "view": ("eirkit.cli.view:view", "Browse a folder of results in a web browser."),
        "show": ("eirkit.cli.show:show", "What one run needed and lost, and why one step is wrong."),
        "watch": ("eirkit.cli.watch:watch", "Follow a sweep in the terminal while it runs."),
        "reproduce": ("eirkit_paper.cli.reproduce:reproduce", "Compute the paper's tables and figures again."),
        "guard": GUARD,
        "export": EXPORT,
        "mcp": MCP,
        "selftest": ("eirkit.cli.selftest:selftest", "Check what eirkit says about models with known faults."),
        "doctor": ("eirkit.cli.doctor:doctor", "What is usable here, what is missing, and how to install it."),
        "completion": ("eirkit.cli.doctor:completion", "Print a completion script for your shell."),
    },
)
click.version_option(__version__, message="eirkit %(version)s")(ROOT)

# Other spellings of commands, which are accepted and not shown.
ACCEPTED: dict[tuple[str, ...], tuple[str, ...]] = {
    ("lacuna", "words"): ("lacuna", "generate", "conversation"),
    ("vestige", "guard"): ("guard", "watch"),
    ("vestige", "show"): ("show",),
    ("vestige", "week"): ("week",),
}


# What we and the progress bar print: colors, moves of the cursor, and a return to the start of a line that is erased.
_OURS = re.compile(r"(\x1b\[\??[\d;]{0,16}[A-HJKmhl]|\r(?=\n|\x1b\[2K))")
_LINE_END = re.compile(r"(\r(?=\n))")


class CleanStream:
    """A text stream that writes no character which steers a terminal.

    Run ids, file names, errors of plug-ins and replies of servers are foreign. Documents and messages are cleaned where
    they are made; this is for everything else, tracebacks and what plug-ins print included.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write a text; where the stream is no terminal, not even our own marks belong in it."""
        parts = (_OURS if self._stream.isatty() else _LINE_END).split(text)
        self._stream.write("".join(part if place % 2 else clean(part) for place, part in enumerate(parts)))
        return len(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit: 0 done, 1 a check or the infrastructure failed, 2 wrong usage or input."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    open_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        # A terminal whose encoding lacks a character gets a question mark, not a traceback. "surrogateescape" is the
        # handler of the C locale.
        if isinstance(stream, TextIOWrapper) and stream.errors in ("strict", "surrogateescape"):
            stream.reconfigure(errors="replace")
    sys.stdout, sys.stderr = CleanStream(sys.stdout), CleanStream(sys.stderr)
    sys.exit(run(arguments))


def run(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code; every expected failure becomes one line on stderr."""
    before, command = os.environ.get(COMMAND), os.urandom(8).hex()
    os.environ[COMMAND] = command
    try:
        code = _run(arguments)
        plug_ins = sys.modules.get(
            "eirkit.lacuna.memories.child_process"
        )  # loaded only where one may have been started
        left = [] if plug_ins is None else plug_ins.left_of_command(command)
    except KeyboardInterrupt:
        return 130
    finally:
        os.environ.pop(COMMAND)
        if before is not None:
            os.environ[COMMAND] = before
    if not left:
        return code
    who = f"{len(left)} {'process' if len(left) == 1 else 'processes'} of a memory or compactor"
    return _complain(f"{who} could not be ended; run: kill -9 {' '.join(map(str, left))}", code or 1)


def _run(arguments: list[str] | None) -> int:
    try:
        typed = list(sys.argv[1:] if arguments is None else arguments)
        typed[:2] = ACCEPTED.get(tuple(typed[:2]), typed[:2])
        result = ROOT.main(typed, prog_name="eirkit", standalone_mode=False, obj=typed)
        sys.stdout.flush()  # here, where a closed pipe is still handled
        return result if isinstance(result, int) else 0
    except click.exceptions.NoArgsIsHelpError as shown:
        if shown.ctx is not None:
            click.echo(shown.ctx.get_help(), err=True)
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
    except MemoryError:
        return _complain("out of memory; give less at once, or use a machine with more", 1)
    except OSError as error:
        if error.filename is None or error.errno in (errno.ENOSPC, errno.EDQUOT):
            return _complain(f"{error}; free some space or try again", 1)
        return _complain(f"{error.filename}: {error.strerror}; check the path and its permissions", 2)
    # Anything else is a bug in eirkit and keeps its traceback; what plug-ins raise is a PluginError.


def _with_remedy(error: click.ClickException) -> str:
    message = " ".join(error.format_message().split())
    context = getattr(error, "ctx", None)
    where = context.command_path if context is not None else "eirkit"
    return f"{message.rstrip('.')}{'' if message.endswith('?') else ';'} see `{where} --help`"


def _complain(message: str, code: int) -> int:
    """Print an error as one line, which a terminal shows wrapped between words."""
    line = f"eirkit: {clean(' '.join(message.split()))}"
    if sys.stderr.isatty():
        width = max(20, get_terminal_size().columns)
        line = textwrap.fill(line, width, break_long_words=False, break_on_hyphens=False)
    click.echo(line, err=True)
    return code
