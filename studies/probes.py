"""The published recovery probes beside reference agents: success, read overhead, rereads, off-cone reads, early stops.

python -m studies.probes [--json]
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from eirkit.lacuna.evidence.prediction import Recovery, reads_given_cone
from eirkit.lacuna.evidence.probe import ProbePlan, ProbeRow, run_probes
from eirkit.lacuna.model import ModelOptions
from eirkit.lacuna.task import TaskSpec
from studies.agent_rows import Row, compare, document, show, trait
from studies.published import THREE

THREES = 8  # groups of three seeds
SPECS = [TaskSpec(name, m=8) for name in ("stepwise-sum", "stepwise-max", "stepwise-topk")]
RECOVERER, QUITTER = "reference/recoverer", "reference/quitter"
QUITS = (0.02, 0.1, 0.3)  # probabilities a reply, for no reason but that they differ; the share completed is theirs
# Workload → completed, probes; four models and two fan-ins pooled.
COMPLETED = {"stepwise-sum": (32, 40), "stepwise-max": (18, 24), "stepwise-topk": (19, 24)}
STOPS = "how often an agent stops early is its own; the quitter stops as often as it is told to, so nothing is compared"


def threes(model: str, quits: float) -> list[tuple[ProbeRow, ...]]:
    options = ModelOptions(extra={"p": quits})
    groups = (range(THREE * group, THREE * (group + 1)) for group in range(THREES))
    return [run_probes(SPECS, seeds, ProbePlan(), [model], options)[0] for seeds in groups]


def overheads(rows: list[ProbeRow]) -> list[float]:
    return [row.read_overhead for row in rows if row.read_overhead is not None]


def quitting() -> Iterator[Row]:
    """Yield what a completed probe costs an agent that may stop at any reply, and how often it completes one."""
    for quits in QUITS:
        groups, by = threes(QUITTER, quits), ("four models pooled", f"{QUITTER}, p = {quits}")
        for place, spec in enumerate(SPECS):
            rows, (completed, probes) = [group[place] for group in groups], COMPLETED[spec.workload]
            share = [row.successful / row.probes for row in rows]
            yield trait(f"{spec.workload}: completed", completed / probes, share, by, STOPS)
            yield compare(f"{spec.workload}: overhead of completed ones", 1.0, overheads(rows), by)
            yield compare(f"{spec.workload}: redundant rereads", 0.0, [float(row.redundant) for row in rows], by)


def recovering() -> Iterator[Row]:
    """Yield the rows of the strong models on Stepwise Sum, all of whose probes are completed."""
    rows, by = [group[0] for group in threes(RECOVERER, 0.0)], ("three strong models", RECOVERER)
    yield compare("stepwise-sum: completed", 1.0, [row.successful / row.probes for row in rows], by)
    yield compare("stepwise-sum: read overhead", 1.0, overheads(rows), by)
    yield compare("stepwise-sum: off-cone reads", 0.0, [float(row.off_cone) for row in rows], by)
    yield compare("stepwise-sum: early stops", 0.0, [float(row.early_stops) for row in rows], by)


def independence() -> dict[str, Any]:
    """Return the test that reads depend on the cone and not on the pressure.

    The naive recoverer has no place here: most of its probes end at the limit of actions, and the slope among the rest
    changes its sign with that limit.
    """
    recoveries = []
    for h in (8, 4, 2):
        _, probes = run_probes(SPECS[:1], range(24), ProbePlan(h=h), [RECOVERER], ModelOptions())
        recoveries += [Recovery(p.minimum, 8 / h, len(p.order)) for _, _, p in probes]
    test = reads_given_cone(recoveries)
    return {"model": RECOVERER, "reads_a_unit_of_pressure": test.estimate, "p": test.p, "n": test.n}


def study() -> dict[str, Any]:
    """Return the comparison as one document."""
    made = document("probes", "Recovery probes: m = 8, n = 64, fan-ins 2 and 4", [*recovering(), *quitting()])
    return {**made, "reads_given_the_cone": independence()}


def main(arguments: list[str]) -> None:
    made = study()
    show(made, arguments)
    if "--json" not in arguments:
        test = made["reads_given_the_cone"]
        slope, p, n = test["reads_a_unit_of_pressure"], test["p"], test["n"]
        print(f"{test['model']}: {slope:+.3f} reads a unit of m/h among equal cones, p = {p:.3f}, {n} recoveries")


if __name__ == "__main__":
    main(sys.argv[1:])
