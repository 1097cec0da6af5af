"""`eirkit export inspect`: runs as logs of Inspect."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console

from eirkit.bridges.inspect_export import export_logs
from eirkit.cli.output import emit, json_option

PATH = click.Path(path_type=Path)


@click.command("inspect")
@click.argument("folder", metavar="DIR", type=PATH)
@click.option("--out", type=PATH, required=True, help="A folder for the logs, one for each cell of the sweep.")
@json_option
def export_inspect(folder: Path, out: Path, as_json: bool) -> None:
    """Turn the runs of an `eirkit lacuna run` into `.eval` logs, which `inspect view` opens; needs eirkit[inspect]."""
    logs = export_logs(folder, out)
    document = {"out": str(out), "logs": [{"file": path.name, "samples": samples} for path, samples in logs.items()]}

    def render(console: Console) -> None:
        total = sum(logs.values())
        console.print(f"{total:,} samples in {len(logs):,} logs; open them with", markup=False, highlight=False)
        console.print(f"inspect view start --log-dir {out}", markup=False, highlight=False)

    emit(document, as_json, render)
