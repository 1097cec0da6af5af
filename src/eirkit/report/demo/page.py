"""Runs the computations of `eirkit demo` and builds its page: theory, controlled runs and recorded runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import log2
from pathlib import Path
from typing import Any

from msgspec.structs import asdict

from eirkit.lacuna.agents.bundled import WEIGHTS
from eirkit.lacuna.findings.measures import RUN_MEASURES, SIMULATION_MEASURES
from eirkit.lacuna.models.network.layout import load_weights
from eirkit.lacuna.tasks.generation import prepare
from eirkit.lacuna.tasks.task import TaskSpec
from eirkit.report.demo.figures import (
    CauseRow,
    ContractContrast,
    DemandRow,
    Demonstration,
    RecordedFigures,
    RecoveryRow,
    RetentionRow,
    ShownRescue,
    Substitutes,
)
from eirkit.report.demo.questions import (
    AGENT,
    CAPACITIES,
    CELLS,
    CORPUS,
    RESCUED,
    WORKLOAD,
    WORKLOADS,
    contrast,
    count_substitutes,
    demand_row,
    example,
    planted,
    recovery_row,
    retention_row,
    run_chain,
    substitutes,
)
from eirkit.report.document import Axis, Chart, Headline, Listing, Page, Section, Series
from eirkit.report.folders import pages
from eirkit.report.logs.analyzed import Analyzed
from eirkit.report.logs.needs import demand_chart, reading_section
from eirkit.report.runs.accuracy import accuracy_section, causes_section, first_miss_section, pressure_section
from eirkit.report.runs.demand import demand_section
from eirkit.report.runs.evidence import rescue_section
from eirkit.report.runs.folder import SweepFolder
from eirkit.report.runs.page import rebuilding_section
from eirkit.report.runs.possible import possible_section
from eirkit.report.table import Column, Table, cells_of, counted, number, share
from eirkit.vestige.corpus.analysis import AnalyzedRun

TITLE = "Three questions about memory, answered"
SUBTITLE = "How much must an agent remember, does its memory keep it, and what did recorded runs lose?"
POLICY_NAMES = {"theory": "task-aware"}  # as tables call them
SHOWN = {"prompt": "What it saw", "reply": "What it wrote"}


def demonstration_page(figures: Demonstration, sweep: SweepFolder, run: AnalyzedRun, corpus: Analyzed) -> Page:
    """Return the page: exact demand, a causal chain, recorded runs."""
    sections = (
        survival_section(figures.demand, figures.contrast),
        retention_section(figures.retention),
        recovery_section(figures.recovery),
        *_chain_sections(sweep, figures),
        run_section(run),
        corpus_section(corpus),
        rebuilding_section(sweep),
    )
    headline = _headline(figures, run)
    shown = tuple(section for section in sections if section is not None)
    return Page(TITLE, headline, shown, SUBTITLE, figures, "demo")


def _headline(figures: Demonstration, run: AnalyzedRun) -> Headline:
    contrast, cells = figures.contrast, {row.h: row for row in figures.causes}
    whole, short = cells[max(cells)], cells[RESCUED]
    arms = {row.arm: share(row.accuracy) for row in figures.rescue.rows}
    caption = (
        f"of the steps were right with {short.h} of {whole.h} results in context, {share(whole.accuracy)} with all "
        f"{whole.h}"
    )
    sentences = (
        f"Restoring the missing result makes {arms['oracle']} of the steps that lacked it right, another value of the "
        f"same length {arms['sham']}: the errors come from what was forgotten.",
        f"{_who(figures)} It worked through sums with {_held()} of its results in sight.",
        f"It had to carry {contrast.every_step_bits:.1f} bits across a cut where any sum may be asked for, and "
        f"{contrast.final_only_bits:.1f} bits where only the total is: the same inputs, another contract.",
        f"A recorded run of {run.run.turns} turns needed {number(run.run.peak_demand_tokens)} tokens at its peak; "
        f"{number(run.run.dead_read_tokens)} of {number(run.run.read_tokens)} tokens that it read led nowhere.",
    )
    return Headline(share(short.accuracy), caption, sentences)


def _who(figures: Demonstration) -> str:
    millions = figures.agent_parameters / 1e6
    return f"The agent is `{AGENT}`, a neural network of {millions:.1f} million parameters that comes with the package."


def _held() -> str:
    *more, last = map(str, CAPACITIES)
    return f"{', '.join(more)} or {last}"


def survival_section(rows: Sequence[DemandRow], contrast: ContractContrast) -> Section:
    """Return the section on the bits that must survive each cut of six workloads."""
    series = []
    for row in rows:
        known = [(float(t), bits) for t, bits in enumerate(row.bits) if bits is not None]
        x, y = tuple(t for t, _ in known), tuple(bits for _, bits in known)
        series.append(Series(row.workload, "step" if row.cuts == "all" else "line", x, y))
    least, most = (pick(rows, key=lambda row: row.peak_bits) for pick in (min, max))
    told = (
        f"From {least.peak_bits:.1f} bits ({least.workload}) to {most.peak_bits:.1f} bits "
        f"({most.workload}) at the peak, over tasks of the same length and window."
    )
    axes = Axis("after step", low=0.0, high=64.0), Axis("bits", low=0.0)
    chart = Chart("survival", "Bits that must survive each cut", told, *axes, tuple(series))
    columns = (
        Column("workload", "task", role="name"),
        Column("peak_bits", "peak, bits", 1),
        Column(
            "records",
            "results that hold as much",
            2,
            meaning="how many of the task's own results hold as much; one of Top-k is two values",
        ),
        Column("method", "why"),
    )
    words = (
        "EIR, the execution information requirement: the logarithm of how many histories the future can still tell "
        f"apart. Asked for any sum, a window of 16 needs {contrast.every_step_bits:.1f} bits; asked for the total "
        f"alone, {contrast.final_only_bits:.1f}.",
    )
    table = Table("peaks", "At the peak", columns, tuple(cells_of(row, columns) for row in rows))
    return Section("1. How much must survive?", words, (chart, table))


def retention_section(rows: Sequence[RetentionRow]) -> Section:
    """Return the section on what retention policies miss at pressures of one and two."""
    policies = tuple(rows[0].miss_rate)
    places = tuple(f"{row.workload}, h = {row.h}" for row in rows)
    online = SIMULATION_MEASURES["online_miss_rate"]
    best = Series(online.label, "points", places, tuple(row.online_miss_rate for row in rows), dashed=True)
    bars = tuple(
        Series(POLICY_NAMES.get(policy, policy), "bars", places, tuple(row.miss_rate[policy] for row in rows))
        for policy in policies
    )
    series = (*bars, best)
    worst = max(row.miss_rate["lru"] for row in rows if row.eir_pressure is not None and row.eir_pressure <= 1)
    told = (
        f"At pressure 1 the right policy misses nothing and LRU up to {share(worst)} of the steps; above 1 "
        "every policy misses something."
    )
    axes = Axis("task and capacity", "category"), Axis.of(RUN_MEASURES["miss_rate"])
    chart = Chart("policies", "What policies miss", told, *axes, series)
    lines = tuple(
        {"workload": r.workload, "h": r.h, "eir_pressure": r.eir_pressure, **r.miss_rate}
        | {online.id: r.online_miss_rate}
        for r in rows
    )
    columns = (
        Column("workload", "task", role="name"),
        Column.of(RUN_MEASURES["h"]),
        replace(Column.of(SIMULATION_MEASURES["eir_pressure"]), digits=2),
        *(
            Column(policy, POLICY_NAMES.get(policy, policy), 3, percent=True)
            for policy in policies
            if policy != "belady"
        ),
        Column.of(online, priority=1),
        Column("belady", "belady", 3, percent=True),
    )
    words = (
        f"Mean over {rows[0].tasks} tasks. Belady sees the future, the task-aware policy what can still matter. "
        f"{online.label.capitalize()} is an expectation, not a mean over these tasks: no policy without that knowledge "
        "can expect to miss less, though in a sample one may. What lies between it and Belady is hindsight.",
    )
    table = Table("policies-table", "Miss rates of policies", columns, lines)
    return Section("2. Does a policy keep it?", words, (chart, table))


def recovery_section(rows: Sequence[RecoveryRow]) -> Section:
    """Return the section on the cost of recovering a lost result."""
    columns = (
        Column("fan_in", "inputs a step"),
        Column("fetched", "fetched", meaning="reads if the result itself is stored"),
        Column("results_kept", "results kept", 1, meaning="reads if every intermediate result is computed once"),
        Column("nothing_kept", "nothing kept", 1, meaning="reads if nothing is"),
        Column("depth", "depth", 1, meaning="steps one after the other that this goes back"),
    )
    title = f"Reads to rebuild a lost result, mean of {rows[0].cones:,} results"
    table = Table("recovery", title, columns, tuple(cells_of(row, columns) for row in rows))
    words = ("What was stored is fetched. What was not is computed again from its inputs, which may be lost as well.",)
    return Section("3. What does it cost to rebuild it?", words, (table,))


def _chain_sections(sweep: SweepFolder, figures: Demonstration) -> list[Section | None]:
    record = log2(prepare(TaskSpec(WORKLOAD)).alphabet(TaskSpec(WORKLOAD)))
    intro = Section(
        "4. An agent under pressure",
        (
            f"{_who(figures)} It has learned to look results up and to add, from steps at which nothing was missing; "
            "what it does where something is missing is its own doing.",
            f"It answers {WORKLOAD}, where each step adds two of the last 16 results to a fresh number, with {_held()} "
            f"of its results in sight; a result is {record:.1f} bits. Every figure below comes from the folder `run` "
            "beside this page, as `eirkit lacuna run` writes it.",
        ),
    )
    rescued = [rescue_section(rescue.result) for rescue in sweep.rescues()]
    return [
        intro,
        accuracy_section(sweep),
        causes_section(sweep),
        substitutes_section(figures.substitutes),
        *rescued,
        pressure_section(sweep),
        demand_section(sweep),
        possible_section(sweep),
        first_miss_section(sweep),
    ]


def substitutes_section(found: Substitutes) -> Section | None:
    """Return what the agent put in the place of a missing result: one step as it was, and how often it copied."""
    example = found.example
    if example is None:
        return None
    mixed = found.lookups - found.copied
    words = (
        "Before its answer the agent writes the values that it looked up, so one sees what it put in the place of a "
        f"missing one. Step {example.t} of the first run: {example.sentence} It does not say that anything is "
        "missing.",
        f"So it was at {counted(found.lookups, 'lookup')} of results out of sight, with {RESCUED} others in sight: "
        f"{found.copied:,} times it copied one of those, {mixed:,} times it wrote a value that stands nowhere; "
        f"{found.right:,} of all these were the missing value.",
    )
    saw, wrote = (Listing(f"substitute-{name}", title, getattr(example, name)) for name, title in SHOWN.items())
    return Section("What stood in for a missing result", words, (saw, wrote))


def run_section(analysis: AnalyzedRun) -> Section:
    """Return the section on one recorded run: what it still needed before each turn."""
    run, cuts = analysis.run, analysis.tables["cuts"]
    turns: Sequence[Any] = cuts["cut"]
    tokens: Sequence[Any] = cuts["demand_tokens"]
    x, y = tuple(map(float, turns)), tuple(map(float, tokens))
    told = (
        f"Demand peaks at {number(run.peak_demand_tokens)} tokens before turn {run.peak_cut}; "
        f"{number(run.read_tokens)} tokens were read, {number(run.repeat_tokens)} again though "
        f"unchanged, {number(run.dead_read_tokens)} in vain."
    )
    axes = Axis("before turn", low=1.0, high=float(len(x))), Axis("tokens still needed", low=0.0)
    chart = Chart("cuts", f"What {run.run_id} needed", told, *axes, (Series("live demand", "step", x, y),))
    names = ("path", "reads", "writes", "read_tokens", "repeat_tokens")
    columns = tuple(Column(name, name.replace("_", " ")) for name in names)
    table = Table("files", "Files of the run", columns, tuple(map(asdict, analysis.files)))
    words = (
        f"{run.run_id}, a log of {run.turns} turns in the `plain` format: what each turn read and wrote. Live is what "
        "was seen before a turn and is used after it by work that leads to the goal, "
        f"{', '.join(f'`{path}`' for path in run.goal_files)}.",
    )
    return Section("5. One recorded run", words, (chart, table))


def corpus_section(corpus: Analyzed) -> Section:
    """Return the section on a synthetic corpus in which demand causes failure by construction."""
    auc = corpus.auc
    odds = CORPUS.effects.demand_odds
    found = ""
    if auc is not None and auc.estimate is not None:
        known = auc.low is not None and auc.high is not None
        interval = f" (95% interval {auc.low:.2f} to {auc.high:.2f})" if known else ""
        found = f" A failed run needed more than a successful one with probability {auc.estimate:.2f}{interval}."
    words = (
        f"{CORPUS.runs} made-up runs with a planted effect: each doubling of what had to be kept multiplies the odds "
        f"of failure by {odds}, and the analysis has to find it.{found} In recorded runs the same figure is "
        "association, not cause.",
    )
    reads = reading_section(corpus.summary)
    chart = demand_chart(corpus.runs, "tokens")
    return Section("6. Many recorded runs", words, (chart, *(reads.items[:1] if reads else ())))


@pages.add("demo")
def page(folder: Path, others: Sequence[Path], *, tests: bool, plugins: bool = False) -> Page:
    """Run the demonstration into a folder and return its page; `answers` are its figures."""
    sweep, run, corpus = run_chain(folder / "run"), example(), planted()
    (rescued,) = (rescue.result for rescue in sweep.rescues())
    by_cell, auc = sweep.by_cell(), corpus.auc
    figures = Demonstration(
        demand=tuple(map(demand_row, WORKLOADS)),
        contrast=contrast(),
        retention=tuple(retention_row(name, h) for name, h in CELLS),
        recovery=tuple(map(recovery_row, (1, 2, 4))),
        agent=AGENT,
        agent_parameters=load_weights(WEIGHTS).parameters,
        causes=tuple(
            CauseRow(
                row.h or 0, row.accuracy, row.scored, sum(run.score.steps for run in by_cell[row.cell]), row.errors
            )
            for row in sweep.rows
        ),
        rescue=ShownRescue(rescued.rows, rescued.repair_effect, rescued.contrasts, rescued.failures),
        substitutes=count_substitutes(list(substitutes(sweep.folder, RESCUED))),
        recorded=RecordedFigures(
            **{name: getattr(run.run, name) for name in RecordedFigures.__struct_fields__ if hasattr(run.run, name)},
            planted_runs=len(corpus.runs),
            failure_auc=None if auc is None else auc.estimate,
        ),
    )
    return demonstration_page(figures, sweep, run, corpus)
