"""`eirkit doctor`: what can be used here, what is missing, and how to get it."""

from __future__ import annotations

import platform
from typing import Any

import click
from rich.console import Console

import eirkit
from eirkit.agents.stores.environments import install as install_memory
from eirkit.cli.output import emit, json_option, table
from eirkit.diagnosis import examine

WIDEST_REASON = 72  # characters, so that a table stays within a hundred columns


@click.command()
@click.option(
    "--install",
    metavar="NAMES",
    multiple=True,
    help="Make environments for these memory systems; separated by commas, or given again.",
)
@json_option
def doctor(install: tuple[str, ...], as_json: bool) -> None:
    """Say which memory systems, models, formats and engines are usable here, and how to get the rest."""
    for name in filter(None, ",".join(install).split(",")):
        install_memory(name.strip(), lambda line: click.echo(line, err=True))
    document = {"python": platform.python_version(), "eirkit": eirkit.__version__, **examine()}
    emit(document, as_json, lambda console: _render(console, document))


def _render(console: Console, document: dict[str, Any]) -> None:
    console.print(f"eirkit {document['eirkit']} on Python {document['python']}", markup=False, highlight=False)
    for family in ("memories", "models", "formats", "engines"):
        rows = [(one["name"], "yes" if one["usable"] else "no", one["reason"]) for one in document[family]]
        columns = ("name", "usable", "what is missing, or what it does")
        console.print(table(family.capitalize(), columns, rows, folded={columns[-1]: WIDEST_REASON}))
