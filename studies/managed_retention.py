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
from eirkit.lacuna.sweeps.cells import Access
from eirkit.lacuna.task import TaskSpec
from studies.agent_rows import Row, compare, trait
from studies.agent_runs import STRONG, Run, in_threes, in_words, pooled, run_cell, show
from studies.published import THREE
from studies.rescue import SLIPS, SUFFICIENT, figures

SEEDS = 36
CAPACITIES = (16, 8, 4, 2)
NAMES = {"scratch": "Scratch", "lru": "LRU", "scratch-lru": "Scratch–LRU", "kv": "key–value, model-driven"}
READS: dict[str, int | None] = {"no reads": 0, "reads": None}
GPT, OPUS, HAIKU, MINI = "GPT-5.6", "Claude Opus 4.6", "Claude Haiku 4.5", "GPT-4.1 Mini"
# Store–Recall, pooled over capacities. Scratch–LRU is LRU less the published difference.
TWO_BY_TWO = {
    "scratch": {OPUS: 0.762, GPT: 0.750, HAIKU: 0.438},
    "lru": {OPUS: 0.664, GPT: 0.650, HAIKU: 0.616},
    "scratch-lru": {OPUS: 0.405, GPT: 0.320, HAIKU: 0.325},
}
STORAGE = {HAIKU: 0.291, OPUS: 0.259, MINI: 0.290, GPT: 0.330}
VALLEYS = (("scratch", -0.432, HAIKU), ("scratch", -0.078, OPUS), ("scratch-lru", -0.688, GPT))
# Stepwise Maximum, m = 8, pooled over h = 2 and 4: model → accuracy; then just-in-time rate.
MAXIMUM = {
    "floor": {GPT: 0.755, OPUS: 0.804, HAIKU: 0.654, MINI: 0.401},
    "scratch": {GPT: 0.315, OPUS: 0.274, HAIKU: 0.227, MINI: 0.075},
    "lru": {GPT: 0.224, OPUS: 0.232, HAIKU: 0.182, MINI: 0.250},
    "scratch-lru": {GPT: 0.089, OPUS: 0.099, HAIKU: 0.083, MINI: 0.028},
}
JUST_IN_TIME = {
    "scratch": {GPT: 1.000, OPUS: 0.963, HAIKU: 0.881, MINI: 0.990},
    "lru": {GPT: 1.000, OPUS: 0.979, HAIKU: 0.738, MINI: 1.000},
    "scratch-lru": {GPT: 1.000, OPUS: 0.955, HAIKU: 0.824, MINI: 0.986},
}
# Recovery-enabled Stepwise Maximum: h → accuracy over the last 32 steps, recovery reads.
RECOVERY = {16: (1.000, 9.3), 8: (0.948, 98.3), 4: (0.938, 184.0), 2: (0.854, 322.3)}
MANY_ACTIONS = 1000  # 322 reads do not fit into the usual 200

KEEPS = "how well a model keeps and uses its memory is its own; the recoverer keeps every STORE that fits"
FLAWLESS = (
    "the recoverer's notes are flawless and hold STOREs only, where key–value LRU also keeps copies of RECALL answers; "
    "the published advantage of key–value must come from the models' use of text, which a scripted agent masters"
)
ALL_READ = "with reads allowed the recoverer fetches whatever is missing, so that no condition is better than another"
LOST = (
    "0.487 is less than the STOREs alone would give, so even they went wrong or unanswered; 0.539 under Belady is less "
    "than our floor without it"
)
NO_VALLEY = "a valley is a model that does worse with a memory than without; with notes the recoverer never does"
HABITS = "a habit of the model; the recoverer reads what it needs once, the thrasher three times"
SPENT = (
    "the published models answer more with no memory to look after than with one, as if actions ran out; the "
    "recoverer spends as few as it can, and without recovery it omits what is missing, which loses most maxima"
)
GIVES_UP = "a perfect recoverer never goes on without; the quitter (p = 0.5, as shipped) does at every second chance"
COUNTED = (
    "READ brings each missing reference once, at most 2 · 62 + 1 = 125 a run, and RECOMPUTE evaluates its whole cone; "
    "184.0 and 322.3 exceed the former, so the published count has rereads or reads inside the cone. Which, and "
    "under which retention, the paper does not say"
)

