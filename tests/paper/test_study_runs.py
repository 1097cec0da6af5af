"""The runs of a study: kept while it is under way, not repeated after a kill, removed once they are worth nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from eirkit.errors import InputFileError, UsageError
from eirkit.records.database import DATABASE, SweepDatabase, SweepWriter
from eirkit_paper.runner import StudyStore, run_studies
from eirkit_paper.studies.catalog import find_study, perform
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
        with SweepWriter(folder):
            return True
    except UsageError:
        return False


def names(folder: Path) -> list[str]:
    """Return the runs of a folder in the order in which they ended."""
    if not (folder / DATABASE).exists():
        return []
    try:
        with SweepDatabase(folder) as database:
            return [record.run for record in database.records()]
    except InputFileError:
        return []  # its tables are not written yet


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="needs signals")
def test_a_killed_study_goes_on_and_repeats_no_run(tmp_path):
    code = "import sys; from eirkit.cli import main; main(sys.argv[1:])"
    words = ["reproduce", STUDY.id, "--seeds", "0:40", "--out", str(tmp_path), "--json"]
    folder = tmp_path / "runs" / STUDY.id
    with running([sys.executable, "-c", code, *words], stdout=subprocess.DEVNULL) as process:
        wait_until(lambda: names(folder), "its first runs", process)
        kill_group(process)
    wait_until(lambda: is_free(folder), "its workers to end")
    before = names(folder)
    assert before, "it was killed after its first runs"

    def watched(piece):
        found = perform(piece)
        after = names(folder)
        assert after[: len(before)] == before
        assert len(after) == len(set(after))
        return found

    found = outcome(StudyStore(tmp_path), watched)
    assert found.findings == outcome(StudyStore(tmp_path / "fresh")).findings
    assert not (tmp_path / "runs").exists(), "reference agents say the same again for nothing"


def test_runs_of_another_setting_are_not_taken_for_its_own(tmp_path):
    store = StudyStore(tmp_path)
    folder = store.begin(STUDY, SETTING)
    (folder / "note").touch()
    assert (store.begin(STUDY, SETTING) / "note").exists()
    assert not (store.begin(STUDY, Setting(seeds=range(2))) / "note").exists()


def test_runs_of_a_model_stay(tmp_path):
    setting = Setting("bundled/lacuna-tiny", seeds=[0])
    assert outcome(StudyStore(tmp_path), setting=setting).findings is not None
    assert len(names(tmp_path / "runs" / STUDY.id)) == 4
    assert Path(tmp_path / "runs" / STUDY.id / "study.json").is_file()
