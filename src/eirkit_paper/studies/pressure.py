"""Studies of accuracy under pressure without recovery: by retained records, Full Lookup, and rank tests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from eirkit.lacuna.findings.prediction import PressureRun, equal_pressure_cells, pressure_correlation
from eirkit.lacuna.runs.capability import assess_gate
from eirkit.lacuna.runs.runner import Runner
from eirkit.lacuna.tasks.task import TaskSpec
from eirkit.records.settings import Access
from eirkit.report.table import Cell, Table
from eirkit_paper.published import value_of
from eirkit_paper.studies.agents import (
    FOUR,
    STRONG,
    Run,
    StudyAgent,
    accuracy,
    agents_for,
    commands,
    in_threes,
    reference,
    row_of,
    run_cell,
    seeds_of,
)
from eirkit_paper.studies.comparison import gate_figures, in_section, listed, ordered, shape
from eirkit_paper.study import Findings, Setting, StudyRow

SEEDS = 120
M, CAPACITIES = 16, (16, 12, 8, 4)
PRESSED = CAPACITIES[1:]
AGENTS = ("calculator", "guesser", "substituter")
FAMILIES = {
    "Store–Recall": TaskSpec("store-recall"),
    "Stepwise Sum": TaskSpec("stepwise-sum"),
    "Stepwise Maximum": TaskSpec("stepwise-max"),
    "Stepwise Top-k": TaskSpec("stepwise-topk"),
}
# Family → mean accuracy at each capacity, over three models and three seeds.
TABLE = {family: tuple(value_of("tab:rq2", f"h = {h}", family) for h in CAPACITIES) for family in FAMILIES}
LOOKUP = {h: value_of("tab:full-lookup-pressure", f"h = {h}", "Query accuracy") for h in range(16, 0, -2)}
RANKS = value_of("sec:results-rq1", "Spearman, Stepwise Sum and arbitrary access", "p below")
TRIALS_A_LEVEL = 9  # behind the published rank correlation
LENGTHS = (32, 64, 128)

SEVERAL = (
    "The published figures pool three models. Ours are reference agents that compute without error and differ in what "
    "they do about a missing value: the calculator leaves it out, the guesser draws one, the substituter takes another "
    "visible record."
)

Grid = dict[tuple[str, int, str], list[Run]]  # family, h, agent


def run_grid(agents: Sequence[StudyAgent], seeds: Sequence[int], capacities: Sequence[int] = CAPACITIES) -> Grid:
    return {
        (family, h, agent.name): run_cell(spec, Access(h=h), agent, seeds)
        for family, spec in FAMILIES.items()
        for h in capacities
        for agent in agents
    }


def pressure_grid(setting: Setting) -> Findings:
    """Compare accuracy by retained records on four workloads."""
    agents, seeds = agents_for(setting, *AGENTS), seeds_of(setting, SEEDS)
    grid = run_grid(agents, seeds)
    tables = (
        listed("shapes", "Shapes: trends and orders", shapes(grid, agents)),
        listed("rank-tests", f"Spearman, m/h with accuracy, {TRIALS_A_LEVEL} trials a level", rank_tests(grid, agents)),
        listed(
            "controls", "Full information, h = m: agents that qualify for claims about missing inputs", controls(agents)
        ),
        *((_lengths(seeds, setting.runner),) if setting.model is None else ()),
    )
    rows = in_section("Accuracy by retained records, m = 16", accuracy_rows(grid, agents))
    words = (SEVERAL,) if setting.model is None else ()
    return Findings(rows, tables, words=words, commands=commands(setting, "pressure-grid"))


def accuracy_rows(grid: Grid, agents: Sequence[StudyAgent]) -> Iterator[StudyRow]:
    for family, figures in TABLE.items():
        for h, published in zip(CAPACITIES, figures, strict=True):
            for agent in agents:
                threes = in_threes(grid[family, h, agent.name], accuracy)
                yield row_of(agent, f"{family}, h = {h}", published, threes, STRONG)


def controls(agents: Sequence[StudyAgent]) -> Iterator[dict[str, Cell]]:
    """Yield what each agent reaches at full information."""
    for family, spec in FAMILIES.items():
        for agent in agents:
            yield {
                "workload": family,
                "agent": agent.name,
                **gate_figures(assess_gate(agent.model, spec, agent.options, agent.runner).standing()),
            }


def rank_tests(grid: Grid, agents: Sequence[StudyAgent]) -> Iterator[dict[str, Cell]]:
    """Yield pressure against accuracy, with as many trials a level as the paper has."""
    for family in FAMILIES:
        for agent in agents:
            cells = {h: grid[family, h, agent.name][:TRIALS_A_LEVEL] for h in CAPACITIES}
            trials = [
                PressureRun(len(run.verdicts), M / h, run.score.accuracy) for h, runs in cells.items() for run in runs
            ]
            test = pressure_correlation(trials)
            published = f"p < {RANKS}" if family in ("Store–Recall", "Stepwise Sum") else None
            yield {
                "workload": family,
                "agent": agent.name,
                "ρ": test.estimate,
                "p": f"{test.p:.4f}",
                "published": published,
            }


def _lengths(seeds: Sequence[int], runner: Runner | None) -> Table:
    lines = length_tests(seeds[:36], runner)
    return listed("length-tests", "Equal pressure, different length: calculator, m/h = 2", lines)


def length_tests(seeds: Sequence[int], runner: Runner | None = None) -> Iterator[dict[str, Cell]]:
    """Yield the prediction that equal pressure gives equal accuracy at every length, tested at m/h = 2.

    The first m steps have little to lose, and weigh more in a short task; they are left out in every second test.
    """
    agent = reference("calculator", runner=runner)
    for family in ("Store–Recall", "Stepwise Sum"):
        for warm_up in (0, M):
            specs = {n: replace(FAMILIES[family], n=n, warm_up=warm_up) for n in LENGTHS}
            trials = [
                PressureRun(n, M / 8, run.score.accuracy)
                for n, spec in specs.items()
                for run in run_cell(spec, Access(h=8), agent, seeds)
            ]
            for cell in equal_pressure_cells(trials):
                entry = {"workload": family, "from step": warm_up + 1, "n": "{} − {}".format(*cell.lengths)}
                yield {**entry, "difference": cell.difference.estimate, "p": f"{cell.difference.p:.4f}"}


def shapes(grid: Grid, agents: Sequence[StudyAgent]) -> Iterator[dict[str, str]]:
    """Yield what the accuracy table says apart from its figures, judged in each three of seeds."""
    right = {key: in_threes(runs, accuracy) for key, runs in grid.items()}
    names = [agent.name for agent in agents]
    for family, figures in TABLE.items():
        # Top-k at h = 16 is arithmetic: it falls short with everything in sight.
        curve = {h: figure for h, figure in zip(CAPACITIES, figures, strict=True) if figures[0] == 1 or h < M}
        ours = {name: {f"h = {h}:": right[family, h, name] for h in curve} for name in names}
        yield fall(f"{family}: less retained, less accurate", {f"h = {h}:": f for h, f in curve.items()}, ours)
    for h in PRESSED:
        levels = ranked({family: figures[CAPACITIES.index(h)] for family, figures in TABLE.items()})
        ours = {name: {family: right[family, h, name] for family in levels} for name in names}
        yield fall(f"h = {h}: order of the workloads", levels, ours)


def ranked(figures: dict[str, float]) -> dict[str, float]:
    return dict(sorted(figures.items(), key=lambda item: -item[1]))


def fall(claim: str, figures: dict[str, float], ours: dict[str, dict[str, list[float]]]) -> dict[str, str]:
    """Return the line that says whether levels fall in the published order."""
    published = " > ".join(f"{name} {figure:.3f}" for name, figure in figures.items())
    found = {agent: ordered(curves) for agent, curves in ours.items()}
    return shape(claim, f"{published} ({STRONG})", found, tuple(found))


def full_lookup_sweep(setting: Setting) -> Findings:
    """Compare Full Lookup under fixed retention."""
    agents, seeds = agents_for(setting, *AGENTS), seeds_of(setting, SEEDS)
    spec = TaskSpec("full-lookup", m=M)
    rows = []
    for h, published in LOOKUP.items():
        for agent in agents:
            runs = run_cell(spec, Access(policy="fixed", h=h), agent, seeds)
            threes = in_threes(runs, lambda run: run.score.step_accuracy)
            rows.append(row_of(agent, f"h = {h}: query accuracy", published, threes, FOUR))
    section = in_section("Full Lookup under fixed retention, m = 16", rows)
    return Findings(section, commands=commands(setting, "full-lookup-sweep"))
