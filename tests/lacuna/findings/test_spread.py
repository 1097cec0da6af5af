"""Sweeps on an engine: the records of a sweep in one process, and typed failures where a worker dies."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from eirkit.engine.interface import LostPiece, PieceResult
from eirkit.engine.processes import Processes
from eirkit.engine.ray_tasks import RayTasks
from eirkit.lacuna.runs.suite import read_suite
from eirkit.lacuna.runs.sweep import resume_sweep, start_sweep
from eirkit.lacuna.runs.workers import is_free
from tests.runs import digest

SUITE = {"n": 12, "m": 4, "h": 2, "seeds": "0:70", "workload": ["stepwise-sum", "store-recall"]}


def suite(**more: Any) -> Any:
    return read_suite({**SUITE, "model": ["reference/calculator", "reference/guesser"], **more})


def test_an_engine_leaves_the_same_records(tmp_path):
    here = start_sweep(suite(), tmp_path / "here")
    there = start_sweep(suite(), tmp_path / "there", engine=Processes(2))
    assert digest(tmp_path / "here") == digest(tmp_path / "there")
    assert here.rows == there.rows
    assert there.complete


@pytest.mark.slow
def test_so_does_ray(tmp_path):
    pytest.importorskip("ray", reason="needs Ray; pip install 'eirkit[ray]'")
    start_sweep(suite(), tmp_path / "here")
    engine = RayTasks(workers=2, batch=1)
    try:
        start_sweep(suite(), tmp_path / "there", engine=engine)
    finally:
        engine.close()
    assert digest(tmp_path / "here") == digest(tmp_path / "there")


def test_memories_travel_too(tmp_path):
    with_memory = {"memory": ["key-value", "broken-drops"], "model": ["reference/recoverer"], "seeds": "0:4"}
    here = start_sweep(suite(**with_memory), tmp_path / "here")
    there = start_sweep(suite(**with_memory), tmp_path / "there", engine=Processes(2))
    assert [row.accuracy for row in here.rows] == [row.accuracy for row in there.rows]
    assert [row.memory_system.outcomes for row in here.rows] == [row.memory_system.outcomes for row in there.rows]


class Unlucky:
    """An engine that loses every second piece of work."""

    def map(self, function: Any, pieces: Any) -> Iterator[PieceResult[Any] | LostPiece]:
        for number, piece in enumerate(pieces):
            yield (
                LostPiece(number, "killed its worker (SIGKILL)") if number % 2 else PieceResult(number, function(piece))
            )

    def close(self) -> None:
        pass


def test_runs_whose_worker_died_are_typed_and_resumed(tmp_path):
    broken = start_sweep(suite(), tmp_path, engine=Unlucky())
    assert {group.kind for group in broken.failures} == {"worker"}
    assert not broken.complete
    assert 0 < broken.scored < broken.planned
    assert resume_sweep(tmp_path, engine=Processes(2)).complete
    start_sweep(suite(), tmp_path / "whole")
    assert digest(tmp_path) == digest(tmp_path / "whole")


def test_what_may_cost_money_is_not_spread():
    paid = read_suite({**SUITE, "model": "openai/gpt-x", "workload": "stepwise-sum"})
    assert [is_free(cell) for cell, _ in paid.plan()] == [False]
    assert all(is_free(cell) for cell, _ in suite().plan())
