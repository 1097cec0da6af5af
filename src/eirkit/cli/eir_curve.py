"""`eirkit eir curve`: what must survive each cut of a generated task."""

from __future__ import annotations

from math import log2
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from eirkit.cli.chart import bars, save_curve
from eirkit.cli.options import IntegerList, WorkloadCommand, WorkloadName, task_options
from eirkit.cli.output import emit, json_option, table
from eirkit.eir.demand import ClassCount, DemandCurve, pressure
from eirkit.tasks.generation import from_graph, generate, graph_of, prepare
from eirkit.tasks.graph import load_graph
from eirkit.tasks.task import TaskInstance, TaskSpec

LONGEST_TABLE = 24  # rows; longer curves show a selection beside the chart
WARM_UP = "unscored warm-up steps are treated as required"


@click.command(cls=WorkloadCommand)
@click.argument("workload", type=WorkloadName())
@task_options
@click.option("--graph", type=click.Path(path_type=Path), help='Take references from {"steps":[{"t","refs"}]}.')
@click.option("--cuts", type=IntegerList(least=0), help="Compute only these cuts, such as 16,40.")
@click.option("--h", type=click.IntRange(min=1), help="Also print the pressure against h retained records.")
@click.option("--plot", type=click.Path(path_type=Path), help="Draw the curve into FILE.svg, .png or .pdf.")
@json_option
def curve(
    spec: TaskSpec, graph: Path | None, cuts: list[int] | None, h: int | None, plot: Path | None, as_json: bool
) -> None:
    """Print EIR in bits after each step of the WORKLOAD's task; cut t lies after step t."""
    task = generate(spec) if graph is None else from_graph(spec, load_graph(graph))
    workload = prepare(task.spec)
    demand = workload.demand(task.spec, graph_of(task), cuts)
    document = _document(task, demand)
    if h is not None:
        under = pressure(demand, h, log2(workload.alphabet(task.spec)))
        document["pressure"] = {"h": h, "capacity_bits": under.capacity_bits, "peak": under.peak}
    if plot is not None:
        save_curve(plot, demand.lower_bits, demand.upper_bits, f"{spec.workload}, seed {spec.seed}")
    emit(document, as_json, lambda console: _render(console, document, demand))


def _document(task: TaskInstance, demand: DemandCurve) -> dict[str, Any]:
    spec = task.spec
    head = {name: value for name, value in spec.as_json().items() if name != "queries"}
    bits = (
        {"bits": demand.bits, "peak_bits": demand.peak.lower_bits}
        if demand.certified
        else {
            "lower_bits": demand.lower_bits,
            "upper_bits": demand.upper_bits,
            "peak_lower_bits": demand.peak.lower_bits,
            "peak_upper_bits": demand.peak.upper_bits,
        }
    )
    return {
        **head,
        "q": spec.q,
        "fingerprint": task.fingerprint,
        "method": demand.method,
        "certified": demand.certified,
        **bits,
        "notes": [WARM_UP] if spec.warm_up else [],
    }


def _render(console: Console, document: dict[str, Any], demand: DemandCurve) -> None:
    if len([count for count in demand.counts if count is not None]) > 12:
        for line in bars(demand.upper_bits):
            console.print(line, highlight=False, soft_wrap=True)
    columns = ("cuts t", "bits") if demand.certified else ("cuts t", "at least", "at most")
    title = f"{document['workload']}, n={document['n']}, m={document['m']}, q={document['q']}, seed {document['seed']}"
    rows = _runs(demand)
    console.print(table(title, columns, rows if len(rows) <= LONGEST_TABLE else _telling(demand)))
    if len(rows) > LONGEST_TABLE:
        console.print("some of the cuts; --json has them all")
    console.print(f"{document['method']}; {'exact' if demand.certified else 'not exact: bounds'}", highlight=False)
    for note in document["notes"]:
        console.print(note)
    if "pressure" in document:
        under = document["pressure"]
        held = f"h = {under['h']} records hold {under['capacity_bits']:.1f} bits"
        console.print(f"{held}: pressure at most {under['peak']:.3f} at these cuts")


def _telling(demand: DemandCurve) -> list[list[object]]:
    """Return rows for the peak, the last cuts, and a few between."""
    n = len(demand.counts) - 1
    peak = max(range(n + 1), key=lambda t: (demand.counts[t] or ClassCount.exactly(0)).upper)
    cuts = sorted({*range(0, n + 1, max(1, n // 8)), peak, n - 1, n})
    chosen = tuple(count if t in cuts else None for t, count in enumerate(demand.counts))
    return _runs(DemandCurve(chosen, demand.method))


def _runs(demand: DemandCurve) -> list[list[object]]:
    """Return one row for each run of cuts with the same count."""
    rows: list[list[object]] = []
    first = 0
    for t, count in enumerate(demand.counts):
        following = demand.counts[t + 1] if t + 1 < len(demand.counts) else None
        if count is not None and count != following:
            low, high = f"{count.lower_bits:.3f}", f"{count.upper_bits:.3f}"
            rows.append([str(t) if first == t else f"{first}–{t}", low, *([] if demand.certified else [high])])
        if count != following:
            first = t + 1
    return rows
