"""Studies of exact requirements by theory alone: workload table, requirement curves, the timezone-bug example."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, product
from math import ceil, log2
from types import SimpleNamespace
from typing import Any

from eirkit.eir.bisimulation import count_process
from eirkit.eir.contract import count_contract, count_signatures
from eirkit.eir.demand import full_lookup, running_maximum, stepwise_sum, store_recall
from eirkit.errors import InfrastructureError
from eirkit.lacuna.runs.cells import ARMS
from eirkit.lacuna.runs.rescue import RescueSetup, rescue
from eirkit.lacuna.runs.runner import runner_or_temporary
from eirkit.lacuna.tasks.generation import generate, graph_of, prepare
from eirkit.lacuna.tasks.task import TaskSpec, fingerprint
from eirkit.report.document import Axis, Chart, Figure, Series
from eirkit_paper.published import value_of
from eirkit_paper.studies.agents import StudyAgent, reference, study_plan
from eirkit_paper.studies.comparison import THREE, compare, exact, in_section, listed, numbers, sectioned
from eirkit_paper.study import Findings, Setting, StudyRow

GRAPHS = 18  # of Stepwise Maximum, in threes as the paper has
WHOLE = range(16, 63)  # cuts with a full window of 16 and at least two steps left
SUMS = "sec:online-agg"


def _printed(row: str, place: str = "sec:app-eir-calculations") -> float:
    return value_of(place, row, "EIR")


def _formula(row: str) -> float:
    """Return the bits of a formula that the workload table prints."""
    return value_of("tab:lacuna-workloads", row, "EIR")


def bits(workload: str, seed: int = 0, **more: Any) -> list[float]:
    """Return the exact requirement after each step of a default task."""
    spec = TaskSpec(workload, seed=seed, **more)
    curve = prepare(spec).demand(spec, graph_of(generate(spec)))
    return [value for value in curve.bits if value is not None]


def workload_table(setting: Setting) -> Findings:
    """Compare the requirement of every workload of the table at saturated cuts."""
    curves = {name: bits(name) for name in ("stepwise-sum", "running-max", "full-lookup", "store-recall")}
    recall = curves["store-recall"]
    rows = [
        exact("Stepwise Sum: 16b", _formula("Stepwise Sum"), min(curves["stepwise-sum"][t] for t in WHOLE)),
        exact("Running Maximum: b", _formula("Running Maximum"), curves["running-max"][32]),
        exact("Full Lookup: mb, m = 16", _formula("Full Lookup"), curves["full-lookup"][16]),
        exact("Store–Recall after STORE: 8b", _formula("Store–Recall after STORE"), recall[33]),
        exact("Store–Recall after RECALL: 7b", _formula("Store–Recall after RECALL"), recall[32]),
    ]
    maximum = bits("stepwise-max")
    notes = (
        f"Stepwise Maximum depends on the graph: the default task peaks at {max(maximum):.1f} bits (study "
        "`exact-requirements`). The paper leaves Stepwise Top-k open; `eirkit eir curve stepwise-topk` counts it.",
    )
    section = in_section("Bits at saturated cuts, n = 64, m = 16, q = 10^4", rows)
    return Findings(section, figures=(_curves({**curves, "stepwise-max": maximum}),), words=notes)


def _curves(curves: dict[str, list[float]]) -> Figure:
    series = tuple(Series(name, "step", tuple(range(len(found))), tuple(found)) for name, found in curves.items())
    said = ", ".join(f"{one.name} {max(numbers(one)):.1f}" for one in series)
    chart = Chart(
        "requirements",
        "Bits that must survive each cut",
        f"Peaks in bits: {said}.",
        Axis("cut: after step"),
        Axis("bits", low=0),
        series,
    )
    return Figure("requirements", "What must survive, step by step", (chart,))


def exact_requirements(setting: Setting) -> Findings:
    """Compare the exact requirements in the text, Stepwise Maximum over graphs, and enumeration with the formulas."""
    sums = bits("stepwise-sum")
    stated = [
        exact("Stepwise Sum, interior cuts", _printed("Stepwise Sum, interior cuts", SUMS), sums[32]),
        exact("Stepwise Sum, last cut", _printed("Stepwise Sum, final cut", SUMS), sums[63]),
        exact(
            "Stepwise Sum, fixed-length code", _printed("Stepwise Sum, fixed-length code", SUMS), ceil(sums[32]), "", 0
        ),
        exact("Store–Recall, peak", _printed("Store–Recall after odd cuts"), max(bits("store-recall")), digits=1),
        exact("Running Maximum", _printed("Running Maximum"), bits("running-max")[32], digits=1),
    ]
    sections = {
        "Bits, n = 64, m = 16, q = 10^4": stated,
        "Stepwise Maximum, three graphs": list(_maximum_rows()),
        "Enumeration against formulas, q = 2, 3, 4": list(_enumeration_rows()),
    }
    return Findings(sectioned(sections))


def _maximum_rows() -> Iterator[StudyRow]:
    """Yield the ends of the range over three graphs, as the paper prints them."""
    curves = [bits("stepwise-max", seed) for seed in range(GRAPHS)]
    threes = [curves[start : start + THREE] for start in range(0, GRAPHS, THREE)]
    peaks = [[max(curve) for curve in three] for three in threes]
    whole = [[curve[t] for curve in three for t in WHOLE] for three in threes]
    yield compare("lowest peak", _printed("Stepwise Maximum, lowest peak"), [min(three) for three in peaks], digits=1)
    yield compare("highest peak", _printed("Stepwise Maximum, highest peak"), [max(three) for three in peaks], digits=1)
    yield compare(
        "lowest full-window cut",
        _printed("Stepwise Maximum, lowest full-window cut"),
        [min(three) for three in whole],
        digits=1,
    )
    yield compare(
        "highest full-window cut",
        _printed("Stepwise Maximum, highest full-window cut"),
        [max(three) for three in whole],
        digits=1,
    )


def _enumeration_rows() -> Iterator[StudyRow]:
    """Yield how many configurations disagree; every prefix is enumerated for windows of up to four values."""
    sizes = [(q, m) for q in (2, 3, 4) for m in range(5)]
    lookups = sum(_labeled(q, m) != (full_lookup(q, m + 1, m, m) if m else 1) for q, m in sizes)
    yield exact("Full Lookup: configurations that disagree", 0, lookups, digits=0)
    maxima = sum(_final(q, m) != running_maximum(q, m + 1, m) for q, m in sizes)
    yield exact("Running Maximum: configurations that disagree", 0, maxima, digits=0)
    cuts = [(q, t, reach) for q in (2, 3, 4) for t in range(9) for reach in (2, 4, 10)]
    recalls = sum(_recalled(q, t, reach) != store_recall(q, t + 2, reach, t) for q, t, reach in cuts)
    yield exact("Store–Recall: configurations that disagree", 0, recalls, digits=0)
    for left, name in ((2, "interior"), (1, "terminal")):
        wrong = sum(_summed(q, m, left) != stepwise_sum(q, m + left, 4, 2, m) for q, m in sizes if m)
        yield exact(f"Stepwise Sum, {name}: configurations that disagree", 0, wrong, digits=0)


def _labeled(q: int, m: int) -> int:
    histories = list(product(range(q), repeat=m))
    asked = range(max(1, m))
    return count_signatures(_contract(histories, asked, lambda x, u: x[u] if x else 0))


def _final(q: int, m: int) -> int:
    histories = list(product(range(q), repeat=m))
    return count_signatures(_contract(histories, range(-1, q), lambda x, u: max((*x, u))) if m else _NOTHING)


def _recalled(q: int, t: int, reach: int) -> int:
    """Count the classes of Store–Recall as a process of two more steps: odd ones store any value, even ones ask.

    A state is all that was stored, in order; how long the task has run is the same for all states of a step, and the
    first part of it, since the number of stored values does not tell a STORE that is due from a RECALL.
    """

    def moves(state: tuple[int, tuple[int, ...]]) -> list[int]:
        step = state[0] + 1
        return list(range(q)) if step % 2 else [s for s in range(1, step, 2) if s >= step - reach]

    def step(state: tuple[int, tuple[int, ...]], move: int) -> tuple[int, tuple[int, tuple[int, ...]]]:
        done, stored = state
        if done % 2 == 0:
            return move, (done + 1, (*stored, move))
        return stored[move // 2], (done + 1, stored)

    states = [(t, stored) for stored in product(range(q), repeat=(t + 1) // 2)]
    return count_process(SimpleNamespace(states=states, moves=moves, step=step, horizon=2)).classes


def _summed(q: int, window: int, left: int) -> int:
    """Count the classes of Stepwise Sum as a process: any two eligible answers and any input may come next."""

    def moves(state: tuple[int, ...]) -> list[Any]:
        pairs = combinations(range(len(state)), min(2, len(state)))
        return [(pair, fresh) for pair in pairs for fresh in range(q)]

    def step(state: tuple[int, ...], move: Any) -> tuple[int, tuple[int, ...]]:
        pair, fresh = move
        answer = (fresh + sum(state[i] for i in pair)) % q
        return answer, (*state, answer)[-4:]

    states = list(product(range(q), repeat=window))
    return count_process(SimpleNamespace(states=states, moves=moves, step=step, horizon=left)).classes


def _contract(histories: Any, futures: Any, respond: Any) -> Any:
    return SimpleNamespace(histories=histories, futures=futures, respond=respond)


_NOTHING = _contract([()], [0], lambda x, u: 0)

HISTORIES = {
    "h1": ("grep parse_date", "dates.py: no offset", "settings.py: TZ on"),
    "h2": ("settings.py: TZ on", "open README", "views.py unchanged", "dates.py: no offset"),
    "h3": ("grep parse_date", "dates.py: no offset", "settings.py: TZ off"),
    "h4": ("views.py: + becomes space", "dates.py handles offset", "settings.py: TZ on"),
    "h5": ("grep parse_date", "views.py: + becomes space", "settings.py: TZ off"),
    "h6": ("views.py: + becomes space", "dates.py handles offset", "settings.py: TZ off"),
}


def _respond(history: str, future: str) -> str:
    seen = HISTORIES[history]
    if future == "which file?":
        return "dates.py" if "dates.py: no offset" in seen else "views.py"
    return "aware" if "settings.py: TZ on" in seen else "naive"


def eir_histories(setting: Setting) -> Findings:
    """Count what must be remembered of six explorations of a timezone bug."""
    counted = count_contract(_contract(list(HISTORIES), ("which file?", "return what?"), _respond))
    answers = {h: f"{_respond(h, 'which file?')}, {_respond(h, 'return what?')}" for h in HISTORIES}
    rows = [
        exact("histories", value_of("sec:eir", "Timezone bug: histories", ""), counted.histories, digits=0),
        exact("classes of answers", value_of("sec:eir", "Timezone bug: classes", ""), counted.classes, digits=0),
        exact("bits", value_of("sec:eir", "Timezone bug: EIR", ""), log2(counted.classes)),
    ]
    groups = "; ".join(", ".join(group) for group in counted.groups)
    # A cell for every history and answer: 1 where the history requires it.
    places = list(product(dict.fromkeys(answers.values()), answers))
    value = tuple(float(answers[history] == answer) for answer, history in places)
    x, y = (tuple(place[side] for place in places) for side in range(2))
    chart = Chart(
        "histories-and-answers",
        "Histories by what the rest of the task requires",
        f"Six histories, {counted.classes} groups with equal answers ({groups}): {log2(counted.classes):.0f} bits.",
        Axis("required answers", "category"),
        Axis("history", "category"),
        (Series("required", "cells", x, y, value=value),),
    )
    lines = [{"history": h, "seen": " → ".join(seen), "required": answers[h]} for h, seen in HISTORIES.items()]
    figure = Figure("eir-histories", "Different histories can require the same information", (chart,))
    return Findings(in_section("The timezone bug", rows), (listed("histories", "Histories", lines),), (figure,))


def _asked(setup: RescueSetup, agent: StudyAgent) -> Iterator[tuple[tuple[int, ...], ...]]:
    """Yield what every step asked for, as each arm's own session recorded it, under two policies and two interfaces."""
    for policy, managed in product(("fifo", "lru"), (False, True)):
        condition = replace(setup, policy=policy, managed=managed)
        planned = list(condition.cells([agent.model], agent.options, [setup.spec.seed]))
        with runner_or_temporary(agent.runner) as runner:
            results = runner.complete(study_plan(*planned))
            for why in results.losses(planned).values():
                raise InfrastructureError(why)
            traces = [results.trace(cell, setup.spec.seed) for cell, _ in planned]
        yield from (tuple(decision.required for decision in trace.decisions) for trace in traces if trace)


