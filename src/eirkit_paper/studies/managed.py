"""Studies of agent-managed retention: the 2×2, behavior on Stepwise Maximum, recovery under pressure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from eirkit.lacuna.findings.behavior import valley
from eirkit.lacuna.findings.statistics import mean
from eirkit.lacuna.runs.runner import Runner
from eirkit.lacuna.tasks.generation import generate, graph_of
from eirkit.lacuna.tasks.task import TaskSpec
from eirkit.records.settings import Access
from eirkit.report.table import Cell
from eirkit_paper.published import value_of, values_of
from eirkit_paper.studies.agents import (
    GPT,
    HAIKU,
    MINI,
    OPUS,
    Run,
    StudyAgent,
    accuracy,
    agents_for,
    commands,
    in_threes,
    pooled,
    reference,
    row_of,
    run_cell,
    seeds_of,
)
from eirkit_paper.studies.comparison import (
    Judged,
    Threes,
    above,
    below,
    in_section,
    listed,
    lowest_at,
    never_rises,
    ordered,
    sectioned,
    shape,
)
from eirkit_paper.study import Findings, Setting, StudyRow

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


READING = Access("lru", None, reads=None, recomputations=0, actions=MANY_ACTIONS)
MEANS = {
    "recoverer, LRU, READ": ("recoverer", READING),
    "recoverer, LRU, RECOMPUTE": ("recoverer", replace(READING, reads=0, recomputations=None)),
    "recoverer, window, READ": ("recoverer", replace(READING, condition="window")),
    "quitter, LRU, READ": ("quitter", READING),
}


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


def _shape(claim: str, published: str, agent: str, found: dict[str, Judged]) -> Shape:
    return shape(claim, published, found, **{"ours by": f"reference/{agent}"})


def _note_taker(p: float) -> str:
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
    yield _shape(gains, _named(CHOICE, OPUS, GPT), "recoverer", found)
    found = _contrast(above, capable, "scratch", "lru")
    yield _shape(gains, _named(CHOICE, OPUS), _note_taker(WRITES[OPUS]), found)
    found = _contrast(below, takers[WRITES[HAIKU]], "scratch", "lru")
    label = "Store–Recall: Scratch below LRU"
    yield _shape(label, _named(CHOICE, HAIKU), _note_taker(WRITES[HAIKU]), found)


def storage_shapes(recoverer: Cells, takers: dict[float, Cells]) -> Iterator[Shape]:
    """In what form: key–value above text for all models."""
    label = "Store–Recall: key–value above text (LRU − Scratch–LRU)"
    found = _contrast(above, recoverer, "lru", "scratch-lru")
    yield _shape(label, _named(STORAGE, *STORAGE), "recoverer", found)
    for model, p in WRITES.items():
        found = _contrast(above, takers[p], "lru", "scratch-lru")
        yield _shape(label, _named(STORAGE, model), _note_taker(p), found)


def order_shapes(recoverer: Cells, takers: dict[float, Cells]) -> Iterator[Shape]:
    """The three published cells of the 2×2, from best to worst."""
    capable, small = ("scratch", "lru", "scratch-lru"), ("lru", "scratch", "scratch-lru")
    cells = dict.fromkeys(capable, recoverer) | {"scratch-lru": takers[TEXT_LRU_WRITES]}
    found = {b: ordered({NAMES[c]: over_h(cells[c], c, b) for c in capable}) for b in READS}
    agents, published = (
        f"recoverer; {_note_taker(TEXT_LRU_WRITES)}, in Scratch–LRU",
        _in_order(capable, TWO_BY_TWO, OPUS, GPT),
    )
    yield _shape("Store–Recall: Scratch > LRU > Scratch–LRU", published, agents, found)
    own, published = takers[WRITES[HAIKU]], _in_order(small, TWO_BY_TWO, HAIKU)
    found = {b: ordered({NAMES[c]: over_h(own, c, b) for c in small}) for b in READS}
    yield _shape("Store–Recall: LRU > Scratch > Scratch–LRU", published, _note_taker(WRITES[HAIKU]), found)


def valley_shapes(takers: dict[float, Cells]) -> Iterator[Shape]:
    for condition, depth, model, h in VALLEYS:
        own = takers[p := WRITES.get(model, TEXT_LRU_WRITES)]
        floor = by_h(own, "floor", "no reads")
        found = {budget: lowest_at(h, by_h(own, condition, budget), floor) for budget in READS}
        label = f"Store–Recall: {NAMES[condition]} below the floor, most at h = {h}"
        yield _shape(label, f"{depth:+.3f} ({model})", _note_taker(p), found)


def _at(curve: Mapping[int, Threes]) -> dict[str, Threes]:
    return {f"h = {h}:": threes for h, threes in curve.items()}


def capacity_shapes(recoverer: Cells, takers: dict[float, Cells]) -> Iterator[Shape]:
    label, published = "Store–Recall: Scratch never gains as h falls", "graceful degradation (all four models)"
    writing = {_note_taker(p): own for p, own in takers.items() if p > 0}  # who writes nothing loses nothing more
    for agent, cells in {"recoverer": recoverer, **writing}.items():
        found = {budget: never_rises(_at(by_h(cells, "scratch", budget))) for budget in READS}
        yield _shape(label, published, agent, found)


def thrash_shapes(thrasher: Cells) -> Iterator[Shape]:
    for condition, model in (("lru", "all four models"), ("scratch", OPUS)):
        label = f"Store–Recall: {NAMES[condition]} thrashes less as h rises"
        runs = {h: thrasher[condition, "reads", h] for h in reversed(CAPACITIES)}
        episodes = {h: in_threes(r, lambda run: float(run.behavior.thrash_episodes)) for h, r in runs.items()}
        published = f"12+ episodes at low capacity, declining ({model})"
        yield _shape(label, published, "thrasher", {"reads": ordered(_at(episodes))})


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
        yield _shape("Stepwise Maximum: the floor above every memory", _named(lead, *lead), agent, columns)


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
    yield _shape(f"Stepwise Maximum: {label}", published, agent, columns)
    label, published = "floor > LRU > Scratch > Scratch–LRU", _in_order(mini, MAXIMUM, MINI)
    columns = {"no reads": judged(mini, partly, partly)}
    yield _shape(f"Stepwise Maximum: {label}", published, "substituter, p = 0.4", columns)


def recovery_shapes(recoveries: Recoveries) -> Iterator[Shape]:
    """More pressure: more reads, and less accuracy."""
    rights, counts = zip(*RECOVERY.values(), strict=True)
    fall, rise = " > ".join(f"{right:.3f}" for right in rights), " > ".join(map(str, reversed(counts)))
    for name in ("recoverer, LRU, READ", "quitter, LRU, READ"):
        spent = {h: in_threes(recoveries[name, h], recovery_reads) for h in reversed(RECOVERY)}
        agent, label = name.removesuffix(", READ"), "Stepwise Maximum with recovery"
        yield _shape(
            f"{label}: reads rise with m/h", f"{rise} (models not named)", agent, {"reads": ordered(_at(spent))}
        )
        found = {"reads": ordered(_at({h: in_threes(recoveries[name, h], accuracy) for h in RECOVERY}))}
        yield _shape(f"{label}: accuracy falls with m/h", f"{fall} (models not named)", agent, found)


SEEDS = 36

UNNAMED = "models that the paper does not name"


def _as(agent: StudyAgent, name: str) -> StudyAgent:
    """Return an agent under the name of a column."""
    return agent.renamed(f"{agent.name}, {name}")


def two_by_two(setting: Setting) -> Findings:
    """Compare who chooses what is kept, in what form it is kept, and where a memory is worse than none."""
    agent, seeds = agents_for(setting, "recoverer")[0], seeds_of(setting, SEEDS)
    cells = run_cells(agent, seeds)
    takers = {}
    if setting.model is None:
        takers = {p: run_note_taker(p, seeds, cells, setting.runner) for p in WRITES.values()}
    sections = {
        "Store–Recall, the 2×2 pooled over h = 16, 8, 4, 2": [*_square_rows(agent, cells), *_taker_rows(takers)],
        "Effects": [*_effect_rows(agent, cells), *_taker_effects(takers)],
        "Capacity and valleys": [*_capacity_rows(agent, cells), *_valley_rows(agent, cells, takers)],
    }
    agents: dict[str, Cells] = {agent.name: cells}
    tables = []
    if setting.model is None:
        agents["thrasher"] = run_cells(reference("thrasher", runner=setting.runner), seeds, ["reads"])
        agents |= {f"note-taker, p = {p:.1f}": own for p, own in takers.items()}
        lines = store_recall_shapes(cells, takers, agents["thrasher"])
        tables.append(listed("shapes", "Shapes: signs, orders, trends and places", lines))
        tables.append(listed("valleys", "Valleys on Store–Recall: lowest accuracy − floor", _valley_lines(agents)))
    sections["Behavior with reads"] = list(_behavior_rows(agents, agent))
    tables.append(listed("cells", "Store–Recall, every cell: 64 steps, at most 200 actions", _cell_lines(agents)))
    made = commands(setting, "two-by-two")
    return Findings(sectioned(sections), tuple(tables), commands=made)


def _square_rows(agent: StudyAgent, cells: Cells) -> Iterator[StudyRow]:
    for condition, by_model in TWO_BY_TWO.items():
        for model, published in by_model.items():
            for budget in READS:
                threes = over_h(cells, condition, budget)
                yield row_of(_as(agent, budget), f"{NAMES[condition]}: accuracy", published, threes, model)


def _taker_rows(takers: dict[float, Cells]) -> Iterator[StudyRow]:
    """Yield the rows of agents that write at a model's published rate."""
    for condition, by_model in TWO_BY_TWO.items():
        for model, published in by_model.items():
            if takers and model in WRITES and condition != "lru":
                for budget in READS:
                    threes = over_h(takers[WRITES[model]], condition, budget)
                    label = f"{NAMES[condition]}: accuracy"
                    yield row_of(_taker(budget), label, published, threes, model)


