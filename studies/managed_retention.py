"""RQ3, agent-managed retention: the 2×2, valleys, behaviour, recovery, and sufficient capacity, with reference agents.

python -m studies.managed_retention [--json | --markdown]
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from eirkit.lacuna.evidence.behaviour import valley
from eirkit.lacuna.evidence.pooling import mean
from eirkit.lacuna.evidence.rescue import Arm, ArmRow, Setup, rescue
from eirkit.lacuna.model import ModelOptions
from eirkit.lacuna.task import TaskSpec
from studies.agent_rows import Row, compare, trait
from studies.agent_runs import STRONG, Run, in_threes, in_words, pooled, show
from studies.published import THREE
from studies.rescue import SLIPS, SUFFICIENT, figures
from studies.retention_cells import (
    CAPACITIES,
    CHOICE,
    FLOOR,
    GPT,
    HAIKU,
    JUST_IN_TIME,
    MAXIMUM,
    MEANS,
    MINI,
    NAMES,
    OPUS,
    PANELS,
    READS,
    RECOVERY,
    STORAGE,
    TEXT_LRU_WRITES,
    TWO_BY_TWO,
    VALLEYS,
    WRITES,
    Cells,
    Panel,
    Recoveries,
    accuracy,
    by_h,
    over_h,
    panel_accuracy,
    recovery_reads,
    run_cells,
    run_note_taker,
    run_panel,
    run_recoveries,
)
from studies.retention_shapes import retention_shapes

SEEDS = 36

KEEPS = "how well a model keeps and uses its memory is its own; the recoverer keeps every STORE that fits"
FLAWLESS = (
    "the recoverer's notes are flawless and hold STOREs only, where key–value LRU also keeps copies of RECALL answers; "
    "what text costs a model is the note-taker's trait"
)
ALL_READ = "with reads allowed the recoverer fetches whatever is missing, so that no condition is better than another"
LOST = (
    "0.487 is less than the STOREs alone would give, so even they went wrong or unanswered; 0.539 under Belady is less "
    "than our floor without it"
)
NO_VALLEY = "a valley is a model that does worse with a memory than without; with notes the recoverer never does"
WRITTEN = (
    "the note-taker has a published rate of writing, from one capacity, at all of them, drops the oldest note, and has "
    "nothing else of the model; with reads only actions are lost"
)
TAKES = (
    "the substituter takes the visible record with the nearest label, never slips and, without reads, answers as long "
    "as actions last; of the models' own 200 actions the paper says only how many reads were just in time"
)
OMITS = (
    "with reads it fetches whatever is missing while actions last, and is right; without recovery it omits what is "
    "missing, which loses most maxima"
)
HABITS = (
    "a habit of the model; the recoverer reads what it needs once, the thrasher three times, and the note-taker "
    "writes at the rate it is given"
)
GIVES_UP = "a perfect recoverer never goes on without; the quitter (p = 0.5, as shipped) does at every second chance"
COUNTED = (
    "READ brings each missing reference once, at most 2 · 62 + 1 = 125 a run, and RECOMPUTE evaluates its whole cone; "
    "184.0 and 322.3 exceed the former, so the published count has rereads or reads inside the cone. Which, and "
    "under which retention, the paper does not say"
)


def two_by_two_rows(cells: Cells, takers: dict[float, Cells]) -> Iterator[Row]:
    for condition, by_model in TWO_BY_TWO.items():
        for model, published in by_model.items():
            label = f"{NAMES[condition]}: accuracy"
            for budget in READS:
                threes = over_h(cells, condition, budget)
                yield compare(label, published, threes, (model, f"recoverer, {budget}"), KEEPS)
            for budget in READS if model in WRITES and condition != "lru" else ():
                threes = over_h(takers[WRITES[model]], condition, budget)
                yield compare(label, published, threes, (model, _taker(budget)), WRITTEN)


def _taker(budget: str) -> str:
    return f"note-taker, its rate, {budget}"


def effect_rows(cells: Cells, takers: dict[float, Cells]) -> Iterator[Row]:
    """Yield both effects of the 2×2, who chooses and in what form it is kept, by the model whose rate ours has."""
    contrasts = (
        ("Scratch − LRU: accuracy", CHOICE, "scratch", "lru"),
        ("LRU − Scratch–LRU: accuracy", STORAGE, "lru", "scratch-lru"),
    )
    for label, by_model, better, worse in contrasts:
        for model, published in by_model.items():
            for budget in READS:
                all_read = ALL_READ if budget == "reads" else ""
                alone = FLAWLESS if better == "lru" else KEEPS
                apart = _apart(cells, better, worse, budget)
                yield compare(label, published, apart, (model, f"recoverer, {budget}"), all_read or alone)
                if model in WRITES:
                    apart = _apart(takers[WRITES[model]], better, worse, budget)
                    yield compare(label, published, apart, (model, _taker(budget)), WRITTEN)


def _apart(cells: Cells, better: str, worse: str, budget: str) -> list[float]:
    return [a - b for a, b in zip(over_h(cells, better, budget), over_h(cells, worse, budget), strict=True)]


def capacity_rows(cells: Cells, takers: dict[float, Cells]) -> Iterator[Row]:
    for condition, h, published, model in (
        ("scratch", 2, 0.487, OPUS),
        ("belady", 2, 0.539, OPUS),
    ):
        threes = in_threes(cells[condition, "no reads", h], accuracy)
        label = f"{NAMES.get(condition, 'Belady')}, h = {h}: accuracy"
        yield trait(label, published, threes, (model, "recoverer, no reads"), LOST)
    for condition, published, model in (("scratch", 0.953, HAIKU), ("belady", 1.0, MINI)):
        h = 16 if condition == "scratch" else 8
        threes = in_threes(cells[condition, "no reads", h], accuracy)
        label = f"{NAMES.get(condition, 'Belady')}, h = {h}: accuracy"
        yield compare(label, published, threes, (model, "recoverer, no reads"), KEEPS)
    for condition, published, model, _ in VALLEYS:
        own = takers[WRITES.get(model, TEXT_LRU_WRITES)]
        for budget in READS:
            label = f"{NAMES[condition]}: valley"
            depths = _valleys(cells, condition, budget)
            yield compare(label, published, depths, (model, f"recoverer, {budget}"), NO_VALLEY)
            yield compare(label, published, _valleys(own, condition, budget), (model, _taker(budget)), WRITTEN)


def _valleys(cells: Cells, condition: str, budget: str) -> list[float]:
    """Return the depth against the floor for each three of seeds."""
    curves, floors = by_h(cells, condition, budget).values(), by_h(cells, "floor", "no reads").values()
    both = zip(zip(*curves, strict=True), zip(*floors, strict=True), strict=True)
    return [valley(dict(zip(CAPACITIES, a, strict=True)), dict(zip(CAPACITIES, b, strict=True))).depth for a, b in both]


def behaviour_rows(agents: dict[str, Cells]) -> Iterator[Row]:
    habits: tuple[tuple[str, str, int, float, str, Callable[[Run], float | None]], ...] = (
        ("just-in-time", "scratch", 2, 0.727, OPUS, lambda run: run.behaviour.just_in_time_rate),
        ("just-in-time", "scratch", 2, 0.471, HAIKU, lambda run: run.behaviour.just_in_time_rate),
        ("redundant", "scratch", 2, 0.35, f"{MINI}, {GPT}: 0.3–0.4", lambda run: run.behaviour.redundant_rate),
        ("thrash episodes", "lru", 2, 12, "all, peak: 12+", lambda run: float(run.behaviour.thrash_episodes)),
        ("thrash episodes", "scratch", 2, 12, f"{OPUS}, peak: 12+", lambda run: float(run.behaviour.thrash_episodes)),
        ("write-through", "scratch", 16, WRITES[OPUS], OPUS, lambda run: run.behaviour.write_through_rate),
        ("write-through", "scratch-lru", 2, WRITES[MINI], MINI, lambda run: run.behaviour.write_through_rate),
    )
    for name, condition, h, published, model, figure in habits:
        for agent, cells in agents.items():
            threes = in_threes(cells[condition, "reads", h], figure)
            if threes:
                yield trait(f"{NAMES[condition]}, h = {h}: {name}", published, threes, (model, agent), HABITS)


def maximum_rows(panels: dict[str, Panel]) -> Iterator[Row]:
    """Yield the behaviour table of Stepwise Maximum."""
    for name, panel in panels.items():
        reason = TAKES if name.startswith("substituter") else OMITS
        for condition, threes in panel_accuracy(panel).items():
            label = f"{NAMES.get(condition, FLOOR)}: accuracy"
            for model, published in MAXIMUM[condition].items():
                yield compare(label, published, threes, (model, name), reason)
        for condition, by_model in JUST_IN_TIME.items() if PANELS[name][2] == "reads" else ():
            timely = pooled(panel[condition], lambda run: run.behaviour.just_in_time_rate)
            for model, published in by_model.items():
                yield trait(f"{NAMES[condition]}: just-in-time", published, timely, (model, name), HABITS)


def recovery_rows(runs: Recoveries) -> Iterator[Row]:
    """Yield Stepwise Maximum with recovery, its last 32 steps scored; reads are those of the whole run."""
    for h, (right, reads) in RECOVERY.items():
        for name in MEANS:
            models = ("models that the paper does not name", name)
            yield compare(f"m/h = {16 // h}: accuracy", right, in_threes(runs[name, h], accuracy), models, GIVES_UP)
            spent = in_threes(runs[name, h], recovery_reads)
            yield compare(f"m/h = {16 // h}: recovery reads", reads, spent, models, COUNTED)


def sufficient_rows(seeds: Sequence[int]) -> Iterator[Row]:
    """Yield Stepwise Sum where every eligible answer fits, as the rescue study runs it."""
    spec, models = TaskSpec("stepwise-sum"), (STRONG, "calculator")
    groups = [seeds[start : start + THREE] for start in range(0, len(seeds) - THREE + 1, THREE)]
    made: dict[tuple[str, int], list[ArmRow]] = {}
    for (policy, h, arm), (right, consistent, missed) in SUFFICIENT.items():
        setup = Setup(spec, h, policy, "submitted", managed=True)
        if (policy, h) not in made:
            options = ModelOptions()
            made[policy, h] = [
                r for seeds in groups for r in rescue(setup, seeds, ["reference/calculator"], options).rows
            ]
        rows = [row for row in made[policy, h] if row.arm == arm]
        name = f"{'exact window' if policy == 'window' else 'LRU'}, h = {h}{RESTORED[arm]}"
        yield compare(f"{name}: accuracy", right, figures(rows, lambda row: row.trajectory_accuracy), models, SLIPS)
        own = figures(rows, lambda row: row.self_consistent_accuracy)
        yield compare(f"{name}: self-consistent", consistent, own, models, SLIPS)
        yield compare(f"{name}: steps with a miss", missed, figures(rows, lambda row: row.missed_steps), models, SLIPS)


RESTORED: dict[Arm, str] = {"control": "", "oracle": " + correct restoration", "sham": " + sham"}


def cell_table(agents: dict[str, Cells]) -> list[dict[str, Any]]:
    """Return every cell of the 2×2 with its behaviour, pooled over all seeds."""
    found = []
    for agent, cells in agents.items():
        for (condition, budget, h), runs in cells.items():
            entry = {"cell": f"{agent}, {condition}, {budget}", "h": h}
            found.append({**entry, **{name: mean(figure(run) for run in runs) for name, figure in CELL.items()}})
    return found


CELL: dict[str, Callable[[Run], float | None]] = {
    "accuracy": accuracy,
    "miss rate": lambda run: run.score.miss_rate,
    "answered": lambda run: run.score.answered_fraction,
    "at limit": lambda run: float(run.score.max_turn),
    "just in time": lambda run: run.behaviour.just_in_time_rate,
    "redundant": lambda run: run.behaviour.redundant_rate,
    "thrash (a)": lambda run: float(run.behaviour.thrash_episodes),
    "thrash (b)": lambda run: float(run.behaviour.thrash_cycles),
    "write-through": lambda run: run.behaviour.write_through_rate,
}


def valley_table(agents: dict[str, Cells]) -> list[dict[str, Any]]:
    """Return where each curve lies lowest against the recoverer's floor, pooled over all seeds."""
    curves: dict[tuple[str, str, str], dict[int, float]] = {}
    for agent, cells in agents.items():
        for (condition, budget, h), runs in cells.items():
            curves.setdefault((agent, condition, budget), {})[h] = mean(map(accuracy, runs)) or 0.0
    floor, found = curves["recoverer", "floor", "no reads"], []
    for name, curve in curves.items():
        lowest = valley(curve, floor)
        found.append({"curve": ", ".join(name), "valley": lowest.depth, "at h": lowest.h, "dip": lowest.dip})
    return found


