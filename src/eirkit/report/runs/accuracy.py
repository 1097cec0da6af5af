"""Sections of a sweep's page on accuracy by cell, accuracy against pressure, causes of errors and first misses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from eirkit.lacuna.findings.intervals import mean_share
from eirkit.lacuna.findings.measures import CAUSE_MEASURES, RUN_MEASURES, SIMULATION_MEASURES
from eirkit.lacuna.findings.statistics import spearman
from eirkit.records.evidence import Interval
from eirkit.records.runs import CAUSES
from eirkit.records.sweeps import CellRow
from eirkit.report.document import Axis, Chart, Mark, Section, Series, Value
from eirkit.report.runs.demand import eir_pressures
from eirkit.report.runs.folder import Coordinates, ScoredRun, SweepFolder, linked
from eirkit.report.table import Cell, Column, Table, counted, share

MOST_CELLS = 200  # in a table; a page is for reading
MOST_POINTS = 24  # in a row of intervals; beyond it a map is easier to read
MOST_LINES = 8  # of accuracy over pressure
GIVEN = "given right inputs"
MOST_TRIALS = 2_000  # that are ranked one by one; beyond it cells are
ACCURACY, INFORMED = RUN_MEASURES["accuracy"], RUN_MEASURES["informed_accuracy"]


def accuracy_section(sweep: SweepFolder) -> Section:
    """Return the section on the accuracy of each cell, with an interval over its runs."""
    rows = [row for row in sweep.rows if row.scored]
    named, intervals = Coordinates(rows), intervals_of(sweep)
    shown = named.ordered(sorted(rows, key=_accuracy)[:MOST_CELLS])
    words = [f"All settings: {named.shared}."] if named.shared else []
    words += pooled_words(rows, sweep)
    if len(shown) < len(rows):
        words.append(
            f"The {MOST_CELLS} settings with the lowest accuracy of {len(rows):,}; `summary.json` has them all."
        )
    chart = accuracy_chart(rows, named, intervals) if len(rows) > 1 else None
    table = Table(
        "accuracy-by-cell",
        "Accuracy by setting",
        _columns(named, shown),
        tuple(_line(r, named, intervals) for r in shown),
    )
    return Section("Accuracy by setting", tuple(words), (chart, table) if chart else (table,))


def _accuracy(row: CellRow) -> float:
    return row.accuracy or 0.0  # which every scored row has


def pooled_words(rows: Sequence[CellRow], sweep: SweepFolder) -> list[str]:
    """Return over what the figures of a cell are means."""
    by_cell = sweep.by_cell()
    sizes = sorted({(len(own), len({run.seed for run in own})) for row in rows if (own := by_cell.get(row.cell))})
    if not sizes:
        return []
    runs = counted(sizes[0][0], "run") if len(sizes) == 1 else f"{sizes[0][0]:,} to {sizes[-1][0]:,} runs"
    seeds = counted(sizes[0][1], "seed") if len(sizes) == 1 else "their seeds"
    return [f"Figures are means over {runs} ({seeds}) of one setting; no two settings are pooled."]


def intervals_of(sweep: SweepFolder) -> dict[str, Interval]:
    """Return each cell's mean accuracy with an interval over tasks, whose steps and repeats are not independent."""
    return {
        cell: mean_share(
            [run.score.accuracy for run in runs], [run.seed for run in runs], sum(run.score.steps for run in runs)
        )
        for cell, runs in sweep.by_cell().items()
        if any(run.score.steps for run in runs)
    }


def _columns(named: Coordinates, rows: Sequence[CellRow]) -> tuple[Column, ...]:
    local = (Column.of(RUN_MEASURES["no_cascade_accuracy"]),) if any(row.memory_system is None for row in rows) else ()
    return (
        *(Column(name, name, link="view") for name in named.varying or ("workload",)),
        replace(Column.of(RUN_MEASURES["pressure"]), digits=2),
        Column.of(RUN_MEASURES["scored"]),
        Column.of(ACCURACY),
        Column("low", "from", 3, percent=True, meaning="95% interval, over tasks"),
        Column("high", "to", 3, percent=True),
        Column.of(INFORMED),
        Column("informed_low", "from", 3, percent=True, meaning="95% interval, exact over these steps"),
        Column("informed_high", "to", 3, percent=True),
        Column.of(RUN_MEASURES["miss_rate"]),
        *local,
        Column.of(RUN_MEASURES["final_accuracy"]),
    )


def _line(row: CellRow, named: Coordinates, intervals: Mapping[str, Interval]) -> dict[str, Cell]:
    interval = intervals.get(row.cell)
    missed = row.missed_steps if row.memory_system is None else None  # a memory may bring it all the same
    return {
        **linked(row),
        **(named.cells(row) or {"workload": row.workload}),
        "pressure": row.pressure,
        "scored": row.scored_of,
        "accuracy": row.accuracy,
        "low": None if interval is None else interval.low,
        "high": None if interval is None else interval.high,
        **given_right_inputs(row),
        "miss_rate": row.miss_rate,
        "no_cascade_accuracy": None if missed is None else 1 - missed / max(1, row.task.length),
        "final_accuracy": row.final_accuracy,
    }