def _taker(budget: str) -> StudyAgent:
    return _as(reference("note-taker"), f"its rate, {budget}")


CONTRASTS = (
    ("Scratch − LRU: accuracy", CHOICE, "scratch", "lru"),
    ("LRU − Scratch–LRU: accuracy", STORAGE, "lru", "scratch-lru"),
)


def _effect_rows(agent: StudyAgent, cells: Cells) -> Iterator[StudyRow]:
    """Yield both effects of the 2×2: who chooses, and in what form it is kept."""
    for label, by_model, better, worse in CONTRASTS:
        for model, published in by_model.items():
            for budget in READS:
                apart = _apart(cells, better, worse, budget)
                yield row_of(_as(agent, budget), label, published, apart, model)


def _taker_effects(takers: dict[float, Cells]) -> Iterator[StudyRow]:
    for label, by_model, better, worse in CONTRASTS if takers else ():
        for model, published in by_model.items():
            for budget in READS if model in WRITES else ():
                apart = _apart(takers[WRITES[model]], better, worse, budget)
                yield row_of(_taker(budget), label, published, apart, model)


def _apart(cells: Cells, better: str, worse: str, budget: str) -> list[float]:
    return [a - b for a, b in zip(over_h(cells, better, budget), over_h(cells, worse, budget), strict=True)]