FURTHER = {
    "shapes": "Shapes: signs, orders, trends and places",
    "valleys": "Valleys on Store–Recall: lowest accuracy − floor",
    "cells": "Store–Recall, every cell, a run of 64 steps and at most 200 actions",
}


def study(seeds: Sequence[int] = range(SEEDS)) -> dict[str, Any]:
    """Return the comparison as one document."""
    cells, thrasher = run_cells("recoverer", seeds), run_cells("thrasher", seeds, ["reads"])
    takers = {p: run_note_taker(p, seeds, cells) for p in WRITES.values()}
    taken = {f"note-taker, p = {p:.1f}": own for p, own in takers.items()}
    panels, recoveries = {name: run_panel(name, seeds) for name in PANELS}, run_recoveries(seeds)
    sections = {
        "Store–Recall, the 2×2 pooled over h = 16, 8, 4, 2": list(two_by_two_rows(cells, takers)),
        "Effects": list(effect_rows(cells, takers)),
        "Capacity and valleys": list(capacity_rows(cells, takers)),
        "Behaviour with reads": list(behaviour_rows({"recoverer": cells, "thrasher": thrasher, **taken})),
        "Stepwise Maximum, m = 8, pooled over h = 2 and 4": list(maximum_rows(panels)),
        "Stepwise Maximum with recovery, m = 16, the last 32 steps": list(recovery_rows(recoveries)),
        "Stepwise Sum at sufficient capacity, m = 16": list(sufficient_rows(seeds)),
    }
    agents = {"recoverer": cells, "thrasher": thrasher}
    agents |= {name: _written(own) for name, own in taken.items()}
    further = {
        "shapes": list(retention_shapes(cells, takers, thrasher, panels, recoveries)),
        "valleys": valley_table(agents),
        "cells": cell_table(agents),
    }
    title = f"Agent-managed retention: m = 16, n = 64, {len(seeds)} seeds"
    return in_words("managed-retention", title, sections, seeds=len(seeds), **further)


def _written(cells: Cells) -> Cells:
    """Return the cells in which the agent writes; the others are the recoverer's and listed as such."""
    return {key: runs for key, runs in cells.items() if key[0].startswith("scratch")}


if __name__ == "__main__":
    show(study(), FURTHER, sys.argv[1:])
