"""What was right in a sweep: accuracy by cell, and against pressure. Facts of a folder come in, sections go out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from eirkit.lacuna.evidence.prediction import Trial, no_cascade, pressure_correlation
from eirkit.lacuna.evidence.statistics import Interval, bootstrap_mean
from eirkit.report.chart import Axis, Chart, Series
from eirkit.report.coordinates import Coordinates
from eirkit.report.page import Section
from eirkit.report.sweep_folder import SweepFolder
from eirkit.report.table import Column, Table
from eirkit.report.wording import counted, share

Row = Mapping[str, Any]
MOST_CELLS = 200  # in a table; a page is for reading
MOST_POINTS = 24  # in a row of intervals; beyond it a map is easier to read
MOST_TRIALS = 2_000  # that are ranked one by one; beyond it cells are


def accuracy_section(sweep: SweepFolder) -> Section:
    """Return what was right in each cell, with an interval over its runs."""
    rows = [row for row in sweep.rows if row["scored"]]
    named, intervals = Coordinates(rows), intervals_of(sweep)
    shown = sorted(rows, key=lambda row: row["accuracy"])[:MOST_CELLS] if len(rows) > MOST_CELLS else rows
    words = [f"All cells: {named.shared}."] if named.shared else []
    if len(shown) < len(rows):
        words.append(f"The {MOST_CELLS} cells with the lowest accuracy of {len(rows):,}; `summary.json` has them all.")
    chart = accuracy_chart(rows, named, intervals) if len(rows) > 1 else None
    table = Table(
        "accuracy-by-cell", "Accuracy by cell", _columns(named, shown), tuple(_line(r, named, intervals) for r in shown)
    )
    return Section("Accuracy by cell", tuple(words), (chart, table) if chart else (table,))


def intervals_of(sweep: SweepFolder) -> dict[str, Interval]:
    """Return each cell's mean accuracy with its interval, runs drawn again with replacement; none for a single run."""
    return {
        cell: bootstrap_mean([run.score.accuracy for run in runs], [run.seed for run in runs])
        for cell, runs in sweep.by_cell().items()
        if len(runs) > 1
    }


def _columns(named: Coordinates, rows: Sequence[Row]) -> tuple[Column, ...]:
    away = "steps that build on an earlier result which was no longer in sight"
    local = Column(
        "local", "if local", 3, percent=True, meaning="accuracy if exactly the steps out of sight were wrong"
    )
    return (
        *(Column(name, name) for name in named.varying),
        Column("pressure", "m/h", 2, meaning="the window over the records held"),
        Column("scored", "runs", meaning="scored of attempted"),
        Column("accuracy", "accuracy", 3, percent=True),
        Column("low", "from", 3, percent=True, meaning="95% interval, runs resampled"),
        Column("high", "to", 3, percent=True),
        Column("miss_rate", "out of sight", 3, percent=True, meaning=away),
        *((local,) if any(row["memory_system"] is None for row in rows) else ()),
        Column("final", "task right", 3, percent=True, meaning="runs whose last answer is right"),
    )


def _line(row: Row, named: Coordinates, intervals: Mapping[str, Interval]) -> dict[str, Any]:
    found = intervals.get(row["cell"])
    missed = row["missed_steps"] if row["memory_system"] is None else None  # a memory may bring it all the same
    return {
        **named.cells(row),
        "pressure": row["pressure"],
        "scored": f"{row['scored']}/{row['attempted']}",
        "accuracy": row["accuracy"],
        "low": None if found is None else found.low,
        "high": None if found is None else found.high,
        "miss_rate": row["miss_rate"],
        "local": None if missed is None else no_cascade(missed, row["n"], row["n"]).of_all,
        "final": row["final_accuracy"],
    }


def accuracy_chart(rows: Sequence[Row], named: Coordinates, intervals: Mapping[str, Interval]) -> Chart:
    """Return the cells as points with intervals, or as a map over h where they are many."""
    best, worst = (pick(rows, key=lambda row: row["accuracy"]) for pick in (max, min))
    alt = (
        f"Accuracy lies between {share(worst['accuracy'])} ({named.label(worst)}) and "
        f"{share(best['accuracy'])} ({named.label(best)})."
    )
    if len(rows) > MOST_POINTS and "h" in named.varying:
        x = tuple(str(row["h"]) for row in sorted(rows, key=lambda row: row["h"]))
        ordered = sorted(rows, key=lambda row: row["h"])
        y = tuple(named.label(row, without=("h",)) for row in ordered)
        cells = Series("accuracy", "cells", x, y, value=tuple(row["accuracy"] for row in ordered))
        return Chart(
            "accuracy-map", "Accuracy by capacity", alt, Axis("records held, h", "category"), Axis(""), (cells,)
        )
    shown = sorted(rows, key=lambda row: row["accuracy"])[:MOST_POINTS]
    found = [intervals.get(row["cell"]) for row in shown]
    series = Series(
        "accuracy",
        "points",
        tuple(named.label(row) for row in shown),
        tuple(row["accuracy"] for row in shown),
        tuple(None if one is None else one.low for one in found),
        tuple(None if one is None else one.high for one in found),
    )
    y_axis = Axis("accuracy", low=0.0, high=1.0, percent=True)
    return Chart("accuracy-cells", "Accuracy with 95% intervals", alt, Axis("cell", "category"), y_axis, (series,))


def pressure_section(sweep: SweepFolder) -> Section | None:
    """Return accuracy against pressure, where the pressure varies."""
    rows = [row for row in sweep.rows if row["scored"]]
    if len({row["pressure"] for row in rows}) < 2:
        return None
    named, intervals = Coordinates(rows), intervals_of(sweep)
    groups: dict[str, list[Row]] = {}
    for row in sorted(rows, key=lambda row: row["pressure"]):
        groups.setdefault(named.label(row, without=("h", "m", "n", "lookback")), []).append(row)
    series = tuple(_line_over_pressure(name, group, intervals) for name, group in list(groups.items())[:8])
    axes = Axis("pressure, m/h"), Axis("accuracy", low=0.0, high=1.0, percent=True)
    chart = Chart("pressure", "Accuracy against pressure", _correlation(sweep, rows), *axes, series)
    return Section("Pressure and accuracy", (), (chart,))


def _correlation(sweep: SweepFolder, rows: Sequence[Row]) -> str:
    by_cell = {row["cell"]: row for row in rows}
    trials = [Trial(by_cell[r.cell]["n"], by_cell[r.cell]["pressure"], r.score.accuracy) for r in sweep.runs]
    unit = "run"
    if len(trials) > MOST_TRIALS:
        unit, trials = "cell", [Trial(row["n"], row["pressure"], row["accuracy"]) for row in rows]
    found = pressure_correlation(trials)
    p = "p < 0.001" if found.p < 0.001 else f"p = {found.p:.3f}"
    rho = f"{found.estimate:+.2f}".replace("-", "−")
    return (
        f"Spearman’s correlation of pressure with accuracy over {counted(found.n, unit)} is {rho} ({p}, "
        f"{found.method}); theory predicts that it is negative."
    )


def _line_over_pressure(name: str, rows: Sequence[Row], intervals: Mapping[str, Interval]) -> Series:
    found = [intervals.get(row["cell"]) for row in rows]
    return Series(
        name,
        "line",
        tuple(row["pressure"] for row in rows),
        tuple(row["accuracy"] for row in rows),
        tuple(None if one is None else one.low for one in found),
        tuple(None if one is None else one.high for one in found),
    )
