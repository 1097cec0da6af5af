"""Studies of retention policies without agents: cross-family table, first failures, hit rates of Full Lookup."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from eirkit.lacuna.findings.measures import SIMULATION_MEASURES
from eirkit.lacuna.tasks.generation import prepare
from eirkit.lacuna.tasks.policy import find_policy
from eirkit.lacuna.tasks.simulation.batch import count_misses
from eirkit.lacuna.tasks.simulation.plain import first_failure
from eirkit.lacuna.tasks.simulation.table import batches, gap_closed, hindsight, miss_rates
from eirkit.lacuna.tasks.task import TaskSpec
from eirkit.lacuna.tasks.workload import best_online
from eirkit.report.document import Axis, Chart, Figure, Series
from eirkit.report.table import Table
from eirkit_paper.published import value_of, values_of
from eirkit_paper.studies.comparison import THREE, compare, in_section, listed, sectioned
from eirkit_paper.study import Findings, Setting, StudyRow
from eirkit_paper.verdicts import DIFFERS

SEEDS = 6000
ONLINE, HINDSIGHT = SIMULATION_MEASURES["online_miss_rate"], SIMULATION_MEASURES["hindsight"]

Rates = NDArray[np.float64]

# The simulated Stepwise Maximum is that of fan-in 1; everything else has two references a step.
FAMILIES = {
    "Stepwise Sum": TaskSpec("stepwise-sum"),
    "Store–Recall": TaskSpec("store-recall"),
    "Stepwise Maximum": TaskSpec("stepwise-max", fan_in=1),
    "Stepwise Top-k": TaskSpec("stepwise-topk"),
}
FAN_IN_ONE = (
    "Stepwise Maximum is simulated with one reference a step, although the workload table gives it two; "
    "`cross-family-policies` compares its published miss rates with both."
)
POLICIES = ("fifo", "lru", "theory", "belady")
NAMES = {"fifo": "FIFO", "lru": "LRU", "theory": "theory-informed", "belady": "Belady"}
CAPACITIES = (12, 8, 4)
# Family → for each capacity: FIFO, LRU, theory-informed, Belady, LRU gap closed.
COLUMNS = ("FIFO", "LRU", "Theory-informed", "Belady", "LRU gap closed")
TABLE = {
    family: tuple(values_of("tab:rq5-cross", f"{family}, m/h = {16 / h:.2f}", *COLUMNS) for h in CAPACITIES)
    for family in FAMILIES
}
FIRST_FAILURE = {
    family: value_of("sec:results-rq4", "Belady first fails at m/h", family)
    for family in ("Stepwise Sum", "Stepwise Top-k", "Stepwise Maximum", "Store–Recall")
}
GRID = tuple(range(16, 0, -2))
LRU_MISS_RATE = value_of("sec:results-rq4", "Stepwise Sum, h = 16", "LRU")
MISSING_STEPS = {
    name: {h: value_of("tab:rq2-agg-capacity", f"{rule}, h = {h}", "Missing-reference steps") for h in sizes}
    for name, rule, sizes in (("window", "Exact window", (16,)), ("lru", "LRU", (16, 20, 32)))
}
HITS = {"lfu": "LFU", "lru": "LRU", "fixed": "fixed"}
HIT_RATES = {
    h: {name: value_of("sec:results-rq3", f"Zipf hit rate, h = {h}", column) for name, column in HITS.items()}
    for h in (4, 8)
}


def in_threes(rates: Rates) -> Rates:
    """Return the means over consecutive threes of seeds; what is left over is dropped."""
    whole = len(rates) // THREE * THREE
    return np.asarray(rates[:whole].reshape(-1, THREE, *rates.shape[1:]).mean(axis=1))


def table_rows(families: Mapping[str, TaskSpec], seeds: Sequence[int]) -> Iterator[StudyRow]:
    """Yield the cross-family table."""
    for family, spec in families.items():
        rates = {name: in_threes(miss_rates(spec, seeds, name, CAPACITIES)) for name in POLICIES}
        for column, (h, published) in enumerate(zip(CAPACITIES, TABLE[family], strict=True)):
            of = {name: rates[name][:, column] for name in POLICIES}
            for name, figure in zip(POLICIES, published, strict=False):
                yield compare(f"{family}, h = {h}: {NAMES[name]}", figure, of[name])
            closed = (gap_closed(*means) for means in zip(of["lru"], of["fifo"], of["belady"], strict=True))
            gaps = [gap for gap in closed if gap is not None]
            yield compare(f"{family}, h = {h}: LRU gap closed", published[-1], gaps, digits=2)


def sufficient_rows(seeds: Sequence[int]) -> Iterator[StudyRow]:
    """Yield LRU and the exact window at capacities that could hold all sixteen eligible answers."""
    spec = FAMILIES["Stepwise Sum"]
    rates = in_threes(miss_rates(spec, seeds, "lru", [16])[:, 0])
    yield compare("Stepwise Sum, h = 16: LRU miss rate", LRU_MISS_RATE, rates)
    for name, figures in MISSING_STEPS.items():
        for h, published in figures.items():
            steps = in_threes(miss_rates(spec, seeds, name, [h])[:, 0] * (spec.n - 1))
            rule = "exact window" if name == "window" else "LRU"
            yield compare(f"Stepwise Sum, h = {h}: {rule}, steps with a missing reference", published, steps, digits=1)


def cross_family(setting: Setting) -> Findings:
    """Compare the cross-family table, and LRU where everything would fit."""
    seeds = range(SEEDS) if setting.seeds is None else setting.seeds
    two = {"Stepwise Maximum": TaskSpec("stepwise-max", fan_in=2)}
    other_rows = list(table_rows(two, seeds))
    other = [
        {"figure": row.label, "published": row.published, "fan-in 2": row.ours, "verdict": row.verdict}
        for row in other_rows
    ]
    rows = sectioned(
        {
            "Miss rates, m = 16, n = 64": table_rows(FAMILIES, seeds),
            "LRU at sufficient capacity": sufficient_rows(seeds),
        }
    )
    title = "Stepwise Maximum with two references a step instead of one"
    tables = (_by_pressure(rows), _hindsight(rows), listed("fan-in-2", title, other))
    one = [row for row in rows if row.label.startswith("Stepwise Maximum")]
    counts = (f"{sum(row.verdict == DIFFERS for row in found)} of {len(found)}" for found in (one, other_rows))
    said = "Of the figures of Stepwise Maximum {} differ with one reference a step and {} with two (the last table)."
    return Findings(rows, tables, words=(FAN_IN_ONE, said.format(*counts)))


def _by_pressure(rows: Sequence[StudyRow]) -> Table:
    """Return the cross-family table in its published form: the published figure, then ours ± one deviation."""
    by_label = {row.label: row for row in rows}
    lines = []
    for family in FAMILIES:
        for h in CAPACITIES:
            line = {"workload": family, "m/h": f"{16 / h:.2f}"}
            line |= {NAMES[name]: _both(by_label[f"{family}, h = {h}: {NAMES[name]}"]) for name in POLICIES}
            lines.append({**line, "LRU gap closed": _both(by_label[f"{family}, h = {h}: LRU gap closed"], 2)})
    note = "Published · ours ± one standard deviation of means over three seeds."
    return listed("by-pressure", "Miss rates by policy and pressure", lines, note)


def _hindsight(rows: Sequence[StudyRow]) -> Table:
    """Return the best that any policy can do without knowing the future, and what of the gap to Belady is hindsight."""
    ours = {row.label: row.ours or 0.0 for row in rows}
    lines = []
    for family, spec in FAMILIES.items():
        for h in CAPACITIES:
            best = best_online(prepare(spec).draws(spec), h)
            of = {name: ours[f"{family}, h = {h}: {NAMES[name]}"] for name in POLICIES}
            if best is None:
                continue
            of_gap = hindsight(of["fifo"], best.miss_rate, of["belady"])
            shown = {"FIFO": of["fifo"], "LRU": of["lru"], ONLINE.label: best.miss_rate, "Belady": of["belady"]}
            figures = {name: f"{rate:.3f}" for name, rate in shown.items()}
            worth = "–" if of_gap is None else f"{of_gap:.2f}"
            lines.append({"workload": family, "m/h": f"{16 / h:.2f}", **figures, HINDSIGHT.label: worth})
    note = f"{ONLINE.label}: {ONLINE.meaning}; {HINDSIGHT.label}: {HINDSIGHT.meaning}."
    return listed("hindsight", "What of the gap to Belady is hindsight", lines, note)


def _both(row: StudyRow, digits: int = 3) -> str:
    deviation = row.spread or 0.0
    ours = round(row.ours or 0.0, digits) + 0.0  # no minus before a zero
    return f"{row.published:.{digits}f} · {ours:.{digits}f} ± {deviation:.{digits}f}"


def first_failures(setting: Setting) -> Findings:
    """Compare the pressures at which Belady first misses more than 5% of the steps."""
    seeds = range(SEEDS) if setting.seeds is None else setting.seeds
    rows, series = [], []
    for family, published in FIRST_FAILURE.items():
        spec = FAMILIES[family]
        threes = in_threes(miss_rates(spec, seeds, "belady", GRID))
        found = [first_failure([spec.m / h for h in GRID], rates) for rates in threes.tolist()]
        rows.append(compare(f"{family}: Belady first fails at m/h", published, _numbers(found), digits=1))
        levels = tuple(float(level) for level in threes.mean(axis=0))
        series.append(Series(family, "line", tuple(spec.m / h for h in GRID), levels))
    first = ", ".join(f"{row.label.split(':')[0]} {row.ours:.1f}" for row in rows if row.ours is not None)
    chart = Chart(
        "belady-by-pressure",
        "Belady's miss rate by pressure",
        f"With hindsight, misses pass 5% of the steps at m/h of, on average: {first}.",
        Axis("m/h", "log"),
        Axis("miss rate", percent=True, low=0),
        (*series, Series("5%", "rule", (1.0,), (0.05,), dashed=True)),
    )
    figure = Figure("first-failure-pressure", "Where hindsight no longer suffices", (chart,))
    return Findings(in_section("First pressure m/h on h = 16, 14 … 2 above 5%", rows), figures=(figure,))


def _numbers(found: Sequence[float | None]) -> list[float]:
    return [value for value in found if value is not None]


def hit_rates(setting: Setting) -> Findings:
    """Compare Full Lookup's hit rates under Zipf queries, every miss fetched once; uniform queries beside them."""
    seeds = range(SEEDS) if setting.seeds is None else setting.seeds
    zipf, uniform = (_hits(queries, seeds) for queries in ("zipf", "uniform"))
    rows = [
        compare(f"Zipf, h = {h}: {HITS[name]}", published, zipf[h, name])
        for h, figures in HIT_RATES.items()
        for name, published in figures.items()
    ]
    lines = [
        {"h": h, **{f"{q}, {name}": float(hits[h, name].mean()) for q, hits in (("Zipf", zipf), ("uniform", uniform))
                    for name in HITS}}
        for h in (16, 8, 4)
    ]  # fmt: skip
    table = listed("hit-rates", "Hit rates over all seeds; with uniform queries no policy has an advantage", lines)
    return Findings(in_section("Full Lookup, m = 16, 48 queries, a miss is read once", rows), (table,))