def _capacity_rows(agent: StudyAgent, cells: Cells) -> Iterator[StudyRow]:
    for condition, h, model in (
        ("scratch", 2, OPUS),
        ("belady", 2, OPUS),
        ("scratch", 16, HAIKU),
        ("belady", 8, MINI),
    ):
        threes = in_threes(cells[condition, "no reads", h], accuracy)
        cell = f"{NAMES.get(condition, 'Belady')}, h = {h}"
        label, published = f"{cell}: accuracy", value_of(PLACE, f"Capacity, {model}", cell)
        yield row_of(_as(agent, "no reads"), label, published, threes, model)


def _valley_rows(agent: StudyAgent, cells: Cells, takers: dict[float, Cells]) -> Iterator[StudyRow]:
    for condition, published, model, _ in VALLEYS:
        label = f"{NAMES[condition]}: valley"
        for budget in READS:
            depths = _valleys(cells, condition, budget)
            yield row_of(_as(agent, budget), label, published, depths, model)
            if takers:
                own = takers[WRITES.get(model, TEXT_LRU_WRITES)]
                yield row_of(_taker(budget), label, published, _valleys(own, condition, budget), model)


def _valleys(cells: Cells, condition: str, budget: str) -> list[float]:
    """Return the depth against the floor for each three of seeds."""
    curves, floors = by_h(cells, condition, budget).values(), by_h(cells, "floor", "no reads").values()
    both = zip(zip(*curves, strict=True), zip(*floors, strict=True), strict=True)
    return [valley(dict(zip(CAPACITIES, a, strict=True)), dict(zip(CAPACITIES, b, strict=True))).depth for a, b in both]


