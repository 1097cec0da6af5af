"""A store whose process is killed in the middle of a run: that run is lost, the sweep goes on, a resumption ends it."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.lacuna.memories.mortal_store import MARKER
from tests.lacuna.running import eirkit
from tests.memories.stories import needs
from tests.runs import failures

STORE = f"{Path(__file__).with_name('mortal_store.py')}:Mortal"
SEEDS = 3
BEFORE_DEATH = 3  # records that the store has taken before it is killed
PATIENCE_SECONDS = 300.0  # for a vendor's packages to be imported on a busy machine


def test_a_killed_process_costs_one_run_and_a_resumption_makes_it_good(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv(MARKER, str(tmp_path / "killed"))
    out = tmp_path / "out"
    tasks = ("--workload", "store-recall", "--n", "16", "--m", "8", "--h", "2", "--seeds", f"0:{SEEDS}", "--no-control")
    how = ("--model", "reference/recoverer", "--memory", STORE, "--out", str(out), "--json")
    assert eirkit("lacuna", "run", *tasks, *how) == 1
    row = json.loads(capsys.readouterr().out)["rows"][0]
    assert (row["scored"], row["attempted"], row["accuracy"]) == (SEEDS - 1, SEEDS, 1)
    (lost,) = failures(out)
    assert lost.kind == "memory"
    assert "died during write" in lost.message

    assert eirkit("lacuna", "run", "--resume", str(out), "--json") == 0
    row = json.loads(capsys.readouterr().out)["rows"][0]
    assert (row["scored"], row["attempted"], row["accuracy"]) == (SEEDS, SEEDS, 1)


def kept_by_mem0(place: Path) -> int:
    """Return how many records Mem0 has written down, in any of its databases under a folder."""
    total = 0
    for path in place.glob("eirkit-mem0-*/history.db"):
        try:
            with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as history:
                total += history.execute("SELECT count(*) FROM history").fetchone()[0]
        except sqlite3.Error:
            continue  # not made yet, or being written
    return total


def kept_by_the_reference_server(place: Path) -> int:
    return sum(len(path.read_text().splitlines()) for path in place.glob("eirkit-mcp-*/*/store"))


def process_of(word: str, place: Path) -> int | None:
    """Return a process with a word in its command line and a folder in its variables."""
    for entry in Path("/proc").iterdir():
        try:
            if word.encode() in (entry / "cmdline").read_bytes() and bytes(place) in (entry / "environ").read_bytes():
                return int(entry.name)
        except OSError:
            continue  # not a process, or not any more
    return None


def kill_in_the_middle(word: str, place: Path, kept: Callable[[Path], int], killed: list[int]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        if kept(place) >= BEFORE_DEATH and (pid := process_of(word, place)) is not None:
            os.kill(pid, signal.SIGKILL)
            killed.append(pid)
            return
        time.sleep(0.002)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="processes are looked up in /proc")
@pytest.mark.parametrize(
    ("name", "word", "kept"),
    [
        pytest.param("mem0", "eirkit.lacuna.memories.keeper", kept_by_mem0, marks=needs("mem0"), id="mem0's process"),
        pytest.param("mcp", "server-memory", kept_by_the_reference_server, marks=needs("mcp"), id="an MCP server"),
    ],
)
def test_a_real_system_that_is_killed_costs_one_run_and_leaves_nothing(tmp_path, monkeypatch, capsys, name, word, kept):
    place, out, killed = tmp_path / "place", tmp_path / "out", list[int]()
    place.mkdir()
    monkeypatch.setenv("TMPDIR", str(place))
    killer = threading.Thread(target=kill_in_the_middle, args=(word, place, kept, killed), daemon=True)
    killer.start()
    tasks = ("--workload", "store-recall", "--n", "24", "--m", "8", "--h", "2", "--seeds", f"0:{SEEDS}", "--no-control")
    how = ("--model", "reference/recoverer", "--memory", f"{name},key-value", "--out", str(out), "--json")
    assert eirkit("lacuna", "run", *tasks, *how) == 1
    killer.join()
    assert killed, "nothing was killed"
    system, other = json.loads(capsys.readouterr().out)["rows"]
    assert (system["scored"], system["attempted"], system["failures"]) == (SEEDS - 1, SEEDS, {"memory": 1})
    assert system["accuracy"] == 1, "a lost run is no zero"
    assert other["scored"] == SEEDS, "the sweep goes on"

    assert eirkit("lacuna", "run", "--resume", str(out), "--json") == 0
    system, other = json.loads(capsys.readouterr().out)["rows"]
    assert (system["scored"], system["accuracy"], other["scored"]) == (SEEDS, 1, SEEDS)
    assert list(place.iterdir()) == [], "what the killed process left is swept by the next"
