"""What others wrote is shown and does nothing: markup, escapes, marks that turn text around, ten megabytes."""

from __future__ import annotations

import json

from playwright.sync_api import expect

from tests.browser.conftest import looking
from tests.report.folders import HOSTILE, make_analysis, make_plain


def test_hostile_text_is_text(look, picture):
    page = look.at("?at=sessions&run=hostile&turn=2", ".exchange pre:visible")
    output = page.get_by_role("region", name="output").first
    expect(output).to_contain_text("<script>document.title='taken'</script>")
    assert page.locator("main script, main img").count() == 0
    assert "taken" not in page.title()
    assert {"ESC", "U+202E", "U+202C"} <= set(output.locator(".mark").all_inner_texts())
    assert "\u202e" not in page.locator("main").inner_text()
    expect(output.locator("bdi")).to_have_count(1)
    picture(page, "hostile")


def test_ten_megabytes_come_in_pieces(look):
    page = look.at("?at=sessions&run=big&turn=2", ".exchange pre:visible")
    more = page.get_by_role("button", name="Show more")
    more.wait_for()
    output = page.get_by_role("region", name="output").first
    expect(output).to_have_text("0123456789" * 2_000)
    more.click()
    expect(output).to_have_text("0123456789" * 4_000)
    page.get_by_text("Raw log at this turn").click()
    page.wait_for_selector(".raw .line.here")
    assert len(page.content()) < 1_000_000


def test_hostile_names_are_names(browser, serve, tmp_path):
    """Of runs, models, files and folders, and in every text of a run."""
    logs = make_plain(tmp_path / "logs", runs=3)
    lines = [json.loads(line) for line in (logs / "runs.jsonl").read_text("utf-8").splitlines()]
    lines[0] |= {"run_id": HOSTILE, "model": HOSTILE, "task_id": HOSTILE, "goal_files": [HOSTILE]}
    lines[0] |= {"exit_status": HOSTILE, "agent_version": HOSTILE, "prompt": HOSTILE}
    lines[0]["turns"][0] |= {"text": HOSTILE, "reads": [{"path": HOSTILE, "tokens": 5, "content": HOSTILE}]}
    lines[0]["turns"][1]["writes"] = [{"path": HOSTILE, "content": HOSTILE}]
    (logs / "runs.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    make_analysis(tmp_path / "view" / "<b>bold", logs)
    server = serve(tmp_path / "view", logs)
    for look in looking(browser, server):
        page = look.at("", "section[aria-label=Runs] tbody tr")
        expect(page.locator("h1")).to_contain_text("<b>bold")
        assert page.locator("main script, main img, h1 b").count() == 0
        page.locator("tbody a").filter(has_text="script").first.click()
        page.wait_for_selector(".timeline svg")
        page.wait_for_load_state("networkidle")
        assert page.locator("main script, main img").count() == 0
        assert "taken" not in page.title() or "<script>" in page.title()
        assert look.axe() == []
