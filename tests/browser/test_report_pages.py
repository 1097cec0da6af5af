"""Reports opened from disk in a real browser: drawn, quiet, reachable, offline, and inert whatever a log says."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect
from tools.examples import write_metered

from eirkit.cli import run
from tests.browser.conftest import WAIT_MS, Looking
from tests.report.folders import make_analysis, write_log

IMAGES = os.environ.get("EIRKIT_IMAGES", "")


@pytest.fixture(scope="session")
def reports(tmp_path_factory: pytest.TempPathFactory, folder: Path) -> dict[str, Path]:
    """The pages of a demonstration, a sweep, an analysis, a hostile log, and of every other command that writes one."""
    root = tmp_path_factory.mktemp("reports")
    assert run(["demo", "--out", str(root / "demo"), "--json"]) == 0
    made = {"demo": root / "demo" / "report.html"}
    write_log(root / "logs", "hostile.jsonl")
    make_analysis(root / "hostile", root / "logs")
    for name, where in {"sweep": folder / "sweep", "cohort": folder / "cohort", "hostile": root / "hostile"}.items():
        made[name] = root / f"{name}.html"
        assert run(["report", str(where), "--out", str(made[name]), "--json"]) == 0
    others: dict[str, tuple[object, ...]] = {
        "comparison": ("compare", folder / "sweep", folder / "sweep", "--out", root / "comparison.html"),
        "choice": ("choose", folder / "sweep", "--out", root / "choice.html"),
        "compaction": ("report", folder / "compactors", "--out", root / "compaction.html"),
        "week": ("week", write_metered(root / "metered" / "a.jsonl"), "--until", "2026-03-03",
                 "--out", root / "week.html"),
        "submission": ("submit", folder / "told", "--out", root / "submission"),
        "board": ("board", root / "submission", "--out", root / "board"),
    }  # fmt: skip
    for words in others.values():
        assert run([str(word) for word in words]) == 0, words
    made |= {name: root / f"{name}.html" for name in ("comparison", "choice", "compaction", "week")}
    return {**made, "board": root / "board" / "index.html", "entry": next((root / "board" / "entries").iterdir())}


@pytest.fixture(params=["light", "dark"])
def open_page(request: pytest.FixtureRequest, browser: Any) -> Iterator[Looking]:
    """A page that may ask nobody for anything; what it complains about or asks for fails the test."""
    context = browser.new_context(viewport={"width": 1100, "height": 900}, color_scheme=request.param, offline=True)
    page = context.new_page()
    page.set_default_timeout(WAIT_MS)
    found = Looking(page, "")
    page.on("console", lambda said: found.complaints.append(said.text) if said.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: found.complaints.append(str(error)))
    page.on("request", lambda asked: _note(found, asked.url))
    yield found
    context.close()
    assert found.complaints == []


def _note(found: Looking, url: str) -> None:
    if not url.startswith(("file:", "data:")):
        found.complaints.append(f"asked for {url}")


PAGES = ("demo", "sweep", "cohort", "hostile", "comparison", "choice", "compaction", "week", "board", "entry")


@pytest.mark.parametrize("name", PAGES)
def test_a_report_is_drawn_and_reachable(reports: dict[str, Path], open_page: Looking, name: str) -> None:
    page = open_page.page
    page.goto(reports[name].as_uri())
    page.wait_for_selector("main")
    pictures, drawings = page.locator("figure[data-chart] svg.chart-picture"), page.locator("figure[data-chart]")
    assert pictures.count() >= drawings.count()
    for place in range(drawings.count()):
        assert drawings.nth(place).locator("svg.chart-picture").count() >= 1
    assert open_page.axe() == []
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert page.title() != "taken"
    if IMAGES:
        dark = page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
        page.screenshot(path=Path(IMAGES) / f"report-{name}{'-dark' if dark else ''}.png")


def test_points_are_read_with_the_keyboard(reports: dict[str, Path], open_page: Looking) -> None:
    page = open_page.page
    page.goto(reports["demo"].as_uri())
    chart = page.locator("#survival .chart")
    chart.focus()
    page.keyboard.press("ArrowRight")
    expect(chart.locator(".chart-reading")).to_have_text("running-max: after step 0, bits 0")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("End")
    expect(chart.locator(".chart-reading")).to_have_text("store-recall: after step 64, bits 0")


def test_light_and_dark_are_the_readers_choice(reports: dict[str, Path], open_page: Looking) -> None:
    page = open_page.page
    page.goto(reports["demo"].as_uri())
    shades = {}
    for theme in ("light", "dark"):
        page.get_by_role("button", name=theme, exact=True).click()
        shades[theme] = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert open_page.axe() == []
    assert shades == {"light": "rgb(255, 255, 255)", "dark": "rgb(23, 27, 34)"}
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == shades["light"]


def test_the_data_of_a_picture_can_be_saved(reports: dict[str, Path], open_page: Looking) -> None:
    page = open_page.page
    page.goto(reports["demo"].as_uri())
    page.locator("#survival summary").click()
    with page.expect_download() as saving:
        page.locator("#survival a[download]").first.click()
    lines = Path(saving.value.path()).read_text("utf-8").splitlines()
    assert lines[0] == "series,after step,bits,low,high,value"
    assert len(lines) > 300
