"""Hostile memory systems in real sweeps: each costs its own runs only, says why in a line, and leaves no process."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from pathlib import Path

import pytest

from eirkit.cli import run as run_command_line
from eirkit.errors import PluginError, StoreError
from eirkit.lacuna.memories import child_process
from eirkit.lacuna.memories.adapter import adapt
from eirkit.lacuna.memories.calls import call_with_timeout
from eirkit.lacuna.memories.child_process import ProcessMemory, variables_without_secrets
from eirkit.lacuna.memories.keeper import ProcessId, descendants, end_all, state_of
from eirkit.lacuna.memories.memory import Item
from eirkit.testing import check_memory
from tests import warm
from tests.faults import custody, hostile
from tests.faults.custody import HERE, MCP, SEEDS, Trial, Verdict, perform
from tests.lacuna.running import eirkit
from tests.processes import PATIENCE_SECONDS, running, wait_until
from tests.runs import failures

linux = pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc")
FILE = HERE / "hostile.py"
SAYING = {  # of systems whose runs all fail
    "HangsInWrite": "did not finish write within 2 s; raise timeout_seconds",
    "BlocksInSearch": "did not finish search within 2 s; raise timeout_seconds",
    "Exits": "died during write (exit code 0, no output); fix it and resume",
    "Kills": "died during write (no output); fix it and resume",
    "Stops": "did not finish write within 2 s",
    "Cancels": "CancelledError: had enough (raised by search)",
    "Interrupts": "KeyboardInterrupt: pretends (raised by search)",
    "Quits": "SystemExit: 0 (raised by search)",
    "Unspeakable": "Worse: its message cannot be read (raised by search)",
    "Huge": "search returned 100 MiB; return less",
    "Wrong": "search returned a dict; return a list of strings",
}
FINE = ("Deaf", "Threads", "Forks", "Daemons", "Shouts", "Echoes")  # their runs are scored

FORKING = ("Multiplies", "Hurries")  # they end by themselves after `COPY_SECONDS`


def tried(memory: str, folder: Path, workers: int = 0) -> Verdict:
    return watched(Trial(memory, "none", 0.0, workers, early=True), folder)  # no signal waits for its process


def watched(trial: Trial, folder: Path) -> Verdict:
    """Perform a trial with patience: what is not ended lives for ever; `session faults` counts the seconds."""
    program = custody.EIRKIT if trial.end != "none" else (str(warm.programs() / "eirkit"),)
    return perform(trial, f"{os.getpid()}-{time.monotonic_ns()}", folder, PATIENCE_SECONDS, program)


def test_every_hostile_system_is_tried_here():
    assert set(hostile.FAULTS) == {*SAYING, *FINE, *FORKING, "ExitsAtFirst"}


@linux
@pytest.mark.parametrize("memory", SAYING)
def test_a_hostile_system_loses_its_runs_with_a_line_and_leaves_no_process(memory, tmp_path):
    assert tried(memory, tmp_path).faults == ()
    lost = failures(tmp_path / "out")
    assert len(lost) == SEEDS
    assert {failure.kind for failure in lost} == {"memory"}
    assert all(SAYING[memory] in failure.message for failure in lost), lost[0].message


@linux
@pytest.mark.parametrize("memory", FINE)
def test_a_system_that_works_and_litters_is_scored_and_leaves_no_process(memory, tmp_path):
    assert tried(memory, tmp_path).faults == ()
    assert json.loads((tmp_path / "said").read_text().splitlines()[-1])["rows"][0]["scored"] == SEEDS


@linux
@pytest.mark.parametrize(
    ("memory", "workers", "end"), [(FORKING[0], 0, "none"), (FORKING[1], 0, "none"), (FORKING[0], 2, "SIGTERM")]
)
def test_a_system_that_forks_without_end_is_ended_before_it_ends_itself(memory, workers, end, tmp_path):
    started = time.monotonic()
    mark = f"{os.getpid()}-{time.monotonic_ns()}"
    verdict = perform(Trial(memory, end, 1.0, workers), mark, tmp_path, custody.GONE_SECONDS)
    assert verdict.faults == ()
    assert time.monotonic() - started < hostile.COPY_SECONDS, "they have ended by themselves: too slow to tell"


@linux
def test_what_cannot_be_ended_is_named_and_makes_a_command_fail(capfd):
    """The process is one that no keeper has ended; it is alive, as its end at our hands shows."""
    with running(["sleep", "600"]) as sleeper:
        assert end_all(lambda: {ProcessId(sleeper.pid, "of another process"): "S"}, 0.1) == [sleeper.pid]
        assert sleeper.poll() is None, "a number that belongs to another process by now gets no signal"
        child_process._SURVIVORS.update(state_of(sleeper.pid))
        assert run_command_line(["--version"]) == 1
        said = capfd.readouterr().err
        assert f"1 process of a memory or compactor could not be ended; run: kill -9 {sleeper.pid}" in said
    assert run_command_line(["--version"]) == 0
    child_process._SURVIVORS.clear()


@linux
def test_stopping_comes_before_killing(tmp_path):
    """A mother that replaces a child when it ends does not get to it."""
    words = "import os, time, sys\nwhile True:\n    p = os.fork()\n    if p == 0: time.sleep(60); os._exit(0)\n"
    words += "    os.waitpid(p, 0); open(sys.argv[1], 'a').write('x')\n"
    with running([sys.executable, "-S", "-c", words, tmp_path / "replaced"]) as mother:
        wait_until(lambda: descendants((mother.pid,)), "the first child")
        assert len(descendants((mother.pid,))) == 1
        assert end_all(lambda: {**descendants((mother.pid,)), **state_of(mother.pid)}) == []
    assert not (tmp_path / "replaced").exists()


@linux
def test_workers_of_an_engine_leave_no_process_of_a_hostile_system(tmp_path):
    assert tried("Daemons", tmp_path, workers=2).faults == ()


@linux
@pytest.mark.slow  # waits for eight seconds several times
def test_a_hostile_mcp_server_leaves_no_process_and_no_traceback(tmp_path):
    pytest.importorskip("mcp")
    assert tried(MCP, tmp_path).faults == ()
    assert any("within 8 s; raise timeout_seconds" in failure.message for failure in failures(tmp_path / "out"))


@linux
@pytest.mark.parametrize("end", custody.ENDS[1:])
def test_nothing_outlives_a_sweep_that_is_ended_while_its_memory_hangs(end, tmp_path):
    assert watched(Trial("HangsInWrite", end, 3.0, 0), tmp_path).faults == ()


@pytest.mark.parametrize("name", [f"{FILE}:ExitsAtFirst", f"{HERE / 'hostile_import.py'}:Never"])
def test_a_system_that_ends_its_process_at_once_is_refused_before_anything_is_written(name, tmp_path, capsys):
    run = ("lacuna", "run", "store-recall", "--n", "4", "--m", "4", "--h", "2", "--model", "reference/recoverer")
    assert eirkit(*run, "--memory", name, "--out", str(tmp_path / "out")) == 2
    assert "ended its process while it was loaded" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_secret_never_reaches_a_system_that_does_not_ask_for_it(monkeypatch):
    monkeypatch.setenv("SOME_API_KEY", "never-to-be-seen")
    monkeypatch.setenv("STORE_FOLDER", "/somewhere")
    seen = variables_without_secrets(os.environ)
    assert "SOME_API_KEY" not in seen
    assert seen["STORE_FOLDER"] == "/somewhere"
    assert variables_without_secrets(os.environ, ["SOME_API_KEY"])["SOME_API_KEY"] == "never-to-be-seen"


def test_objects_of_this_program_keep_their_time_limits_and_their_exits_to_themselves():
    async def each() -> list[str]:
        said = []
        for kind, verb, arguments in (
            (hostile.BlocksInSearch, "search", ("A_1", 5)),
            (hostile.HangsInWrite, "write", (Item("A_1", "A_1 = 5"),)),
            (hostile.Cancels, "search", ("A_1", 5)),
            (hostile.Interrupts, "search", ("A_1", 5)),
            (hostile.Quits, "search", ("A_1", 5)),
        ):
            memory = adapt(kind())
            await call_with_timeout(PATIENCE_SECONDS, "setup", memory.setup)
            try:
                await call_with_timeout(0.5, verb, getattr(memory, verb), *arguments)
            except (PluginError, StoreError) as error:
                said.append(str(error))
        return said

    late_search, late_write, *ends = asyncio.run(each())
    assert "did not finish search within 0.5 s" in late_search
    assert "did not finish write within 0.5 s" in late_write
    for kind, line in zip(("CancelledError", "KeyboardInterrupt", "SystemExit"), ends, strict=True):
        assert f"raised {kind}" in line
        assert "\n" not in line


def test_check_memory_reports_hostile_systems_as_findings():
    with pytest.raises(AssertionError, match="KeyboardInterrupt: pretends"):
        check_memory(hostile.Interrupts, seconds=60, records=64)
    with pytest.raises(AssertionError, match="died during"):
        check_memory(lambda: ProcessMemory(f"{FILE}:Exits", {}, Path(sys.executable), is_own=True), seconds=60)
