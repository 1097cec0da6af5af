"""The copy of the viewer that needs no server: from a disk, every page of its three folders can be clicked through."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect
from tools.examples import make_folders, write_copy

from tests.browser.conftest import WAIT_MS, Looking


class Quiet(SimpleHTTPRequestHandler):
    """Serves files as `python -m http.server` does, without a line for each."""

    def log_message(self, format: str, *said: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("static")
    make_folders(root / "examples")
    write_copy(root / "examples", root / "site")
    return root / "site" / "index.html"


@pytest.fixture(scope="module")
def served(copy: Path) -> Iterator[str]:
    """The same copy on a web server that knows nothing of it; yields the address of its page."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(copy.parent))) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


@pytest.fixture(params=["file", "http"])
def opened(request: pytest.FixtureRequest, browser: Any, copy: Path, served: str) -> Iterator[Looking]:
    """The page from a disk, and from a web server of which it may ask for its own files alone."""
    context = browser.new_context(viewport={"width": 1000, "height": 860}, reduced_motion="reduce")
    page = context.new_page()
    page.set_default_timeout(WAIT_MS)
    found = Looking(page, copy.as_uri() if request.param == "file" else f"{served}{copy.name}")
    page.on("console", lambda said: found.complaints.append(said.text) if said.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: found.complaints.append(str(error)))
    page.on(
        "request", lambda asked: found.complaints.append(asked.url) if not _is_own(asked.url, copy, served) else None
    )
    page.goto(found.base)
    yield found
    context.close()
    assert found.complaints == []


def _is_own(url: str, copy: Path, served: str) -> bool:
    """Return whether an address is a file of the copy, on a disk or on its server."""
    if url.startswith("http"):
        return url.startswith(served) and (copy.parent / url.removeprefix(served).partition("#")[0]).is_file()
    return True


def test_a_sweep_leads_to_a_cell_a_run_a_wrong_step_the_report_and_back(opened):
    page = opened.page
    page.get_by_role("link", name="words", exact=True).click()
    page.locator(".heat svg rect").first.click()
    expect(page.locator(".count")).to_contain_text("2 of 4")
    assert opened.axe() == []
    page.locator("section[aria-label=Runs] tbody a").first.click()
    expect(page.locator(".scrubber")).to_have_count(1)
    page.keyboard.press("n")
    page.wait_for_selector(".exchange pre:visible")
    assert opened.axe() == []
    page.get_by_role("link", name="report").click()
    page.wait_for_selector("#word-examples")
    page.locator("#word-examples tbody a").first.click()
    page.wait_for_selector(".exchange pre:visible")
    assert "&t=" in page.url
    page.go_back()
    page.wait_for_selector("#word-examples")


def test_every_step_and_every_turn_is_there(opened):
    page = opened.page
    for folder, turns in (("rescue", 16), ("session", 18)):
        page.goto(f"{opened.base}#at={folder}")
        page.locator("section[aria-label=Runs] tbody a").first.click()
        page.wait_for_selector(".scrubber")
        page.keyboard.press("Home")
        for _ in range(turns):
            page.wait_for_selector(".exchange pre:visible, .block pre:visible")
            expect(page.locator(".fault")).to_have_count(0)
            page.keyboard.press("ArrowRight")
        assert opened.axe() == []


def test_the_skip_link_does_not_leave_the_page(opened):
    page = opened.page
    page.goto(f"{opened.base}#at=rescue")
    page.wait_for_selector("section[aria-label=Runs] tbody a")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("section[aria-label=Runs] tbody a").first).to_be_visible()
