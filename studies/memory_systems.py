"""RQ4, architectures: the paper's tables of external memory systems beside ours, and Full Lookup in its two panels.

Ours are runs of a reference agent with the real systems, where they are installed; where one is not, the table says how
to get it. python -m studies.memory_systems [--json | --markdown] [SYSTEM …]
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from eirkit.lacuna.evidence.lookups import FATES
from eirkit.lacuna.evidence.pooling import mean
from eirkit.lacuna.evidence.statistics import Interval, bootstrap_mean
from eirkit.lacuna.sweeps.cells import Access
from eirkit.lacuna.task import TaskSpec
from studies.agent_rows import Row, compare, trait
from studies.agent_runs import FOUR, in_threes, in_words, pooled, run_cell, show, worded
from studies.memory_runs import MemoryRun, exact_share, external, how_to_get, run_memories
from studies.retention_cells import READS, accuracy

SEEDS = 12
SYSTEM_SEEDS = 3  # as published; a real system takes up to a second a call
SYSTEM_STEPS = 24  # for the same reason; the published runs have 64
TITLES = {
    "store-recall": "Store–Recall",
    "stepwise-topk": "Stepwise Top-k",
    "stepwise-sum": "Stepwise Sum",
    "stepwise-max": "Stepwise Maximum",
    "full-lookup": "Full Lookup",
    "running-max": "Running Maximum",
}
SYSTEMS = {"mem0": "Mem0", "amem": "A-MEM", "graphiti": "Graphiti", "letta": "Letta"}
OTHERS = ("key-value", "text", "bm25", "vector", "vector-minilm", "mcp", "langmem")  # without a published partner
# Published accuracy, m = 8, pooled over h = 2 and 4, four models and three seeds: conditions, then external systems,
# with how many of 24 cells were scored.
CONDITIONS = {
    "store-recall": {"paging": 1.000, "fifo": 0.811},
    "stepwise-topk": {
        "paging": 0.501,
        "fifo": 0.283,
        "floor": 0.342,
        "scratch": 0.062,
        "belady": 0.060,
        "lru": 0.053,
        "scratch-lru": 0.012,
    },
}
EXTERNAL: dict[str, dict[str, tuple[float | None, int]]] = {
    "store-recall": {"mem0": (0.996, 24), "amem": (0.959, 24), "graphiti": (1.000, 24), "letta": (0.370, 24)},
    "stepwise-topk": {"mem0": (0.289, 24), "amem": (0.429, 24), "graphiti": (0.440, 24), "letta": (0.000, 24)},
    "stepwise-sum": {"mem0": (0.411, 12), "amem": (0.436, 24), "graphiti": (0.767, 24), "letta": (0.370, 24)},
    "stepwise-max": {"mem0": (None, 0), "amem": (0.942, 24), "graphiti": (0.941, 21), "letta": (0.012, 8)},
    "full-lookup": {"mem0": (0.482, 19), "amem": (0.949, 24), "graphiti": (0.986, 24), "letta": (0.177, 24)},
    "running-max": {"mem0": (0.952, 15), "amem": (0.955, 24), "graphiti": (0.969, 24), "letta": (0.016, 24)},
}
# Full Lookup, 16 STOREs and 48 queries, at h = 4 and 8.
STRICT = {
    "belady": (0.490, 0.668),
    "fifo": (0.396, 0.625),
    "lru": (0.396, 0.626),
    "lfu": (0.396, 0.626),
    "fixed": (0.397, 0.628),
}
STRICT_MEM0 = (0.417, 0.621)
NATIVE = {"paging": (1.000, 1.000), "scratch": (0.266, 0.281)}
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

NEVER_SLIPS = (
    "the recoverer never slips, keeps what it is told to keep and, with reads, fetches whatever is missing while its "
    "200 actions last; the four models also lose steps to arithmetic, to thrashing and to the limit"
)
EXECUTES = (
    "four models over three seeds against one scripted agent: ours is what the system stores and finds over 24 steps, "
    "with 10,000 actions; theirs also has what the models made of it over 64, at most 200 turns, and versions and "
    "settings that the paper does not give"
)
BELADY = (
    "Belady with hindsight holds the records that will be asked for soonest; the models' runs stay far below it, which "
    "the paper puts down to their execution"
)
TEXT = "the recoverer's notes are flawless; bounded text cost the four models even STORE steps"


def condition(name: str, h: int, reads: int | None) -> Access:
    """Return the paper's condition; forced paging reads, and the floor does not, whatever is asked."""
    fixed: Mapping[str, int | None] = {"paging": None, "floor": 0}
    return Access(name, None, h=h, reads=fixed.get(name, reads))