def _hits(queries: str, seeds: Sequence[int]) -> dict[tuple[int, str], Rates]:
    spec = TaskSpec("full-lookup", queries=queries)
    found = {}
    for name in HITS:
        for h in (16, 8, 4):
            parts = [
                1 - count_misses(b, find_policy(name), [h], recovery="direct").references[:, 0] / b.needed_references
                for b in batches(spec, seeds)
            ]
            found[h, name] = in_threes(np.concatenate(parts))
    return found


def across_workloads(setting: Setting) -> Findings:
    """Draw the miss rates of every policy on every workload, the published ones beside them."""
    seeds = range(SEEDS) if setting.seeds is None else setting.seeds
    rows = [row for row in table_rows(FAMILIES, seeds) if not row.label.endswith("gap closed")]
    return Findings(
        in_section(
            "Miss rates, m = 16, n = 64", rows, "Figure fig:results-policy-cross-family, values of tab:rq5-cross"
        ),
        figures=(Figure("policies-across-workloads", "Misses by policy and workload", tuple(_panels(rows))),),
        words=(FAN_IN_ONE,),
    )


def _panels(rows: Sequence[StudyRow]) -> Iterator[Chart]:
    pressures = tuple(16 / h for h in CAPACITIES)
    by_label = {row.label: row for row in rows}
    for family in FAMILIES:
        series = []
        for name in POLICIES:
            found = [by_label[f"{family}, h = {h}: {NAMES[name]}"] for h in CAPACITIES]
            low, high = tuple(row.low for row in found), tuple(row.high for row in found)
            series.append(Series(NAMES[name], "line", pressures, tuple(row.ours for row in found), low, high))
            published = tuple(row.published for row in found)
            series.append(Series(f"{NAMES[name]}, published", "points", pressures, published, dashed=True))
        at_two = {name: by_label[f"{family}, h = 8: {NAMES[name]}"].ours or 0.0 for name in POLICIES}
        said = ", ".join(f"{NAMES[name]} {rate:.0%}" for name, rate in at_two.items())
        yield Chart(
            f"policies-{family.lower().replace('–', '-').replace(' ', '-')}",
            family,
            f"{family}: steps with a missing input at m/h = 2 are {said}; bands hold 95% of three-seed means.",
            Axis("m/h"),
            Axis("miss rate", percent=True, low=0, high=1),
            tuple(series),
        )
