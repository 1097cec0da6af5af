"""`eirkit vestige guard`: watch an agent's requests and report what its context drops."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

import click

from eirkit.cli.command import OUTPUT, command, option, say
from eirkit.live.guard import LIKELY, Loss
from eirkit.live.proxy import GuardProxy, Telling
from eirkit.show.showing import json_text


@command(example="eirkit vestige guard --upstream https://api.anthropic.com")
@option("--upstream", required=True, metavar="URL", help="The model server that the agent would talk to.")
@option("--port", type=click.IntRange(0, 65535), default=0, help="Port on loopback.  [default: a free one]")
@option(
    "--likely",
    type=click.FloatRange(0, 1),
    default=LIKELY,
    show_default=True,
    help="Warn about a file from this probability that it is needed again.",
)
@option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    group=OUTPUT,
    help="Also append every loss to this file, as JSON lines.",
)
@option("--json", "as_json", is_flag=True, group=OUTPUT, help="Print JSON lines on stdout instead of warnings.")
def guard(upstream: str, port: int, likely: float, out: Path | None, as_json: bool) -> None:
    """Watch an agent's requests and warn when they drop files that it is likely to need again.

    Give the agent the printed address in place of its model server's. Stop with Ctrl-C.
    """
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
    file = out.open("a", encoding="utf-8") if out is not None else None
    try:
        proxy = GuardProxy(upstream, _telling(as_json, file), port, likely)
        if as_json:
            click.echo(json_text({"address": proxy.address, "upstream": proxy.shown_upstream}))
        else:
            say(f"Point the agent at {proxy.address} in place of {proxy.shown_upstream}.")
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
                if loss.likely and as_json:
                    click.echo(json_text(loss.as_json()))
                elif loss.likely:
                    say(f"warning: {loss}")

    return tell