def framework(setting: Setting) -> Findings:
    """Walk once through the framework: fix a task, restrict access, see a miss, restore and compare."""
    agent, setup = reference("guesser"), RescueSetup(spec := TaskSpec("store-recall", n=16, m=8), 3)
    task = generate(spec)
    asked = {fingerprint(spec, references) for references in _asked(setup, agent)}
    found = {row.arm: row for row in rescue(setup, [setup.spec.seed], [agent.model], agent.options).rows}
    rows = [
        exact("A: dependency graphs asked for over all conditions", 1, len(asked), digits=0),
        exact("C: steps observed with a missing input (0 no, 1 yes)", 1, float(found["control"].steps > 0), digits=0),
        exact("D: repaired by the required result", 1.0, found["oracle"].accuracy or 0.0),
        exact("D: repaired by an irrelevant one of equal length", 0.0, found["sham"].accuracy or 0.0),
    ]
    lines = [
        {"arm": arm, "steps with a missing input": found[arm].steps, "right at those": found[arm].accuracy}
        for arm in ARMS
    ]
    words = (f"One Store–Recall task of 16 steps, graph {task.fingerprint[:12]}, three records retained, no recovery.",)
    return Findings(in_section("One task through panels A–D", rows), (listed("arms", "Arms", lines),), words=words)