REDUNDANT = value_of(PLACE, "Redundant retrieval", "GPT-4.1 Mini and GPT-5.6 at cap = 2")
THRASH = value_of(PLACE, "Thrash episodes", "LRU and Opus at low capacity, peak")

Habit = tuple[str, str, int, float, str, Callable[[Run], float | None]]
HABIT_FIGURES: tuple[Habit, ...] = (
    *(
        (
            "just-in-time",
            "scratch",
            2,
            value_of(PLACE, f"Just-in-time, {model}", "Scratch, cap = 2"),
            model,
            lambda run: run.behavior.just_in_time_rate,
        )
        for model in (OPUS, HAIKU)
    ),
    ("redundant", "scratch", 2, REDUNDANT, f"{MINI}, {GPT}: 0.3–0.4", lambda run: run.behavior.redundant_rate),
    ("thrash episodes", "lru", 2, THRASH, "all, peak: 12+", lambda run: float(run.behavior.thrash_episodes)),
    ("thrash episodes", "scratch", 2, THRASH, f"{OPUS}, peak: 12+", lambda run: float(run.behavior.thrash_episodes)),
    ("write-through", "scratch", 16, WRITES[OPUS], OPUS, lambda run: run.behavior.write_through_rate),
    ("write-through", "scratch-lru", 2, WRITES[MINI], MINI, lambda run: run.behavior.write_through_rate),
)


def _behavior_rows(by_agent: dict[str, Cells], agent: StudyAgent) -> Iterator[StudyRow]:
    for name, condition, h, published, model, figure in HABIT_FIGURES:
        for shown, cells in by_agent.items():
            threes = in_threes(cells[condition, "reads", h], figure)
            if threes:
                named = agent.renamed(shown)
                label = f"{NAMES[condition]}, h = {h}: {name}"
                yield row_of(named, label, published, threes, model)


CELL: dict[str, Callable[[Run], float | None]] = {
    "accuracy": accuracy,
    "miss rate": lambda run: run.score.miss_rate,
    "answered": lambda run: run.score.answered_fraction,
    "at limit": lambda run: float(run.score.max_turn),
    "just in time": lambda run: run.behavior.just_in_time_rate,
    "redundant": lambda run: run.behavior.redundant_rate,
    "thrash (a)": lambda run: float(run.behavior.thrash_episodes),
    "thrash (b)": lambda run: float(run.behavior.thrash_cycles),
    "write-through": lambda run: run.behavior.write_through_rate,
}


def _cell_lines(agents: dict[str, Cells]) -> Iterator[dict[str, Cell]]:
    """Yield every cell of the 2×2 with its behavior, pooled over all seeds; shared cells once."""
    shown: set[int] = set()
    for agent, cells in agents.items():
        for (condition, budget, h), runs in cells.items():
            if id(runs) not in shown:
                shown.add(id(runs))
                figures = {name: mean(figure(run) for run in runs) for name, figure in CELL.items()}
                yield {"cell": f"{agent}, {condition}, {budget}", "h": h, **figures}


def _valley_lines(agents: dict[str, Cells]) -> Iterator[dict[str, Cell]]:
    """Yield where each curve lies lowest against the recoverer's floor, pooled over all seeds."""
    curves: dict[tuple[str, str, str], dict[int, float]] = {}
    for agent, cells in agents.items():
        for (condition, budget, h), runs in cells.items():
            if agent in ("recoverer", "thrasher") or condition.startswith("scratch"):
                curves.setdefault((agent, condition, budget), {})[h] = mean(map(accuracy, runs)) or 0.0
    floor = curves["recoverer", "floor", "no reads"]
    for name, curve in curves.items():
        lowest = valley(curve, floor)
        yield {"curve": ", ".join(name), "valley": lowest.depth, "at h": lowest.h, "dip": lowest.dip}


