"""The published causal rescue: Store–Recall, Stepwise Maximum, and LRU at sufficient capacity, beside reference agents.

python -m studies.rescue [--json]
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

from eirkit.lacuna.evidence.claims import gate
from eirkit.lacuna.evidence.rescue import Arm, ArmRow, Setup, rescue
from eirkit.lacuna.model import ModelOptions
from eirkit.lacuna.task import TaskSpec
from studies.agent_rows import Row, compare, document, show, trait
from studies.published import THREE

THREES = 20  # groups of three seeds
CALCULATOR, GUESSER = "reference/calculator", "reference/guesser"
FOUR, STRONG = "mean of four models", "mean of three models"

GUESSES = "what a model puts in the place of a missing value is its own; the guesser draws one of 10^4"
OMITS = (
    "the calculator omits a missing operand of a maximum; an agent, not shipped, that took the oldest visible record "
    "instead reached 0.80 where the calculator reaches 0.40: the published 0.642 lies between two ways of going on"
)
UNEXPLAINED = (
    "explained in part: here too the sham exceeds the control, because an earlier maximum is often the answer itself "
    "(0.37 where such values are left out); why the published one is as high as 0.714 we do not know"
)
SLIPS = (
    "the published models slip by themselves: 0.3% of their answers at full retention do not follow from their own "
    "earlier ones, and in Stepwise Sum one slip spoils what comes after it; the calculator never slips"
)

Figure = Callable[[ArmRow], float | None]


def threes(setup: Setup, model: str) -> dict[Arm, list[ArmRow]]:
    """Return the arms of one agent for every group of three seeds."""
    found: dict[Arm, list[ArmRow]] = {"control": [], "oracle": [], "sham": []}
    for group in range(THREES):
        seeds = range(THREE * group, THREE * (group + 1))
        for row in rescue(setup, seeds, [model], ModelOptions()).rows:
            found[row.arm].append(row)
    return found


def controls() -> list[dict[str, Any]]:
    """Return what the agents reach at full information: the arms of one that fails would claim nothing."""
    cells = {
        "Store–Recall": gate(GUESSER, TaskSpec("store-recall"), ModelOptions()),
        "Stepwise Maximum": gate(CALCULATOR, TaskSpec("stepwise-max"), ModelOptions()),
        "Stepwise Sum": gate(CALCULATOR, TaskSpec("stepwise-sum"), ModelOptions()),
    }
    return [{"workload": family, "agent": cell.model, **cell.standing()} for family, cell in cells.items()]


def figures(rows: list[ArmRow], figure: Figure) -> list[float]:
    return [value for row in rows if (value := figure(row)) is not None]


def store_recall() -> Iterator[Row]:
    arms = threes(Setup(TaskSpec("store-recall", m=8), 4), GUESSER)
    accuracy = {arm: figures(rows, lambda row: row.accuracy) for arm, rows in arms.items()}
    models = (FOUR, GUESSER)
    yield trait("Store–Recall, missed RECALLs: no injection", 0.113, accuracy["control"], models, GUESSES)
    yield compare("Store–Recall, missed RECALLs: exact", 1.0, accuracy["oracle"], models)
    yield compare("Store–Recall, missed RECALLs: sham", 0.0, accuracy["sham"], models)
    repair = [a - b for a, b in zip(accuracy["oracle"], accuracy["sham"], strict=True)]
    yield compare("Store–Recall: repair effect", 1.0, repair, models)


def stepwise_maximum() -> Iterator[Row]:
    arms = threes(Setup(TaskSpec("stepwise-max", m=8), 4), CALCULATOR)
    accuracy = {arm: figures(rows, lambda row: row.trajectory_accuracy) for arm, rows in arms.items()}
    models = (STRONG, CALCULATOR)
    yield compare("Stepwise Maximum, whole run: no injection", 0.642, accuracy["control"], models, OMITS)
    yield compare("Stepwise Maximum, whole run: sham", 0.714, accuracy["sham"], models, UNEXPLAINED)
    yield compare("Stepwise Maximum, whole run: exact", 1.0, accuracy["oracle"], models)


# Policy and h, arm → accuracy, self-consistent accuracy, steps with a missing reference.
SUFFICIENT: dict[tuple[str, int, Arm], tuple[float, float, float]] = {
    ("window", 16, "control"): (0.934, 0.997, 0.0),
    ("lru", 16, "control"): (0.410, 0.788, 13.3),
    ("lru", 20, "control"): (0.441, 0.903, 5.7),
    ("lru", 32, "control"): (0.925, 0.995, 0.0),
    ("lru", 16, "oracle"): (0.934, 0.997, 13.3),
    ("lru", 16, "sham"): (0.444, 0.790, 13.3),
}


def sufficient_capacity() -> Iterator[Row]:
    spec, models = TaskSpec("stepwise-sum", m=16), (STRONG, CALCULATOR)
    made: dict[tuple[str, int], dict[Arm, list[ArmRow]]] = {}
    for (policy, h, arm), (accuracy, consistent, missed) in SUFFICIENT.items():
        if (policy, h) not in made:
            made[policy, h] = threes(Setup(spec, h, policy, "submitted", managed=True), CALCULATOR)
        rows = made[policy, h][arm]
        name = f"{policy} at h = {h}" + {"control": "", "oracle": " + correct restoration", "sham": " + sham"}[arm]
        yield compare(f"{name}: accuracy", accuracy, figures(rows, lambda row: row.trajectory_accuracy), models, SLIPS)
        own = figures(rows, lambda row: row.self_consistent_accuracy)
        yield compare(f"{name}: self-consistent", consistent, own, models, SLIPS)
        yield compare(f"{name}: steps with a miss", missed, figures(rows, lambda row: row.missed_steps), models)


def study() -> dict[str, Any]:
    """Return the comparison as one document."""
    standings = controls()
    families = {"Store–Recall": store_recall, "Stepwise Maximum": stepwise_maximum, "Stepwise Sum": sufficient_capacity}
    passed = [entry["workload"] for entry in standings if entry["passes"]]
    rows = [row for family in passed for row in families[family]()]
    title = "Causal rescue: restoration repairs, a sham of equal length does not"
    return document("rescue", title, rows, controls=standings)


if __name__ == "__main__":
    show(study(), sys.argv[1:])
