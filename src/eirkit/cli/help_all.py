"""`--help-all`: the whole help of a command or group; `-h` shows the common part and says how much more there is."""

from __future__ import annotations

import click

_ALL = "eirkit.help_all"


def is_whole(ctx: click.Context) -> bool:
    """True if the help that is being written is to show everything."""
    return bool(ctx.meta.get(_ALL))


def help_all_option(*, hidden: bool = False) -> click.Option:
    """Return the option --help-all of a command."""

    def show(ctx: click.Context, param: click.Parameter, value: bool) -> None:
        if value and not ctx.resilient_parsing:
            ctx.meta[_ALL] = True
            click.echo(ctx.get_help(), color=ctx.color)
            ctx.exit()

    words = "Show everything and exit."
    return click.Option(
        ["--help-all"], is_flag=True, expose_value=False, is_eager=True, callback=show, help=words, hidden=hidden
    )
