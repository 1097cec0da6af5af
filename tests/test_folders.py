"""Files that are replaced at once: nothing is written through a link, and a failure leaves the old file."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from eirkit.cli import run
from eirkit.errors import InputFileError
from eirkit.folders import clear_unfinished, filled_folder, replace_file
from eirkit.records.database import DATABASE, SweepDatabase
from eirkit.records.documents import MANIFEST, RUNS_SCHEMA, read_struct
from eirkit.records.events import pack, unpack
from eirkit.records.sweeps import Manifest
from tests.processes import completed


def test_a_link_at_the_name_of_the_unfinished_file_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "private").write_text("mine")
    (shared := tmp_path / "shared").mkdir()
    for name in (".page.html.unfinished", f".page.html.{os.getpid()}.unfinished"):
        (shared / name).symlink_to(tmp_path / "private")
    replace_file(shared / "page.html", b"page")
    assert (shared / "page.html").read_bytes() == b"page"
    assert (tmp_path / "private").read_text() == "mine"


def test_after_a_failure_the_old_file_is_there_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "page").mkdir()
    (tmp_path / "page" / "inside").touch()
    with pytest.raises(OSError, match="page"):
        replace_file(tmp_path / "page", b"new")
    assert [path.name for path in tmp_path.iterdir()] == ["page"]


def test_what_a_killed_process_left_unfinished_is_removed_and_nothing_else(tmp_path: Path) -> None:
    ended = completed([sys.executable, "-c", "import os; print(os.getpid())"]).stdout.strip()
    others = [f".page.{os.getppid()}.unfinished", ".page.x.unfinished", f".other.{ended}.unfinished", "page.1"]
    for name in (*others, f".page.{ended}.unfinished"):
        (tmp_path / name).touch()
    replace_file(tmp_path / "page", b"new")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*others, "page"])


def test_a_folder_is_filled_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    def fail() -> None:
        with filled_folder(tmp_path / "new" / "out", "list.json") as made:
            (made / "runs").mkdir()
            raise ValueError("stop")

    with pytest.raises(ValueError, match="stop"):
        fail()
    assert list(tmp_path.iterdir()) == []
    with filled_folder(tmp_path / "out", "list.json") as made:
        (made / "runs").mkdir()
        (made / "list.json").touch()
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["list.json", "runs"]


@pytest.mark.parametrize(("process", "is_whole"), [("ended", False), ("ended", True), ("running", False)])
def test_what_a_killed_process_left_in_a_folder_is_removed_unless_it_was_whole(
    process: str, is_whole: bool, tmp_path: Path
) -> None:
    ended = completed([sys.executable, "-c", "import os; print(os.getpid())"]).stdout.strip()
    begun = f".list.json.{ended if process == 'ended' else os.getppid()}.unfinished"
    for name in (begun, "runs", "mine"):
        (tmp_path / name / "inside").mkdir(parents=True)
    if is_whole:
        (tmp_path / "list.json").touch()
    clear_unfinished(tmp_path, "list.json", ("runs",))
    left = {path.name for path in tmp_path.iterdir()} - {"list.json", "mine"}
    assert left == ({"runs"} if is_whole else set() if process == "ended" else {begun, "runs"})


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_a_pipe_in_a_folder_of_results_is_not_waited_for(tmp_path, capsys):
    for name in (MANIFEST, DATABASE):
        os.mkfifo(tmp_path / name)
    with pytest.raises(InputFileError, match="Not an ordinary file; check the path"):
        read_struct(tmp_path / MANIFEST, RUNS_SCHEMA, Manifest)
    with pytest.raises(InputFileError, match="is not an ordinary file"), SweepDatabase(tmp_path):
        pass
    assert run(["watch", str(tmp_path), "--once"]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_endless_events_and_an_endless_file_are_refused(tmp_path, capsys):
    with pytest.raises(InputFileError, match="claim 100,000 bytes, of at most 1,000"):
        unpack(pack(b"0" * 100_000), "here", most=1000)
    if Path("/dev/zero").exists():
        options = ["stepwise-sum", "--h", "2", "--model", "reference/calculator", "--out", str(tmp_path / "out")]
        assert run(["lacuna", "run", *options, "--prices", "/dev/zero"]) == 2
        assert "cannot read /dev/zero: Larger than 64 MiB; check the path" in capsys.readouterr().err


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_a_pipe_or_device_is_written_to_and_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    replace_file(tmp_path / "pipe", b"result")
    assert os.read(reader, 100) == b"result"
    os.close(reader)
    assert (tmp_path / "pipe").is_fifo()
