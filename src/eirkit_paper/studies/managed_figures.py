"""Published figures and runs shared by the studies of agent-managed retention in managed.py."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from eirkit.lacuna.runs.runner import Runner
from eirkit.lacuna.tasks.task import TaskSpec
from eirkit.records.settings import Access
from eirkit_paper.published import value_of, values_of
from eirkit_paper.studies import comparison as shapes
from eirkit_paper.studies.agents import (
    GPT,
    HAIKU,
    MINI,
    OPUS,
    Run,
    StudyAgent,
    accuracy,
    in_threes,
    pooled,
    reference,
    run_cell,
)
from eirkit_paper.studies.comparison import Judged, Threes, above, below, lowest_at, never_rises, ordered

CAPACITIES = (16, 8, 4, 2)
NAMES = {"scratch": "Scratch", "lru": "LRU", "scratch-lru": "Scratch–LRU", "kv": "key–value, model-driven"}
FLOOR = "No-recovery floor"
READS: dict[str, int | None] = {"no reads": 0, "reads": None}
PLACE, PANEL = "sec:results-rq3", "tab:rq3-stepwise-max-behaviors"


def _two_by_two(column: str, *models: str) -> dict[str, float]:
    return {model: value_of(PLACE, f"2×2, {model}", column) for model in models}


# Store–Recall, pooled over capacities: Scratch − LRU, LRU − Scratch–LRU, and the cells of the table.
CHOICE = _two_by_two("Scratch − LRU", OPUS, GPT, HAIKU)
STORAGE = _two_by_two("LRU − Scratch–LRU", HAIKU, OPUS, MINI, GPT)
_KEYS = _two_by_two("LRU", OPUS, GPT, HAIKU)
TWO_BY_TWO = {
    "scratch": _two_by_two("Scratch", OPUS, GPT, HAIKU),
    "lru": _KEYS,
    "scratch-lru": {model: round(own - STORAGE[model], 3) for model, own in _KEYS.items()},  # not printed: it follows
}
VALLEYS = tuple(
    (condition, value_of(PLACE, f"Valley, {model}", f"{condition}, cap = {h}"), model, h)
    for condition, model, h in (("scratch", HAIKU, 4), ("scratch", OPUS, 16), ("scratch-lru", GPT, 16))
)
# Write-through as published: under Scratch at h = 16, under Scratch–LRU at h = 2, and "near 0.0 under model-driven
# eviction". GPT-5.6 has none; under Scratch–LRU there is no rate but that of GPT-4.1 Mini.
WRITES = {
    model: value_of(PLACE, f"Write-through, {model}", f"{condition}, cap = {h}")
    for model, condition, h in ((OPUS, "scratch", 16), (MINI, "scratch-lru", 2), (HAIKU, "scratch", "any"))
}
TEXT_LRU_WRITES = WRITES[MINI]


def _panel(column: str, *conditions: str) -> dict[str, dict[str, float]]:
    shown = {"floor": FLOOR, **NAMES}
    models = (GPT, OPUS, HAIKU, MINI)
    return {one: {model: value_of(PANEL, f"{model}, {shown[one]}", column) for model in models} for one in conditions}


# Stepwise Maximum, m = 8, pooled over h = 2 and 4: model → accuracy; then just-in-time rate.
MAXIMUM = _panel("Accuracy", "floor", "scratch", "lru", "scratch-lru")
JUST_IN_TIME = _panel("JIT rate", "scratch", "lru", "scratch-lru")
# Recovery-enabled Stepwise Maximum: h → accuracy over the last 32 steps, recovery reads.
RECOVERY = {
    h: values_of(PLACE, f"Recovery-enabled Maximum, m/h = {16 // h}", "accuracy", "recovery reads") for h in CAPACITIES
}
MANY_ACTIONS = 1000  # 322 reads do not fit into the usual 200

Cells = dict[tuple[str, str, int], list[Run]]  # condition, no reads | reads, h
Panel = dict[str, list[list[Run]]]  # condition → the cells of h = 2 and 4
Recoveries = dict[tuple[str, int], list[Run]]  # agent with its means, h


def access(condition: str, h: int, reads: int | None = 0) -> Access:
    return Access(condition=condition, policy=None, h=h, reads=reads)


def run_cells(agent: StudyAgent, seeds: Sequence[int], budgets: Sequence[str] = tuple(READS)) -> Cells:
    spec = TaskSpec("store-recall")
    return {
        (condition, budget, h): run_cell(spec, access(condition, h, READS[budget]), agent, seeds)
        for condition in ("floor", "belady", *NAMES)
        for budget in (budgets if condition in NAMES else budgets[:1])
        for h in CAPACITIES
        if not (READS[budget] is None and condition not in NAMES)
    }


def run_note_taker(p: float, seeds: Sequence[int], recoverer: Cells, runner: Runner | None = None) -> Cells:
    """Return the cells of a note-taker; where nothing is to be written it is the recoverer, whose cells are taken."""
    spec, agent = TaskSpec("store-recall"), reference("note-taker", p, runner)
    shared = {key: runs for key, runs in recoverer.items() if key[0] in ("floor", "lru")}
    return shared | {
        (condition, budget, h): run_cell(spec, access(condition, h, reads), agent, seeds)
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


def run_panel(agent: StudyAgent, budget: str, seeds: Sequence[int]) -> Panel:
    """Return the behavior panel of Stepwise Maximum for one agent."""
    spec = TaskSpec("stepwise-max", m=8)
    budgets = {condition: READS[budget] if condition in NAMES else 0 for condition in MAXIMUM}
    return {
        condition: [run_cell(spec, access(condition, h, reads), agent, seeds) for h in (2, 4)]
        for condition, reads in budgets.items()
    }


# Agent, retention, reads, recomputations.
MEANS: dict[str, tuple[str, str, int | None, int | None]] = {
    "recoverer, LRU, READ": ("recoverer", "lru", None, 0),
    "recoverer, LRU, RECOMPUTE": ("recoverer", "lru", 0, None),
    "recoverer, window, READ": ("recoverer", "window", None, 0),
    "quitter, LRU, READ": ("quitter", "lru", None, 0),
}


def run_recovery(agent: StudyAgent, h: int, seeds: Sequence[int], how: tuple[str, int | None, int | None]) -> list[Run]:
    """Return Stepwise Maximum with recovery, its last 32 steps scored."""
    condition, reads, recomputed = how
    access = Access(condition, None, h=h, reads=reads, recomputations=recomputed, actions=MANY_ACTIONS)
    return run_cell(TaskSpec("stepwise-max", warm_up=32), access, agent, seeds)


def recovery_reads(run: Run) -> float:
    return float(run.score.reads + run.score.recomputations)


def over_h(cells: Cells, condition: str, budget: str) -> list[float]:
    return pooled([cells[condition, budget, h] for h in CAPACITIES], accuracy)


def by_h(cells: Cells, condition: str, budget: str) -> dict[int, list[float]]:
    """Return the three-seed means at each capacity."""
    return {h: in_threes(cells[condition, budget, h], accuracy) for h in CAPACITIES}


def panel_accuracy(panel: Panel) -> Mapping[str, list[float]]:
    return {condition: pooled(cells, accuracy) for condition, cells in panel.items()}


Shape = dict[str, str]


def store_recall_shapes(recoverer: Cells, takers: dict[float, Cells], thrasher: Cells) -> Iterator[Shape]:
    """Yield the shapes of the 2×2, the valleys and capacity scaling with their verdicts."""
    yield from choice_shapes(recoverer, takers)
    yield from storage_shapes(recoverer, takers)
    yield from order_shapes(recoverer, takers)
    yield from valley_shapes(takers)
    yield from capacity_shapes(recoverer, takers)
    yield from thrash_shapes(thrasher)


def panel_shapes(panels: dict[str, Panel]) -> Iterator[Shape]:
    """Yield the shapes of the behavior table of Stepwise Maximum."""
    yield from floor_shapes(panels)
    yield from panel_orders(panels)


def shape(claim: str, published: str, agent: str, found: dict[str, Judged]) -> Shape:
    return shapes.shape(claim, published, found, **{"ours by": f"reference/{agent}"})


def _taker(p: float) -> str:
    return f"note-taker, p = {p:.1f}"


def _named(by_model: dict[str, float], *models: str) -> str:
    return ", ".join(f"{by_model[model]:+.3f} ({model})" for model in models)


def _in_order(conditions: tuple[str, ...], published: dict[str, dict[str, float]], *models: str) -> str:
    figures = [" > ".join(f"{published[condition][model]:.3f}" for condition in conditions) for model in models]
    return ", ".join(f"{figure} ({model})" for figure, model in zip(figures, models, strict=True))


def _contrast(judge: Callable[[Threes, Threes], Judged], cells: Cells, one: str, other: str) -> dict[str, Judged]:
    return {budget: judge(over_h(cells, one, budget), over_h(cells, other, budget)) for budget in READS}


def choice_shapes(recoverer: Cells, takers: dict[float, Cells]) -> Iterator[Shape]:
    """Who chooses: better than LRU for the capable models, worse for Haiku."""
    gains, capable = "Store–Recall: Scratch above LRU", takers[WRITES[OPUS]]
    found = _contrast(above, recoverer, "scratch", "lru")
    yield shape(gains, _named(CHOICE, OPUS, GPT), "recoverer", found)
    found = _contrast(above, capable, "scratch", "lru")
    yield shape(gains, _named(CHOICE, OPUS), _taker(WRITES[OPUS]), found)
    found = _contrast(below, takers[WRITES[HAIKU]], "scratch", "lru")
    label = "Store–Recall: Scratch below LRU"
    yield shape(label, _named(CHOICE, HAIKU), _taker(WRITES[HAIKU]), found)


def storage_shapes(recoverer: Cells, takers: dict[float, Cells]) -> Iterator[Shape]:
    """In what form: key–value above text for all models."""
    label = "Store–Recall: key–value above text (LRU − Scratch–LRU)"
    found = _contrast(above, recoverer, "lru", "scratch-lru")
    yield shape(label, _named(STORAGE, *STORAGE), "recoverer", found)
    for model, p in WRITES.items():
        found = _contrast(above, takers[p], "lru", "scratch-lru")
        yield shape(label, _named(STORAGE, model), _taker(p), found)


def order_shapes(recoverer: Cells, takers: dict[float, Cells]) -> Iterator[Shape]:
    """The three published cells of the 2×2, from best to worst."""
    capable, small = ("scratch", "lru", "scratch-lru"), ("lru", "scratch", "scratch-lru")
    cells = dict.fromkeys(capable, recoverer) | {"scratch-lru": takers[TEXT_LRU_WRITES]}
    found = {b: ordered({NAMES[c]: over_h(cells[c], c, b) for c in capable}) for b in READS}
    agents, published = (
        f"recoverer; {_taker(TEXT_LRU_WRITES)}, in Scratch–LRU",
        _in_order(capable, TWO_BY_TWO, OPUS, GPT),
    )
    yield shape("Store–Recall: Scratch > LRU > Scratch–LRU", published, agents, found)
    own, published = takers[WRITES[HAIKU]], _in_order(small, TWO_BY_TWO, HAIKU)
    found = {b: ordered({NAMES[c]: over_h(own, c, b) for c in small}) for b in READS}
    yield shape("Store–Recall: LRU > Scratch > Scratch–LRU", published, _taker(WRITES[HAIKU]), found)


def valley_shapes(takers: dict[float, Cells]) -> Iterator[Shape]:
    for condition, depth, model, h in VALLEYS:
        own = takers[p := WRITES.get(model, TEXT_LRU_WRITES)]
        floor = by_h(own, "floor", "no reads")
        found = {budget: lowest_at(h, by_h(own, condition, budget), floor) for budget in READS}
        label = f"Store–Recall: {NAMES[condition]} below the floor, most at h = {h}"
        yield shape(label, f"{depth:+.3f} ({model})", _taker(p), found)


def _at(curve: Mapping[int, Threes]) -> dict[str, Threes]:
    return {f"h = {h}:": threes for h, threes in curve.items()}


def capacity_shapes(recoverer: Cells, takers: dict[float, Cells]) -> Iterator[Shape]:
    label, published = "Store–Recall: Scratch never gains as h falls", "graceful degradation (all four models)"
    writing = {_taker(p): own for p, own in takers.items() if p > 0}  # who writes nothing loses nothing more
    for agent, cells in {"recoverer": recoverer, **writing}.items():
        found = {budget: never_rises(_at(by_h(cells, "scratch", budget))) for budget in READS}
        yield shape(label, published, agent, found)


def thrash_shapes(thrasher: Cells) -> Iterator[Shape]:
    for condition, model in (("lru", "all four models"), ("scratch", OPUS)):
        label = f"Store–Recall: {NAMES[condition]} thrashes less as h rises"
        runs = {h: thrasher[condition, "reads", h] for h in reversed(CAPACITIES)}
        episodes = {h: in_threes(r, lambda run: float(run.behavior.thrash_episodes)) for h, r in runs.items()}
        published = f"12+ episodes at low capacity, declining ({model})"
        yield shape(label, published, "thrasher", {"reads": ordered(_at(episodes))})


def floor_shapes(panels: dict[str, Panel]) -> Iterator[Shape]:
    """With no memory to look after, the published models are better than with any."""
    made = {name: panel_accuracy(panel) for name, panel in panels.items()}
    lead = {m: MAXIMUM["floor"][m] - max(MAXIMUM[c][m] for c in MAXIMUM if c != "floor") for m in MAXIMUM["floor"]}
    floor = made["substituter, no reads"]["floor"]
    found = {
        name: above(floor if name.startswith("thrasher") else accuracies["floor"], _best(accuracies))
        for name, accuracies in made.items()
    }
    for agent, columns in (
        ("recoverer", {"reads": found["recoverer, reads"]}),
        ("substituter", {b: found[f"substituter, {b}"] for b in READS}),
        ("substituter, p = 0.4", {"no reads": found["substituter, p = 0.4, no reads"]}),
        ("thrasher, with the substituter's floor", {"reads": found["thrasher, reads"]}),
    ):
        yield shape("Stepwise Maximum: the floor above every memory", _named(lead, *lead), agent, columns)


def _best(accuracies: Mapping[str, list[float]]) -> list[float]:
    return [max(levels) for levels in zip(*(accuracies[c] for c in accuracies if c != "floor"), strict=True)]


def panel_orders(panels: dict[str, Panel]) -> Iterator[Shape]:
    """The conditions of Stepwise Maximum from best to worst."""
    strong, mini = ("floor", "scratch", "lru", "scratch-lru"), ("floor", "lru", "scratch", "scratch-lru")
    made = {name: panel_accuracy(panel) for name, panel in panels.items()}
    partly = "substituter, p = 0.4, no reads"

    def judged(conditions: tuple[str, ...], name: str, text: str) -> Judged:
        levels = {**made[name], "scratch-lru": made[text]["scratch-lru"]}
        return ordered({NAMES.get(c, "floor"): levels[c] for c in conditions})

    columns = {"no reads": judged(strong, "substituter, no reads", partly)}
    label, published = "floor > Scratch > LRU > Scratch–LRU", _in_order(strong, MAXIMUM, GPT, OPUS, HAIKU)
    agent = "substituter; p = 0.4 in Scratch–LRU"
    yield shape(f"Stepwise Maximum: {label}", published, agent, columns)
    label, published = "floor > LRU > Scratch > Scratch–LRU", _in_order(mini, MAXIMUM, MINI)
    columns = {"no reads": judged(mini, partly, partly)}
    yield shape(f"Stepwise Maximum: {label}", published, "substituter, p = 0.4", columns)


def recovery_shapes(recoveries: Recoveries) -> Iterator[Shape]:
    """More pressure: more reads, and less accuracy."""
    rights, counts = zip(*RECOVERY.values(), strict=True)
    fall, rise = " > ".join(f"{right:.3f}" for right in rights), " > ".join(map(str, reversed(counts)))
    for name in ("recoverer, LRU, READ", "quitter, LRU, READ"):
        spent = {h: in_threes(recoveries[name, h], recovery_reads) for h in reversed(RECOVERY)}
        agent, label = name.removesuffix(", READ"), "Stepwise Maximum with recovery"
        yield shape(
            f"{label}: reads rise with m/h", f"{rise} (models not named)", agent, {"reads": ordered(_at(spent))}
        )
        found = {"reads": ordered(_at({h: in_threes(recoveries[name, h], accuracy) for h in RECOVERY}))}
        yield shape(f"{label}: accuracy falls with m/h", f"{fall} (models not named)", agent, found)
