"""Writes the tables about bundled/lacuna-tiny as Markdown and CSV, from a reproduction and the capability figures.

python -m studies.bundled_tables FOLDER; writes studies/bundled_figures.csv. `studies.bundled_figures` says what fills
the folder.
"""

from __future__ import annotations

import csv
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from eirkit.lacuna.findings.statistics import bootstrap_mean
from eirkit.records.documents import read_struct
from eirkit_paper import page as reproduction_page
from eirkit_paper.studies.comparison import THREE
from eirkit_paper.study import StudyRow
from studies import bundled_figures
from studies.bundled_figures import SEEDS, BundledFigures, CellAccuracies

CSV = Path(__file__).with_name("bundled_figures.csv")
COLUMNS = ("study", "section", "figure", "published", "ours", "low", "high")
FULL = "full-information"  # no study of the paper's
TOLERANCE = 3.0  # standard deviations of three-seed means in a span
THREES = SEEDS // THREE  # repetitions of the published experiments
SHOWN = (
    "pressure-grid",
    "full-lookup-sweep",
    "alignment-and-rescue",
    "rescue",
    "stepwise-maximum-rescue",
    "cascade-gap",
    "store-recall-theory",
    "sufficient-capacity",
    "two-by-two",
)


def capability(cells: Sequence[CellAccuracies]) -> Iterator[tuple[str, ...]]:
    """Yield a line a cell: accuracy with its interval over runs, and how many steps were wrong."""
    for cell in cells:
        task, runs = cell.task, cell.accuracy
        found = bootstrap_mean(runs, range(len(runs)))
        steps = task.n * len(runs)
        wrong = round(sum(task.n * (1 - accuracy) for accuracy in runs))
        yield (
            task.workload,
            str(task.m),
            f"{found.estimate:.4f}",
            f"{found.low:.4f} … {found.high:.4f}",
            f"{wrong} of {steps:,}",
        )


def variations(cells: Sequence[CellAccuracies]) -> Iterator[tuple[str, ...]]:
    usual = {"n": 64, "digits": 4, "k": 2, "fan_in": 2, "slots": 1}
    for cell in cells:
        task, runs = cell.task, cell.accuracy
        own = {name: getattr(task, name) for name in usual}
        (other,) = [f"{name} = {own[name]}" for name, value in usual.items() if own[name] != value]
        found = bootstrap_mean(runs, range(len(runs)))
        yield task.workload, other, f"{found.estimate:.4f}", f"{found.low:.4f} … {found.high:.4f}", str(len(runs))


def compared(rows: Sequence[StudyRow]) -> Iterator[tuple[str, ...]]:
    """Yield each row of a study; rows that differ in nothing but whether reads were allowed are one."""
    lines = ((row.label, f"{row.published:.3f}", _mean(row), _span(row)) for row in rows if row.ours is not None)
    yield from dict.fromkeys(lines)


def _mean(row: StudyRow) -> str:
    """Return the mean over all seeds with half of its own 95% interval: a span is of threes, and these are many."""
    return f"{(row.ours or 0.0) + 0.0:.3f} ± {1.96 * (row.spread or 0.0) / math.sqrt(THREES):.3f}"


def _span(row: StudyRow) -> str:
    low, high = _ends(row)
    return f"{low:.3f} … {high:.3f}"


def _ends(row: StudyRow) -> tuple[float, float]:
    ours, half = row.ours or 0.0, TOLERANCE * (row.spread or 0.0)
    return ours - half + 0.0, ours + half + 0.0


def markdown(title: str, columns: Sequence[str], lines: Iterator[tuple[str, ...]]) -> str:
    head = [f"**{title}**", "", f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}"]
    return "\n".join([*head, *(f"| {' | '.join(line)} |" for line in lines), ""])


def write_csv(cells: Sequence[CellAccuracies], studies: Mapping[str, Sequence[StudyRow]]) -> None:
    """Write every figure of the model's own, whether it has a published partner or not."""
    with CSV.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(COLUMNS)
        for workload, m, accuracy, interval, _ in capability(cells):
            low, high = interval.split(" … ")
            writer.writerow([FULL, "full information", f"{workload}, m = {m}", "", accuracy, low, high])
        for name, rows in studies.items():
            for row in rows:
                if row.ours is not None:
                    figures = [round(value, 4) for value in (row.published, row.ours, *_ends(row))]
                    writer.writerow([name, row.section, row.label, *figures])


def main() -> None:
    folder = Path(sys.argv[1])
    own = read_struct(folder / bundled_figures.FIGURES, bundled_figures.SCHEMA, BundledFigures)
    document = folder / reproduction_page.DOCUMENT
    made = read_struct(document, reproduction_page.SCHEMA, reproduction_page.Reproduction).studies
    studies = {study.id: study.rows for study in made if study.kind in ("agents", "memories")}
    write_csv(own.capability, studies)
    columns = ("workload", "m = h", "accuracy", "95% interval", "wrong steps")
    print(markdown("Full information", columns, capability(own.capability)))
    columns = ("workload", "but", "accuracy", "95% interval", "runs")
    print(markdown("Variations", columns, variations(own.variations)))
    for name in SHOWN:
        columns = ("figure", "published", "lacuna-tiny", "three seeds span")
        print(markdown(name, columns, compared(studies[name])))


if __name__ == "__main__":
    main()
