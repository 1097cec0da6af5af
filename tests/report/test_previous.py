"""Folders that the previous version wrote: they open in `report` and `view`, and a sweep is finished."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path

import pytest

from eirkit import __version__
from eirkit.cli import run
from eirkit.runs.store import RUNS, scan_runs
from eirkit.show.viewer.logs import LogFolders
from eirkit.show.viewer.routes import Viewer

PREVIOUS = Path(__file__).parent / "previous"
FOLDERS = {"rescue": 3, "remembered": 3, "probe": 2, "capability": 2, "sweep": 1, "sweep/control": 5}


@pytest.mark.parametrize(("name", "runs"), FOLDERS.items())
def test_every_run_is_shown_as_it_was(name, runs):
    viewer, at = Viewer(PREVIOUS.resolve(), LogFolders(), time.time), {"at": [name]}
    rows = viewer.answer("/api/runs", at)["rows"]
    assert len(rows) == runs
    for row in rows:
        asked = {**at, "run": [row["run"]]}
        shown = viewer.answer("/api/run", asked)
        assert shown["unknown"] == ""
        t = str(shown.get("trial", {}).get("at", 3))
        exchanges = viewer.answer("/api/step", {**asked, "t": [t]})["exchanges"]
        assert exchanges
        assert all(one["exact"] for one in exchanges)


@pytest.mark.parametrize("name", ["rescue", "remembered", "probe", "capability"])
def test_it_has_a_page_and_is_not_gone_on_with(name, tmp_path, capfd):
    assert run(["report", str(PREVIOUS / name), "--out", str(tmp_path / "page.html")]) == 0
    command = json.loads((PREVIOUS / name / "manifest.json").read_text())["command"]
    shutil.copytree(PREVIOUS / name, tmp_path / "out")
    capfd.readouterr()
    assert run(["lacuna", command, "--resume", str(tmp_path / "out")]) == 2
    assert capfd.readouterr().err.endswith(
        "out was written by an earlier version; repeat the command with another --out\n"
    )


def test_a_sweep_and_its_control_are_finished(tmp_path, capfd):
    out = tmp_path / "out"
    shutil.copytree(PREVIOUS / "sweep", out)
    manifest = json.loads((out / "manifest.json").read_text())  # of whichever version is next to this one
    (out / "manifest.json").write_text(json.dumps({**manifest, "eirkit": __version__}))
    (before,) = [record for record, _ in scan_runs(out / RUNS)]
    assert run(["lacuna", "run", "--resume", str(out), "--json"]) == 0
    summary = json.loads(capfd.readouterr().out)
    assert summary["complete"]
    # The control of the previous version compared accuracies; its verdict is made anew, about 18 steps here.
    assert (summary["rows"][0]["control"]["verdict"], summary["rows"][0]["claims"]) == ("undecided", False)
    assert next(record for record, _ in scan_runs(out / RUNS)) == before
    assert run(["lacuna", "run", "--resume", str(out), "--json"]) == 0
    assert json.loads(capfd.readouterr().out) == summary
