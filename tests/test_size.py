"""The table "Size, before and after" of docs/design/house.md: commands load and run less than in version 0.1."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tools"))

import size  # noqa: E402 - a tool, not a part of the package

# The package does more than version 0.1; the page lists what.
GREW = {"lines"}


@pytest.mark.slow
def test_every_count_is_lower_than_in_version_0_1() -> None:
    before = size.earlier_figures(size.PAGE.read_text("utf-8"))
    now = size.count_rows(ROOT / "src", size.count_commands(ROOT / "src"))
    assert now.keys() <= before.keys(), "docs/design/house.md lacks rows of tools/size.py"
    assert not {row: (before[row], now[row]) for row in now.keys() - GREW if now[row] >= before[row]}


def test_figures_are_written_into_the_last_column_alone() -> None:
    page = "| | 0.1 | now |\n|---|---|---|\n| modules | 1,497 | 448 |\n| pairs | 16 | 0 |\n"
    assert size.with_figures(page, {"modules": 2000}) == page.replace("448", "2,000")
    assert size.earlier_figures(page) == {"modules": 1497, "pairs": 16}
