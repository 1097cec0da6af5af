"""A click group that imports a command's module only when the command is used, so that help stays quick."""

from __future__ import annotations

from difflib import get_close_matches
from importlib import import_module
from typing import Any

import click
from click.shell_completion import CompletionItem


class ReaderLeftError(Exception):
    """Whoever read our output closed the pipe, as `head` does; no failure of ours."""


class LazyGroup(click.Group):
    """A group whose commands are given as {name: (module:object, one line of help)}."""

    def __init__(self, name: str, *, help: str, commands: dict[str, tuple[str, str]]) -> None:
        super().__init__(
            name, help=help, no_args_is_help=True, context_settings={"help_option_names": ["-h", "--help"]}
        )
        self.table = commands

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.table:
            return None
        module, _, attribute = self.table[cmd_name][0].partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0] if args else ""
        if name and name not in self.table and not name.startswith("-") and not ctx.resilient_parsing:
            near = get_close_matches(name, self.table, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(self.table)}"
            raise click.UsageError(f"no command named {name!r}; {hint}", ctx)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        # Left alone, click and rich end the process with exit code 1.
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise ReaderLeftError from None
        except SystemExit as leaving:
            if isinstance(leaving.__context__, BrokenPipeError):
                raise ReaderLeftError from None
            raise

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        # The inherited way imports every command to ask for its help, at each press of the key.
        own = [CompletionItem(n, help=text) for n, (_, text) in self.table.items() if n.startswith(incomplete)]
        return own + click.Command.shell_complete(self, ctx, incomplete)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in self.table.items()])
