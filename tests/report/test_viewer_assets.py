"""The pages that are shipped were built from the sources beside them."""

from __future__ import annotations

import sys
from importlib.resources import files
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import web_assets  # noqa: E402 - a tool, not a part of the package

pytestmark = pytest.mark.check


def test_the_pages_are_those_of_the_sources(capsys):
    assert web_assets.main([]) == 0, "run `make web`"


def test_a_changed_source_is_noticed(tmp_path):
    web = tmp_path / "web"
    (web / "src").mkdir(parents=True)
    for name in web_assets.SETTINGS:
        (web / name).write_text("{}")
    (web / "src" / "a.ts").write_text("1")
    before = web_assets.sources_sha256(web)
    (web / "src" / "a.ts").write_text("2")
    after = web_assets.sources_sha256(web)
    (web / "src" / "a.ts").rename(web / "src" / "b.ts")
    assert len({before, after, web_assets.sources_sha256(web)}) == 3


def test_a_page_asks_nobody_else_for_anything():
    page = files("eirkit.report").joinpath("assets", "viewer", "index.html").read_text("utf-8")
    assert "http:" not in page
    assert "https:" not in page
    assert "<style" not in page


def test_the_lockfile_names_no_registry():
    lock = (ROOT / "web" / "package-lock.json").read_text("utf-8")
    assert '"resolved"' not in lock