def maximum_behavior(setting: Setting) -> Findings:
    """Compare the behavior table of Stepwise Maximum."""
    seeds = seeds_of(setting, SEEDS)
    if setting.model is not None:
        agent = agents_for(setting)[0]
        panels = {f"{agent.name}, {budget}": (agent, budget) for budget in READS}
    else:
        panels = {name: (reference(agent, p, setting.runner), budget) for name, (agent, p, budget) in PANELS.items()}
    made = {name: run_panel(agent, budget, seeds) for name, (agent, budget) in panels.items()}
    rows = [row for name, (agent, budget) in panels.items() for row in _panel_rows(name, agent, budget, made[name])]
    shapes = panel_shapes(made) if setting.model is None else ()
    tables = (listed("shapes", "Shapes: orders and the floor", shapes),) if setting.model is None else ()
    section = in_section("Stepwise Maximum, m = 8, pooled over h = 2 and 4", rows)
    return Findings(section, tables, commands=commands(setting, "agent-managed-behaviour"))


def _panel_rows(name: str, agent: StudyAgent, budget: str, panel: Panel) -> Iterator[StudyRow]:
    named = agent.renamed(name)
    for condition, threes in panel_accuracy(panel).items():
        label = f"{NAMES.get(condition, FLOOR)}: accuracy"
        for model, published in MAXIMUM[condition].items():
            yield row_of(named, label, published, threes, model)
    for condition, by_model in JUST_IN_TIME.items() if budget == "reads" else ():
        timely = pooled(panel[condition], lambda run: run.behavior.just_in_time_rate)
        for model, published in by_model.items() if timely else ():
            label = f"{NAMES[condition]}: just-in-time"
            yield row_of(named, label, published, timely, model)


def recovery_enabled(setting: Setting) -> Findings:
    """Compare Stepwise Maximum with recovery, its last 32 steps scored; reads are those of the whole run."""
    seeds = seeds_of(setting, SEEDS)
    if setting.model is None:
        agents = {name: (reference(agent, runner=setting.runner), means) for name, (agent, means) in MEANS.items()}
    else:
        agents = {f"{setting.model}, LRU, READ": (agents_for(setting)[0], READING)}
    spec = TaskSpec("stepwise-max", warm_up=32)
    runs: Recoveries = {
        (name, h): run_cell(spec, replace(means, h=h), agent, seeds)
        for h in RECOVERY
        for name, (agent, means) in agents.items()
    }
    rows = list(_recovery_rows(runs, {name: agent.renamed(name) for name, (agent, _) in agents.items()}))
    shapes = (listed("shapes", "Shapes", recovery_shapes(runs)),) if setting.model is None else ()
    section = in_section("Stepwise Maximum with recovery, m = 16, the last 32 steps", rows)
    return Findings(section, shapes, commands=commands(setting, "recovery-enabled-maximum"))


def _recovery_rows(runs: Recoveries, agents: dict[str, StudyAgent]) -> Iterator[StudyRow]:
    for h, (right, reads) in RECOVERY.items():
        for name, agent in agents.items():
            threes = in_threes(runs[name, h], accuracy)
            yield row_of(agent, f"m/h = {16 // h}: accuracy", right, threes, UNNAMED)
            spent: Sequence[float] = in_threes(runs[name, h], recovery_reads)
            yield row_of(agent, f"m/h = {16 // h}: recovery reads", reads, spent, UNNAMED, beyond_references(reads))


def beyond_references(reads: float) -> str:
    """Return that a published number of reads exceeds one read for each reference of a run; nothing if it does not."""
    references = sum(map(len, graph_of(generate(TaskSpec("stepwise-max")))))
    said = f"{reads:.1f} is more than one read for each of a run's {references} references"
    return said if reads > references else ""
