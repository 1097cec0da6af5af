"""Studies of memory architectures: conditions and external systems on six workloads, and Full Lookup in two panels.

External systems take up to a second per call, so they run only if `--memory` names them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from eirkit.lacuna.memories.factory import reason_absent
from eirkit.lacuna.memories.memory import STORE_ONLY
from eirkit.lacuna.runs.runner import runner_or_temporary
from eirkit.lacuna.tasks.task import TaskSpec
from eirkit.records.runs import MemoryRun, RunScore
from eirkit.records.settings import Access
from eirkit.report.document import Axis, Chart, Figure, Series
from eirkit_paper.published import value_of, values_of
from eirkit_paper.studies.agents import (
    FOUR,
    StudyAgent,
    accuracy,
    agents_for,
    commands,
    in_threes,
    pooled,
    reference,
    repeated,
    row_of,
    run_cell,
    seeds_of,
    study_plan,
)
from eirkit_paper.studies.comparison import absent, in_section, sectioned
from eirkit_paper.studies.managed import READS
from eirkit_paper.study import NEEDS_MEMORY, Findings, Setting, StudyRow

MANY_ACTIONS = 10_000  # so that the action limit does not affect the results
STEPS, ACTIONS = 64, 200  # of the published runs


@dataclass(frozen=True, slots=True)
class MemoryScore:
    """The score of one run, and what its memory did."""

    seed: int
    score: RunScore
    memory: MemoryRun | None  # None without an external memory


Cell = tuple[TaskSpec, Access]


# Systems whose records are written and sought without their own model or agent, which would be another experiment.
STORES = ("mem0", "letta", "langmem", "mcp")


def external(memory: str, h: int, panel: str = "native", actions: int = MANY_ACTIONS, **settings: Any) -> Access:
    """Return access to a memory system beside the last h records; in the strict panel it holds only h records."""
    settings |= {"profile": STORE_ONLY} if memory in STORES else {}
    return Access("external", None, memory, settings, panel, h=h, actions=actions)


def run_memories(
    cells: Sequence[Cell], seeds: Sequence[int], agent: StudyAgent | None = None
) -> list[list[MemoryScore]]:
    """Return the runs of each cell, without failed runs, which must not count as zero.

    Args:
        agent: the recoverer unless given, which writes every answer and searches for what is missing.
    """
    agent = agent or reference("recoverer")
    planned = [(agent.cell(spec, access), seeds) for spec, access in cells]
    with runner_or_temporary(agent.runner) as runner:
        results = runner.complete(study_plan(*planned))
        for cell, own in planned:
            for why in results.losses([(cell, own)]).values():
                print(f"not scored: {cell.access.memory}, {cell.task.workload}: {why}", file=sys.stderr)
        records = [[(seed, results.record(cell, seed)) for seed in own] for cell, own in planned]
    return [
        [
            MemoryScore(seed, record.score, record.memory)
            for seed, record in found
            if record is not None and record.score is not None
        ]
        for found in records
    ]


def how_to_get(memory: str) -> str | None:
    """Return why a memory system cannot be run and how to install it; None if it can."""
    if (why := reason_absent(memory)) is None:
        return None
    return f"not installed: eirkit doctor --install {memory}" if "doctor --install" in why else why


SEEDS = 12
SYSTEM_SEEDS = 3  # as published
SYSTEM_STEPS = 24  # a real system takes up to a second a call
TITLES = {
    "store-recall": "Store–Recall",
    "stepwise-topk": "Stepwise Top-k",
    "stepwise-sum": "Stepwise Sum",
    "stepwise-max": "Stepwise Maximum",
    "full-lookup": "Full Lookup",
    "running-max": "Running Maximum",
}
SYSTEMS = {"mem0": "Mem0", "amem": "A-MEM", "graphiti": "Graphiti", "letta": "Letta"}
NAMES = {
    "paging": "Forced paging (unbounded)",
    "fifo": "FIFO",
    "lru": "LRU",
    "lfu": "LFU",
    "fixed": "Fixed",
    "belady": "Belady",
    "floor": "No-recovery floor",
    "scratch": "Scratch",
    "scratch-lru": "Scratch–LRU",
}
# Published accuracy, m = 8, pooled over h = 2 and 4, four models and three seeds: conditions, then external systems,
# with how many of 24 cells were scored.
TABLE, EXTENDED = "tab:rq5-agent-architectures", "tab:rq4-extended-architectures"
CONDITIONS = {
    workload: {name: value_of(TABLE, f"{TITLES[workload]}, {NAMES[name]}", "Accuracy") for name in names}
    for workload, names in {
        "store-recall": ("paging", "fifo"),
        "stepwise-topk": ("paging", "fifo", "floor", "scratch", "belady", "lru", "scratch-lru"),
    }.items()
}


def _scored(workload: str, system: str) -> tuple[float | None, int]:
    """Return the accuracy and how many cells it is over; the paper prints none where none was scored."""
    row = f"{TITLES[workload]}{' (control)' if workload == 'running-max' else ''}, {SYSTEMS[system]}"
    scored = int(value_of(EXTENDED, row, "Scored"))
    return (value_of(EXTENDED, row, "Accuracy") if scored else None), scored


EXTERNAL = {workload: {system: _scored(workload, system) for system in SYSTEMS} for workload in TITLES}
# Full Lookup, 16 STOREs and 48 queries, at h = 4 and 8.


def _panel(**rows: str) -> dict[str, tuple[float, ...]]:
    return {name: values_of("sec:results-rq4", f"Full Lookup, {row}", "h = 4", "h = 8") for name, row in rows.items()}


STRICT = _panel(belady="Belady", fifo="FIFO", lru="LRU", lfu="LFU", fixed="Fixed floor")
STRICT_MEM0 = _panel(mem0="Mem0")["mem0"]
NATIVE = _panel(paging="Forced paging", scratch="Scratch")

LOST = "no seed was scored at both capacities"


def other_lengths(steps: int) -> str:
    """Return how long our runs of memory systems are, and the published ones."""
    return f"ours has {steps} steps and at most {MANY_ACTIONS:,} actions, the published runs {STEPS} and {ACTIONS}"


def condition(name: str, h: int, reads: int | None) -> Access:
    """Return the paper's condition; forced paging reads, and the floor does not, whatever is asked."""
    fixed: Mapping[str, int | None] = {"paging": None, "floor": 0}
    return Access(name, None, h=h, reads=fixed.get(name, reads))