Cells = dict[tuple[str, str, int], list[Run]]  # condition, no reads | reads, h


def access(condition: str, h: int, reads: int | None = 0) -> Access:
    return Access(condition=condition, policy=None, h=h, reads=reads)


def run_cells(agent: str, seeds: Sequence[int], budgets: Sequence[str] = tuple(READS)) -> Cells:
    spec = TaskSpec("store-recall")
    return {
        (condition, budget, h): run_cell(spec, access(condition, h, READS[budget]), agent, seeds)
        for condition in ("floor", "belady", *NAMES)
        for budget in (budgets if condition in NAMES else budgets[:1])
        for h in CAPACITIES
        if not (READS[budget] is None and condition not in NAMES)
    }


def accuracy(run: Run) -> float:
    return run.score.accuracy


def over_h(cells: Cells, condition: str, budget: str) -> list[float]:
    return pooled([cells[condition, budget, h] for h in CAPACITIES], accuracy)


def two_by_two_rows(cells: Cells) -> Iterator[Row]:
    for condition, by_model in TWO_BY_TWO.items():
        for model, published in by_model.items():
            for budget in READS:
                threes = over_h(cells, condition, budget)
                yield trait(f"{NAMES[condition]}: accuracy", published, threes, (model, f"recoverer, {budget}"), KEEPS)


def effect_rows(cells: Cells) -> Iterator[Row]:
    """Yield both effects of the 2×2: who chooses, and in what form it is kept."""
    for budget in READS:
        scratch, lru, text = (over_h(cells, condition, budget) for condition in TWO_BY_TWO)
        chosen = [a - b for a, b in zip(scratch, lru, strict=True)]
        stored = [a - b for a, b in zip(lru, text, strict=True)]
        agent, all_read = f"recoverer, {budget}", ALL_READ if budget == "reads" else ""
        label = "Scratch − LRU: accuracy"
        yield compare(label, 0.099, chosen, (f"mean of {OPUS}, {GPT}", agent), all_read or KEEPS)
        yield trait(label, -0.178, chosen, (HAIKU, agent), KEEPS)
        published = sum(STORAGE.values()) / len(STORAGE)
        yield compare(
            "LRU − Scratch–LRU: accuracy", published, stored, ("mean of all four models", agent), all_read or FLAWLESS
        )


def capacity_rows(cells: Cells) -> Iterator[Row]:
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
    for condition, published, model in VALLEYS:
        for budget in READS:
            agent = f"recoverer, {budget}"
            depths = _valleys(cells, condition, budget)
            yield trait(f"{NAMES[condition]}: valley", published, depths, (model, agent), NO_VALLEY)


def _valleys(cells: Cells, condition: str, budget: str) -> list[float]:
    """Return the depth against the floor for each three of seeds."""
    curves = [in_threes(cells[condition, budget, h], accuracy) for h in CAPACITIES]
    floors = [in_threes(cells["floor", "no reads", h], accuracy) for h in CAPACITIES]
    both = zip(zip(*curves, strict=True), zip(*floors, strict=True), strict=True)
    return [valley(dict(zip(CAPACITIES, a, strict=True)), dict(zip(CAPACITIES, b, strict=True))).depth for a, b in both]


def behaviour_rows(agents: dict[str, Cells]) -> Iterator[Row]:
    habits: tuple[tuple[str, str, int, float, str, Callable[[Run], float | None]], ...] = (
        ("just-in-time", "scratch", 2, 0.727, OPUS, lambda run: run.behaviour.just_in_time_rate),
        ("just-in-time", "scratch", 2, 0.471, HAIKU, lambda run: run.behaviour.just_in_time_rate),
        ("redundant", "scratch", 2, 0.35, f"{MINI}, {GPT}: 0.3–0.4", lambda run: run.behaviour.redundant_rate),
        ("thrash episodes", "lru", 2, 12, "all, peak: 12+", lambda run: float(run.behaviour.thrash_episodes)),
        ("thrash episodes", "scratch", 2, 12, f"{OPUS}, peak: 12+", lambda run: float(run.behaviour.thrash_episodes)),
        ("write-through", "scratch", 16, 1.0, OPUS, lambda run: run.behaviour.write_through_rate),
    )
    for name, condition, h, published, model, figure in habits:
        for agent, cells in agents.items():
            threes = in_threes(cells[condition, "reads", h], figure)
            if threes:
                yield trait(f"{NAMES[condition]}, h = {h}: {name}", published, threes, (model, agent), HABITS)


