"""Seeds are answers: the folders of served and exported tasks are closed to other users, whatever the umask is."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

import pytest

from eirkit_bridges.external_runs import open_external_runs, resume_external_runs
from eirkit_bridges.harbor import export_harbor
from tests.bridges.driving import needs_mcp, suite_of
from tests.lacuna.running import eirkit
from tests.processes import completed

TASK = {"workload": "store-recall", "n": 3, "m": 4, "h": 2}


def open_to_others(folder: Path) -> dict[str, str]:
    """Return what other users could enter or read at or below a folder, with its mode."""
    found = [folder, *folder.rglob("*")]
    return {
        str(path.relative_to(folder)): oct(mode) for path in found if (mode := stat.S_IMODE(path.stat().st_mode)) & 0o77
    }


@needs_mcp
def test_a_server_closes_its_folder_even_where_everything_is_open_by_default(tmp_path):
    out = tmp_path / "runs" / "visits"
    command = [sys.executable, "-m", "eirkit", "mcp", "serve", "store-recall", "--n", "3", "--m", "4", "--h", "2"]
    completed([*command, "--out", out], check=True, input="", umask=0)
    assert (out / "manifest.json").exists()
    assert open_to_others(out) == {}


def test_a_resumed_folder_of_an_earlier_version_is_closed(tmp_path):
    out = tmp_path / "out"
    with open_external_runs(suite_of(**TASK), out):
        pass
    for path in (out, *out.iterdir()):
        path.chmod(0o755 if path.is_dir() else 0o644)
    assert open_to_others(out)
    with resume_external_runs(out):
        pass
    assert open_to_others(out) == {}


def test_an_exported_task_is_closed_to_the_machine_and_open_inside_its_containers(tmp_path):
    before = os.umask(0)
    try:
        (task,) = export_harbor(suite_of(**TASK), tmp_path / "tasks", os.urandom)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "tasks").stat().st_mode) == 0o700
    assert stat.S_IMODE((task.folder / "environment/episode/episode.json").stat().st_mode) == 0o600
    assert (task.folder / "instruction.md").stat().st_mode & 0o044


@pytest.mark.skipif(os.geteuid() != 0, reason="becoming another user takes root")
def test_another_user_can_read_no_seed(tmp_path):
    for path in (tmp_path, *tmp_path.parents[:2]):
        path.chmod(0o755)
    with open_external_runs(suite_of(**TASK), tmp_path / "out"):
        pass
    export_harbor(suite_of(**TASK), tmp_path / "tasks", os.urandom)
    looking = ["find", tmp_path / "out", tmp_path / "tasks", "-type", "f"]
    assert len(completed(looking, check=True).stdout.splitlines()) > 3
    assert completed(looking, user=54_321, group=54_321, extra_groups=[]).stdout == ""


def test_traces_of_runs_are_for_their_owner(tmp_path, capsys):
    run = ("lacuna", "run", "store-recall", "--n", "3", "--m", "4", "--h", "2", "--seeds", "0", "--no-control")
    assert eirkit(*run, "--model", "reference/calculator", "--out", str(tmp_path / "out")) == 0
    assert eirkit("export", "otel", str(tmp_path / "out"), "--out", str(tmp_path / "traces.jsonl")) == 0
    assert stat.S_IMODE((tmp_path / "traces.jsonl").stat().st_mode) == 0o600
