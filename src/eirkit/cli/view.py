"""`eirkit view`: browse a folder of results in a web browser; ends with Ctrl-C."""

from __future__ import annotations

import os
import sys
import time
import webbrowser
from collections.abc import Mapping
from pathlib import Path

import click

from eirkit.cli.command import Show, command, document_options, option
from eirkit.logs.demand.gold_patches import open_gold_patches
from eirkit.show.document import Document, Listing, Section
from eirkit.show.viewer.folders import open_root
from eirkit.show.viewer.logs import LogFolders
from eirkit.show.viewer.routes import Viewer
from eirkit.show.viewer.server import ViewerServer, serve


@command(example="eirkit view out")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@option(
    "--logs",
    type=click.Path(path_type=Path, exists=True),
    metavar="PATH",
    multiple=True,
    help="The logs that were analysed, to show raw entries. Can be repeated.",
)
@option(
    "--gold",
    type=click.Path(path_type=Path, exists=True),
    metavar="DIR",
    help="Reference patches, to show the text of lines that were lost.",
)
@option("--port", type=click.IntRange(0, 65535), default=0, help="Port on loopback.  [default: a free one]")
@option("--browser/--no-browser", default=True, help="Open the page in your browser.  [default: browser]")
@option(
    "--plugins",
    is_flag=True,
    help="Execute workloads and policies that the records name as Python files; only for records you trust.",
)
@document_options
def view(
    folder: Path, logs: tuple[Path, ...], gold: Path | None, port: int, browser: bool, plugins: bool, show: Show
) -> None:
    """Browse the sweeps, rescues and analyses in DIR, live while they grow.

    The page is served on this machine alone, to whoever has its address, which contains a token. Nothing outside DIR is
    read except the logs and patches that you name.
    """
    viewer = Viewer(
        open_root(folder),
        LogFolders(tuple(Path(os.path.realpath(path)) for path in logs), plugins),
        time.time,
        plugins,
        None if gold is None else open_gold_patches(gold),
    )

    def started(server: ViewerServer) -> None:
        show(_document(server))
        if browser and _has_screen(os.environ):
            webbrowser.open(server.address)

    serve(ViewerServer(viewer, port), started)


def _document(server: ViewerServer) -> Document:
    data = {"address": server.address, "port": server.port, "folder": str(server.viewer.root)}
    answer = (f"Serving {server.viewer.root} until Ctrl-C.",)
    return Document("view", "Viewer", answer, data, (Section("", (), (Listing("address", "", server.address),)),))


def _has_screen(environment: Mapping[str, str]) -> bool:
    # Without a screen a text browser would take over the terminal.
    return sys.platform in ("darwin", "win32") or bool(environment.get("DISPLAY") or environment.get("WAYLAND_DISPLAY"))
