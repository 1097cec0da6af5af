"""The published full-information control beside reference agents, with and without a calculator.

python -m studies.capability [--json]
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from eirkit.lacuna.evidence.capability import Cell, Control, assess
from eirkit.lacuna.model import ModelOptions
from eirkit.lacuna.task import TaskSpec
from studies.agent_rows import Row, compare, document, show, trait
from studies.published import THREE

THREES = 6  # groups of three seeds
CALCULATOR, SLOPPY = "reference/calculator", "reference/sloppy"
WORKLOADS = ("stepwise-sum", "store-recall", "running-max", "stepwise-max", "stepwise-topk")
# Model → accuracy on those workloads, h = m, mean over m in {4, 8, 16} and three seeds.
TABLE = {
    "GPT-5.6 Reasoning": (1.000, 1.000, 1.000, 1.000, 0.908),
    "Claude Opus 4.6": (1.000, 1.000, 0.998, 1.000, 0.918),
    "Claude Haiku 4.5": (1.000, 1.000, 1.000, 1.000, 0.754),
    "GPT-4.1 Mini": (0.040, 1.000, 0.474, 0.547, 0.221),
}
COMPUTES = "the published figure is what that model can compute unaided; the calculator computes everything"


def threes(model: str) -> list[dict[str, Cell]]:
    specs = [TaskSpec(name) for name in WORKLOADS]
    found = []
    for group in range(THREES):
        control = Control(seeds=range(THREE * group, THREE * (group + 1)))
        found.append({cell.workload: cell for cell in assess([model], specs, control, ModelOptions())})
    return found


def rows() -> Iterator[Row]:
    exact, sloppy = threes(CALCULATOR), threes(SLOPPY)
    for model, published in TABLE.items():
        for workload, accuracy in zip(WORKLOADS, published, strict=True):
            ours = [cells[workload].accuracy or 0.0 for cells in exact]
            yield trait(f"{workload}, unaided", accuracy, ours, (model, CALCULATOR), COMPUTES)
    for workload in WORKLOADS:
        aided = [cells[workload].calculator_accuracy or 0.0 for cells in sloppy]
        yield compare(f"{workload}, with a calculator", 1.0, aided, ("every tested model", SLOPPY))


def study() -> dict[str, Any]:
    """Return the comparison as one document."""
    return document("capability", "Full information: h = m in {4, 8, 16}, recovery off", list(rows()))


if __name__ == "__main__":
    show(study(), sys.argv[1:])
