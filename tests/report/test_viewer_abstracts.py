"""The line on each folder says what its documents say, and says nothing where they are damaged."""

from __future__ import annotations

from pathlib import Path

import pytest

from eirkit.report.viewer.folders import abstract, find_places
from tests.report.folders import (
    make_aimless,
    make_analysis,
    make_plain,
    make_probe,
    make_remembered,
    make_rescue,
    make_sweep,
)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("abstracts")
    make_sweep(root / "sweep", n=16, seeds="0:2")
    make_rescue(root / "rescue")
    make_remembered(root / "remembered", "bm25", "--panel", "strict")
    make_probe(root / "probe")
    make_analysis(root / "aimless", make_aimless(root / "aimless-logs"))
    make_analysis(root / "analysis", make_plain(root / "logs", runs=7))
    return root


def test_each_kind_has_a_line(root: Path) -> None:
    said = {place.key: abstract(place) for place in find_places(root)}
    assert said["sweep"].startswith("24 runs; reference/calculator, reference/sloppy on ")
    assert "; accuracy 0." in said["sweep"]
    assert said["rescue"].startswith("rescue; reference/")
    assert said["remembered"].endswith("; memory bm25, strict; h 3")
    assert said["aimless"] == "1 run; claude-code; demand not measured: no run touched a goal file"
    assert said["probe"].startswith("probe")
    assert said["analysis"].startswith("7 runs; plain; mean peak demand ")


@pytest.mark.parametrize("damage", [b'{"schema": "runs/1", "command": "run"}\n', b'{"schema": "runs/1"', b""])
def test_a_damaged_folder_has_none_and_hurts_nobody(tmp_path: Path, damage: bytes) -> None:
    folder = make_sweep(tmp_path / "sweep", n=16, seeds="0:1")
    (place,) = [place for place in find_places(tmp_path) if place.key == "sweep"]
    (folder / "manifest.json").write_bytes(damage)
    assert abstract(place) == ""
