"""The runs of a study: kept while it is under way, not repeated after a kill, removed once they are worth nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from eirkit.errors import UsageError
from eirkit.lacuna.runs.store import RUNS, RunStore, scan_runs
from eirkit_paper.runner import StudyStore, run_studies
from eirkit_paper.studies.catalogue import find_study, perform
from eirkit_paper.study import Setting
from tests.processes import kill_group, running, wait_until

STUDY = find_study("error-heat-map")
SETTING = Setting(seeds=range(40))


def outcome(store: StudyStore, performing=perform, setting: Setting = SETTING, **more):
    (found,) = run_studies([STUDY], setting, store, None, performing, **more)
    return found


def is_free(folder: Path) -> bool:
    """True once nobody writes to a folder of runs any more."""
    try:
        with RunStore(folder):
            return True
    except UsageError:
        return False


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="needs signals")
def test_a_killed_study_goes_on_and_repeats_no_run(tmp_path):
    code = "import sys; from eirkit.cli import main; main(sys.argv[1:])"
    words = ["reproduce", STUDY.id, "--seeds", "0:40", "--out", str(tmp_path), "--json"]
    runs = tmp_path / "runs" / STUDY.id / RUNS
    with running([sys.executable, "-c", code, *words], stdout=subprocess.DEVNULL) as process:
        wait_until(lambda: runs.exists() and runs.stat().st_size, "its first runs", process)
        kill_group(process)
    wait_until(lambda: is_free(runs.parent), "its workers to end")
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
