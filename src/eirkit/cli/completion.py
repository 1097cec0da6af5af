"""`eirkit completion SHELL`: the script that teaches a shell our commands and options."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from eirkit.cli.output import emit, json_option
from eirkit.errors import UsageError


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@json_option
def completion(shell: str, as_json: bool) -> None:
    """Print the completion script of SHELL.

    Enable it with, for example, `eval "$(eirkit completion bash)"`.
    """
    kind = get_completion_class(shell)
    if kind is None:
        raise UsageError(f"no completion for {shell!r}; use bash, zsh or fish")
    root = click.get_current_context().find_root().command
    script = kind(root, {}, "eirkit", "_EIRKIT_COMPLETE").source()
    emit({"shell": shell, "script": script}, as_json, lambda _: click.echo(script))
