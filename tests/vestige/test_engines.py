"""One corpus of many formats on every engine: the same bytes, also where a worker is killed from outside."""

from __future__ import annotations

import gzip
import json
import os
import signal
import time
import zipfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from eirkit.engine.interface import LostPiece, PieceResult
from eirkit.engine.processes import Processes
from eirkit.engine.ray_tasks import RayTasks
from eirkit.vestige.corpus import work_units
from eirkit.vestige.corpus.pipeline import Corpus, analyze_here, analyze_in_parts
from tests.processes import PATIENCE_SECONDS, completed
from tests.vestige.formats.samples import write_sample
from tests.vestige.test_parts import EIRKIT, OPTIONS, plain_run, silent, tables, write_corpus

SAMPLES = ("mini-swe-agent", "claude-code", "codex", "harbor", "openhands-completions", "tau-bench", "atif")


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    """Plain lines, logs of seven scaffolds, an archive, a compressed file, and two that cannot be read."""
    folder = write_corpus(tmp_path / "logs", runs=300)
    for name in SAMPLES:
        write_sample(name, folder / name)
    with zipfile.ZipFile(folder / "packed.zip", "w") as archive:
        for path in write_sample("mini-swe-agent", tmp_path / "unpacked"):
            archive.write(path, path.name)
    (folder / "packed.jsonl.gz").write_bytes(gzip.compress("\n".join(map(plain_run, range(900, 950))).encode()))
    (folder / "torn.jsonl").write_text('{"run_id": "torn", "turns": [\n')
    (folder / "empty.json").write_text("")
    return folder


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut even small corpora into many pieces."""
    monkeypatch.setattr(work_units, "PIECE_BYTES", 6_000)


def as_before(folder: Path, found: dict[str, Any], expected: tuple[Path, dict[str, Any]]) -> bool:
    """True if an analysis left the bytes and the summary of another."""
    return tables(folder) == tables(expected[0]) and found == expected[1]


@pytest.fixture
def here(tmp_path: Path, mixed: Path) -> tuple[Path, dict[str, Any]]:
    found = analyze_here(Corpus((mixed,)), tmp_path / "here", OPTIONS, progress=silent)
    assert len(found.formats) > 6
    assert len(found.skipped) == 2
    return tmp_path / "here", found


@pytest.mark.usefixtures("small_pieces")
def test_processes_leave_the_bytes_of_one_process(tmp_path, mixed, here):
    found = analyze_in_parts(Corpus((mixed,)), tmp_path / "out", OPTIONS, Processes(2))
    assert as_before(tmp_path / "out", found, here)


class DyingOnce:
    """An engine on which every piece dies with its worker the first time."""

    def __init__(self) -> None:
        self.met: list[Any] = []

    def map(self, function: Callable[[Any], Any], pieces: Iterable[Any]) -> Iterator[PieceResult[Any] | LostPiece]:
        for number, piece in enumerate(pieces):
            if piece in self.met:
                yield PieceResult(number, function(piece))
            else:
                self.met.append(piece)
                yield LostPiece(number, "killed its worker", is_death=True)

    def close(self) -> None:
        pass


def test_one_death_of_a_worker_costs_no_document(tmp_path, mixed, here):
    found = analyze_in_parts(Corpus((mixed,)), tmp_path / "out", OPTIONS, DyingOnce())
    assert as_before(tmp_path / "out", found, here)


@pytest.fixture
def ray_engine() -> Iterator[RayTasks]:
    pytest.importorskip("ray", reason="needs Ray; pip install 'eirkit[ray]'")
    engine = RayTasks(workers=2, batch=1)
    yield engine
    engine.close()


@pytest.mark.slow
@pytest.mark.usefixtures("small_pieces")
def test_so_does_ray(tmp_path, mixed, here, ray_engine):
    found = analyze_in_parts(Corpus((mixed,)), tmp_path / "out", OPTIONS, ray_engine)
    assert as_before(tmp_path / "out", found, here)


def ancestors(pid: int) -> Iterator[int]:
    while pid > 1:
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        yield pid


def busy_ray_workers() -> list[int]:
    """Return the processes that carry out tasks of this process's own cluster."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            is_busy = process.joinpath("cmdline").read_bytes().startswith(b"ray::_perform_all")
            if is_busy and os.getpid() in ancestors(int(process.name)):
                found.append(int(process.name))
        except OSError:
            continue
    return found


class KillsOne:
    """A progress that kills one of two busy Ray workers, once."""

    def __init__(self) -> None:
        self.killed: list[int] = []

    def __call__(self, source: str, runs: int, skipped: int) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not self.killed and time.monotonic() < deadline:
            busy = busy_ray_workers()
            if len(busy) == 2:
                os.kill(busy[0], signal.SIGKILL)
                self.killed.append(busy[0])


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").is_file(), reason="finds workers in /proc")
def test_a_killed_ray_worker_costs_nothing(tmp_path, ray_engine, monkeypatch):
    monkeypatch.setattr(work_units, "PIECE_BYTES", 400_000)
    corpus = Corpus((write_corpus(tmp_path / "logs", runs=30_000),))
    expected = analyze_here(corpus, tmp_path / "here", OPTIONS, progress=silent)
    kills = KillsOne()
    found = analyze_in_parts(corpus, tmp_path / "out", OPTIONS, ray_engine, progress=kills)
    assert len(kills.killed) == 1, "no two workers were at work at once"
    assert not Path(f"/proc/{kills.killed[0]}").exists()
    assert found.skipped == ()
    assert as_before(tmp_path / "out", found, (tmp_path / "here", expected))


@pytest.mark.slow
def test_the_command_runs_on_ray(tmp_path, mixed, here):
    pytest.importorskip("ray", reason="needs Ray; pip install 'eirkit[ray]'")
    command = [*EIRKIT, "vestige", "analyze", str(mixed), "--engine", "ray", "--workers", "2", "--json"]
    done = completed([*command, "--out", str(tmp_path / "out")])
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["runs"] == here[1].runs
    assert tables(tmp_path / "out") == tables(here[0])
