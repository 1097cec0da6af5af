"""`eirkit vestige guard`: stand between an agent and its model, and say what its context lost."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

import click

from eirkit.cli.output import json_option
from eirkit.live.guard import LIKELY, Loss
from eirkit.live.proxy import GuardProxy, Telling


@click.command()
@click.option("--upstream", required=True, metavar="URL", help="The server that the agent would talk to.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port on loopback.  [default: a free one]")
@click.option(
    "--likely", type=click.FloatRange(0, 1), default=LIKELY, show_default=True, help="Chance from which to warn."
)
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="Also write every loss to this file.")
@json_option
def guard(upstream: str, port: int, likely: float, out: Path | None, as_json: bool) -> None:
    """Watch an agent's requests and say when they drop files it is likely to need again.

    Give the agent the printed address in place of its server's. Stop with Ctrl-C.
    """
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
    file = out.open("a", encoding="utf-8") if out is not None else None
    try:
        proxy = GuardProxy(upstream, _telling(as_json, file), port, likely)
        address = {"address": proxy.address, "upstream": upstream}
        told = json.dumps(address) if as_json else f"Point the agent at {proxy.address} in place of {upstream}."
        click.echo(told, err=not as_json)
        proxy.serve()
    finally:
        if file is not None:
            file.close()


def _telling(as_json: bool, file: TextIO | None) -> Telling:
    lock = threading.Lock()

    def tell(losses: Sequence[Loss]) -> None:
        with lock:
            for loss in losses:
                line = json.dumps(loss.as_json(), ensure_ascii=False)
                if file is not None:
                    file.write(line + "\n")
                    file.flush()
                if loss.likely:
                    click.echo(line if as_json else f"warning: {loss}", err=not as_json)

    return tell
