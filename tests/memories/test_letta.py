"""Letta for real, with its own server and PostgreSQL: it conforms, recalls, and a killed server costs one run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from eirkit.lacuna.memories.factory import make_memory
from eirkit.lacuna.memories.plan import MemoryPlan
from eirkit.testing import check_memory
from eirkit_memories.letta_server import PASSWORD, WITH_PARENT
from tests.lacuna.running import eirkit
from tests.memories.stories import needs
from tests.processes import running

VERB_SECONDS = 300.0  # `setup` imports Letta and makes a database, on a machine that may be busy
PASSAGES_BEFORE_DEATH = 3  # writes that the server has seen before it is killed
TASKS = ("--n", "12", "--m", "6", "--h", "2", "--model", "reference/recoverer", "--no-control", "--memory", "letta")

pytestmark = [pytest.mark.slow, needs("letta")]


@pytest.fixture(scope="module")
def server() -> Iterator[dict[str, Any]]:
    """The server, started with the documented command and stopped by closing its input."""
    command = (sys.executable, "-m", "eirkit_memories.letta_server", "--port", "0", WITH_PARENT)
    with running(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        said = json.loads(process.stdout.readline())
        yield said
        process.stdin.close()
        assert process.wait() == 0
    assert not Path(said["folder"]).exists()


def test_it_conforms_on_a_server_that_already_runs(server, monkeypatch):
    monkeypatch.setenv(PASSWORD, server["password"])
    plan = MemoryPlan("letta", {"url": server["url"], "profile": "store-only"})
    assert len(check_memory(lambda: make_memory(plan), seconds=VERB_SECONDS, records=64).held) == 18


def test_it_recalls_whole_tasks_and_asks_no_model(server, monkeypatch, tmp_path, capsys):
    monkeypatch.setenv(PASSWORD, server["password"])
    tasks = ("--workload", "store-recall,full-lookup,stepwise-sum", "--seeds", "0", *TASKS)
    where = ("--set", f"letta.url={server['url']}", "--out", str(tmp_path / "out"), "--json")
    assert eirkit("lacuna", "run", *tasks, *where) == 0
    for row in json.loads(capsys.readouterr().out)["rows"]:
        system = row["memory_system"]
        assert system["outcomes"]["used"] > 0, "it found nothing that it was given"
        assert system["outcomes"]["not_stored"] == system["outcomes"]["other_value"] == 0
        assert row["accuracy"] == 1 or system["outcomes"]["not_found"] > 0
        assert system["model_calls"] == 0


def test_a_server_that_wants_another_password_is_told_in_one_line(server, monkeypatch, tmp_path, capsys):
    monkeypatch.setenv(PASSWORD, "wrong")
    where = ("--set", f"letta.url={server['url']}", "--out", str(tmp_path / "out"), "--json")
    assert eirkit("lacuna", "run", "--workload", "store-recall", "--seeds", "0", *TASKS, *where) == 1
    (failure,) = failures(tmp_path / "out")
    assert failure["kind"] == "memory"
    assert "401" in failure["message"]


@pytest.mark.skipif(sys.platform != "linux", reason="processes are looked up in /proc")
def test_a_killed_server_costs_one_run_and_a_resumption_makes_it_good(tmp_path, capsys):
    out, killed = tmp_path / "out", list[Path]()
    killer = threading.Thread(target=kill_in_the_middle, args=(killed,), daemon=True)
    killer.start()
    tasks = ("--workload", "store-recall", "--seeds", "0:2", *TASKS, "--out", str(out), "--json")
    assert eirkit("lacuna", "run", *tasks) == 1
    killer.join()
    row = json.loads(capsys.readouterr().out)["rows"][0]
    assert (row["scored"], row["attempted"]) == (1, 2)
    (failure,) = failures(out)
    assert failure["kind"] == "memory"
    assert "Letta's server is not reachable" in failure["message"]

    assert eirkit("lacuna", "run", "--resume", str(out), "--json") == 0
    assert json.loads(capsys.readouterr().out)["rows"][0]["scored"] == 2
    assert servers() == []
    assert not killed[0].exists(), "the folder of the killed server is left behind"


def failures(out: Path) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in (out / "failures.jsonl").read_text().splitlines()]
    return [line for line in lines if "kind" in line]


def kill_in_the_middle(killed: list[Path]) -> None:
    """Wait for a server of this process that has seen a few passages, note its folder, and kill it."""
    deadline = time.monotonic() + VERB_SECONDS
    while time.monotonic() < deadline:
        for pid in servers():
            try:
                folder = Path(f"/proc/{pid}/cwd").readlink()
                seen = (folder / "letta.log").read_text(errors="replace")
            except OSError:
                continue
            if seen.count("request_embeddings called") >= PASSAGES_BEFORE_DEATH:
                killed.append(folder)
                os.kill(pid, signal.SIGKILL)
                return
        time.sleep(0.1)


def servers() -> list[int]:
    """Return the processes below this one, but for the fixture's, that are a server of Letta."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (parents := ancestry(int(entry.name))) and os.getpid() in parents[2:]:
            try:
                command = (entry / "cmdline").read_text()
            except OSError:
                continue
            if "letta_server" in command:
                found.append(int(entry.name))
    return found


def ancestry(pid: int) -> list[int]:
    """Return a process and those above it, nearest first."""
    line = [pid]
    while line[-1] > 1:
        try:
            stat = Path(f"/proc/{line[-1]}/stat").read_text()
        except OSError:
            return line
        line.append(int(stat.rpartition(")")[2].split()[1]))
    return line
