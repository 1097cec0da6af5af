"""Command groups that import a command's module only when the command is used, so that help stays quick."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from importlib import import_module
from typing import Any

import click
from click.shell_completion import CompletionItem

CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


class ReaderLeftError(Exception):
    """The reader of our output closed the pipe, as `head` does; not an error."""


class LazyGroup(click.Group):
    """A group whose commands are given as {name: (module:object, one line of help)} or as groups.

    Args:
        questions: what is printed above the list of commands: a question and the command that answers it.
    """

    def __init__(
        self,
        name: str,
        *,
        help: str,
        commands: Mapping[str, tuple[str, str] | LazyGroup],
        questions: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(name, help=help, no_args_is_help=True, context_settings=dict(CONTEXT))
        self.table = dict(commands)
        self.questions = questions or {}

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

    def first_steps(self, ctx: click.Context) -> str:
        """Return what is printed where no command is given: the questions, then the commands."""
        if not self.questions:
            return self.get_help(ctx)
        formatter = ctx.make_formatter()
        formatter.write_dl(list(self.questions.items()), col_max=60)
        self.format_commands(ctx, formatter)
        formatter.write_paragraph()
        formatter.write_text(f"`{ctx.command_path} COMMAND --help` explains a command and shows an example.")
        return formatter.getvalue().rstrip("\n")

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_help_text(ctx, formatter)
        if self.questions:
            formatter.write_paragraph()
            with formatter.indentation():
                formatter.write_dl(list(self.questions.items()), col_max=60)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, self.summary(name)) for name in self.table])
