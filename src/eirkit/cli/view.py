"""`eirkit view`: browse a folder of results in a web browser."""

from __future__ import annotations

import os
import sys
import tempfile
import time
import webbrowser
from collections.abc import Mapping
from pathlib import Path
from threading import Thread

import click

from eirkit.cli.command import Show, command, document_options, option, plugins_option
from eirkit.report.document import Document, Listing, Section
from eirkit.report.viewer.folders import open_root
from eirkit.report.viewer.logs import LogFolders
from eirkit.report.viewer.routes import Viewer
from eirkit.report.viewer.server import ViewerServer, serve
from eirkit.vestige.demand.gold_patches import open_gold_patches


@command(example="eirkit view out")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@option(
    "--logs",
    type=click.Path(path_type=Path, exists=True),
    metavar="PATH",
    multiple=True,
    help="The logs that were analyzed, to show raw entries. Can be repeated.",
)
@option(
    "--gold",
    type=click.Path(path_type=Path, exists=True),
    metavar="DIR",
    help="Reference patches, to show the text of lines that were lost.",
)
@option("--port", type=click.IntRange(0, 65535), default=0, help="Port on loopback.  [default: a free one]")
@option("--browser/--no-browser", default=True, help="Open the page in your browser.  [default: browser]")
@plugins_option
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
        data = {"address": server.address, "port": server.port, "folder": str(server.viewer.root)}
        answer = (f"Serving {server.viewer.root} until Ctrl-C.",)
        address = Section("", (), (Listing("address", "", server.address),))
        show(Document("view", "Viewer", answer, data, (address,)))
        if browser and _has_screen(os.environ):
            Thread(target=_open, args=(server,), daemon=True).start()

    serve(ViewerServer(viewer, port), started)


OPEN_SECONDS = 60.0  # for a browser to start and read the file that leads it to the address
_REDIRECT = """<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0;url={address}"><title>eirkit view</title><a href="{address}">eirkit view</a>
"""


def _open(server: ViewerServer) -> None:
    """Open the page by way of a file that only its owner can read: every user sees the arguments of a browser."""
    try:
        with tempfile.TemporaryDirectory(prefix="eirkit-view-") as folder:  # of mode 0700
            page = Path(folder) / "open.html"
            page.touch(0o600, exist_ok=False)
            page.write_text(_REDIRECT.format(address=server.address), "ascii")
            # Some browsers are waited for until their window is closed; the file must not stay for so long.
            Thread(target=webbrowser.open, args=(page.as_uri(),), daemon=True).start()
            server.is_entered.wait(OPEN_SECONDS)
    except OSError as error:
        click.echo(f"eirkit: the browser was not opened ({error}); open the address yourself", err=True)


def _has_screen(environment: Mapping[str, str]) -> bool:
    # Without a screen a text browser would take over the terminal.
    return sys.platform in ("darwin", "win32") or bool(environment.get("DISPLAY") or environment.get("WAYLAND_DISPLAY"))
