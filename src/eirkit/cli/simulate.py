"""`eirkit lacuna simulate`: how much each retention policy misses, without any agent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import click
from rich.console import Console, Group
from rich.progress import Progress

from eirkit.cli.options import (
    IntegerList,
    NameList,
    NamingOption,
    SeedList,
    WorkloadCommand,
    WorkloadName,
    task_options_of_many,
)
from eirkit.cli.output import emit, json_option, table
from eirkit.errors import UsageError
from eirkit.findings.pooling import RUN_MEASURES
from eirkit.tasks.generation import prepare
from eirkit.tasks.policy import find_policy, policies
from eirkit.tasks.simulation.plain import Recovery
from eirkit.tasks.simulation.table import CEILING, FLOOR, SIMULATION_MEASURES, PolicyRow, first_failures, sweep
from eirkit.tasks.task import TaskSpec
from eirkit.tasks.workloads.full_lookup import DISTRIBUTIONS


@click.command(cls=WorkloadCommand)
@click.argument("workload", type=WorkloadName())
@task_options_of_many
@click.option("--h", "capacities", type=IntegerList(1), default="16,12,8,4", show_default=True, help="Records held.")
@click.option(
    "--policy",
    "names",
    cls=NamingOption,
    known=policies.names,
    type=NameList(),
    default="fifo,lru,theory,belady",
    show_default=True,
    help="By name or module:Name.",
)
@click.option("--seeds", type=SeedList(), default="0:300", show_default=True, help="3, 0,4,9 or 0:300 (300 excluded).")
@click.option(
    "--recovery",
    type=click.Choice(["off", "direct"]),
    default="off",
    show_default=True,
    help="direct: each missing record is fetched once and competes for a slot again.",
)
@click.option("--first-failure", is_flag=True, help="Also the first pressure at which each policy misses above 5%.")
@json_option
def simulate(
    spec: TaskSpec,
    capacities: list[int],
    names: list[str],
    seeds: Sequence[int],
    recovery: Recovery,
    first_failure: bool,
    as_json: bool,
) -> None:
    """Print how often each retention policy misses what WORKLOAD needs, over many seeds and capacities."""
    _check(spec, names)
    rows = _sweep(spec, seeds, names, capacities, recovery)
    streams = {
        queries: _sweep(replace(spec, queries=queries), seeds, names, capacities, recovery)
        for queries in _streams(spec)
    }
    document: dict[str, Any] = {"rows": [row.as_json() for row in rows], "recovery": recovery}
    if streams:
        document["hit_rates"] = [_hit_rate(queries, row) for queries, listed in streams.items() for row in listed]
    if first_failure:
        document["first_failure_pressure"] = first_failures(spec, seeds, names, recovery=recovery)
    emit(document, as_json, lambda console: _render(console, rows, streams, document))


def _check(spec: TaskSpec, names: list[str]) -> None:
    if spec.seed:
        raise UsageError(f"simulate takes many seeds; write --seeds {spec.seed} instead of --seed {spec.seed}")
    for name in names:
        find_policy(name)


def _streams(spec: TaskSpec) -> tuple[str, ...]:
    """Return the query distributions to compare, for a workload that has queries."""
    return DISTRIBUTIONS[:2] if "query" in prepare(spec).kinds(spec) else ()


def _sweep(
    spec: TaskSpec, seeds: Sequence[int], names: list[str], capacities: list[int], recovery: Recovery
) -> tuple[PolicyRow, ...]:
    with Progress(console=Console(stderr=True), transient=True) as progress:
        bar = progress.add_task("simulating", total=len(seeds))
        return sweep(
            spec, seeds, names, capacities, recovery=recovery, advance=lambda tasks: progress.advance(bar, tasks)
        )


def _hit_rate(queries: str, row: PolicyRow) -> dict[str, Any]:
    return {
        "queries": queries,
        "policy": row.policy,
        "h": row.h,
        "hit_rate": row.hit_rate,
        "miss_regret": row.miss_regret,
    }


def _render(
    console: Console, rows: Sequence[PolicyRow], streams: dict[str, tuple[PolicyRow, ...]], document: dict[str, Any]
) -> None:
    first = rows[0]
    title = f"{first.workload}: {RUN_MEASURES['miss_rate'].label}, {first.seeds} seeds, recovery {document['recovery']}"
    console.print(_comparison(title, rows, "miss_rate"))
    hits = SIMULATION_MEASURES["hit_rate"]
    for queries, listed in streams.items():
        console.print(_comparison(f"{first.workload}, {queries} queries: {hits.label}", listed, "hit_rate"))
    if "first_failure_pressure" in document:
        listed_failures = document["first_failure_pressure"].items()
        console.print(table("First pressure with more than 5% misses", ("policy", "m/h"), listed_failures))


def _comparison(title: str, rows: Sequence[PolicyRow], measure: str) -> Group:
    """Return the table of the paper: a line for each pressure, a column for each policy, and the gap each closes."""
    names = list(dict.fromkeys(row.policy for row in rows))
    judged = [name for name in names if name not in (FLOOR, CEILING)] if measure == "miss_rate" else []
    lines = []
    for h in dict.fromkeys(row.h for row in rows):
        at = {row.policy: row for row in rows if row.h == h}
        values = [getattr(at[name], measure) for name in names]
        gaps = [None if (gap := at[name].gap_closed) is None else f"{gap:+.2f}" for name in judged]
        lines.append([f"{at[names[0]].pressure:.2f}", h, *values, *gaps])
    columns = (*names, *(f"{name} {SIMULATION_MEASURES['gap_closed'].label}" for name in judged))
    return table(title, ("m/h", "h", *(name.rpartition(":")[2] for name in columns)), lines)
