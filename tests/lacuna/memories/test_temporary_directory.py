"""Temporary folders of stores: gone with their owner, or with the next one where the owner was killed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from eirkit.lacuna.memories.temporary_directory import LOCK, StoreDirectory, remove_abandoned, size_of
from tests.processes import running

OWNER = """
import sys
from eirkit.lacuna.memories.temporary_directory import StoreDirectory
directory = StoreDirectory("mortal")
(directory.create() / "data").write_text("x" * 100)
print(directory.path, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)  # so that the variable is read again
    return tmp_path


@contextmanager
def lodged(place: Path) -> Iterator[Path]:
    """Yield the folder of another process, which is killed at the end."""
    environment = {**os.environ, "TMPDIR": str(place)}
    streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with running([sys.executable, "-c", OWNER], env=environment, **streams) as owner:
        yield Path(owner.stdout.readline().strip())


def test_a_folder_is_named_after_its_store_and_removed_by_its_owner(place):
    directory = StoreDirectory("mine")
    directory.remove()
    path = directory.create()
    assert path.parent == place
    assert path.name.startswith("eirkit-mine-")
    assert directory.path == path
    directory.remove()
    directory.remove()
    assert list(place.iterdir()) == []


def test_what_a_killed_owner_left_goes_when_the_next_one_comes(place):
    with lodged(place) as left:
        pass
    assert (left / "data").exists()
    directory = StoreDirectory("mine")
    path = directory.create()
    assert list(place.iterdir()) == [path]
    directory.remove()


def test_whose_owner_lives_is_left_alone(place):
    with lodged(place) as used:
        assert remove_abandoned() == []
        assert (used / "data").exists()
    assert remove_abandoned() == [used]


def test_what_is_not_one_of_these_folders_is_left_alone(place):
    (place / "eirkit-home-of-mine").mkdir()
    (place / "eirkit-mine-file").touch()
    elsewhere = place / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / LOCK).touch()
    (place / "eirkit-mine-link").symlink_to(elsewhere)
    assert remove_abandoned() == []
    assert {one.name for one in place.iterdir()} >= {"eirkit-home-of-mine", "eirkit-mine-file", "elsewhere"}


def test_the_size_is_that_of_all_files(tmp_path):
    (tmp_path / "inner").mkdir()
    (tmp_path / "a").write_bytes(b"123")
    (tmp_path / "inner" / "b").write_bytes(b"4567")
    assert size_of(tmp_path) == 7
    assert size_of(tmp_path / "nowhere") == 0
