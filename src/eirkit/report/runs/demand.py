"""Section of a sweep's page that compares the EIR of each task with the capacities it was run with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from math import log2

from eirkit.eir.demand import DemandCurve, pressure
from eirkit.errors import UsageError
from eirkit.lacuna.findings.measures import RUN_MEASURES, SIMULATION_MEASURES
from eirkit.lacuna.tasks.generation import generate, graph_of, prepare
from eirkit.lacuna.tasks.task import TaskSpec
from eirkit.records.settings import Task
from eirkit.report.document import Axis, Chart, Figure, Section, Series
from eirkit.report.folders import foreign
from eirkit.report.runs.folder import SweepFolder
from eirkit.report.table import Cell, Column, Table

MOST_TASKS = 6  # curves on a page
MOST_COUNTED = 24  # tasks whose EIR is counted for the axis of a chart
PARTS = 8  # of a curve that is long to count: so many cuts and the last
QUICK_STEPS, QUICK_VALUES = 64, 16  # steps, and values in a window, of a graph that is counted whole in a second
MOST_VALUES = 24  # in a window: so many take a second, eight more over a minute


def demand_section(sweep: SweepFolder) -> Section | None:
    """Return the section on the EIR and the capacity of each task of a sweep."""
    capacities: dict[TaskSpec, set[int]] = {}
    for row in sweep.rows:
        if row.scored and isinstance(row.task, Task) and row.h is not None:
            capacities.setdefault(TaskSpec.of(row.task, sweep.seeds[0]), set()).add(row.h)
    return section_of(capacities, plugins=sweep.plugins) if capacities else None


def eir_pressures(sweep: SweepFolder) -> dict[str, float]:
    """Return the EIR pressure of each cell at its peak; a cell whose EIR is unknown or slow to count is left out."""
    found: dict[str, float] = {}
    tasks = {
        row.cell: TaskSpec.of(row.task, sweep.seeds[0])
        for row in sweep.rows
        if row.scored and row.h and isinstance(row.task, Task)
    }
    if len({*tasks.values()}) > MOST_COUNTED or (
        not sweep.plugins and foreign([spec.workload for spec in tasks.values()])
    ):
        return found
    for row in sweep.rows:
        if (spec := tasks.get(row.cell)) is not None:
            try:
                peak = pressure(curve_of(spec), row.h or 0, log2(prepare(spec).alphabet(spec))).peak
            except UsageError:
                continue  # its section says why
            if peak is not None:
                found[row.cell] = peak
    return found


def section_of(capacities: Mapping[TaskSpec, set[int]], *, plugins: bool = False) -> Section:
    """Return the section for tasks and the capacities with which they were run.

    Args:
        plugins: whether a workload that is named as a file or module may be run.
    """
    panels, lines, unknown = [], [], []
    for spec, held in list(capacities.items())[:MOST_TASKS]:
        if not plugins and foreign([spec.workload]):
            unknown.append(
                f"EIR of {spec.workload} is not counted: it is code beside the run; add --plugins to run it."
            )
            continue
        try:
            curve = curve_of(spec)
        except UsageError as error:
            unknown.append(f"EIR of {spec.workload} is not shown: {error}")
            continue
        panels.append(demand_chart(spec, curve, sorted(held, reverse=True)))
        lines += _lines(spec, curve, sorted(held, reverse=True))
    words = (
        "EIR is what any memory must carry across a cut at the very least; capacity is what the records in sight can "
        "hold. Where EIR is above the capacity nobody is always right.",
        *unknown,
    )
    if not panels:
        return Section("What had to survive", words)
    figure = Figure("eir-capacity", "EIR and capacity after each step", tuple(panels))
    return Section("What had to survive", words, (figure, _table(lines)))


@lru_cache(maxsize=64)
def curve_of(spec: TaskSpec) -> DemandCurve:
    """Return the EIR after each step, or only after some steps if counting all would be slow.

    Raises:
        UsageError: it is not known, or counting it would keep a page waiting.
    """
    workload = prepare(spec)
    values = spec.m * workload.width(spec)
    if not workload.closed_form and values > MOST_VALUES:
        raise UsageError(
            f"a window of {values} values takes long to count; `eirkit eir curve {spec.workload} --n {spec.n} "
            f"--m {spec.m} --cuts {spec.n // 2}` counts a cut"
        )
    quick = spec.n <= QUICK_STEPS and values <= QUICK_VALUES
    whole = workload.closed_form or quick
    cuts = None if whole else sorted({*range(0, spec.n + 1, max(1, spec.n // PARTS)), spec.n})
    return workload.demand(spec, graph_of(generate(spec)), cuts)


def demand_chart(spec: TaskSpec, curve: DemandCurve, held: Sequence[int]) -> Chart:
    """Return a chart of one task's EIR, with the capacities as horizontal lines."""
    known = [
        (t, low, high)
        for t, (low, high) in enumerate(zip(curve.lower_bits, curve.upper_bits, strict=True))
        if low is not None
    ]
    whole = len(known) == spec.n + 1
    bounds = () if curve.certified else tuple(high for _, _, high in known)
    record = log2(prepare(spec).alphabet(spec))
    needed = Series(
        "EIR" if curve.certified else "EIR, certified lower bound",
        "step" if whole else "line",
        tuple(float(t) for t, _, _ in known),
        tuple(low for _, low, _ in known),
        tuple(low for _, low, _ in known) if bounds else (),
        bounds,
    )
    room = tuple(
        Series(f"capacity, h = {h}", "line", (0.0, float(spec.n)), (h * record, h * record), dashed=True) for h in held
    )
    peak = curve.peak.lower_bits
    over = [h for h in held if h * record < peak]
    told = f"EIR peaks at {peak:.1f} bits" if whole else f"At the computed cuts EIR reaches at least {peak:.1f} bits"
    below = ", below every capacity." if whole and curve.certified else "."
    told += f", above the capacity of h = {', '.join(map(str, over))}." if over else below
    title = f"{spec.workload}, n = {spec.n}, m = {spec.m}, seed {spec.seed}"
    axes = Axis("after step", low=0.0, high=float(spec.n)), Axis("bits", low=0.0)
    return Chart(f"eir-{spec.workload}-{spec.n}-{spec.m}", title, told, *axes, (needed, *room), note=curve.method)