def condition_rows(seeds: Sequence[int]) -> Iterator[Row]:
    """Yield the rows of the architecture table that need no external system."""
    for workload, by_name in CONDITIONS.items():
        spec = TaskSpec(workload, m=8)
        for name, published in by_name.items():
            for budget in ("reads",) if name == "paging" else ("no reads",) if name == "floor" else READS:
                cells = [run_cell(spec, condition(name, h, READS[budget]), "recoverer", seeds) for h in (2, 4)]
                label = f"{TITLES[workload]}, {NAMES[name]}"
                yield compare(label, published, pooled(cells, accuracy), (FOUR, f"recoverer, {budget}"), NEVER_SLIPS)


def panel_rows(panel: Mapping[str, tuple[float, float]], seeds: Sequence[int]) -> Iterator[Row]:
    """Yield Full Lookup under one panel's conditions, without recovery but for paging."""
    spec = TaskSpec("full-lookup")
    for name, figures in panel.items():
        for h, published in zip((4, 8), figures, strict=True):
            threes = in_threes(run_cell(spec, condition(name, h, 0), "recoverer", seeds), accuracy)
            reason = {"belady": BELADY, "scratch": TEXT}.get(name, NEVER_SLIPS)
            yield compare(f"{NAMES[name]}, h = {h}", published, threes, (FOUR, "recoverer"), reason)


def strict_mem0_rows(seeds: Sequence[int]) -> Iterator[Row]:
    """Yield Mem0 limited to h records, with nothing else in sight."""
    cells = [(TaskSpec("full-lookup"), external("mem0", h, "strict")) for h in (4, 8)]
    for h, published, runs in zip((4, 8), STRICT_MEM0, run_memories(cells, seeds), strict=True):
        if runs:
            right = [run.score.accuracy for run in runs]
            yield trait(f"Mem0 limited to h, h = {h}", published, right, (FOUR, "recoverer"), EXECUTES)


Ran = dict[str, dict[str, list[MemoryRun]]]  # memory → workload → the runs at both capacities


def run_systems(names: Sequence[str], seeds: Sequence[int]) -> Ran:
    """Return the runs of every system on every workload at both capacities: m = 8, h = 2, 4; Full Lookup 16, 4, 8."""
    ran: Ran = {}
    for name in names:
        cells = [(_spec(w), external(name, h * (2 if w == "full-lookup" else 1))) for w in TITLES for h in (2, 4)]
        runs = run_memories(cells, seeds)
        ran[name] = {w: [*runs[2 * i], *runs[2 * i + 1]] for i, w in enumerate(TITLES)}
    return ran


def _spec(workload: str) -> TaskSpec:
    return TaskSpec(workload, n=SYSTEM_STEPS, m=16 if workload == "full-lookup" else 8)


def external_rows(ran: Ran) -> Iterator[Row]:
    """Yield the published figures of external systems beside ours, for those that ran here."""
    for workload, by_system in EXTERNAL.items():
        for name, (published, scored) in by_system.items():
            runs = ran.get(name, {}).get(workload, [])
            if runs and published is not None:
                label = f"{TITLES[workload]}, {SYSTEMS[name]} ({scored}/24 scored)"
                right = interval(runs)
                yield Row(label, published, right.estimate, right.low, right.high, "model", FOUR, "recoverer", EXECUTES)


def interval(runs: Sequence[MemoryRun]) -> Interval:
    """Return the mean accuracy of runs with an interval over seeds."""
    return bootstrap_mean([run.score.accuracy for run in runs], [run.seed for run in runs])


def external_table(ran: Ran) -> list[dict[str, Any]]:
    """Return the same rows for reading, with what was found of what was missing."""
    found = []
    for row in external_rows(ran):
        workload, name = next(
            (w, n) for w in TITLES for n in SYSTEMS if row.label.startswith(f"{TITLES[w]}, {SYSTEMS[n]} ")
        )
        line = {"figure": row.label, "published": row.published, "recoverer": row.ours}
        bounds = f"{row.low:.3f} … {row.high:.3f}"
        found.append({**line, "95% interval": bounds, **_found(ran[name][workload]), "verdict": worded(row).verdict})
    return found


def _found(runs: Sequence[MemoryRun]) -> dict[str, Any]:
    missing = sum(sum(run.memory["fates"].values()) for run in runs)
    brought = sum(run.memory["fates"][fate] for run in runs for fate in ("used", "not_used"))
    low, high = exact_share(brought, missing)
    bounds = f"{low:.3f} … {high:.3f}" if missing else None  # nothing was missing, so that nothing is known
    return {"found of missing": f"{brought} of {missing}", "share found, 95%": bounds}


