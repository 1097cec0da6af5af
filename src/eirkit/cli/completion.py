"""`eirkit completion SHELL`: prints the shell completion script for eirkit."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from eirkit.cli.command import command
from eirkit.cli.output import Show, document_options
from eirkit.errors import UsageError
from eirkit.show.document import Document
from eirkit.show.page import Listing, Section


@command(example='eval "$(eirkit completion bash)"')
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@document_options
def completion(shell: str, show: Show) -> None:
    """Print the completion script for SHELL: bash, zsh or fish."""
    kind = get_completion_class(shell)
    if kind is None:
        raise UsageError(f"no completion for {shell!r}; use bash, zsh or fish")
    root = click.get_current_context().find_root().command
    script = kind(root, {}, "eirkit", "_EIRKIT_COMPLETE").source()
    listing = Section("", (), (Listing("script", "", script),))
    # The shell evaluates the text, so the script is all of it: no sentence before and no line after it.
    show(Document("completion", f"Completion for {shell}", (), {"shell": shell, "script": script}, (listing,)))
