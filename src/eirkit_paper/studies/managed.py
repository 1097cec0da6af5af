"""Studies of agent-managed retention: the 2×2, behavior on Stepwise Maximum, recovery under pressure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from eirkit.lacuna.findings.behavior import valley
from eirkit.lacuna.findings.statistics import mean
from eirkit.lacuna.tasks.generation import generate, graph_of
from eirkit.lacuna.tasks.task import TaskSpec
from eirkit.report.table import Cell
from eirkit_paper.published import value_of
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
    seeds_of,
)
from eirkit_paper.studies.comparison import in_section, listed, sectioned
from eirkit_paper.studies.managed_figures import (
    CAPACITIES,
    CHOICE,
    FLOOR,
    JUST_IN_TIME,
    MAXIMUM,
    MEANS,
    NAMES,
    PANELS,
    PLACE,
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
    by_h,
    over_h,
    panel_accuracy,
    panel_shapes,
    recovery_reads,
    recovery_shapes,
    run_cells,
    run_note_taker,
    run_panel,
    run_recovery,
    store_recall_shapes,
)
from eirkit_paper.study import Findings, Setting, StudyRow

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
        agents = {name: (reference(agent, runner=setting.runner), how) for name, (agent, *how) in MEANS.items()}
    else:
        agents = {f"{setting.model}, LRU, READ": (agents_for(setting)[0], ["lru", None, 0])}
    runs: Recoveries = {
        (name, h): run_recovery(agent, h, seeds, (how[0], how[1], how[2]))  # type: ignore[arg-type]
        for h in RECOVERY
        for name, (agent, how) in agents.items()
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
