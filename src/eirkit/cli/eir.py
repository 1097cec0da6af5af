"""`eirkit eir curve` and `count`: the bits that must survive each step of a task, or the cut of a contract."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import log2
from pathlib import Path
from shlex import quote
from typing import Any, Literal

import click
import msgspec
from msgspec import UNSET, Struct, UnsetType

from eirkit.cli.command import Show, command, document_options, option
from eirkit.cli.options import (
    IntegerList,
    WorkloadName,
    graph_option,
    task_options,
    task_words,
    workload_argument,
    workload_command,
)
from eirkit.eir.contract import LIMIT, ContractCount, load_contract
from eirkit.eir.covering import count_any
from eirkit.eir.demand import ClassCount, DemandCurve, pressure
from eirkit.errors import UsageError
from eirkit.lacuna.tasks.certification import certify as certify_demand
from eirkit.lacuna.tasks.certification import count_demand
from eirkit.lacuna.tasks.generation import from_graph, generate, graph_of, prepare
from eirkit.lacuna.tasks.task import TaskInstance, TaskParameters, TaskSpec
from eirkit.lacuna.tasks.workload import Workload, load_graph
from eirkit.report.document import Axis, Chart, Document, Item, Section, Series, facts
from eirkit.report.table import Cell, Column, Table
from eirkit.report.table import counted as counted_noun

LONGEST_TABLE = 24  # rows; longer curves show a selection beside the chart
FEWEST_DRAWN = 12  # cuts
MOST_BITS = 1_000_000  # a larger memory is a mistake
limit_option = option(
    "--limit", type=click.IntRange(min=1), default=LIMIT, show_default=True, help="Evaluations after which to give up."
)
STATED = "stated by the workload; --certify compares it with counts of small tasks"
WARM_UP = "what only unscored warm-up steps need is not required"


def retrievals_option(help: str = "Results that may be fetched once the question is known.") -> Callable[[Any], Any]:
    """Return what adds --b-oracle; the command receives `retrievals`."""
    return option("--b-oracle", "retrievals", type=click.IntRange(0, 1_000), default=0, metavar="B", help=help)


@workload_command(example="eirkit eir curve stepwise-sum --n 64 --m 16 --h 8")
@workload_argument(WorkloadName())
@task_options
@graph_option
@option("--cuts", type=IntegerList(least=0), help="Compute only these cuts, such as 16,40.  [default: all]")
@option("--certify", is_flag=True, help="Compare the formula of a workload of your own with counts of small tasks.")
@retrievals_option("Results that may still be fetched at each cut.")
@option("--h", type=click.IntRange(min=1), help="Also print the pressure on a memory of h records.")
@document_options
def curve(
    spec: TaskSpec,
    graph: Path | None,
    cuts: list[int] | None,
    certify: bool,
    retrievals: int,
    h: int | None,
    show: Show,
) -> None:
    """Compute how many bits must survive each step of a task of WORKLOAD.

    Cut t lies after step t. The number is the execution information requirement (EIR): with fewer bits no agent can
    answer every later step correctly. A workload without a formula is counted if it is small; the formula of a
    workload of your own is reported as stated until --certify confirms it.
    """
    task = generate(spec) if graph is None else from_graph(spec, load_graph(graph))
    workload = prepare(task.spec)
    demand, stated = (
        (workload.demand_with_retrievals(task.spec, retrievals, cuts), False)
        if retrievals
        else _demand(workload, task, cuts, certify)
    )
    under = None if h is None else pressure(demand, h, log2(workload.alphabet(task.spec)))
    exact, peak = demand.certified, demand.peak
    data = CurveDocument(
        **msgspec.structs.asdict(task.spec.as_document()),
        q=task.spec.q,
        fingerprint=task.fingerprint,
        method=demand.method,
        certified=exact and not stated,
        stated=stated,
        bits=demand.bits if exact else UNSET,
        peak_bits=peak.lower_bits if exact else UNSET,
        lower_bits=UNSET if exact else demand.lower_bits,
        upper_bits=UNSET if exact else demand.upper_bits,
        peak_lower_bits=UNSET if exact else peak.lower_bits,
        peak_upper_bits=UNSET if exact else peak.upper_bits,
        notes=(WARM_UP,) if task.spec.warm_up else (),
        retrievals=retrievals,
        pressure=UNSET if under is None or h is None else CapacityPressure(h, under.capacity_bits, under.peak),
    )
    chart = _chart(demand, f"{spec.workload}, seed {spec.seed}")
    show(_document(task.spec, demand, data, chart))


def _demand(
    workload: Workload, task: TaskInstance, cuts: list[int] | None, certified: bool
) -> tuple[DemandCurve, bool]:
    """Return EIR, and whether it is only stated: a formula from outside eirkit that was not compared with counts."""
    foreign = not type(workload).__module__.startswith("eirkit.")
    graph = graph_of(task)
    try:
        demand = workload.demand(task.spec, graph, cuts)
    except UsageError:
        if not foreign:
            raise
        return count_demand(workload, task.spec, graph, cuts), False
    if not workload.leaves_out_unscored:
        demand = demand.leave_out_unscored(task.spec.warm_up)
    if not foreign:
        return demand, False
    if not certified:
        return replace(demand, method=f"{demand.method}; {STATED}"), True
    found = certify_demand(workload)
    if found.differences:
        raise UsageError(f"the formula is wrong: {found.differences[0]}; correct demand()")
    return replace(demand, method=f"{demand.method}; {found}"), not found.sizes


class CapacityPressure(Struct, frozen=True):
    """How much must survive, against what h records hold."""

    h: int
    capacity_bits: float
    peak: float  # bits / capacity_bits, at the largest


class CurveDocument(TaskParameters, frozen=True, kw_only=True):
    """The bits that must survive each step; where no exact value is certified, their bounds."""

    q: int
    fingerprint: str
    method: str
    certified: bool
    stated: bool  # a formula from outside eirkit that was not compared with counts
    bits: Sequence[float | None] | UnsetType = UNSET
    peak_bits: float | UnsetType = UNSET
    lower_bits: Sequence[float | None] | UnsetType = UNSET
    upper_bits: Sequence[float | None] | UnsetType = UNSET
    peak_lower_bits: float | UnsetType = UNSET
    peak_upper_bits: float | UnsetType = UNSET
    notes: tuple[str, ...] = ()
    retrievals: int
    pressure: CapacityPressure | UnsetType = UNSET


def _document(spec: TaskSpec, demand: DemandCurve, data: CurveDocument, chart: Chart) -> Document:
    known = sum(count is not None for count in demand.counts)
    items: tuple[Item, ...] = (chart, _table(spec, demand)) if known > FEWEST_DRAWN else (_table(spec, demand),)
    answer = [_peak(demand, all_cuts=known == len(demand.counts))]
    if under := data.pressure:
        answer.append(
            f"{under.h} records hold {under.capacity_bits:.1f} bits, so the pressure is at most {under.peak:.3f}; "
            "above 1 no agent is always right."
        )
    kind = ("stated, not certified" if data.stated else "exact") if demand.certified else "bounds, not exact"
    words = (f"{data.method}; {kind}", *data.notes)
    title = f"Bits that must survive: {spec.workload}"
    then = f"eirkit lacuna simulate {task_words(spec)} --h {spec.m},{max(1, spec.m // 2)}"
    return Document("eir-curve", title, tuple(answer), data, (Section("", (), items), Section("", words)), next=then)


def _peak(demand: DemandCurve, *, all_cuts: bool) -> str:
    low, high = demand.peak.lower_bits, demand.peak.upper_bits
    same = f"{low:.1f}" == f"{high:.1f}"
    bits = f"{low:.1f} bits" if same else f"between {low:.1f} and {high:.1f} bits"
    where = next(t for t, count in enumerate(demand.counts) if count == demand.peak)
    return f"At the peak, after step {where}, {bits} must survive{'' if all_cuts else ' (of the cuts computed)'}."


def _chart(demand: DemandCurve, title: str) -> Chart:
    """Return bits over cuts; a band where lower and upper bounds differ."""
    pairs = zip(demand.lower_bits, demand.upper_bits, strict=True)
    known = [(t, low, high) for t, (low, high) in enumerate(pairs) if low is not None]
    cuts, low, high = (tuple(column) for column in zip(*known, strict=True))
    series = Series("bits", "step", cuts, high, low, high)
    axes = Axis("cut t"), Axis("bits that must survive", low=0.0)
    peak = max((bits for bits in high if bits is not None), default=0.0)
    return Chart("curve", title, f"At most {peak:.1f} bits must survive.", *axes, (series,))


def _table(spec: TaskSpec, demand: DemandCurve) -> Table:
    bits = (Column("bits", "bits"),) if demand.certified else (Column("lower", "at least"), Column("upper", "at most"))
    rows = _runs(demand)
    selected = len(rows) > LONGEST_TABLE
    title = f"{spec.workload}, n={spec.n}, m={spec.m}, q={spec.q}, seed {spec.seed}"
    return Table(
        "bits",
        title,
        (Column("cuts", "cuts t", figures=True), *bits),
        tuple(_telling(demand) if selected else rows),
        "A selection of the cuts; --json has them all." if selected else "",
    )


def _telling(demand: DemandCurve) -> list[dict[str, Cell]]:
    """Return rows for the peak, the last cuts, and a few between."""
    n = len(demand.counts) - 1
    peak = max(range(n + 1), key=lambda t: (demand.counts[t] or ClassCount.exactly(0)).upper)
    cuts = sorted({*range(0, n + 1, max(1, n // 8)), peak, n - 1, n})
    chosen = tuple(count if t in cuts else None for t, count in enumerate(demand.counts))
    return _runs(DemandCurve(chosen, demand.method))


def _runs(demand: DemandCurve) -> list[dict[str, Cell]]:
    """Return one row for each run of cuts with the same count."""
    rows: list[dict[str, Cell]] = []
    first = 0
    for t, count in enumerate(demand.counts):
        following = demand.counts[t + 1] if t + 1 < len(demand.counts) else None
        if count is not None and count != following:
            low, high = count.lower_bits, count.upper_bits
            rows.append({"cuts": str(t) if first == t else f"{first}–{t}", "bits": low, "lower": low, "upper": high})
        if count != following:
            first = t + 1
    return rows


@command(example="eirkit eir count examples/timezone.py:timezone")
@click.argument("contract", metavar="FILE.py:NAME")
@limit_option
@option("--all", "groups", is_flag=True, help="Also list which histories, or states, share a class.")
@option(
    "--capacity", type=click.FloatRange(0, MOST_BITS, min_open=True), metavar="BITS", help="Also print the pressure."
)
@retrievals_option()
@document_options
def count(contract: str, limit: int, groups: bool, capacity: float | None, retrievals: int, show: Show) -> None:
    """Count how many bits the contract NAME in FILE.py requires at the cut that it describes.

    NAME is an object or a class with `histories`, `futures` and `respond(history, future)`; or with `states`,
    `moves(state)`, `step(state, move) -> (output, next_state)` and `horizon` (steps left, None for unlimited). Where
    several responses are right, `accept(history, future)` returns them in place of `respond`. With --b-oracle,
    `retrievable(history)` returns the results of which B may be fetched when the future is known.
    """
    counted = count_any(load_contract(contract), limit=limit, retrievals=retrievals)
    own = {name: getattr(counted, name) for name in CountDocument.__struct_fields__ if hasattr(counted, name)}
    more = {
        "contract": contract,
        "form": "process" if counted.futures is None else "finite",
        "groups": [[str(member) for member in group] for group in counted.groups] if groups else UNSET,
    }
    data = CountDocument(
        **{**own, **more},
        pressure=UNSET if capacity is None else BitPressure(capacity, counted.bits_lower / capacity),
    )
    show(_count_document(counted, data))


class BitPressure(Struct, frozen=True):
    """The bits that must survive, against those that a memory holds."""

    capacity_bits: float
    peak: float


class CountDocument(Struct, frozen=True, kw_only=True):
    """The classes of a contract; see `ContractCount`."""

    contract: str
    form: Literal["process", "finite"]
    classes: int
    bits: float
    bits_lower: float
    exact: bool
    retrievals: int
    representation_bits: int
    histories: int
    futures: int | None
    horizon: int | None
    evaluations: int
    method: str
    pressure: BitPressure | UnsetType = UNSET
    groups: list[list[str]] | UnsetType = UNSET  # the members of each class


def _count_document(counted: ContractCount, data: CountDocument) -> Document:
    pasts = "states" if counted.futures is None else "histories"
    bits = counted.representation_bits
    whole = f"A fixed-length code needs {bits} whole bits; with fewer, no agent can be right in every case."
    answer = [_required(counted)]
    if counted.exact:
        answer.append(whole if bits else "Nothing has to be remembered.")
    if under := data.pressure:
        said = "above 1 no agent is always right" if under.peak > 1 else "up to 1 an agent can always be right"
        answer.append(f"The pressure on {under.capacity_bits:g} bits is {under.peak:.3f}; {said}.")
    low, high = f"{counted.bits_lower:.3f}", f"{counted.bits:.3f}"
    least = f"{counted.classes:,}" if counted.exact else f"{counted.at_least:,} to {counted.classes:,}"
    fetched = " once results are fetched" if counted.retrievals else ""
    shared = "need the same answers" if counted.least is None else f"can do with the same answers{fetched}"
    apart = ", or are told apart by what is given" if counted.supplied else ""
    found: dict[str, Cell] = {
        pasts: counted.histories,
        "classes": f"{least}: {pasts} of one class {shared}, whatever comes next{apart}",
        "EIR": f"log2({least}) = {high if counted.exact else f'{low} to {high}'} bits",
        "method": f"{counted.method}; {counted.evaluations:,} evaluations",
    }
    items = [facts("count", "How it was counted", found)]
    if groups := data.groups:
        rows: list[dict[str, Cell]] = [
            {"class": n, "member": member} for n, group in enumerate(groups, 1) for member in group
        ]
        columns = (Column("class", "class"), Column("member", pasts, role="text"))
        items.append(Table("groups", f"{pasts.capitalize()} by class", columns, tuple(rows)))
    then = "eirkit eir curve stepwise-sum" if groups else f"eirkit eir count {quote(data.contract)} --all"
    return Document(
        "eir-count",
        f"Bits required by {data.contract}",
        tuple(answer),
        data,
        (Section("", (), tuple(items)),),
        next=then,
    )


def _required(counted: ContractCount) -> str:
    fetched = f" beside {counted_noun(counted.retrievals, 'retrieval')}" if counted.retrievals else ""
    if counted.exact:
        return f"{counted.bits:.3f} bits must survive this cut{fetched}."
    return (
        f"At least {counted.bits_lower:.3f} bits must survive this cut{fetched}, and {counted.bits:.3f} are enough; "
        "the exact minimum is not known."
    )
