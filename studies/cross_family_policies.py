"""The published cross-family policy table, LRU at sufficient capacity, first failures and Full Lookup's hit rates.

python -m studies.cross_family_policies [--json | --markdown]
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eirkit.cli.output import WholeConsole, table
from eirkit.lacuna.policy import find_policy
from eirkit.lacuna.simulation.batch import count_misses
from eirkit.lacuna.simulation.plain import first_failure
from eirkit.lacuna.simulation.table import batches, gap_closed, miss_rates
from eirkit.lacuna.task import TaskSpec
from studies.published import THREE, TOLERANCE, Row

SEEDS = 3000

Rates = NDArray[np.float64]

# The simulated Stepwise Maximum is that of fan-in 1; everything else has two references a step.
FAMILIES = {
    "Stepwise Sum": TaskSpec("stepwise-sum"),
    "Store–Recall": TaskSpec("store-recall"),
    "Stepwise Maximum": TaskSpec("stepwise-max", fan_in=1),
    "Stepwise Top-k": TaskSpec("stepwise-topk"),
}
POLICIES = ("fifo", "lru", "theory", "belady")
CAPACITIES = (12, 8, 4)
# Family → for each capacity: FIFO, LRU, theory-informed, Belady, LRU gap closed.
TABLE = {
    "Stepwise Sum": (
        (0.381, 0.397, 0.381, 0.000, -0.04),
        (0.640, 0.619, 0.640, 0.206, 0.05),
        (0.857, 0.857, 0.857, 0.566, 0.00),
    ),
    "Store–Recall": (
        (0.292, 0.219, 0.000, 0.000, 0.25),
        (0.490, 0.417, 0.000, 0.000, 0.15),
        (0.719, 0.677, 0.490, 0.073, 0.06),
    ),
    "Stepwise Maximum": (
        (0.153, 0.201, 0.153, 0.000, -0.31),
        (0.407, 0.429, 0.407, 0.016, -0.05),
        (0.667, 0.667, 0.667, 0.228, 0.00),
    ),
    "Stepwise Top-k": (
        (0.302, 0.370, 0.302, 0.000, -0.23),
        (0.635, 0.677, 0.635, 0.132, -0.08),
        (0.868, 0.873, 0.868, 0.635, -0.02),
    ),
}
FIRST_FAILURE = {"Stepwise Sum": 1.6, "Stepwise Top-k": 2.0, "Stepwise Maximum": 2.7, "Store–Recall": 4.0}  # Belady
GRID = tuple(range(16, 0, -2))
LRU_MISS_RATE = 0.212  # at h = m = 16
MISSING_STEPS = {"window": {16: 0.0}, "lru": {16: 13.3, 20: 5.7, 32: 0.0}}
HIT_RATES = {4: {"lfu": 0.493, "lru": 0.438, "fixed": 0.111}, 8: {"lfu": 0.681, "lru": 0.674, "fixed": 0.174}}


def compare(label: str, published: float, ours: float, threes: Rates, digits: int = 3) -> Row:
    """Compare a published figure, printed with so many digits, with ours and the spread of three-seed means."""
    spread = float(threes.std())
    low, high = ours - TOLERANCE * spread, ours + TOLERANCE * spread
    rounding = 0.5 * 10**-digits
    return Row(
        label, published, ours, low, high, "inside" if low - rounding <= published <= high + rounding else "outside"
    )


def in_threes(rates: Rates) -> Rates:
    """Return the means over consecutive threes of seeds; what is left over is dropped."""
    whole = len(rates) // THREE * THREE
    return np.asarray(rates[:whole].reshape(-1, THREE, *rates.shape[1:]).mean(axis=1))


def table_rows(families: dict[str, TaskSpec], seeds: Sequence[int]) -> Iterator[Row]:
    """Yield the cross-family table."""
    for family, spec in families.items():
        rates = {name: miss_rates(spec, seeds, name, CAPACITIES) for name in POLICIES}
        for column, (h, published) in enumerate(zip(CAPACITIES, TABLE[family], strict=True)):
            of = {name: rates[name][:, column] for name in POLICIES}
            for name, figure in zip(POLICIES, published, strict=False):
                yield compare(f"{family}, h = {h}: {name}", figure, float(of[name].mean()), in_threes(of[name]))
            gaps = [
                gap_closed(*means) for means in zip(*(in_threes(of[n]) for n in ("lru", "fifo", "belady")), strict=True)
            ]
            whole = gap_closed(*(float(of[n].mean()) for n in ("lru", "fifo", "belady")))
            yield compare(f"{family}, h = {h}: LRU gap closed", published[-1], whole or 0.0, np.array(gaps, float), 2)


def first_failure_rows(seeds: Sequence[int]) -> Iterator[Row]:
    """Yield the pressures at which Belady first misses more than 5% of the steps."""
    for family, published in FIRST_FAILURE.items():
        spec = FAMILIES[family]
        threes = in_threes(miss_rates(spec, seeds, "belady", GRID))
        found = np.array([first_failure([spec.m / h for h in GRID], rates) for rates in threes.tolist()], float)
        yield compare(f"{family}: Belady first fails at m/h", published, float(found.mean()), found, 1)


def sufficient_rows(seeds: Sequence[int]) -> Iterator[Row]:
    """Yield LRU and the exact window at capacities that could hold all sixteen eligible answers."""
    spec = FAMILIES["Stepwise Sum"]
    rates = miss_rates(spec, seeds, "lru", [16])[:, 0]
    yield compare("Stepwise Sum, h = 16: LRU miss rate", LRU_MISS_RATE, float(rates.mean()), in_threes(rates))
    for name, figures in MISSING_STEPS.items():
        for h, published in figures.items():
            steps = miss_rates(spec, seeds, name, [h])[:, 0] * (spec.n - 1)
            label = f"Stepwise Sum, h = {h}: {name}, steps with a missing reference"
            yield compare(label, published, float(steps.mean()), in_threes(steps), 1)


def hit_rate_rows(seeds: Sequence[int]) -> Iterator[Row]:
    """Yield Full Lookup's hit rates under Zipf queries, every miss fetched once."""
    spec = TaskSpec("full-lookup", queries="zipf")
    for h, figures in HIT_RATES.items():
        for name, published in figures.items():
            hits = np.concatenate(
                [
                    1
                    - count_misses(b, find_policy(name), [h], recovery="direct").references[:, 0] / b.needed_references
                    for b in batches(spec, seeds)
                ]
            )
            yield compare(
                f"Full Lookup, Zipf, h = {h}: {name} hit rate", published, float(hits.mean()), in_threes(hits)
            )


