"""`eirkit view`: a local page over a folder of runs; it ends with Ctrl-C."""

from __future__ import annotations

import os
import sys
import time
import webbrowser
from collections.abc import Mapping
from pathlib import Path

import click

from eirkit.cli.output import emit, json_option
from eirkit.logs.demand.gold_patches import open_gold_patches
from eirkit.show.viewer.folders import open_root
from eirkit.show.viewer.logs import LogFolders
from eirkit.show.viewer.routes import Viewer
from eirkit.show.viewer.server import ViewerServer, serve


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--logs",
    type=click.Path(path_type=Path, exists=True),
    multiple=True,
    help="What was analysed, for a look at raw logs; may be given again.",
)
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, help="Where to listen on loopback.  [default: any free port]"
)
@click.option("--browser/--no-browser", default=True, help="Open the page in your browser.  [default: browser]")
@click.option(
    "--plugins", is_flag=True, help="Run workloads and policies that runs name as files; only for runs of your own."
)
@click.option(
    "--gold",
    type=click.Path(path_type=Path, exists=True),
    help="Reference patches, for the text of lines that were lost.",
)
@json_option
def view(
    folder: Path, logs: tuple[Path, ...], port: int, browser: bool, plugins: bool, gold: Path | None, as_json: bool
) -> None:
    """Look at DIR in a browser: sweeps, rescues and analyses of recorded runs, live while they grow.

    The page is served on this machine alone and only to whoever has its address, which carries a token. Nothing outside
    DIR is read but the logs that you name.
    """
    viewer = Viewer(
        open_root(folder),
        LogFolders(tuple(path.resolve() for path in logs), plugins),
        time.time,
        plugins,
        None if gold is None else open_gold_patches(gold),
    )

    def started(server: ViewerServer) -> None:
        document = {"address": server.address, "port": server.port, "folder": str(viewer.root)}
        emit(
            document,
            as_json,
            lambda console: console.print(_words(server), highlight=False, markup=False, soft_wrap=True),
        )
        if browser and _has_screen(os.environ):
            webbrowser.open(server.address)

    serve(ViewerServer(viewer, port), started)


def _has_screen(environment: Mapping[str, str]) -> bool:
    # Without one, a browser of text would take the terminal.
    return sys.platform in ("darwin", "win32") or bool(environment.get("DISPLAY") or environment.get("WAYLAND_DISPLAY"))


def _words(server: ViewerServer) -> str:
    return f"Looking at {server.viewer.root}\n{server.address}\nCtrl-C ends it."