def given_right_inputs(row: CellRow) -> dict[str, float | None]:
    """Return the accuracy given right inputs and its interval; None where no step had them."""
    known = row.informed_accuracy is not None
    return {
        "informed_accuracy": row.informed_accuracy,
        "informed_low": row.informed_low if known else None,
        "informed_high": row.informed_high if known else None,
    }


def accuracy_chart(rows: Sequence[CellRow], named: Coordinates, intervals: Mapping[str, Interval]) -> Chart:
    """Return a chart of accuracy: points with intervals, or a heat map over h if there are many cells."""
    best, worst = (pick(rows, key=_accuracy) for pick in (max, min))
    alt = (
        f"Accuracy lies between {share(worst.accuracy)} ({named.label(worst)}) and "
        f"{share(best.accuracy)} ({named.label(best)})."
    )
    ordered = named.ordered(rows)
    if len(rows) > MOST_POINTS and "h" in named.varying:
        ordered.sort(key=lambda row: row.h or 0)
        x = tuple(str(row.h) for row in ordered)
        y = tuple(named.label(row, without=("h",)) for row in ordered)
        cells = Series(ACCURACY.label, "cells", x, y, value=tuple(row.accuracy for row in ordered))
        return Chart(
            "accuracy-map",
            "Accuracy by capacity",
            alt,
            Axis(f"h: {RUN_MEASURES['h'].meaning}", "category"),
            Axis(""),
            (cells,),
        )
    shown = ordered if len(rows) <= MOST_POINTS else named.ordered(sorted(rows, key=_accuracy)[:MOST_POINTS])
    series = _series(ACCURACY.label, "points", tuple(named.label(row) for row in shown), shown, intervals)
    axes = Axis("setting", "category"), Axis.of(ACCURACY)
    note = "" if len(shown) == len(rows) else f"The {len(shown)} settings with the lowest accuracy of {len(rows):,}."
    return Chart("accuracy-cells", "Accuracy with 95% intervals", alt, *axes, (series,), note)


def _series(
    name: str, mark: Mark, x: tuple[Value, ...], rows: Sequence[CellRow], intervals: Mapping[str, Interval]
) -> Series:
    """Return the accuracy of rows with its intervals."""
    found = [intervals.get(row.cell) for row in rows]
    low, high = (
        tuple(None if interval is None else getattr(interval, end) for interval in found) for end in ("low", "high")
    )
    return Series(name, mark, x, tuple(row.accuracy for row in rows), low, high)


def pressure_section(sweep: SweepFolder) -> Section | None:
    """Return the section on accuracy against pressure, if the pressure varies: by EIR where it is known, else m/h."""
    pressures = {row.cell: row.pressure for row in sweep.rows if row.scored and row.pressure is not None}
    rows = [row for row in sweep.rows if row.cell in pressures]
    by_eir = eir_pressures(sweep)
    is_known = all(row.cell in by_eir for row in rows)
    under = {cell: by_eir[cell] if is_known else pressure for cell, pressure in pressures.items()}
    if len(set(under.values())) < 2:
        return None
    named, intervals = Coordinates(rows), intervals_of(sweep)
    groups: dict[str, list[CellRow]] = {}
    for row in sorted(named.ordered(rows), key=lambda row: under[row.cell]):
        groups.setdefault(named.label(row, without=("h", "m", "n", "lookback")), []).append(row)
    shown = dict(sorted(groups.items())[:MOST_LINES])
    series = tuple(
        line for name, group in shown.items() for line in _lines_over_pressure(name, group, under, intervals)
    )
    measure = SIMULATION_MEASURES["eir_pressure"] if is_known else RUN_MEASURES["pressure"]
    by_window = "EIR is unknown or slow to count for a task of this sweep, so pressure is m/h here."
    words = ["Pressure is EIR over capacity, at its peak, here." if is_known else by_window]
    if len(groups) > len(shown):
        words.append(f"The first {len(shown)} of {len(groups)} lines, by name.")
    axes = Axis(f"{measure.label}: {measure.meaning}"), Axis(ACCURACY.label, low=0.0, high=1.0, percent=True)
    note = f"{GIVEN}: {INFORMED.description}, with its exact 95% interval. It shows what the model can do at a step."
    known = [row.informed_accuracy for row in rows if row.informed_accuracy is not None]
    between = " to ".join(dict.fromkeys(share(end) for end in (min(known), max(known)))) if known else "unknown"
    alt = f"{_correlation(sweep, rows, under)} {INFORMED.label.capitalize()}: {between}."
    chart = Chart("pressure", "Accuracy against pressure", alt, *axes, series, note)
    return Section("Pressure and accuracy", tuple(words), (chart,))


def _correlation(sweep: SweepFolder, rows: Sequence[CellRow], under: Mapping[str, float]) -> str:
    trials, unit = [(under[run.cell], run.score.accuracy) for run in sweep.runs if run.cell in under], "run"
    if len(trials) > MOST_TRIALS:
        trials, unit = [(under[row.cell], _accuracy(row)) for row in rows], "setting"
    found = spearman([pressure for pressure, _ in trials], [accuracy for _, accuracy in trials])
    p = "p < 0.001" if found.p < 0.001 else f"p = {found.p:.3f}"
    rho = f"{found.estimate:+.2f}".replace("-", "−")
    return (
        f"Spearman’s correlation of pressure with accuracy over {counted(found.n, unit)} is {rho} ({p}, "
        f"{found.method}); theory predicts that it is negative."
    )


