"""Why steps of a sweep were wrong, and where runs first missed and first erred. A folder's facts in, sections out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from eirkit.lacuna.evidence.attribution import CAUSES, Cause
from eirkit.report.chart import Axis, Chart, Series
from eirkit.report.coordinates import Coordinates
from eirkit.report.lacuna_accuracy import MOST_CELLS, MOST_POINTS
from eirkit.report.page import Section
from eirkit.report.sweep_folder import RunFacts, SweepFolder
from eirkit.report.table import Column, Table
from eirkit.report.wording import counted, share

Row = Mapping[str, Any]
ORDER: tuple[Cause, ...] = ("state_supply", "cascade", "computation")
SAID = {
    "computation": "wrong by itself",
    "state_supply": "a needed result was not to be had",
    "cascade": "follows from an earlier wrong answer",
}
NAMES = {"computation": "own mistake", "state_supply": "missing state", "cascade": "from an earlier error"}


def causes_section(sweep: SweepFolder) -> Section | None:
    """Return why steps were wrong; cells that fail the control keep their causes to themselves."""
    rows = [row for row in sweep.rows if row["scored"] and sum(row["errors"].values()) and not _is_withheld(row)]
    words = [f"Withheld: {model} on {workload}: {reason}" for model, workload, reason in sweep.excluded]
    if not rows:
        return Section("Why steps were wrong", tuple(words), ()) if words else None
    if any(row["control"] is None for row in rows):
        words.append("No full-information control was run for some cells: their causes describe and claim nothing.")
    named = Coordinates(rows)
    return Section(
        "Why steps were wrong", tuple(words), (causes_chart(rows, named, _steps(sweep)), _causes_table(rows, named))
    )


def _is_withheld(row: Row) -> bool:
    return row["control"] is not None and not row["claims"]


def _steps(sweep: SweepFolder) -> Mapping[str, int]:
    """Return the scored steps of each cell's runs."""
    steps: Counter[str] = Counter()
    for run in sweep.runs:
        steps[run.cell] += run.score.steps
    return steps


def causes_chart(rows: Sequence[Row], named: Coordinates, steps: Mapping[str, int]) -> Chart:
    """Return wrong steps by cause as shares of all scored steps, stacked."""
    shown = sorted(rows, key=lambda row: -sum(row["errors"].values()) / steps[row["cell"]])[:MOST_POINTS]
    places = tuple(named.label(row) for row in shown)
    series = tuple(
        Series(NAMES[cause], "bars", places, tuple(row["errors"][cause] / steps[row["cell"]] for row in shown))
        for cause in ORDER
    )
    totals = Counter({cause: sum(row["errors"][cause] for row in rows) for cause in CAUSES})
    wrong = sum(totals.values())
    told = ", ".join(f"{share(totals[cause] / wrong)} {NAMES[cause]}" for cause in ORDER)
    return Chart(
        "causes",
        "Wrong steps by cause",
        f"Of {counted(wrong, 'wrong step')}: {told}.",
        Axis("cell", "category"),
        Axis("share of all steps", low=0.0, high=1.0, percent=True),
        series,
        stacked=True,
    )


def _causes_table(rows: Sequence[Row], named: Coordinates) -> Table:
    columns = (
        *(Column(name, name) for name in named.varying),
        *(Column(cause, NAMES[cause], meaning=SAID[cause]) for cause in ORDER),
        Column("aligned", "aligned", 3, percent=True, meaning="runs whose first error is at their first miss"),
        Column("consistent", "self-consistent", 3, percent=True, meaning="answers that follow from the agent’s own"),
    )
    lines = tuple(
        {
            **named.cells(row),
            **row["errors"],
            "aligned": row["first_error_at_first_miss"],
            "consistent": row["self_consistent_accuracy"],
        }
        for row in rows[:MOST_CELLS]
    )
    return Table("causes-by-cell", "Wrong steps by cause, counted", columns, lines)


def first_miss_section(sweep: SweepFolder) -> Section | None:
    """Return where runs first missed something and where they first erred."""
    allowed = {row["cell"] for row in sweep.rows if not _is_withheld(row)}
    runs = [run for run in sweep.runs if run.score.first_miss is not None and run.cell in allowed]
    if not runs:
        return None
    erred = [run for run in runs if run.score.first_error is not None]
    aligned = sum(bool(run.score.aligned) for run in runs)
    said = (
        f"Of {counted(len(runs), 'run')} that missed something {aligned:,} ({share(aligned / len(runs))}) erred for "
        f"the first time at that very step; {len(runs) - len(erred):,} never erred."
    )
    chart = Chart(
        "first-miss",
        "First miss and first error",
        said,
        Axis("step of the first miss", low=0.0),
        Axis("step of the first error", low=0.0),
        _first_points(erred),
        note="On the line both are the same step; above it the error came later.",
    )
    return Section("First miss, first error", (), (chart,))


def _first_points(runs: Sequence[RunFacts]) -> tuple[Series, ...]:
    places = sorted({(run.score.first_miss, run.score.first_error) for run in runs})
    far = max((float(max(miss or 0, error or 0)) for miss, error in places), default=1.0)
    x = tuple(None if miss is None else float(miss) for miss, _ in places)
    y = tuple(None if error is None else float(error) for _, error in places)
    return Series("runs", "points", x, y), Series("same step", "line", (0.0, far), (0.0, far), dashed=True)
