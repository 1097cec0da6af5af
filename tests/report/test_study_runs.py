"""The runs of a study: kept while it is under way, not repeated after a kill, removed once they are worth nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from eirkit.paper.runner import StudyStore, run_studies
from eirkit.paper.studies.catalogue import find_study, perform
from eirkit.paper.study import Setting
from eirkit.runs.store import RUNS, scan_runs

STUDY = find_study("error-heat-map")
SETTING = Setting(seeds=range(40))
PATIENCE_SECONDS = 300  # for a process to begin on a busy machine


def outcome(store: StudyStore, performing=perform, setting: Setting = SETTING, **more):
    (found,) = run_studies([STUDY], setting, store, None, performing, **more)
    return found


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="needs signals")
def test_a_killed_study_goes_on_and_repeats_no_run(tmp_path):
    code = "import sys; from eirkit.cli import main; main(sys.argv[1:])"
    words = ["reproduce", STUDY.id, "--seeds", "0:40", "--out", str(tmp_path), "--json"]
    process = subprocess.Popen([sys.executable, "-c", code, *words], stdout=subprocess.DEVNULL, start_new_session=True)
    runs = tmp_path / "runs" / STUDY.id / RUNS
    try:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline and not (runs.exists() and runs.stat().st_size):
            time.sleep(0.02)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    before = runs.read_bytes().rpartition(b"\n")[0]
    assert before, "it was killed after its first runs"

    def watched(piece):
        found = perform(piece)
        assert runs.read_bytes().startswith(before)
        names = [record["run"] for record, _ in scan_runs(runs)]
        assert len(names) == len(set(names))
        return found

    found = outcome(StudyStore(tmp_path), watched)
    assert found.findings == outcome(StudyStore(tmp_path / "fresh")).findings
    assert not (tmp_path / "runs").exists(), "reference agents say the same again for nothing"


def test_runs_of_another_setting_are_not_taken_for_its_own(tmp_path):
    store = StudyStore(tmp_path)
    folder = store.begin(STUDY, SETTING, fresh=False)
    (folder / "note").touch()
    assert (store.begin(STUDY, SETTING, fresh=False) / "note").exists()
    assert not (store.begin(STUDY, Setting(seeds=range(2)), fresh=False) / "note").exists()
    (folder / "note").touch()
    assert not (store.begin(STUDY, Setting(seeds=range(2)), fresh=True) / "note").exists()


def test_runs_of_a_model_stay(tmp_path):
    setting = Setting("bundled/lacuna-tiny", seeds=[0])
    assert outcome(StudyStore(tmp_path), setting=setting).findings is not None
    assert sum(1 for _ in scan_runs(tmp_path / "runs" / STUDY.id / RUNS)) == 4
    assert Path(tmp_path / "runs" / STUDY.id / "manifest.json").is_file()
