"""Engines: every piece is accounted for once, whatever pieces do to their workers."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eirkit.engine.interface import LostPiece, PieceLimits, PieceResult
from eirkit.engine.processes import Processes
from eirkit.limits import memory_left
from tests.processes import completed, running

HOARD_BYTES = 400 << 20


def act(piece: object) -> object:
    """Do what a piece says; module-level, so that a spawned worker finds it."""
    match piece:
        case "die":
            os.kill(os.getpid(), signal.SIGKILL)
        case "exit":
            os._exit(3)
        case "raise":
            raise ValueError("as asked")
        case "hang":
            time.sleep(600)
        case "hog":
            return len(bytearray(3 << 30))
        case "hoard":
            kept = bytearray(HOARD_BYTES)
            time.sleep(1)  # the parent looks several times
            os.kill(os.getpid(), signal.SIGSEGV)
            return len(kept)
        case "crash":
            os.kill(os.getpid(), signal.SIGSEGV)
    return piece


def sort(outcomes: Iterator[PieceResult | LostPiece]) -> list[PieceResult | LostPiece]:
    return sorted(outcomes, key=lambda outcome: outcome.number)


def test_every_piece_gives_its_value():
    assert sort(Processes(2).map(act, range(100))) == [PieceResult(n, n) for n in range(100)]


def test_nothing_to_do_is_done():
    assert list(Processes(2).map(act, [])) == []


def test_a_poison_piece_costs_itself_and_is_named():
    pieces = [*range(20), "die", *range(21, 40), "raise", "exit", 42]
    found = sort(Processes(2).map(act, pieces))
    assert [outcome.number for outcome in found] == list(range(43))
    lost = {outcome.number: outcome.reason for outcome in found if isinstance(outcome, LostPiece)}
    assert set(lost) == {20, 40, 41}
    assert "SIGKILL" in lost[20]
    assert lost[40] == "ValueError: as asked"
    assert "exit code 3" in lost[41]


def test_what_hangs_and_what_hogs_is_given_up():
    bounds = PieceLimits(seconds=1.5, memory_bytes=1 << 30)
    found = sort(Processes(2, bounds).map(act, [1, "hang", 2, "hog", 3]))
    lost = {outcome.number: outcome.reason for outcome in found if isinstance(outcome, LostPiece)}
    assert set(lost) == {1, 3}
    assert "took more than 1.5 s" in lost[1]
    assert "1024 MiB" in lost[3]


def test_a_crash_at_a_memory_limit_is_told_with_the_limit_and_no_cause():
    bounds = PieceLimits(memory_bytes=1 << 30)
    crash, hoard, _ = sort(Processes(1, bounds).map(act, ["crash", "hoard", 1]))
    begin, end = "killed its worker (SIGSEGV) at a limit of 1024 MiB of memory", "; raise the limit, leave it out or"
    for lost in (crash, hoard):
        assert isinstance(lost, LostPiece)
        assert lost.is_death
        assert lost.reason.startswith(begin)
        assert end in lost.reason
    used = re.fullmatch(r", of which (\d+) or more were in use", hoard.reason[len(begin) : hoard.reason.index(end)])
    if used is not None:  # on a machine so busy that nobody looked in a second, nothing is claimed
        assert HOARD_BYTES >> 20 <= int(used[1]) < (HOARD_BYTES >> 20) + 200


def test_what_another_process_has_left_is_known():
    program = f"""
from eirkit.limits import limit_memory, memory_left
assert memory_left() is None
limit_memory(1 << 30)
kept = bytearray({HOARD_BYTES})
print(memory_left(), flush=True)
input()
"""
    with running([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        left = int(process.stdout.readline())
        assert memory_left(process.pid) == pytest.approx(left, abs=16 << 20)
        assert (1 << 30) - HOARD_BYTES - (16 << 20) <= left <= (1 << 30) - HOARD_BYTES


def test_pieces_are_taken_as_they_are_needed():
    taken: list[int] = []

    def pieces() -> Iterator[int]:
        for n in range(10_000):
            taken.append(n)
            yield n

    outcomes = Processes(2, batch=4).map(act, pieces())
    first = [next(outcomes) for _ in range(10)]
    assert len(first) == 10
    assert len(taken) < 200, "a corpus is not read before it is needed"
    outcomes.close()  # type: ignore[attr-defined]


def test_workers_end_with_the_engine():
    engine = Processes(2)
    outcomes = engine.map(act, range(100))
    next(outcomes)
    workers = [worker.process.pid for worker in engine._crew]
    outcomes.close()  # type: ignore[attr-defined]
    for pid in workers:
        with pytest.raises(ProcessLookupError):
            os.kill(pid or 0, 0)


@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.sampled_from([1, 2, "raise", "die"]), max_size=12), st.integers(1, 5))
def test_nothing_is_lost_and_nothing_comes_twice(pieces, batch):
    found = sort(Processes(2, batch=batch).map(act, pieces))
    assert [outcome.number for outcome in found] == list(range(len(pieces)))
    assert [isinstance(outcome, PieceResult) for outcome in found] == [piece in (1, 2) for piece in pieces]


@pytest.mark.slow
def test_ray_keeps_the_same_promises():
    ray_tasks = pytest.importorskip("eirkit.engine.ray_tasks")
    pytest.importorskip("ray", reason="needs Ray; pip install 'eirkit[ray]'")
    engine = ray_tasks.RayTasks(workers=2, bounds=PieceLimits(seconds=2, memory_bytes=1 << 30), batch=8)
    try:
        found = sort(engine.map(act, [*range(20), "die", *range(21, 30), "raise", "hang", "hog", 5]))
    finally:
        engine.close()
    assert [outcome.number for outcome in found] == list(range(34))
    lost = {outcome.number: outcome.reason for outcome in found if isinstance(outcome, LostPiece)}
    assert set(lost) == {20, 30, 31, 32}
    assert "killed its worker" in lost[20]
    assert lost[30] == "ValueError: as asked"
    assert "took more than 2 s" in lost[31]
    assert "1024 MiB" in lost[32]


SETTINGS = """
import os, sys
from eirkit.engine.processes import Processes
from tests.test_engine import settings_here

os.umask(0o027)
print([one.value for one in Processes(1).map(settings_here, range(2))])
os.umask(0o077)
print([one.value for one in Processes(1).map(settings_here, range(2))])
"""


def settings_here(piece: int) -> str:
    """Return the umask and the folder of temporary files of this process."""
    mask = os.umask(0)
    os.umask(mask)
    return f"{mask:o} {tempfile.gettempdir()}"


@pytest.mark.parametrize("length", [20, 150, 240])
def test_workers_have_the_umask_and_the_folder_of_temporary_files_of_their_parent(length, tmp_path):
    """A socket has a path of at most 108 bytes, and the folder may be longer; it may also be chosen at any time."""
    folder = tmp_path / ("x" * length)
    folder.mkdir()
    environment = {**os.environ, "TMPDIR": str(folder)}
    done = completed([sys.executable, "-c", SETTINGS], env=environment)
    assert done.stdout.splitlines() == [str([f"{mask} {folder}"] * 2) for mask in ("27", "77")], done.stderr
    assert not list(folder.iterdir())