def named(agent: StudyAgent, budget: str) -> StudyAgent:
    return agent.renamed(f"{agent.name}, {budget}")


def architectures(setting: Setting) -> Findings:
    """Compare Store–Recall and Stepwise Top-k under every architecture of the table."""
    agent, seeds = agents_for(setting, "recoverer")[0], seeds_of(setting, SEEDS)
    both = ("store-recall", "stepwise-topk")
    sections = {
        "Without external systems, m = 8, pooled over h = 2 and 4": list(condition_rows(agent, seeds)),
        "External systems": list(external_rows(setting, agent, both)),
    }
    return Findings(sectioned(sections), commands=wanted(setting, "architectures"))


def extended_architectures(setting: Setting) -> Findings:
    """Compare the four external systems on six workloads."""
    agent = agents_for(setting, "recoverer")[0]
    rows = in_section("External systems, pooled over two capacities", external_rows(setting, agent, tuple(EXTERNAL)))
    return Findings(rows, commands=wanted(setting, "extended-architectures"))


def wanted(setting: Setting, study: str) -> tuple[str, ...]:
    """Return what would run the systems that did not, and a model with them."""
    missing = [name for name in SYSTEMS if name not in setting.memories]
    install = [name for name in missing if how_to_get(name) is not None]
    lines = [f"eirkit doctor --install {','.join(install)}"] if install else []
    if missing:
        lines.append(f"eirkit reproduce {study} --memory {','.join(SYSTEMS)}")
    return (*lines, *commands(setting, study))


def condition_rows(agent: StudyAgent, seeds: Sequence[int]) -> Iterator[StudyRow]:
    """Yield the rows of the architecture table that need no external system."""
    for workload, by_name in CONDITIONS.items():
        spec = TaskSpec(workload, m=8)
        for name, published in by_name.items():
            for budget in ("reads",) if name == "paging" else ("no reads",) if name == "floor" else READS:
                cells = [run_cell(spec, condition(name, h, READS[budget]), agent, seeds) for h in (2, 4)]
                label = f"{TITLES[workload]}, {NAMES[name]}"
                yield row_of(named(agent, budget), label, published, pooled(cells, accuracy), FOUR)


def external_rows(setting: Setting, agent: StudyAgent, workloads: Sequence[str]) -> Iterator[StudyRow]:
    """Yield the published figures of external systems beside ours, for those that were asked for and are here."""
    ran = {name: run_system(name, agent, workloads) for name in setting.memories if how_to_get(name) is None}
    lengths = other_lengths(SYSTEM_STEPS)
    for workload in workloads:
        for name, (published, scored) in EXTERNAL[workload].items():
            if published is None:
                continue
            label = f"{TITLES[workload]}, {SYSTEMS[name]} ({scored}/24 scored)"
            runs = ran.get(name, {}).get(workload)
            if runs is None or not by_seed(runs):
                why = how_to_get(name) or (f"not asked for: --memory {name}" if runs is None else LOST)
                yield absent(label, published, NEEDS_MEMORY, why, FOUR)
            else:
                yield row_of(agent, label, published, repeated(by_seed(runs)), FOUR, also=lengths)


def by_seed(cells: Sequence[Sequence[MemoryScore]]) -> list[float]:
    """Return accuracy seed by seed, pooled over capacities; a seed that lost a run at one of them has none."""
    found = [{run.seed: run.score.accuracy for run in runs} for runs in cells]
    whole = sorted(set.intersection(*(set(one) for one in found)))
    return [fmean(one[seed] for one in found) for seed in whole]


