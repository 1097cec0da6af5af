"""A run in progress shows itself: what is appended appears without a hand on the page."""

from __future__ import annotations

from playwright.sync_api import expect

from eirkit.records.database import FinishedRun, SweepDatabase, SweepWriter
from tests.browser.conftest import looking
from tests.browser.test_views import RUNS_SHOWN
from tests.report.folders import make_sweep


def test_a_sweep_that_grows_is_followed(browser, serve, tmp_path):
    whole = make_sweep(tmp_path / "whole", seeds="0:1")
    growing = tmp_path / "view" / "growing"
    growing.mkdir(parents=True)
    (growing / "manifest.json").write_bytes((whole / "manifest.json").read_bytes())
    with SweepDatabase(whole) as database:
        runs = [FinishedRun(record, database.event_lines(record.run)) for record in database.records()]
        settings, planned = database.settings(), database.planned()
    with SweepWriter(growing) as writer:
        writer.plan((settings[cell], count) for cell, count in planned.items())
        writer.add(runs[:4], durable=False)
        for look in looking(browser, serve(growing.parent)):
            page = look.at("", ".standing")
            page.wait_for_selector(".standing[data-state=running] progress")
            expect(page.locator(RUNS_SHOWN)).to_have_count(4)
            for run in runs[4:9]:
                writer.add([run], durable=False)
            expect(page.locator(RUNS_SHOWN)).to_have_count(9)
            expect(page.locator(".standing")).to_contain_text("9 of 12")
            writer.add(runs[9:], durable=False)
            page.wait_for_selector(".standing[data-state=complete]")
            expect(page.locator(RUNS_SHOWN)).to_have_count(12)
