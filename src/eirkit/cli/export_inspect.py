"""`eirkit export inspect`: converts runs to Inspect logs."""

from __future__ import annotations

from pathlib import Path
from shlex import quote

import click

from eirkit.bridges.inspect_export import export_logs
from eirkit.cli.command import OUTPUT, command, option
from eirkit.cli.output import Show, document_options
from eirkit.show.document import Document
from eirkit.show.page import Section
from eirkit.show.phrases import counted
from eirkit.show.table import Cell, Column, Table



@command("inspect", example="eirkit export inspect out/run-1 --out out/logs")
@click.argument("folder", metavar="DIR", type=PATH)
@option(
    "--out",
    type=PATH,
    required=True,
    metavar="DIR",
    group=OUTPUT,
    help="Folder for the logs, one for each cell of the sweep.",
)
@document_options
def export_inspect(folder: Path, out: Path, show: Show) -> None:
    """Convert the runs of an `eirkit lacuna run` folder to `.eval` logs, which `inspect view` opens.

    Needs the extra eirkit[inspect].
    """
    logs = export_logs(folder, out)
    rows: list[dict[str, Cell]] = [{"file": path.name, "samples": samples} for path, samples in logs.items()]
    columns = (Column("file", "log", role="name"), Column("samples", "samples"))
    section = Section("", (), (Table("logs", f"Logs in {out}", columns, tuple(rows)),))
    said = f"{counted(sum(logs.values()), 'sample')} in {counted(len(logs), 'log')}."
    then = f"inspect view start --log-dir {quote(str(out))}"
    show(
        Document("export-inspect", "Export to Inspect", (said,), {"out": str(out), "logs": rows}, (section,), next=then)
    )