def absent_table(ran: Ran) -> list[dict[str, Any]]:
    """Return the cells without a figure on one side: systems that did not run here, and what was never scored."""
    return [
        {
            "system": SYSTEMS[name],
            "workload": TITLES[workload],
            "published": published,
            "scored": f"{scored}/24",
            "ours": how_to_get(name) or _alone(ran.get(name, {}).get(workload)),
        }
        for workload, by_system in EXTERNAL.items()
        for name, (published, scored) in by_system.items()
        if not ran.get(name, {}).get(workload) or published is None
    ]


def _alone(runs: Sequence[MemoryRun] | None) -> str:
    if runs is None:
        return "not run: name it on the command line"
    return f"{mean(run.score.accuracy for run in runs):.3f}" if runs else "every run was lost"


def system_table(ran: Ran, seeds: Sequence[int]) -> list[dict[str, Any]]:
    """Return what every system that ran did: accuracy by workload, what went missing, time and its own calls."""
    return [
        {
            "memory": name,
            **{TITLES[w]: mean(run.score.accuracy for run in runs) for w, runs in by_workload.items()},
            "all, 95%": _bounds([run for runs in by_workload.values() for run in runs]),
            **_measured([run for runs in by_workload.values() for run in runs], 2 * len(seeds) * len(by_workload)),
        }
        for name, by_workload in ran.items()
    ]


def _bounds(runs: Sequence[MemoryRun]) -> str | None:
    if not runs:
        return None
    found = interval(runs)
    return f"{found.low:.3f} … {found.high:.3f}"


def _measured(runs: Sequence[MemoryRun], attempted: int) -> dict[str, Any]:
    def total(name: str) -> int:
        return sum(int(run.memory[name]) for run in runs)

    fates = {fate: sum(run.memory["fates"][fate] for run in runs) for fate in FATES}
    return {
        "scored": f"{len(runs)}/{attempted}",
        **_found(runs),
        "lost": fates["not_stored"],
        "not found": fates["not_found"],
        "other value": fates["other_value"],
        "ms/write": _milliseconds(runs, "write_seconds", total("writes")),
        "ms/search": _milliseconds(runs, "search_seconds", total("searches")),
        "own calls": total("model_calls"),
        "own tokens": total("input_tokens") + total("output_tokens"),
    }


def _milliseconds(runs: Sequence[MemoryRun], name: str, calls: int) -> str | None:
    return f"{1000 * sum(run.memory[name] for run in runs) / calls:.1f}" if calls else None


FURTHER = {
    "external": f"External systems, pooled over two capacities; published figures by {FOUR}",
    "systems": "Every memory system that ran: n = 24, m = 8, h = 2 and 4 (Full Lookup m = 16, h = 4 and 8), recoverer",
    "absent": "Cells with a figure on one side only",
}


def usable(names: Sequence[str]) -> list[str]:
    """Return those of some systems that can run here."""
    return [name for name in names if how_to_get(name) is None]


def study(
    seeds: Sequence[int] = range(SEEDS),
    system_seeds: Sequence[int] = range(SYSTEM_SEEDS),
    systems: Sequence[str] | None = None,
) -> dict[str, Any]:
    """Return the comparison as one document.

    Args:
        systems: the memory systems to run; all that can run here unless given.
    """
    chosen = usable((*OTHERS, *SYSTEMS)) if systems is None else list(systems)
    ran = run_systems(chosen, system_seeds)
    strict = list(panel_rows(STRICT, seeds))
    sections = {
        "Architectures without external systems, m = 8, pooled over h = 2 and 4": list(condition_rows(seeds)),
        "Full Lookup, strict panel: h records and nothing else": [
            *strict,
            *(strict_mem0_rows(system_seeds) if "mem0" in chosen else ()),
        ],
        "Full Lookup, native panel: not held to h": list(panel_rows(NATIVE, seeds)),
    }
    further = {
        "external": external_table(ran),
        "systems": system_table(ran, system_seeds),
        "absent": absent_table(ran),
    }
    kept = {title: rows for title, rows in sections.items() if rows}
    title = f"Memory architectures: {len(seeds)} seeds, external systems {len(system_seeds)}"
    made = in_words("memory-systems", title, kept, seeds=len(seeds), **further)
    # Behind the rows of the sections: these have intervals in place of spreads, and a table of their own.
    return {**made, "rows": [*made["rows"], *(asdict(worded(row)) for row in external_rows(ran))]}


def main(arguments: Sequence[str]) -> None:
    named = [word for word in arguments if not word.startswith("--")]
    made = study(systems=named or None)
    show(made, {name: title for name, title in FURTHER.items() if made[name]}, arguments)


if __name__ == "__main__":
    main(sys.argv[1:])
