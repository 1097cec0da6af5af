"""Measures the capability of bundled/lacuna-tiny with no missing inputs, by workload, window and other parameters.

python -m studies.bundled_figures FOLDER; writes FOLDER/figures.json.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

from msgspec import Struct

from eirkit.engine.interface import LostPiece, PieceLimits, make_engine
from eirkit.errors import InfrastructureError
from eirkit.lacuna.models.model import ModelOptions
from eirkit.lacuna.tasks.task import TaskSpec
from eirkit.records.documents import write_struct
from eirkit.records.settings import Access, Task
from eirkit_paper.studies.agents import StudyAgent, run_cell

MODEL = "bundled/lacuna-tiny"
SEEDS, FEWER_SEEDS = 102, 34  # of a cell, and of a variation
WORKLOADS = ("stepwise-sum", "running-max", "stepwise-max", "store-recall", "full-lookup", "stepwise-topk")
WINDOWS = (4, 8, 16)
FIGURES, SCHEMA = "figures.json", "bundled-figures/1"
CELL_SECONDS = 3600.0

Piece = tuple[TaskSpec, Sequence[int]]


class CellAccuracies(Struct, frozen=True):
    """A task, and the accuracy of each of its runs where nothing is missing."""

    task: Task
    accuracy: list[float]


class BundledFigures(Struct, frozen=True):
    """Everything that was computed."""

    model: str
    capability: list[CellAccuracies]
    variations: list[CellAccuracies]


def capability_specs() -> Iterator[TaskSpec]:
    for workload in WORKLOADS:
        for m in WINDOWS:
            yield TaskSpec(workload, m=m)


def variations() -> Iterator[TaskSpec]:
    """Yield what the network was also trained for, at 16 records, each once."""
    for workload in WORKLOADS:
        for digits in (1, 2, 3):
            yield TaskSpec(workload, digits=digits)
    for k in (1, 3, 4):
        yield TaskSpec("stepwise-topk", k=k)
    for workload in ("stepwise-sum", "stepwise-max"):
        for fan_in in (1, 3, 4):
            yield TaskSpec(workload, fan_in=fan_in)
        yield TaskSpec(workload, slots=2)
    yield TaskSpec("store-recall", slots=2)
    yield TaskSpec("stepwise-sum", n=256)


def accuracies(piece: Piece) -> CellAccuracies:
    """Return the accuracy of every run where nothing is missing."""
    spec, seeds = piece
    runs = run_cell(spec, Access(h=spec.m), StudyAgent(MODEL, MODEL, ModelOptions()), seeds)
    return CellAccuracies(spec.parameters(), [run.score.accuracy for run in runs])


def compute(pieces: Sequence[Piece]) -> list[CellAccuracies]:
    """Return every cell, computed on all cores, in the order in which they were given."""
    found: dict[int, CellAccuracies] = {}
    with closing(make_engine("local", bounds=PieceLimits(CELL_SECONDS, None))) as engine:
        for outcome in engine.map(accuracies, pieces):
            if isinstance(outcome, LostPiece):
                raise InfrastructureError(f"{pieces[outcome.number][0]}: {outcome.reason}")
            found[outcome.number] = outcome.value
            print(f"{len(found)} of {len(pieces)} cells", file=sys.stderr)
    return [found[number] for number in range(len(pieces))]


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    whole = [(spec, range(SEEDS)) for spec in capability_specs()]
    cells = compute([*whole, *((spec, range(FEWER_SEEDS)) for spec in variations())])
    write_struct(folder / FIGURES, SCHEMA, BundledFigures(MODEL, cells[: len(whole)], cells[len(whole) :]))


if __name__ == "__main__":
    main()