def maximum_rows(seeds: Sequence[int]) -> Iterator[Row]:
    """Yield the behaviour table of Stepwise Maximum."""
    spec, agent = TaskSpec("stepwise-max", m=8), "recoverer"
    cells = {
        condition: [
            run_cell(spec, access(condition, h, None if condition in NAMES else 0), "recoverer", seeds) for h in (2, 4)
        ]
        for condition in MAXIMUM
    }
    for condition, by_model in MAXIMUM.items():
        for model, published in by_model.items():
            label = f"{NAMES.get(condition, 'No-recovery floor')}: accuracy"
            yield trait(label, published, pooled(cells[condition], accuracy), (model, agent), KEEPS)
    for condition, by_model in JUST_IN_TIME.items():
        timely = pooled(cells[condition], lambda run: run.behaviour.just_in_time_rate)
        for model, published in by_model.items():
            yield trait(f"{NAMES[condition]}: just-in-time", published, timely, (model, agent), HABITS)
    floor, lru = (pooled(cells[condition], accuracy) for condition in ("floor", "lru"))
    published = sum(MAXIMUM["floor"][model] - MAXIMUM["lru"][model] for model in MAXIMUM["lru"]) / len(MAXIMUM["lru"])
    apart = [a - b for a, b in zip(floor, lru, strict=True)]
    yield compare("No-recovery floor − LRU: accuracy", published, apart, ("mean of all four models", agent), SPENT)


MEANS: dict[str, tuple[str, str, int | None, int | None]] = {
    "recoverer, LRU, READ": ("recoverer", "lru", None, 0),
    "recoverer, LRU, RECOMPUTE": ("recoverer", "lru", 0, None),
    "recoverer, window, READ": ("recoverer", "window", None, 0),
    "quitter, LRU, READ": ("quitter", "lru", None, 0),
}


def recovery_rows(seeds: Sequence[int]) -> Iterator[Row]:
    """Yield Stepwise Maximum with recovery, its last 32 steps scored; reads are those of the whole run."""
    spec, unnamed = TaskSpec("stepwise-max", warm_up=32), "models that the paper does not name"
    for h, (right, reads) in RECOVERY.items():
        for name, (agent, condition, direct, recomputed) in MEANS.items():
            given = Access(condition, None, h=h, reads=direct, recomputations=recomputed, actions=MANY_ACTIONS)
            runs = run_cell(spec, given, agent, seeds)
            models = (unnamed, name)
            yield compare(f"m/h = {16 // h}: accuracy", right, in_threes(runs, accuracy), models, GIVES_UP)
            spent = in_threes(runs, lambda run: float(run.score.reads + run.score.recomputations))
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
    "valleys": "Valleys on Store–Recall: lowest accuracy − floor",
    "cells": "Store–Recall, every cell, a run of 64 steps and at most 200 actions",
}


def study(seeds: Sequence[int] = range(SEEDS)) -> dict[str, Any]:
    """Return the comparison as one document."""
    cells = run_cells("recoverer", seeds)
    agents = {"recoverer": cells, "thrasher": run_cells("thrasher", seeds, ["reads"])}
    sections = {
        "Store–Recall, the 2×2 pooled over h = 16, 8, 4, 2": list(two_by_two_rows(cells)),
        "Effects": list(effect_rows(cells)),
        "Capacity and valleys": list(capacity_rows(cells)),
        "Behaviour with reads": list(behaviour_rows(agents)),
        "Stepwise Maximum, m = 8, pooled over h = 2 and 4": list(maximum_rows(seeds)),
        "Stepwise Maximum with recovery, m = 16, the last 32 steps": list(recovery_rows(seeds)),
        "Stepwise Sum at sufficient capacity, m = 16": list(sufficient_rows(seeds)),
    }
    further = {"valleys": valley_table(agents), "cells": cell_table(agents)}
    title = f"Agent-managed retention: m = 16, n = 64, {len(seeds)} seeds"
    return in_words("managed-retention", title, sections, seeds=len(seeds), **further)


if __name__ == "__main__":
    show(study(), FURTHER, sys.argv[1:])
