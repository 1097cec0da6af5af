"""A run in progress shows itself: what is appended appears without a hand on the page."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.conftest import looking
from tests.browser.test_views import RUNS_SHOWN
from tests.report.folders import make_sweep


def test_a_sweep_that_grows_is_followed(browser, serve, tmp_path):
    whole = make_sweep(tmp_path / "whole", seeds="0:1")
    growing = tmp_path / "view" / "growing"
    growing.mkdir(parents=True)
    for name in ("manifest.json", "events.jsonl.zst"):
        (growing / name).write_bytes((whole / name).read_bytes())
    lines = (whole / "runs.jsonl").read_bytes().splitlines(keepends=True)
    (growing / "runs.jsonl").write_bytes(b"".join(lines[:4]))
    for look in looking(browser, serve(growing.parent)):
        page = look.at("", ".standing")
        page.wait_for_selector(".standing[data-state=running] progress")
        expect(page.locator(RUNS_SHOWN)).to_have_count(4)
        with (growing / "runs.jsonl").open("ab") as stream:
            stream.write(b"".join(lines[4:9]) + lines[9][:100])
        expect(page.locator(RUNS_SHOWN)).to_have_count(9)
        expect(page.locator(".standing")).to_contain_text("9 of 12")
        with (growing / "runs.jsonl").open("ab") as stream:
            stream.write(lines[9][100:] + b"".join(lines[10:]))
        page.wait_for_selector(".standing[data-state=complete]")
        expect(page.locator(RUNS_SHOWN)).to_have_count(12)
