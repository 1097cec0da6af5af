"""Studies of causal rescue: Store–Recall, Stepwise Maximum, and LRU at sufficient capacity."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from eirkit.lacuna.runs.capability import assess_gate
from eirkit.lacuna.runs.rescue import RescueSetup, measure_rescue
from eirkit.lacuna.runs.runner import runner_or_temporary
from eirkit.lacuna.tasks.task import TaskSpec
from eirkit.records.evidence import ArmRow
from eirkit.records.settings import Arm
from eirkit.report.table import Cell, Table
from eirkit_paper.published import value_of, values_of
from eirkit_paper.studies.agents import (
    CODES,
    StudyAgent,
    agents_for,
    commands,
    groups,
    repeated,
    row_of,
    seeds_of,
    study_plan,
)
from eirkit_paper.studies.comparison import gate_figures, in_section, listed
from eirkit_paper.study import Findings, Setting, StudyRow

SEEDS = 60
FOUR, STRONG = "mean of four models", "mean of three models"
STORE_RECALL, MAXIMUM = "tab:rescue", "tab:rq1-stepwise-max-rescue"
CONTROL = {model: value_of(STORE_RECALL, row, "No injection") for model, row in CODES.items()}
ARM_COLUMNS: dict[Arm, str] = {"control": "No injection", "oracle": "Exact restoration", "sham": "Matched sham"}
ARM_MEANS = {arm: value_of(STORE_RECALL, "Mean", column) for arm, column in ARM_COLUMNS.items()}

Figure = Callable[[ArmRow], float | None]
Arms = dict[str, list[float]]


def in_arms(setup: RescueSetup, agent: StudyAgent, seeds: Sequence[int]) -> dict[Arm, list[ArmRow]]:
    """Return the arms of one agent for every group of three seeds; of fewer than two groups, for every seed."""
    found: dict[Arm, list[ArmRow]] = {"control": [], "oracle": [], "sham": []}
    with runner_or_temporary(agent.runner) as runner:
        results = runner.complete(study_plan(*setup.cells([agent.model], agent.options, seeds)))
        for group in groups(seeds):
            for row in measure_rescue(setup, group, [agent.model], agent.options, results).rows:
                found[row.arm].append(row)
    return found


def figures(rows: Sequence[ArmRow], figure: Figure) -> list[float]:
    """Return a figure for each repetition of the published experiment."""
    values = [figure(row) for row in rows]
    if all(row.attempted == 1 for row in rows):
        return repeated(values)
    return [value for value in values if value is not None]


def controlled(agent: StudyAgent, spec: TaskSpec) -> tuple[Table, tuple[str, ...]]:
    """Return what the agent reaches at full information, and, where it fails there, what its arms do not show."""
    cell = assess_gate(agent.model, spec, agent.options, agent.runner)
    standing = cell.standing()
    line: dict[str, Cell] = {"workload": spec.workload, "agent": agent.name, **gate_figures(standing)}
    failed = "is undecided in" if standing.verdict == "undecided" else "fails"
    words = f"{agent.name} {failed} the full-information control: its arms claim nothing about loss."
    return listed("control", "Full information, h = m", [line]), () if cell.passes else (words,)


def store_recall_arms(agent: StudyAgent, seeds: Sequence[int]) -> Arms:
    arms = in_arms(RescueSetup(TaskSpec("store-recall", m=8), 4), agent, seeds)
    return {arm: figures(rows, lambda row: row.accuracy) for arm, rows in arms.items()}


def store_recall_rows(agent: StudyAgent, arms: Arms) -> Iterator[StudyRow]:
    for arm, column in ARM_COLUMNS.items():
        yield row_of(agent, column.lower(), ARM_MEANS[arm], arms[arm], FOUR)
    repair = [a - b for a, b in zip(arms["oracle"], arms["sham"], strict=True)]
    yield row_of(agent, "repair effect", value_of(STORE_RECALL, "Mean", "Repair effect"), repair, FOUR)


def store_recall_rescue(setting: Setting) -> Findings:
    """Compare Store–Recall under no injection, restoration and a sham of equal length."""
    agent = agents_for(setting, "guesser")[0]
    arms = store_recall_arms(agent, seeds_of(setting, SEEDS))
    rows = list(store_recall_rows(agent, arms))
    rows += [row_of(agent, "no injection", own, arms["control"], name) for name, own in CONTROL.items()]
    section = in_section("Accuracy at missed RECALLs, m = 8, h = 4", rows)
    control, words = controlled(agent, TaskSpec("store-recall"))
    return Findings(section, (control,), words=words, commands=commands(setting, "rescue"))


def maximum_rescue(setting: Setting) -> Findings:
    """Compare Stepwise Maximum under the same arms, over whole trajectories."""
    agent = agents_for(setting, "calculator")[0]
    arms = in_arms(RescueSetup(TaskSpec("stepwise-max", m=8), 4), agent, seeds_of(setting, SEEDS))
    right = {arm: figures(rows, lambda row: row.trajectory_accuracy) for arm, rows in arms.items()}
    effect = [a - b for a, b in zip(right["oracle"], right["sham"], strict=True)]
    control, sham, exact = values_of(MAXIMUM, "Pooled mean", "Control", "Sham", "Exact")
    apart = value_of("sec:results-rq1", "Stepwise Maximum rescue", "exact − sham")
    rows = [
        row_of(agent, "no injection", control, right["control"], STRONG),
        row_of(agent, "matched sham", sham, right["sham"], STRONG),
        row_of(agent, "exact restoration", exact, right["oracle"], STRONG),
        row_of(agent, "exact − sham", apart, effect, STRONG),
    ]
    section = in_section("Accuracy over whole runs, m = 8, h = 4", rows)
    gate, words = controlled(agent, TaskSpec("stepwise-max"))
    return Findings(section, (gate,), words=words, commands=commands(setting, "stepwise-maximum-rescue"))


# Policy and h, arm → accuracy, self-consistent accuracy, steps with a missing reference.
COLUMNS = ("End-to-end accuracy", "Self-consistent accuracy", "Missing-reference steps")
PRINTED: dict[tuple[str, int, Arm], str] = {
    ("window", 16, "control"): "Exact window, h = 16",
    ("lru", 16, "control"): "LRU, h = 16",
    ("lru", 20, "control"): "LRU, h = 20",
    ("lru", 32, "control"): "LRU, h = 32",
    ("lru", 16, "oracle"): "LRU + correct restoration, h = 16",
    ("lru", 16, "sham"): "LRU + sham restoration, h = 16",
}
SUFFICIENT = {cell: values_of("tab:rq2-agg-capacity", row, *COLUMNS) for cell, row in PRINTED.items()}
RESTORED: dict[Arm, str] = {"control": "", "oracle": " + correct restoration", "sham": " + sham"}


def sufficient_capacity(setting: Setting) -> Findings:
    """Compare the exact window and LRU where every eligible answer would fit, and what restoration repairs."""
    agent, seeds = agents_for(setting, "calculator")[0], seeds_of(setting, SEEDS)
    section = in_section("Stepwise Sum at sufficient capacity, m = 16", sufficient_rows(agent, seeds))
    control, words = controlled(agent, TaskSpec("stepwise-sum"))
    return Findings(section, (control,), words=words, commands=commands(setting, "sufficient-capacity"))


def sufficient_rows(agent: StudyAgent, seeds: Sequence[int]) -> Iterator[StudyRow]:
    made: dict[tuple[str, int], dict[Arm, list[ArmRow]]] = {}
    for (policy, h, arm), (accuracy, consistent, missed) in SUFFICIENT.items():
        if (policy, h) not in made:
            setup = RescueSetup(TaskSpec("stepwise-sum"), h, policy, "submitted", managed=True)
            made[policy, h] = in_arms(setup, agent, seeds)
        rows = made[policy, h][arm]
        name = f"{'exact window' if policy == 'window' else 'LRU'}, h = {h}{RESTORED[arm]}"
        right = figures(rows, lambda row: row.trajectory_accuracy)
        yield row_of(agent, f"{name}: accuracy", accuracy, right, STRONG)
        own = figures(rows, lambda row: row.self_consistent_accuracy)
        yield row_of(agent, f"{name}: self-consistent", consistent, own, STRONG)
        steps = figures(rows, lambda row: row.missed_steps)
        yield row_of(agent, f"{name}: steps with a miss", missed, steps, STRONG)