def study(seeds: Sequence[int] = range(SEEDS)) -> dict[str, Any]:
    """Return the comparison as one document."""
    rows = [*table_rows(FAMILIES, seeds), *first_failure_rows(seeds), *sufficient_rows(seeds), *hit_rate_rows(seeds)]
    two = {"Stepwise Maximum": TaskSpec("stepwise-max", fan_in=2)}
    return {
        "id": "cross-family-policies",
        "title": "Retention policies: m = 16, n = 64",
        "kind": "offline",
        "seeds": len(seeds),
        "verdict": "inside" if all(row.verdict == "inside" for row in rows) else "outside",
        "rows": [asdict(row) for row in rows],
        "stepwise_maximum_with_fan_in_2": [asdict(row) for row in table_rows(two, seeds)],
    }


def markdown(document: dict[str, Any]) -> list[str]:
    """Return the lines of docs/policies.md with the figures: published, ours ± spread, and a mark where outside."""

    def cell(row: dict[str, Any], digits: int = 3) -> str:
        spread = (row["high"] - row["low"]) / (2 * TOLERANCE)
        mark = "" if row["verdict"] == "inside" else " **outside**"
        ours = round(row["ours"], digits) + 0.0  # no minus before a zero
        return f"{row['published']:.{digits}f} · {ours:.{digits}f} ± {spread:.{digits}f}{mark}"

    by_label = {row["label"]: row for row in document["rows"]}
    lines = []
    for family in FAMILIES:
        for h in CAPACITIES:
            cells = [cell(by_label.pop(f"{family}, h = {h}: {name}")) for name in POLICIES]
            gap = cell(by_label.pop(f"{family}, h = {h}: LRU gap closed"), 2)
            lines.append(f"| {family} | {16 / h:.2f} | {' | '.join(cells)} | {gap} |")
    return [*lines, *(f"| {label} | {cell(row)} |" for label, row in by_label.items())]


def main(arguments: list[str]) -> None:
    document = study()
    if "--json" in arguments:
        print(json.dumps(document, ensure_ascii=False))
        return
    if "--markdown" in arguments:
        print("\n".join(markdown(document)))
        return
    console = WholeConsole()
    columns = ("figure", "published", "ours", "− 3 sd", "+ 3 sd", "verdict")
    for title, name in (
        (f"{document['title']}, {document['seeds']} seeds", "rows"),
        ("Stepwise Maximum with fan-in 2 instead of 1", "stepwise_maximum_with_fan_in_2"),
    ):
        console.print(table(title, columns, [tuple(row.values()) for row in document[name]]))


if __name__ == "__main__":
    main(sys.argv[1:])
