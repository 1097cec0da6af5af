"""What the studies of agent-managed retention share: the published figures, and the cells run with reference agents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from eirkit.lacuna.sweeps.cells import Access
from eirkit.lacuna.task import TaskSpec
from eirkit.studies.agents import GPT, HAIKU, MINI, OPUS, Run, Who, accuracy, in_threes, pooled, reference, run_cell

CAPACITIES = (16, 8, 4, 2)
NAMES = {"scratch": "Scratch", "lru": "LRU", "scratch-lru": "Scratch–LRU", "kv": "key–value, model-driven"}
FLOOR = "No-recovery floor"
READS: dict[str, int | None] = {"no reads": 0, "reads": None}
# Store–Recall, pooled over capacities. Scratch–LRU is LRU less the published difference.
TWO_BY_TWO = {
    "scratch": {OPUS: 0.762, GPT: 0.750, HAIKU: 0.438},
    "lru": {OPUS: 0.664, GPT: 0.650, HAIKU: 0.616},
    "scratch-lru": {OPUS: 0.405, GPT: 0.320, HAIKU: 0.325},
}
CHOICE = {OPUS: 0.098, GPT: 0.100, HAIKU: -0.178}  # Scratch − LRU
STORAGE = {HAIKU: 0.291, OPUS: 0.259, MINI: 0.290, GPT: 0.330}  # LRU − Scratch–LRU
VALLEYS = (("scratch", -0.432, HAIKU, 4), ("scratch", -0.078, OPUS, 16), ("scratch-lru", -0.688, GPT, 16))
# Write-through as published: under Scratch at h = 16, under Scratch–LRU at h = 2, and "near 0.0 under model-driven
# eviction". GPT-5.6 has none; under Scratch–LRU there is no rate but that of GPT-4.1 Mini.
WRITES = {OPUS: 1.0, MINI: 0.4, HAIKU: 0.0}
TEXT_LRU_WRITES = WRITES[MINI]
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

Cells = dict[tuple[str, str, int], list[Run]]  # condition, no reads | reads, h
Panel = dict[str, list[list[Run]]]  # condition → the cells of h = 2 and 4
Recoveries = dict[tuple[str, int], list[Run]]  # agent with its means, h


def access(condition: str, h: int, reads: int | None = 0) -> Access:
    return Access(condition=condition, policy=None, h=h, reads=reads)


def run_cells(who: Who, seeds: Sequence[int], budgets: Sequence[str] = tuple(READS)) -> Cells:
    spec = TaskSpec("store-recall")
    return {
        (condition, budget, h): run_cell(spec, access(condition, h, READS[budget]), who, seeds)
        for condition in ("floor", "belady", *NAMES)
        for budget in (budgets if condition in NAMES else budgets[:1])
        for h in CAPACITIES
        if not (READS[budget] is None and condition not in NAMES)
    }


def run_note_taker(p: float, seeds: Sequence[int], recoverer: Cells) -> Cells:
    """Return the cells of a note-taker; where nothing is to be written it is the recoverer, whose cells are taken."""
    spec = TaskSpec("store-recall")
    shared = {key: runs for key, runs in recoverer.items() if key[0] in ("floor", "lru")}
    return shared | {
        (condition, budget, h): run_cell(spec, access(condition, h, reads), reference("note-taker", p), seeds)
        for condition in ("scratch", "scratch-lru")
        for budget, reads in READS.items()
        for h in CAPACITIES
    }


# Agent, its rate of writing, its reads.
PANELS: dict[str, tuple[str, float | None, str]] = {
    "recoverer, reads": ("recoverer", None, "reads"),
    "thrasher, reads": ("thrasher", None, "reads"),
    "substituter, reads": ("substituter", None, "reads"),
    "substituter, no reads": ("substituter", None, "no reads"),
    "substituter, p = 0.4, no reads": ("substituter", TEXT_LRU_WRITES, "no reads"),
}


def run_panel(who: Who, budget: str, seeds: Sequence[int]) -> Panel:
    """Return the behaviour panel of Stepwise Maximum for one agent."""
    spec = TaskSpec("stepwise-max", m=8)
    budgets = {condition: READS[budget] if condition in NAMES else 0 for condition in MAXIMUM}
    return {
        condition: [run_cell(spec, access(condition, h, reads), who, seeds) for h in (2, 4)]
        for condition, reads in budgets.items()
    }


# Agent, retention, reads, recomputations.
MEANS: dict[str, tuple[str, str, int | None, int | None]] = {
    "recoverer, LRU, READ": ("recoverer", "lru", None, 0),
    "recoverer, LRU, RECOMPUTE": ("recoverer", "lru", 0, None),
    "recoverer, window, READ": ("recoverer", "window", None, 0),
    "quitter, LRU, READ": ("quitter", "lru", None, 0),
}


def run_recovery(who: Who, h: int, seeds: Sequence[int], how: tuple[str, int | None, int | None]) -> list[Run]:
    """Return Stepwise Maximum with recovery, its last 32 steps scored."""
    condition, reads, recomputed = how
    access = Access(condition, None, h=h, reads=reads, recomputations=recomputed, actions=MANY_ACTIONS)
    return run_cell(TaskSpec("stepwise-max", warm_up=32), access, who, seeds)


def recovery_reads(run: Run) -> float:
    return float(run.score.reads + run.score.recomputations)


def over_h(cells: Cells, condition: str, budget: str) -> list[float]:
    return pooled([cells[condition, budget, h] for h in CAPACITIES], accuracy)


def by_h(cells: Cells, condition: str, budget: str) -> dict[int, list[float]]:
    """Return the three-seed means at each capacity."""
    return {h: in_threes(cells[condition, budget, h], accuracy) for h in CAPACITIES}


def panel_accuracy(panel: Panel) -> Mapping[str, list[float]]:
    return {condition: pooled(cells, accuracy) for condition, cells in panel.items()}
