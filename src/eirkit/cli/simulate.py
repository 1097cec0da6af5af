"""`eirkit lacuna simulate`: simulates how often each retention policy misses a needed result, without an agent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import click
from msgspec import UNSET, Struct, UnsetType
from rich.console import Console
from rich.progress import Progress

from eirkit.cli.command import NameList, Show, document_options, option
from eirkit.cli.options import (
    SEEDS_HELP,
    IntegerList,
    SeedList,
    WorkloadName,
    task_options,
    task_words,
    workload_argument,
    workload_command,
)
from eirkit.errors import UsageError
from eirkit.lacuna.findings.measures import RUN_MEASURES, SIMULATION_MEASURES
from eirkit.lacuna.tasks.generation import prepare
from eirkit.lacuna.tasks.policy import find_policy, policies
from eirkit.lacuna.tasks.simulation.plain import Recovery
from eirkit.lacuna.tasks.simulation.table import CEILING, FLOOR, PolicyRow, first_failures, sweep
from eirkit.lacuna.tasks.task import TaskSpec
from eirkit.lacuna.tasks.workloads import DISTRIBUTIONS
from eirkit.report.document import Document, Section
from eirkit.report.table import Cell, Column, Table, share

GAP = SIMULATION_MEASURES["gap_closed"]
ONLINE = SIMULATION_MEASURES["online_miss_rate"]
HINDSIGHT = SIMULATION_MEASURES["hindsight"]


@workload_command(example="eirkit lacuna simulate stepwise-sum --h 12,8,4 --policy lru,belady --seeds 0:9")
@workload_argument(WorkloadName())
@partial(task_options, hide_seed=True)
@option(
    "--h",
    "capacities",
    type=IntegerList(1),
    default="16,12,8,4",
    show_default=True,
    help="Records that the memory holds.",
)
@option(
    "--policy",
    "names",
    known=policies.names,
    type=NameList(),
    default="fifo,lru,theory,belady",
    show_default=True,
    help="Retention policies, by name or module:Name.",
)
@option("--seeds", type=SeedList(), default="0:300", show_default=True, help=SEEDS_HELP)
@option(
    "--recovery",
    type=click.Choice(["off", "direct"]),
    default="off",
    show_default=True,
    help="direct: each missing record is fetched once and competes for a place again.",
)
@option("--all", "first_failure", is_flag=True, help="Also find the pressure from which each policy misses over 5%.")
@document_options
def simulate(
    spec: TaskSpec,
    capacities: list[int],
    names: list[str],
    seeds: Sequence[int],
    recovery: Recovery,
    first_failure: bool,
    show: Show,
) -> None:
    """Simulate how often each retention policy has dropped a result that a step of WORKLOAD needs."""
    if spec.seed:
        raise UsageError(f"simulate takes many seeds; write --seeds {spec.seed} instead of --seed {spec.seed}")
    for name in names:
        find_policy(name)  # refuses one that is unknown
    rows = _sweep(spec, seeds, names, capacities, recovery)
    has_queries = "query" in prepare(spec).kinds(spec)
    streams = {
        queries: _sweep(replace(spec, queries=queries), seeds, names, capacities, recovery)
        for queries in (DISTRIBUTIONS[:2] if has_queries else ())
    }
    hit_rates = [
        HitRate(queries, row.policy, row.h, row.hit_rate, row.miss_regret)
        for queries, listed in streams.items()
        for row in listed
    ]
    failures = first_failures(spec, seeds, names, recovery=recovery) if first_failure else UNSET
    show(_document(spec, streams, SimulationDocument(rows, recovery, hit_rates or UNSET, failures)))


class HitRate(Struct, frozen=True):
    """How often a policy still holds what a query asks for."""

    queries: str
    policy: str
    h: int
    hit_rate: float
    miss_regret: float


class SimulationDocument(Struct, frozen=True):
    """Miss rates of policies."""

    rows: tuple[PolicyRow, ...]
    recovery: Recovery
    hit_rates: list[HitRate] | UnsetType = UNSET  # of workloads with queries
    first_failure_pressure: Mapping[str, float | None] | UnsetType = UNSET  # by policy


def _sweep(
    spec: TaskSpec, seeds: Sequence[int], names: list[str], capacities: list[int], recovery: Recovery
) -> tuple[PolicyRow, ...]:
    stderr = Console(stderr=True)
    with Progress(console=stderr, transient=True, disable=not stderr.is_terminal) as progress:
        bar = progress.add_task("simulating", total=len(seeds))
        return sweep(
            spec, seeds, names, capacities, recovery=recovery, advance=lambda tasks: progress.advance(bar, tasks)
        )


def _document(spec: TaskSpec, streams: dict[str, tuple[PolicyRow, ...]], data: SimulationDocument) -> Document:
    rows = data.rows
    title = f"Miss rates of retention policies: {rows[0].workload}"
    section = Section("", (), tuple(_tables(streams, data)))
    h = min(row.h for row in rows)
    then = f"eirkit lacuna run {task_words(spec)} --h {h} --model reference/calculator"
    return Document(
        "lacuna-simulate", title, (_answer(rows), *_beyond(rows, data.recovery)), data, (section,), next=then
    )


def _answer(rows: Sequence[PolicyRow]) -> str:
    """Return which policy misses least where memory is smallest."""
    h = min(row.h for row in rows)
    at = sorted((row for row in rows if row.h == h), key=lambda row: row.miss_rate)
    best, worst = at[0], at[-1]
    said = (
        f"With {h} records, {_short(best.policy)} misses an input at {share(best.miss_rate)} of the steps that need one"
    )
    if share(best.miss_rate) == share(worst.miss_rate):
        return f"{said}{'' if len(at) == 1 else ', and every other policy about as often'}."
    return f"{said}, {_short(worst.policy)} at {share(worst.miss_rate)}."


def _beyond(rows: Sequence[PolicyRow], recovery: str) -> Iterator[str]:
    """Yield what no policy can do without knowing the future, where memory is smallest."""
    row = min(rows, key=lambda row: row.h)
    if row.hindsight is not None and row.online_miss_rate:
        part = "nearly all" if row.hindsight > 0.995 else f"at least {share(row.hindsight)}"
        yield (
            f"No policy that does not know the future misses at fewer than {share(row.online_miss_rate)} of them on "
            f"average: {part} of the gap between FIFO and Belady is hindsight."
        )
    if recovery == "direct" and row.online_retrievals:
        yield f"Any such policy fetches {row.online_retrievals:.1f} or more records a task, on average."


def _tables(streams: dict[str, tuple[PolicyRow, ...]], data: SimulationDocument) -> Iterator[Table]:
    first = data.rows[0]
    label = RUN_MEASURES["miss_rate"].label
    title = f"{first.workload}: {label}, {first.seeds} seeds, recovery {data.recovery}"
    yield _comparison("miss-rate", title, data.rows, "miss_rate")
    for queries, listed in streams.items():
        title = f"{first.workload}, {queries} queries: {SIMULATION_MEASURES['hit_rate'].label}"
        yield _comparison(f"hit-rate-{queries}", title, listed, "hit_rate")
    if data.first_failure_pressure is not UNSET:
        failures: list[dict[str, Cell]] = [
            {"policy": _short(name), "pressure": found} for name, found in data.first_failure_pressure.items()
        ]
        columns = (Column("policy", "policy", role="name"), Column("pressure", "m/h"))
        yield Table("first-failure", "First pressure with more than 5% misses", columns, tuple(failures))


def _comparison(id: str, title: str, rows: Sequence[PolicyRow], measure: str) -> Table:
    """Return the table of the paper: a line for each pressure, a column for each policy, and the gap each closes."""
    names = list(dict.fromkeys(row.policy for row in rows))
    judged = [name for name in names if name not in (FLOOR, CEILING)] if measure == "miss_rate" else []
    lines = []
    for h in dict.fromkeys(row.h for row in rows):
        at = {row.policy: row for row in rows if row.h == h}
        line: dict[str, Cell] = {"pressure": at[names[0]].pressure, "h": h}
        line |= {name: getattr(at[name], measure) for name in names}
        line |= {f"{name}_gap": at[name].gap_closed for name in judged}
        line |= {ONLINE.id: at[names[0]].online_miss_rate, HINDSIGHT.id: at[names[0]].hindsight}
        lines.append(line)
    bounded = measure == "miss_rate" and any(line[ONLINE.id] is not None for line in lines)
    shown = [Column(name, _short(name)) for name in names]
    if bounded:  # beside Belady, which may know more
        shown.insert(names.index(CEILING) if CEILING in names else len(names), Column(ONLINE.id, ONLINE.label))
    columns = (
        Column("pressure", "m/h", 2),
        Column("h", "h"),
        *shown,
        *(Column(f"{name}_gap", f"{_short(name)} {GAP.label}", 2, signed=True, priority=1) for name in judged),
        *([Column(HINDSIGHT.id, HINDSIGHT.label, 2, priority=1)] if bounded else []),
    )
    explained = [*([GAP] if judged else []), *([ONLINE, HINDSIGHT] if bounded else [])]
    note = "; ".join(f"{measure.label}: {measure.meaning}" for measure in explained)
    return Table(id, title, columns, tuple(lines), note)


def _short(name: str) -> str:
    return name.rpartition(":")[2]
