"""The published recovery-cone table, growth paragraph and matched pairs beside ours, over many more graphs.

python -m studies.recovery_cones [--json]
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eirkit.cli.output import WholeConsole, table
from eirkit.lacuna.cone import ConeArrays, measure_cones
from eirkit.lacuna.graph import References, draw_references
from eirkit.seeds import below, words
from studies.published import THREE, TOLERANCE, Row

SEEDS = 900  # graphs of each type; a published mean is over three
N, M, FROM_STEP = 64, 8, 32
TYPES = {1: "chain", 2: "balanced", 4: "bushy"}

# The cone table: fan-in → mean size, naive cost, depth; and the ratio printed as speed-up.
TABLE = {1: (13.0, 13.0, 13.0), 2: (38.5, 4.4e4, 19.5), 4: (45.3, 1.1e10, 30.3)}
SPEEDUP = {1: 1.0, 2: 1.1e3, 4: 2.5e8}
CONES = 99  # a graph type
# The growth paragraph, over all steps of three graphs: fan-in → largest size, median size, share of sizes above 30.
GROWTH: dict[int, tuple[float, float, float | None]] = {1: (22, 9, None), 4: (63, 30, 0.50)}
# (size, depth) of the four cones that make the published pairs.
PAIRS = {"equal size 56": ((56, 25), (56, 40)), "equal depth 21": ((21, 21), (48, 21))}

Figures = NDArray[np.float64]  # one number a graph and cone
Reading = Callable[[int], tuple[Figures, Figures, Figures]]  # fan-in → size, naive cost, depth


def row(label: str, published: float, threes: Figures) -> Row:
    """Compare a published figure with the same figure of many threes of graphs."""
    ours, spread = float(threes.mean()), float(threes.std())
    low, high = ours - TOLERANCE * spread, ours + TOLERANCE * spread
    return Row(label, published, ours, low, high, "inside" if low <= published <= high else "outside")


def in_threes(figures: Figures) -> Figures:
    """Put the graphs in consecutive threes: shape (threes, cones of three graphs)."""
    return figures.reshape(len(figures) // THREE, -1)


def cones(fan_in: int, reach: int = M) -> ConeArrays:
    return measure_cones(draw_references(range(SEEDS), N, reach, fan_in))


def from_step(measured: ConeArrays, first: int = FROM_STEP, last: int = N) -> tuple[Figures, Figures, Figures]:
    chosen = slice(first - 1, last)
    size, naive, depth = measured.size[:, chosen], measured.naive[:, chosen], measured.depth[:, chosen]
    return size.astype(float), naive.astype(float), depth.astype(float)


def without_target(fan_in: int) -> tuple[Figures, Figures, Figures]:
    size, naive, depth = from_step(cones(fan_in))
    return size - 1, naive - 1, depth - 1


def draw_with_replacement(fan_in: int) -> References:
    """References that may coincide, each kept once."""
    steps = np.arange(1, N + 1)
    available = np.minimum(steps - 1, M)
    drawn = below(words(range(SEEDS), N * fan_in, "with replacement").reshape(-1, N, fan_in), available[:, None])
    refs = np.sort(np.where(available[:, None] > 0, drawn + np.maximum(1, steps - M)[:, None], 0), axis=2)
    refs[:, :, 1:][refs[:, :, 1:] == refs[:, :, :-1]] = 0
    return refs.astype(np.int32)


READINGS: dict[str, Reading] = {
    "ours: target counted, steps 32 … 64": lambda fan_in: from_step(cones(fan_in)),
    "target left out": without_target,
    "one step earlier, steps 31 … 63": lambda fan_in: from_step(cones(fan_in), 31, 63),
    "references drawn with replacement": lambda fan_in: from_step(measure_cones(draw_with_replacement(fan_in))),
    "lookback 7": lambda fan_in: from_step(cones(fan_in, 7)),
    "lookback 9": lambda fan_in: from_step(cones(fan_in, 9)),
}


def table_rows(reading: Reading) -> Iterator[Row]:
    """Yield the nine means of the cone table under one reading."""
    for fan_in, published in TABLE.items():
        measured = reading(fan_in)
        for name, figure, values in zip(("size", "naive cost", "depth"), published, measured, strict=True):
            yield row(f"{TYPES[fan_in]}: {name}", figure, in_threes(values).mean(axis=1))


def other_rows() -> Iterator[Row]:
    """Yield the speed-ups, the number of cones, the growth paragraph and the matched pairs."""
    measured = {fan_in: cones(fan_in) for fan_in in TYPES}
    for fan_in, speedup in SPEEDUP.items():
        size, naive, _ = from_step(measured[fan_in])
        yield row(f"{TYPES[fan_in]}: speed-up", speedup, in_threes(naive).mean(axis=1) / in_threes(size).mean(axis=1))
    yield row("cones a graph type", CONES, np.array([float(THREE * (N - FROM_STEP + 1))]))
    for fan_in, (largest, middle, share) in GROWTH.items():
        sizes = in_threes(measured[fan_in].size.astype(float))
        yield row(f"{TYPES[fan_in]}: largest size", largest, sizes.max(axis=1))
        yield row(f"{TYPES[fan_in]}: median size", middle, np.median(sizes, axis=1))
        if share is not None:
            yield row(f"{TYPES[fan_in]}: share above 30", share, (sizes > 30).mean(axis=1))
    for name, sites in PAIRS.items():
        found = [
            any(bool(((c.size == size) & (c.depth == depth)).any()) for c in measured.values()) for size, depth in sites
        ]
        yield row(f"pair of {name}: found", 2, np.array([float(sum(found))]))


def study() -> dict[str, Any]:
    """Return the comparison as one document."""
    rows = [*table_rows(READINGS["ours: target counted, steps 32 … 64"]), *other_rows()]
    readings = {
        name: {found.label: round(found.distance, 2) for found in table_rows(READINGS[name])} for name in READINGS
    }
    return {
        "id": "recovery-cones",
        "title": "Recovery cones: m = 8, n = 64, steps 32 … 64",
        "kind": "offline",
        "seeds": SEEDS,
        "verdict": "inside" if all(found.verdict == "inside" for found in rows) else "outside",
        "rows": [asdict(found) for found in rows],
        "readings": readings,
    }


def main(arguments: list[str]) -> None:
    document = study()
    if "--json" in arguments:
        print(json.dumps(document, ensure_ascii=False))
        return
    console = WholeConsole()

    def short(value: float) -> str:
        return f"{value:.3g}" if abs(value) < 1e4 else f"{value:.2e}"

    numbers = ("published", "ours", "low", "high")
    shown = [(r["label"], *(short(r[name]) for name in numbers), r["verdict"]) for r in document["rows"]]
    console.print(table(document["title"], ("figure", "published", "ours", "− 3 sd", "+ 3 sd", "verdict"), shown))
    found = [(name, *_furthest(distances)) for name, distances in document["readings"].items()]
    console.print(table("The nine means under other readings", ("reading", "outside", "furthest", "in sd"), found))


def _furthest(distances: dict[str, float]) -> tuple[int, str, str]:
    """Return how many figures lie outside the tolerance, and the one that lies furthest away."""
    outside = sum(abs(distance) > TOLERANCE for distance in distances.values())
    label = max(distances, key=lambda name: abs(distances[name]))
    return outside, label, f"{distances[label]:+.1f}"


if __name__ == "__main__":
    main(sys.argv[1:])
