"""The real page in a real browser: folders made by the library, a server on loopback, Debian's Chromium.

Only with EIRKIT_BROWSER, the path of a Chromium, which `session browser` sets. EIRKIT_IMAGES names a folder that
takes the pictures of each view.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from eirkit.cli import run
from eirkit.report.viewer.folders import open_root
from eirkit.report.viewer.logs import LogFolders
from eirkit.report.viewer.routes import Viewer
from eirkit.report.viewer.server import ViewerServer
from eirkit.vestige.demand.gold_patches import open_gold_patches
from tests.coding.compactors.planted_sessions import write_sessions
from tests.report.folders import (
    make_analysis,
    make_managed,
    make_plain,
    make_planted,
    make_probe,
    make_remembered,
    make_rescue,
    make_sweep,
    make_told,
    write_compacted,
    write_log,
)

CHROMIUM = os.environ.get("EIRKIT_BROWSER", "")
FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip
AXE = Path(__file__).parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"
WAIT_MS = 180_000  # for anything to appear: a hundred times what it takes on a quiet machine
if not CHROMIUM:
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture(scope="session", autouse=True)
def nothing_left_running() -> None:
    """One browser serves all modules, so their ends are no time to look for processes."""


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder with everything that can be looked at."""
    root = tmp_path_factory.mktemp("browser") / "experiments"
    make_sweep(root / "sweep", n=24, seeds="0:3")
    make_managed(root / "managed")
    make_rescue(root / "rescue")
    make_remembered(root / "remembered", "bm25", "--panel", "strict")
    make_probe(root / "probe")
    make_told(root / "told", seed=2)  # in which two people sit in one place, said in one turn
    write_log(root / "logs", "hostile.jsonl")
    write_log(root / "logs", "big.jsonl", "0123456789" * 1_000_000)
    write_compacted(root / "logs")
    make_analysis(root / "sessions", root / "logs")
    make_planted(root / "shell")
    make_plain(root / "plain", runs=250)
    write_sessions(root / "cut", ["ada", "ben"])
    words = ["vestige", "compact", str(root / "cut"), "--context-tokens", "600,1200", "--at", "every:5"]
    assert run([*words, "--out", str(root / "compactors")]) == 0
    make_analysis(root / "cohort", root / "plain")
    return root


@pytest.fixture(scope="session")
def serve() -> Iterator[Callable[..., ViewerServer]]:
    """Start servers that end with the session."""
    running: list[tuple[ViewerServer, threading.Thread]] = []

    def start(root: Path, *logs: Path) -> ViewerServer:
        gold = root / "shell" / "gold"
        patches = open_gold_patches(gold) if gold.is_dir() else None
        server = ViewerServer(Viewer(open_root(root), LogFolders(logs), time.time, gold=patches))
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        running.append((server, thread))
        return server

    yield start
    for server, thread in running:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture(scope="session")
def server(folder: Path, serve: Callable[..., ViewerServer]) -> ViewerServer:
    return serve(folder, folder / "logs", folder / "plain", folder / "shell" / "logs", folder / "cut")


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=WAIT_MS)
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS), timeout=WAIT_MS)
        yield opened
        opened.close()


@dataclass(slots=True)
class Looking:
    """A page, and everything that it complained about."""

    page: Any
    base: str
    complaints: list[str] = field(default_factory=list)

    def at(self, query: str, wait: str) -> Any:
        """Go somewhere and wait for what should be there."""
        self.page.goto(f"{self.base}{query}")
        self.page.wait_for_selector(wait)
        return self.page

    def drawn(self) -> None:
        """Wait until pictures show what the words of the page say: they are drawn after the next frame."""
        self.page.evaluate("() => new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")

    def axe(self) -> list[str]:
        """Return the serious accessibility faults of the page as it is."""
        self.page.evaluate(AXE.read_text("utf-8"))
        found = self.page.evaluate("axe.run(document, {resultTypes: ['violations'], preload: false})")
        return [
            f"{fault['id']}: {fault['help']} ({node['target']})"
            for fault in found["violations"]
            if fault["impact"] in ("serious", "critical")
            for node in fault["nodes"]
        ]


@pytest.fixture
def look(browser: Any, server: ViewerServer) -> Iterator[Looking]:
    yield from looking(browser, server)


@pytest.fixture
def look_through_a_slit(browser: Any, server: ViewerServer) -> Iterator[Looking]:
    yield from looking(browser, server, viewport={"width": 420, "height": 800})


@pytest.fixture
def look_in_the_dark(browser: Any, server: ViewerServer) -> Iterator[Looking]:
    yield from looking(browser, server, color_scheme="dark")


def looking(browser: Any, server: ViewerServer, **how: Any) -> Iterator[Looking]:
    """Open a page that has shown its token; whatever it complains about fails the test."""
    shape = {"viewport": {"width": 1280, "height": 860}, "reduced_motion": "reduce", **how}
    context = browser.new_context(**shape)
    page = context.new_page()
    page.set_default_timeout(WAIT_MS)
    found = Looking(page, f"http://127.0.0.1:{server.port}/")
    page.on("console", lambda said: found.complaints.append(said.text) if said.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: found.complaints.append(str(error)))
    page.goto(server.address)
    page.wait_for_selector("main")
    yield found
    context.close()
    assert found.complaints == []


@pytest.fixture
def picture() -> Callable[[Any, str], None]:
    """Take a picture of a page for the documentation, where somebody wants one."""
    folder = os.environ.get("EIRKIT_IMAGES")

    def take(page: Any, name: str) -> None:
        if folder:
            path = Path(folder) / f"viewer-{name}.png"
            page.screenshot(path=str(path), full_page=False)
            _reduce(path)

    return take


def _reduce(path: Path) -> None:
    """Keep few colors: a page of text needs no more, and a repository keeps every picture for ever."""
    from PIL import Image

    few = Image.open(path).convert("RGB").quantize(255, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
    few.save(path, optimize=True)
