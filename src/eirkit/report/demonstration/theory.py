"""What must survive, what policies keep of it, and what losing it costs: rows on embedded defaults."""

from __future__ import annotations

from math import log2
from statistics import fmean
from typing import Any

from eirkit.eir.closed_forms import final_sum
from eirkit.eir.demand import pressure
from eirkit.lacuna.cone_survey import survey_cones
from eirkit.lacuna.generation import generate, graph_of, prepare
from eirkit.lacuna.simulation.plain import simulate
from eirkit.lacuna.task import TaskSpec

WORKLOADS = ("running-max", "store-recall", "stepwise-max", "stepwise-sum", "full-lookup", "stepwise-topk")
# Its curve takes the longest by far; a cut in four is enough for a demonstration.
SAMPLED = {"stepwise-topk": range(0, 65, 4)}
CELLS = (("stepwise-sum", 16), ("stepwise-sum", 8), ("store-recall", 8), ("store-recall", 4))
POLICIES = ("fifo", "lru", "theory", "belady")
TASKS = range(30)
GRAPHS = range(300)


def theory() -> dict[str, Any]:
    """Return all that needs no agent."""
    return {
        "demand": [demand_row(name) for name in WORKLOADS],
        "contrast": contrast(),
        "retention": [retention_row(name, h) for name, h in CELLS],
        "recovery": [recovery_row(fan_in) for fan_in in (1, 2, 4)],
    }


def demand_row(workload: str) -> dict[str, Any]:
    """Return what must survive each cut of the workload's default task, and how many records that would fill."""
    spec = TaskSpec(workload)
    maker = prepare(spec)
    cuts = SAMPLED.get(workload)
    curve = maker.demand(spec, graph_of(generate(spec)), cuts)
    record_bits = log2(maker.alphabet(spec))
    return {
        "workload": workload,
        "bits": list(curve.bits),
        "peak_bits": curve.peak.lower_bits,
        "cuts": "all" if cuts is None else list(cuts),
        "records": pressure(curve, 1, record_bits).peak,
        "method": curve.method,
    }


def contrast() -> dict[str, float]:
    """Return the peak when every step's sum is asked for, and when only the total is: same inputs, other contract."""
    spec = TaskSpec("stepwise-sum")
    online = prepare(spec).demand(spec, graph_of(generate(spec)))
    offline = max(final_sum(spec.q, spec.n, t) for t in range(spec.n + 1))
    return {"every_step_bits": online.peak.lower_bits, "final_only_bits": log2(offline)}


def retention_row(workload: str, h: int) -> dict[str, Any]:
    """Return the share of steps with a missing input under each policy with h records, and the pressure."""
    tasks = [generate(TaskSpec(workload, seed=seed)) for seed in TASKS]
    spec = tasks[0].spec
    maker = prepare(spec)
    under = pressure(maker.demand(spec, graph_of(tasks[0])), h, log2(maker.alphabet(spec)))
    rates = {policy: fmean(simulate(task, policy, h).miss_rate for task in tasks) for policy in POLICIES}
    return {"workload": workload, "h": h, "eir_pressure": under.peak, "tasks": len(tasks), "miss_rate": rates}


def recovery_row(fan_in: int) -> dict[str, Any]:
    """Return the mean cost of rebuilding a lost result late in a task."""
    survey = survey_cones(TaskSpec("stepwise-sum", m=8, fan_in=fan_in), GRAPHS, from_step=32)
    return {
        "fan_in": fan_in,
        "cones": survey.cones,
        "fetched": 1,
        "results_kept": survey.size.mean,
        "nothing_kept": survey.naive.mean,
        "depth": survey.depth.mean,
    }