def _lines_over_pressure(
    name: str, rows: Sequence[CellRow], under: Mapping[str, float], intervals: Mapping[str, Interval]
) -> tuple[Series, Series]:
    """Return the accuracy as a line, and beside it that given right inputs as paler points."""
    informed = [given_right_inputs(row) for row in rows]
    x = tuple(under[row.cell] for row in rows)
    line = _series(name, "line", x, rows, intervals)
    low, high = (tuple(figures[key] for figures in informed) for key in ("informed_low", "informed_high"))
    points = Series(f"{name}, {GIVEN}", "points", x, tuple(row.informed_accuracy for row in rows), low, high, pale=True)
    return line, points


def causes_section(sweep: SweepFolder) -> Section | None:
    """Return the section on causes of errors; they are withheld for cells that fail the control."""
    rows = [row for row in sweep.rows if row.scored and sum(row.errors.values()) and not row.is_withheld]
    words = [f"Withheld: {failed.model} on {failed.workload}: {failed.reason}" for failed in sweep.excluded]
    words += [
        f"Undecided by the control: causes of {judged.model} on {judged.workload} describe."
        for judged in sweep.undecided
    ]
    if not rows:
        return Section("Why steps were wrong", tuple(words), ()) if words else None
    if any(row.control is None for row in rows):
        words.append("No full-information control was run for some settings: their causes describe and claim nothing.")
    named = Coordinates(rows)
    return Section("Why steps were wrong", tuple(words), (causes_chart(rows, named), _causes_table(rows, named)))


def causes_chart(rows: Sequence[CellRow], named: Coordinates) -> Chart:
    """Return a stacked chart of errors by cause, as shares of scored steps."""
    shown = named.ordered(
        sorted(rows, key=lambda row: -sum(share or 0.0 for share in row.error_shares.values()))[:MOST_POINTS]
    )
    places = tuple(named.label(row) for row in shown)
    series = tuple(
        Series.of(CAUSE_MEASURES[cause], "bars", places, tuple(row.error_shares[cause] for row in shown))
        for cause in CAUSES
        if any(row.error_shares[cause] for row in shown)
    )
    (whole,) = {measure.of for measure in CAUSE_MEASURES}
    worst = max(rows, key=lambda row: sum(value or 0.0 for value in row.error_shares.values()))
    found = {CAUSE_MEASURES[cause].label: worst.error_shares[cause] for cause in CAUSES}
    told = ", ".join(f"{label} {share(value)}" for label, value in found.items() if value)
    which = f", where most were wrong ({named.label(worst)})" if len(rows) > 1 else ""
    return Chart(
        "causes",
        "Wrong steps by cause",
        f"Of {whole}{which}: {told}.",
        Axis("setting", "category"),
        Axis(f"share of {whole}", low=0.0, high=1.0, percent=True),
        series,
        "" if len(shown) == len(rows) else f"The {len(shown)} settings with the most wrong steps of {len(rows):,}.",
        stacked=True,
    )


def _causes_table(rows: Sequence[CellRow], named: Coordinates) -> Table:
    more = [RUN_MEASURES[key] for key in ("first_error_at_first_miss", "self_consistent_accuracy")]
    columns = (
        *(Column(name, name) for name in named.varying),
        Column("wrong", "wrong steps"),
        *(Column.of(measure) for measure in (*CAUSE_MEASURES, *more)),
    )
    lines = tuple(
        {
            **named.cells(row),
            "wrong": sum(row.errors.values()),
            **row.error_shares,
            **{measure.id: getattr(row, measure.id) for measure in more},
        }
        for row in named.ordered(rows[:MOST_CELLS])
    )
    return Table("causes-by-cell", "Wrong steps by cause", columns, lines)


def first_miss_section(sweep: SweepFolder) -> Section | None:
    """Return the section on the first miss and the first error of each run."""
    allowed = {row.cell for row in sweep.rows if not row.is_withheld}
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
        Axis(f"step of the {RUN_MEASURES['first_miss'].label}", low=0.0),
        Axis(f"step of the {RUN_MEASURES['first_error'].label}", low=0.0),
        _first_points(erred),
        note="On the line both are the same step; above it the error came later.",
    )
    return Section("First miss, first error", (), (chart,))


def _first_points(runs: Sequence[ScoredRun]) -> tuple[Series, ...]:
    places = sorted({(run.score.first_miss, run.score.first_error) for run in runs})
    far = max((float(max(miss or 0, error or 0)) for miss, error in places), default=1.0)
    x = tuple(None if miss is None else float(miss) for miss, _ in places)
    y = tuple(None if error is None else float(error) for _, error in places)
    return Series("runs", "points", x, y), Series("same step", "line", (0.0, far), (0.0, far), dashed=True)
