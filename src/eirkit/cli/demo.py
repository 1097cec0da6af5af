"""`eirkit demo`: the questions that eirkit answers so far, on embedded defaults, in seconds and without a network.

Every number comes from the same functions that the other commands call.
"""

from __future__ import annotations

import json
from math import log2
from pathlib import Path
from statistics import fmean
from typing import Any

import click
from rich.console import Console

from eirkit.cli.chart import EIGHTHS
from eirkit.cli.output import emit, json_option, table
from eirkit.eir.closed_forms import final_sum
from eirkit.eir.demand import pressure
from eirkit.lacuna.cone_survey import survey_cones
from eirkit.lacuna.evidence.attribution import CAUSES, judge, score
from eirkit.lacuna.evidence.pooling import pool
from eirkit.lacuna.evidence.rescue import Setup, rescue
from eirkit.lacuna.evidence.trial import run_trials
from eirkit.lacuna.generation import generate, generate_many, graph_of, prepare
from eirkit.lacuna.model import ModelOptions
from eirkit.lacuna.simulation.plain import simulate
from eirkit.lacuna.task import TaskSpec
from eirkit.lacuna.telemetry import Trace

WORKLOADS = ("running-max", "store-recall", "stepwise-max", "stepwise-sum", "full-lookup", "stepwise-topk")
# Its curve takes the longest by far; a cut in four is enough for a demonstration.
SAMPLED = {"stepwise-topk": range(0, 65, 4)}
CELLS = (("stepwise-sum", 16), ("stepwise-sum", 8), ("store-recall", 8), ("store-recall", 4))
POLICIES = ("fifo", "lru", "theory", "belady")
TASKS = range(30)
GRAPHS = range(300)
CAPACITIES = (16, 12, 8)


@click.command()
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="Also write DIR/demo.json.")
@json_option
def demo(out: Path | None, as_json: bool) -> None:
    """Answer the main questions on embedded defaults."""
    document = {
        "demand": [demand_row(name) for name in WORKLOADS],
        "contrast": contrast(),
        "retention": [retention_row(name, h) for name, h in CELLS],
        "recovery": [recovery_row(fan_in) for fan_in in (1, 2, 4)],
        "causes": [causes_row(h) for h in CAPACITIES],
        "rescue": rescue(
            Setup(TaskSpec("store-recall", m=8), h=4), TASKS, ["reference/guesser"], ModelOptions()
        ).as_json(),
    }
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        (out / "demo.json").write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", "utf-8")
    emit(document, as_json, lambda console: _render(console, document, out))


def demand_row(workload: str) -> dict[str, Any]:
    """Return what must survive each cut of the workload's default task, and how many records that would fill."""
    spec = TaskSpec(workload)
    maker = prepare(spec)
    cuts = SAMPLED.get(workload)
    curve = maker.demand(spec, graph_of(generate(spec)), cuts)
    record_bits = log2(maker.alphabet(spec))
    return {
        "workload": workload,
        "bits": curve.bits,
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


def causes_row(h: int) -> dict[str, Any]:
    """Return how an exact calculator fares on Stepwise Sum with h records in sight, and why its errors arose."""
    setup = Setup(TaskSpec("stepwise-sum"), h)
    maker = prepare(setup.spec)
    tasks = list(generate_many(setup.spec, TASKS))
    traces = run_trials("reference/calculator", ModelOptions(), [setup.session(task, "control") for task in tasks])
    scores = [
        score(judge(task, maker, trace.decisions), trace.decisions)
        for task, trace in zip(tasks, traces, strict=True)
        if isinstance(trace, Trace)
    ]
    cell = pool(scores)
    return {"h": h, "accuracy": cell.accuracy, "steps": len(scores) * setup.spec.n, "errors": cell.errors}


def _render(console: Console, document: dict[str, Any], out: Path | None) -> None:
    _render_demand(console, document["demand"], document["contrast"])
    _render_retention(console, document["retention"])
    _render_recovery(console, document["recovery"])
    _render_causes(console, document["causes"], document["rescue"])
    if out is not None:
        console.print(f"The numbers are in {out / 'demo.json'}.", highlight=False, markup=False)
    console.print("Go on with `eirkit eir --help` and `eirkit lacuna --help`.", highlight=False)


def _render_demand(console: Console, rows: list[dict[str, Any]], contrast: dict[str, float]) -> None:
    shown = [(r["workload"], _spark(r["bits"][::4]), f"{r['peak_bits']:.1f}", f"{r['records']:.1f}") for r in rows]
    title = "1. How much must survive?  (64 steps, a window of 16 results, 4 digits)"
    console.print(table(title, ("workload", "over the steps", "peak bits", "in records"), shown))
    console.print(
        f"The same inputs: {contrast['every_step_bits']:.1f} bits if any sum may be asked, "
        f"{contrast['final_only_bits']:.1f} if only the total is.\n"
        "(stepwise-topk: every fourth cut; `eirkit eir curve stepwise-topk` has them all)\n",
        highlight=False,
    )


def _render_retention(console: Console, rows: list[dict[str, Any]]) -> None:
    shown = [
        (r["workload"], r["h"], f"{r['eir_pressure']:.1f}", *(f"{r['miss_rate'][p]:.0%}" for p in POLICIES))
        for r in rows
    ]
    title = f"2. Does a policy keep it?  (steps with a missing input, mean of {len(TASKS)} tasks)"
    console.print(table(title, ("workload", "records", "EIR pressure", *POLICIES), shown))
    console.print(
        "EIR pressure: what must survive over what fits. Above 1 nobody is always right;\n"
        "at 1 it takes the right policy. Belady sees the future, theory what can matter.\n",
        highlight=False,
    )


def _render_recovery(console: Console, rows: list[dict[str, Any]]) -> None:
    shown = [
        (r["fan_in"], r["fetched"], f"{r['results_kept']:.0f}", f"{r['nothing_kept']:,.0f}", f"{r['depth']:.0f}")
        for r in rows
    ]
    title = f"3. And what does it cost to rebuild a lost result?  (reads, mean of {rows[0]['cones']:,} cones)"
    console.print(table(title, ("inputs a step", "fetched", "results kept", "nothing kept", "depth"), shown))
    console.print()


def _render_causes(console: Console, rows: list[dict[str, Any]], rescued: dict[str, Any]) -> None:
    shown = [
        (r["h"], f"{r['accuracy']:.0%}", *(f"{r['errors'][cause] / r['steps']:.0%}" for cause in CAUSES)) for r in rows
    ]
    title = f"4. Why was a step wrong?  (stepwise-sum, an agent that cannot miscalculate, {len(TASKS)} tasks)"
    console.print(table(title, ("records", "correct", *(cause.replace("_", " ") for cause in CAUSES)), shown))
    arms = {row["arm"]: f"{row['accuracy']:.0%}" for row in rescued["rows"]}
    console.print(
        f"Give back what was missing and {arms['oracle']} of such steps are right; another value of\n"
        f"the same length: {arms['sham']}; nothing: {arms['control']} (store-recall, a guessing agent).\n",
        highlight=False,
    )


def _spark(bits: list[float]) -> str:
    top = max(bits)
    return "".join(EIGHTHS[round(8 * value / top)] for value in bits)
