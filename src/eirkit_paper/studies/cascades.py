"""Studies of error cascades: first miss against first error, heat map, cascade gap, predictions from misses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from statistics import fmean

from eirkit.lacuna.findings.measures import CAUSE_MEASURES
from eirkit.lacuna.findings.prediction import decompose, no_cascade, residuals, store_recall_accuracy
from eirkit.lacuna.findings.statistics import mean
from eirkit.records.runs import CAUSES
from eirkit.records.settings import Access
from eirkit.report.document import Axis, Chart, Figure, Series
from eirkit.report.table import Cell
from eirkit_paper.published import value_of, values_of
from eirkit_paper.studies.agents import (
    STRONG,
    Run,
    StudyAgent,
    accuracy,
    agents_for,
    commands,
    in_threes,
    pooled,
    repeated,
    row_of,
    run_cell,
    seeds_of,
)
from eirkit_paper.studies.comparison import THREE, banded, exact, listed, numbers, sectioned, spread
from eirkit_paper.studies.pressure import (
    AGENTS,
    CAPACITIES,
    FAMILIES,
    PRESSED,
    TABLE,
    Grid,
    fall,
    ranked,
    run_grid,
)
from eirkit_paper.studies.rescue import ARM_COLUMNS, ARM_MEANS, store_recall_arms, store_recall_rows
from eirkit_paper.study import Findings, Setting, StudyRow

SEEDS = 120
RESCUE_SEEDS = 60
PRESSURES = tuple(16 / h for h in CAPACITIES)
FIRST, CASCADE = "sec:results-rq1", "sec:results-cascade"
ALIGNMENT = {
    family: value_of(FIRST, "First miss is first error", family)
    for family in ("Stepwise Sum", "Store–Recall", "Stepwise Maximum", "Stepwise Top-k")
}
THEORY = value_of(FIRST, "Store–Recall theory", "mean absolute error")
UNNAMED = "a model that the paper does not name"


def alignment_and_rescue(setting: Setting) -> Findings:
    """Compare when errors begin and whether restoration repairs them, as the figure shows both."""
    agents, seeds = agents_for(setting, *AGENTS), seeds_of(setting, SEEDS)
    grid = run_grid(agents, seeds, PRESSED)
    rescuer = agents_for(setting, "guesser")[0]
    arms = store_recall_arms(rescuer, seeds_of(setting, RESCUE_SEEDS))
    sections = {
        "First miss and first error, h = 12, 8, 4": list(alignment_rows(grid, agents)),
        "Accuracy at missed RECALLs, m = 8, h = 4": list(store_recall_rows(rescuer, arms)),
    }
    aligned = {(f, w.name): pooled([grid[f, h, w.name] for h in PRESSED], _aligned) for f in ALIGNMENT for w in agents}
    ours = {agent.name: {family: aligned[family, agent.name] for family in ranked(ALIGNMENT)} for agent in agents}
    line = fall("first miss = first error: order of the workloads", ranked(ALIGNMENT), ours)
    panels = (_alignment_chart(grid, agents), _arms_chart(rescuer, arms))
    figure = Figure("alignment-and-rescue", "Missing inputs predict errors; restoring them repairs answers", panels)
    made = commands(setting, "alignment-and-rescue")
    return Findings(sectioned(sections), (listed("shapes", "Order of the workloads", [line]),), (figure,), (), made)


def _aligned(run: Run) -> float | None:
    return None if run.score.aligned is None else float(run.score.aligned)


def alignment_rows(grid: Grid, agents: Sequence[StudyAgent]) -> Iterator[StudyRow]:
    """Yield first miss = first error over all trials with a miss: three seeds at each of three capacities."""
    for family, published in ALIGNMENT.items():
        for agent in agents:
            threes = pooled([grid[family, h, agent.name] for h in PRESSED], _aligned)
            yield row_of(agent, f"{family}: first miss = first error", published, threes, STRONG)


def _alignment_chart(grid: Grid, agents: Sequence[StudyAgent]) -> Chart:
    agent, series = agents[-1], []
    for family in ALIGNMENT:
        levels = [spread(in_threes(grid[family, h, agent.name], _aligned)) for h in PRESSED]
        series.append(banded(family, "line", [16 / h for h in PRESSED], levels, is_share=True))
    said = ", ".join(f"{one.name} {fmean(numbers(one)):.0%}" for one in series if one.y)
    return Chart(
        "first-miss-first-error",
        "First miss is first error",
        f"Share of runs whose first error is their first miss, over h = 12, 8 and 4, with the {agent.name}: {said}.",
        Axis("m/h"),
        Axis("share of runs with a miss", low=0, high=1, percent=True),
        tuple(series),
        "bands hold 95% of three-seed means",
    )


def _arms_chart(agent: StudyAgent, arms: dict[str, list[float]]) -> Chart:
    names = {arm: column.lower() for arm, column in ARM_COLUMNS.items()}
    published = ", ".join(f"{value:.1%}" for value in ARM_MEANS.values())
    levels = {arm: spread(arms[arm]) for arm in names}
    said = ", ".join(f"{names[arm]} {level[0]:.1%}" for arm, level in levels.items() if level)
    return Chart(
        "rescue-arms",
        "Accuracy at missed RECALLs",
        f"Accuracy at steps whose input was missing, {agent.name}: {said}; published {published}.",
        Axis("arm", "category"),
        Axis("accuracy", low=0, high=1, percent=True),
        (
            banded(agent.name, "bars", tuple(names.values()), list(levels.values()), is_share=True),
            Series("published", "points", tuple(names.values()), tuple(ARM_MEANS.values()), dashed=True),
        ),
    )


def error_heat_map(setting: Setting) -> Findings:
    """Draw every run of Stepwise Sum step by step, with its first miss, and how wrong answers outlast misses."""
    agents, seeds = agents_for(setting, *AGENTS), seeds_of(setting, THREE)
    runs = {
        (h, agent.name): run_cell(FAMILIES["Stepwise Sum"], Access(h=h), agent, seeds)
        for h in CAPACITIES
        for agent in agents
    }
    rows: list[StudyRow] = []
    for agent in agents:
        full = [1 - run.score.accuracy for run in runs[16, agent.name]]
        rows.append(row_of(agent, "h = 16: wrong answers", 0.0, repeated(full), STRONG))
        first = [float(run.score.aligned or False) for h in PRESSED for run in runs[h, agent.name]]
        rows.append(row_of(agent, "h = 12, 8, 4: error front at the first miss", 1.0, [fmean(first)], STRONG))
    excess = {
        h: fmean(p.excess for agent in agents for p in decompose([r.verdicts for r in runs[h, agent.name]]))
        for h in PRESSED
    }
    exceeds = [exact(f"h = {h}: 1 if so", 1, float(value > 0), digits=0) for h, value in excess.items()]
    sections = {"Stepwise Sum, m = 16": rows, "Wrong answers are more frequent than missing inputs": exceeds}
    panels = (*(_heat(h, agents, runs) for h in CAPACITIES), _probabilities(agents, runs, excess))
    figure = Figure("error-heat-map", "Errors begin at the first miss and stay", panels)
    made = commands(setting, "error-heat-map")
    return Findings(sectioned(sections), figures=(figure,), commands=made)


Cells = dict[tuple[int, str], list[Run]]  # h, agent


def _heat(h: int, agents: Sequence[StudyAgent], runs: Cells) -> Chart:
    """Return every step of every run: right, wrong, or the first one with a missing input."""
    rows = [(f"{agent.name}, run {n}", run) for agent in agents for n, run in enumerate(runs[h, agent.name], 1)]
    places = [
        (v.t, name, 2.0 if v.t == run.score.first_miss else float(not v.correct))
        for name, run in rows
        for v in run.verdicts
    ]
    first = [run.score.first_miss for _, run in rows if run.score.first_miss is not None]
    wrong = fmean(float(not v.correct) for _, run in rows for v in run.verdicts)
    said = f"first misses at steps {min(first)} to {max(first)}" if first else "no misses"
    x, y, value = (tuple(column) for column in zip(*places, strict=True))
    return Chart(
        f"errors-h-{h}",
        f"h = {h}",
        f"{wrong:.0%} of the answers of {len(rows)} runs are wrong; {said}.",
        Axis("step"),
        Axis("run", "category"),
        (Series("0 right, 1 wrong, 2 first miss", "cells", x, y, value=value),),
    )


def _probabilities(agents: Sequence[StudyAgent], runs: Cells, excess: dict[int, float]) -> Chart:
    series = []
    for h in PRESSED:
        verdicts = [run.verdicts for agent in agents for run in runs[h, agent.name]]
        steps = tuple(range(1, len(verdicts[0]) + 1))
        wrong = tuple(fmean(float(not run[t - 1].correct) for run in verdicts) for t in steps)
        missed = tuple(fmean(float(run[t - 1].missed) for run in verdicts) for t in steps)
        series.append(Series(f"h = {h}: wrong", "line", steps, wrong))
        series.append(Series(f"h = {h}: missing an input", "line", steps, missed, dashed=True))
    said = ", ".join(f"{value:.0%} at h = {h}" for h, value in excess.items())
    return Chart(
        "wrong-and-missing",
        "Wrong answers outlast misses",
        f"Over all steps, wrong answers exceed steps with a missing input by {said}.",
        Axis("step"),
        Axis("share of runs", low=0, high=1, percent=True),
        tuple(series),
    )


_ONE_RUN = partial(value_of, CASCADE, "One run, h = 12")
TRAJECTORY: dict[str, tuple[int, float, Callable[[Run], float | None]]] = {
    "state-supply errors": (12, _ONE_RUN("state-supply errors"), lambda run: run.score.errors["state_supply"]),
    "cascade errors": (12, _ONE_RUN("cascade errors"), lambda run: run.score.errors["cascade"]),
    "computation errors": (12, _ONE_RUN("computation errors"), lambda run: run.score.errors["computation"]),
    "first error": (12, _ONE_RUN("first error"), lambda run: run.score.first_error),
    "first error, pilot": (4, value_of(FIRST, "Pilot, h = 4", "first divergence"), lambda run: run.score.first_error),
}


def cascade_gap(setting: Setting) -> Findings:
    """Compare how far Stepwise Sum falls below Store–Recall, and the causes in one trajectory."""
    agents, seeds = agents_for(setting, *AGENTS), seeds_of(setting, SEEDS)
    families = ("Store–Recall", "Stepwise Sum")
    grid = {
        (family, h, agent.name): run_cell(FAMILIES[family], Access(h=h), agent, seeds)
        for family in families
        for h in CAPACITIES
        for agent in agents
    }
    sections = {
        "Cascades in Stepwise Sum": list(_gap_rows(grid, agents)),
        "One trajectory of Stepwise Sum; ± over single runs": list(_trajectory_rows(grid, agents)),
    }
    agent = agents[0]
    figure = Figure(
        "cascade-gap",
        "One missing result can spoil many later steps",
        (_gap_chart(grid, agent), _timeline(grid["Stepwise Sum", 12, agent.name], agent)),
    )
    tables = (
        listed("causes", "Errors by cause, a run of 64 steps", _causes(grid)),
        listed("predictions", "What misses alone predict", _predictions(grid)),
    )
    return Findings(sectioned(sections), tables, (figure,), commands=commands(setting, "cascade-gap"))


def _gap_rows(grid: Grid, agents: Sequence[StudyAgent]) -> Iterator[StudyRow]:
    predicted, observed = values_of(CASCADE, "h = 8", "predicted without cascades", "predicted / observed")
    for agent in agents:
        alone = in_threes(grid["Stepwise Sum", 8, agent.name], _without_cascades)
        yield row_of(agent, "h = 8: predicted without cascades", predicted, alone, STRONG)
        seen = in_threes(grid["Stepwise Sum", 8, agent.name], accuracy)
        times = [a / b for a, b in zip(alone, seen, strict=True) if b]
        yield row_of(agent, "h = 8: predicted / observed", observed, times, STRONG)
        for h in (8, 4):
            published = value_of(CASCADE, f"h = {h}", "Store–Recall − Stepwise Sum")
            pairs = zip(grid["Store–Recall", h, agent.name], grid["Stepwise Sum", h, agent.name], strict=True)
            apart = [a.score.accuracy - b.score.accuracy for a, b in pairs]
            yield row_of(agent, f"h = {h}: Store–Recall − Stepwise Sum", published, repeated(apart), STRONG)


def _without_cascades(run: Run) -> float:
    return no_cascade(run.score.missed, run.score.steps, run.score.consuming_all).of_consuming


def _trajectory_rows(grid: Grid, agents: Sequence[StudyAgent]) -> Iterator[StudyRow]:
    """Yield the one published trajectory beside single trajectories, not threes, of ours; some have no first error."""
    for name, (h, published, figure) in TRAJECTORY.items():
        for agent in agents:
            ours = [float(value) for run in grid["Stepwise Sum", h, agent.name] if (value := figure(run)) is not None]
            yield row_of(agent, f"h = {h}: {name}", published, ours, UNNAMED)


def _causes(grid: Grid) -> Iterator[dict[str, Cell]]:
    """Yield errors by cause, a run, and how far P(wrong) exceeds P(missed) over the steps."""
    for (family, h, name), runs in grid.items():
        if h in PRESSED:
            counts = {
                CAUSE_MEASURES[cause].label: mean(float(run.score.errors[cause]) for run in runs) for cause in CAUSES
            }
            excess = mean(profile.excess for profile in decompose([run.verdicts for run in runs]))
            yield {"workload": family, "h": h, "agent": name, **counts, "P(wrong) − P(missed)": excess}


def _predictions(grid: Grid) -> Iterator[dict[str, Cell]]:
    """Yield what misses alone predict beside what was observed, over all seeds."""
    for (family, h, name), runs in grid.items():
        if h in PRESSED:
            missed = fmean(run.score.miss_rate for run in runs)
            scores = [run.score for run in runs]
            alone = fmean(no_cascade(score.missed, score.steps, score.consuming_all).of_all for score in scores)
            predicted = store_recall_accuracy(missed) if family == "Store–Recall" else alone
            observed = fmean(one.accuracy for one in scores)
            yield {
                "workload": family,
                "h": h,
                "agent": name,
                "miss rate": missed,
                "predicted": predicted,
                "observed": observed,
                "residual": residuals([observed], [predicted]).mean,
            }


def _gap_chart(grid: Grid, agent: StudyAgent) -> Chart:
    series = []
    for family in ("Store–Recall", "Stepwise Sum"):
        levels = [
            spread(in_threes(grid[family, h, agent.name], lambda run: run.score.step_accuracy)) for h in CAPACITIES
        ]
        series.append(banded(family, "line", PRESSURES, levels, is_share=True))
    said = ", ".join(f"{one.name} {one.y[2]:.0%}" for one in series)
    return Chart(
        "accuracy-of-consuming-steps",
        "Accuracy of steps that use earlier results",
        f"At m/h = 2, with the {agent.name}, steps that use earlier results are right in: {said}.",
        Axis("m/h"),
        Axis("accuracy", low=0, high=1, percent=True),
        tuple(series),
        "RECALL steps alone in Store–Recall",
    )


def _timeline(runs: Sequence[Run], agent: StudyAgent) -> Chart:
    """Return the modes of the run whose counts of errors are nearest to the middle of all."""
    middle = fmean(run.score.errors["cascade"] for run in runs)
    run = min(runs, key=lambda one: abs(one.score.errors["cascade"] - middle))
    modes = {"correct": None, **{CAUSE_MEASURES[cause].label: cause for cause in CAUSES}}
    counts = {name: sum(v.cause == cause for v in run.verdicts) for name, cause in modes.items()}
    cells = [(v.t, name, float(v.cause == cause)) for name, cause in modes.items() for v in run.verdicts]
    cells += [(v.t, "missing an input", float(v.missed)) for v in run.verdicts]
    x, y, value = (tuple(column) for column in zip(*cells, strict=True))
    said = ", ".join(f"{count} {name}" for name, count in counts.items())
    return Chart(
        "mode-timeline",
        f"One run at h = 12, {agent.name}",
        f"A run of 64 steps whose first miss is at step {run.score.first_miss}: {said}.",
        Axis("step"),
        Axis("what became of the step", "category"),
        (Series("1: so it was", "cells", x, y, value=value),),
    )


def store_recall_theory(setting: Setting) -> Findings:
    """Compare what misses alone predict for Store–Recall with what was observed."""
    agents, seeds = agents_for(setting, *AGENTS), seeds_of(setting, SEEDS)
    spec = FAMILIES["Store–Recall"]
    runs = {(h, agent.name): run_cell(spec, Access(h=h), agent, seeds) for h in CAPACITIES for agent in agents}
    rows = []
    for agent in agents:
        cells = [_predicted(runs[h, agent.name]) for h in PRESSED]
        errors = [residuals(*zip(*cell, strict=True)).mean_absolute for cell in zip(*cells, strict=True)]
        label = "observed − predicted: mean absolute error"
        rows.append(row_of(agent, label, THEORY, errors, STRONG))
    figure = Figure("store-recall-theory", "Store–Recall: theory and observed", tuple(_theory_charts(runs, agents)))
    made = commands(setting, "store-recall-theory")
    return Findings(sectioned({"Store–Recall, 0.5 + 0.5 (1 − miss rate)": rows}), figures=(figure,), commands=made)


def _predicted(runs: Sequence[Run]) -> list[tuple[float, float]]:
    """Return what was observed and what misses alone predict, for each three of seeds."""
    observed = in_threes(runs, accuracy)
    predicted = map(store_recall_accuracy, in_threes(runs, lambda run: run.score.miss_rate))
    return list(zip(observed, predicted, strict=True))


def _theory_charts(runs: Cells, agents: Sequence[StudyAgent]) -> Iterator[Chart]:
    observed, apart = [], []
    for agent in agents:
        cells = [_predicted(runs[h, agent.name]) for h in CAPACITIES]
        levels = [fmean(a for a, _ in cell) for cell in cells]
        expected = tuple(fmean(b for _, b in cell) for cell in cells)
        observed.append(Series(agent.name, "line", PRESSURES, tuple(levels)))
        apart.append(Series(agent.name, "line", PRESSURES, tuple(a - b for a, b in zip(levels, expected, strict=True))))
    observed.append(Series("predicted", "line", PRESSURES, expected, dashed=True))
    said = ", ".join(f"{one.name} {one.y[2]:.3f}" for one in observed)
    yield Chart(
        "store-recall-accuracy",
        "Accuracy",
        f"At m/h = 2: {said}; published {TABLE['Store–Recall'][2]:.3f}.",
        Axis("m/h"),
        Axis("accuracy", low=0, high=1, percent=True),
        tuple(observed),
    )
    largest = max(abs(value) for one in apart for value in one.y if isinstance(value, float))
    yield Chart(
        "store-recall-residual",
        "Observed − predicted",
        f"The largest difference from the prediction is {largest:.3f}; published residuals average {THEORY:.3f}.",
        Axis("m/h"),
        Axis("difference"),
        (*apart, Series("no difference", "rule", (1.0,), (0.0,), dashed=True)),
    )
