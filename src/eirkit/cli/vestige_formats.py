"""`eirkit vestige formats`: lists the log formats that can be read."""

from __future__ import annotations

from eirkit.cli.command import command
from eirkit.cli.output import Show, document_options
from eirkit.logs.trajectory import formats
from eirkit.show.document import Document
from eirkit.show.page import Listing, Section
from eirkit.show.phrases import counted
from eirkit.show.table import Column, Table

PLAIN = """\
{"run_id","task_id","model","resolved","goal_files":[…],
 "turns":[{"reads":[{"path","tokens"}],"writes":[{"path","tokens"}],"tokens"}]}"""
ABOUT_PLAIN = (
    "For logs that no other format fits, write one JSON object per line in the format plain; goal_files [] means that "
    "there are none, a missing goal_files that they are unknown:"
)
CONTAINERS = "Files, folders, .gz, .zst, .zip and Parquet are read in place; the format is found from the content."
COLUMNS = (Column("name", "name"), Column("description", "what it reads", role="text"))


@command("formats", example="eirkit vestige formats")
@document_options
def list_formats(show: Show) -> None:
    """List the log formats that can be read."""
    rows = tuple({"name": name, "description": _first_line(formats.get(name))} for name in formats.names())
    data = {"formats": list(rows), "containers": ["folder", ".gz", ".zst", ".zip", "parquet"]}
    sections = (
        Section("", (), (Table("formats", "Formats", COLUMNS, rows),)),
        Section("", (ABOUT_PLAIN,), (Listing("plain", "", PLAIN),)),
    )
    answer = (f"{counted(len(rows), 'log format')} can be read.", CONTAINERS)
    then = "eirkit vestige analyze PATH --out out/analysis"
    show(Document("vestige-formats", "Log formats", answer, data, sections, next=then))


def _first_line(plugin: object) -> str:
    return (plugin.__doc__ or "").strip().split("\n")[0]