def run_system(
    name: str, agent: StudyAgent, workloads: Sequence[str], seeds: Sequence[int] = range(SYSTEM_SEEDS)
) -> dict[str, list[list[MemoryScore]]]:
    """Return the runs of a system at each of two capacities: m = 8, h = 2, 4; Full Lookup 16, 4, 8."""
    cells = [(_spec(w), external(name, h * (2 if w == "full-lookup" else 1))) for w in workloads for h in (2, 4)]
    runs = run_memories(cells, seeds, agent)
    return {w: runs[2 * i : 2 * i + 2] for i, w in enumerate(workloads)}


def _spec(workload: str) -> TaskSpec:
    return TaskSpec(workload, n=SYSTEM_STEPS, m=16 if workload == "full-lookup" else 8)


def full_lookup_panels(setting: Setting) -> Findings:
    """Compare Full Lookup where h records are all there is, and where systems are not held to h."""
    agent, seeds = agents_for(setting, "recoverer")[0], seeds_of(setting, SEEDS)
    strict = [*panel_rows(STRICT, agent, seeds), *strict_mem0_rows(setting, agent)]
    sections = {
        "Strict panel: h records and nothing else": strict,
        "Native panel: not held to h": list(panel_rows(NATIVE, agent, seeds)),
    }
    return Findings(sectioned(sections), commands=wanted(setting, "full-lookup-architectures"))


def panel_rows(panel: Mapping[str, tuple[float, ...]], agent: StudyAgent, seeds: Sequence[int]) -> Iterator[StudyRow]:
    """Yield Full Lookup under one panel's conditions, without recovery but for paging."""
    spec = TaskSpec("full-lookup")
    for name, figures in panel.items():
        for h, published in zip((4, 8), figures, strict=True):
            threes = in_threes(run_cell(spec, condition(name, h, 0), agent, seeds), accuracy)
            yield row_of(agent, f"{NAMES[name]}, h = {h}", published, threes, FOUR)


def strict_mem0_rows(setting: Setting, agent: StudyAgent) -> Iterator[StudyRow]:
    """Yield Mem0 limited to h records, with nothing else in sight."""
    runs, spec = None, TaskSpec("full-lookup")
    if "mem0" in setting.memories and how_to_get("mem0") is None:
        cells = [(spec, external("mem0", h, "strict")) for h in (4, 8)]
        runs = run_memories(cells, range(SYSTEM_SEEDS), agent)
    for place, (h, published) in enumerate(zip((4, 8), STRICT_MEM0, strict=True)):
        label = f"Mem0 limited to h, h = {h}"
        if not runs or not runs[place]:
            why = how_to_get("mem0") or "not asked for: --memory mem0"
            yield absent(label, published, NEEDS_MEMORY, why, FOUR)
        else:
            right = repeated([run.score.accuracy for run in runs[place]])
            yield row_of(agent, label, published, right, FOUR, also=other_lengths(spec.n))


def architecture_outcomes(setting: Setting) -> Findings:
    """Draw the published and our outcomes of every architecture on three workloads."""
    agent, seeds = agents_for(setting, "recoverer")[0], seeds_of(setting, SEEDS)
    rows = [row for row in condition_rows(agent, seeds) if not row.ours_by.endswith(", reads") or "paging" in row.label]
    lookups = [*panel_rows(STRICT, agent, seeds), *panel_rows(NATIVE, agent, seeds)]
    panels = [_outcome_chart(TITLES[w], [row for row in rows if row.label.startswith(TITLES[w])]) for w in CONDITIONS]
    panels.append(_outcome_chart("Full Lookup", lookups))
    sections = {"Store–Recall and Stepwise Top-k": rows, "Full Lookup": lookups}
    figure = Figure("architecture-outcomes", "Outcomes depend on storage and execution", tuple(panels))
    return Findings(sectioned(sections), figures=(figure,), commands=wanted(setting, "architecture-outcomes"))


def _outcome_chart(title: str, rows: Sequence[StudyRow]) -> Chart:
    names = tuple(row.label.removeprefix(f"{title}, ") for row in rows)
    ours = tuple(row.ours for row in rows)
    low, high = tuple(max(0.0, row.low or 0.0) for row in rows), tuple(min(1.0, row.high or 0.0) for row in rows)
    best = max(rows, key=lambda row: row.ours or 0.0)
    worst = min(rows, key=lambda row: row.ours or 0.0)
    return Chart(
        f"outcomes-{title.lower().replace('–', '-').replace(' ', '-')}",
        title,
        f"{title}: ours from {worst.ours:.3f} ({worst.label}) to {best.ours:.3f} ({best.label}); published "
        f"{worst.published:.3f} and {best.published:.3f}.",
        Axis("architecture", "category"),
        Axis("accuracy", low=0, high=1, percent=True),
        (
            Series(rows[0].ours_by.split(",")[0], "bars", names, ours, low, high),
            Series("published", "points", names, tuple(row.published for row in rows), dashed=True),
        ),
    )