def _lines(spec: TaskSpec, curve: DemandCurve, held: Sequence[int]) -> list[dict[str, Cell]]:
    record = log2(prepare(spec).alphabet(spec))
    found: list[dict[str, Cell]] = []
    for h in held:
        under = pressure(curve, h, record)
        short = sum(ratio > 1 for ratio in under.ratios if ratio is not None)
        shown: dict[str, Cell] = {"workload": spec.workload, "n": spec.n, "m": spec.m, "h": h}
        shown["operational"] = spec.m / h
        figures = {"peak_bits": curve.peak.lower_bits, "capacity": under.capacity_bits, "eir_pressure": under.peak}
        whole = None not in curve.counts
        found.append({**shown, **figures, "short": short, "exact": curve.certified and whole})
    return found


def _table(lines: Sequence[Mapping[str, Cell]]) -> Table:
    columns = (
        Column("workload", "workload"),
        Column("n", "n"),
        Column("m", "m"),
        Column("h", "h"),
        Column("peak_bits", "EIR, bits", 1, meaning="at its peak; where not exact, at least so many"),
        Column("capacity", "capacity, bits", 1, meaning="h records, each one of its possible values"),
        replace(Column.of(SIMULATION_MEASURES["eir_pressure"]), digits=2),
        Column("operational", RUN_MEASURES["pressure"].label, 2, meaning="the pressure that other tables print"),
        Column("short", "cuts above", meaning="computed cuts at which EIR exceeds the capacity"),
        Column("exact", "exact", meaning="every cut was counted, and none only bounded"),
    )
    return Table("eir-pressure", "Pressure: what must survive over what fits", columns, tuple(lines))
