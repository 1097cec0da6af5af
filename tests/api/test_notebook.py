"""The notebook in examples/ runs from top to bottom, each cell in the names of those before it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.ipynb")), ids=lambda path: path.name)
def test_a_notebook_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "__main__"}
    cells = [cell for cell in json.loads(path.read_text("utf-8"))["cells"] if cell["cell_type"] == "code"]
    assert cells
    for number, cell in enumerate(cells):
        assert cell["outputs"] == [], "outputs are not committed"
        exec(compile(cell["source"], f"<cell {number}>", "exec"), names)
