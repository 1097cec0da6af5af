"""Accuracy over prompt tokens of memories, the whole conversation and its end, on the same conversations.

python -m studies.prompt_budgets [FOLDER ...]; writes studies/prompt_budgets.csv from finished sweeps, if any are given,
and docs/images/prompt-tokens.svg from it. The sweeps are those of studies/memory_ranking.py, one folder a system; the
floor is that of the conversations of the first one.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec.structs import asdict, replace

from eirkit.report.drawing import save
from eirkit.report.runs.context import PromptPoint, context_chart, named_rows, points_of
from eirkit.report.runs.folder import read_sweep

FIGURES = Path(__file__).with_suffix(".csv")
PICTURE = Path(__file__).parents[1] / "docs" / "images" / "prompt-tokens.svg"


def read_points(path: Path = FIGURES) -> list[PromptPoint]:
    """Return the points of the study."""
    with path.open(encoding="utf-8", newline="") as lines:
        return [msgspec.convert(line, PromptPoint, strict=False) for line in csv.DictReader(lines)]


def write_points(points: Sequence[PromptPoint], path: Path = FIGURES) -> None:
    """Write the points of the study, with as many digits as say them exactly."""
    with path.open("w", encoding="utf-8", newline="") as file:
        lines = csv.DictWriter(file, PromptPoint.__struct_fields__, lineterminator="\n")
        lines.writeheader()
        lines.writerows(asdict(point) for point in points)


def main(arguments: Sequence[str]) -> None:
    if arguments:
        found = [points_of(named_rows(read_sweep(Path(folder)).rows)) for folder in arguments]
        floor = found[0][0].floor_bytes
        write_points([replace(point, floor_bytes=floor) for points in found for point in points])
    chart = context_chart(read_points())
    save(chart, PICTURE)
    print(chart.alt)


if __name__ == "__main__":
    main(sys.argv[1:])
