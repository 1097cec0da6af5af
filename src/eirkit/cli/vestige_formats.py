"""`eirkit vestige formats`: what can be read."""

from __future__ import annotations

import click
from rich.console import Console

from eirkit.cli.output import emit, json_option, table
from eirkit.logs.trajectory import formats

PLAIN = (
    "One JSON object on each line, for logs that no other format fits; goal_files [] means none, absent means unknown:",
    '{"run_id","task_id","model","resolved","goal_files":[…],',
    ' "turns":[{"reads":[{"path","tokens"}],"writes":[{"path","tokens"}],"tokens"}]}',
)
CONTAINERS = "Files, folders, .gz, .zst, .zip and Parquet are read in place; the format is found from the content."


@click.command("formats")
@json_option
def list_formats(as_json: bool) -> None:
    """List the kinds of logs that can be read."""
    rows = [{"name": name, "description": _first_line(formats.get(name))} for name in formats.names()]

    def render(console: Console) -> None:
        console.print(table("Formats", ("name", "what"), [(row["name"], row["description"]) for row in rows]))
        for line in (CONTAINERS, *PLAIN):
            console.print(line, markup=False, highlight=False)

    emit({"formats": rows, "containers": ["folder", ".gz", ".zst", ".zip", "parquet"]}, as_json, render)


def _first_line(plugin: object) -> str:
    return (plugin.__doc__ or "").strip().split("\n")[0]
