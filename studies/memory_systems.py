"""Reports what every installed memory system stored and returned, against the published figures and in detail.

Runs are those of `eirkit reproduce extended-architectures`, with a reference agent; for a system that is not installed,
a line says how to install it. python -m studies.memory_systems [--json | --markdown] [SYSTEM …]
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

from eirkit.lacuna.findings.statistics import bootstrap_mean, mean
from eirkit.records.runs import OUTCOMES
from eirkit.report.table import Table
from eirkit_paper.studies.agents import FOUR, reference
from eirkit_paper.studies.architectures import (
    EXTERNAL,
    SYSTEM_SEEDS,
    SYSTEMS,
    TITLES,
    MemoryScore,
    how_to_get,
    run_system,
)
from eirkit_paper.studies.comparison import listed
from eirkit_paper.study import NEEDS_MODEL
from studies.printing import show
from studies.shares import exact_share

OTHERS = ("key-value", "text", "bm25", "vector", "vector-minilm", "mcp", "langmem")  # without a published partner

Ran = dict[str, dict[str, list[MemoryScore]]]  # memory → workload → the runs at both capacities


def run_systems(names: Sequence[str], seeds: Sequence[int]) -> Ran:
    """Return the runs of every system on every workload."""
    agent = reference("recoverer")
    found = {name: run_system(name, agent, tuple(TITLES), seeds) for name in names}
    return {name: {w: list(chain(*cells)) for w, cells in by_workload.items()} for name, by_workload in found.items()}


def external_lines(ran: Ran) -> Iterator[dict[str, Any]]:
    """Yield the published figures of external systems beside ours, with what was found of what was missing."""
    for workload, by_system in EXTERNAL.items():
        for name, (published, scored) in by_system.items():
            runs = ran.get(name, {}).get(workload, [])
            if runs and published is not None:
                figure = f"{TITLES[workload]}, {SYSTEMS[name]} ({scored}/24 scored)"
                ours = {"recoverer": mean(run.score.accuracy for run in runs), "95% interval": _bounds(runs)}
                yield {"figure": figure, "published": published, **ours, **_found(runs), "verdict": NEEDS_MODEL}


def absent_lines(ran: Ran) -> Iterator[dict[str, Any]]:
    """Yield the cells without a figure on one side: systems that did not run here, and what was never scored."""
    for workload, by_system in EXTERNAL.items():
        for name, (published, scored) in by_system.items():
            runs = ran.get(name, {}).get(workload)
            if not runs or published is None:
                entry = {"system": SYSTEMS[name], "workload": TITLES[workload], "published": published}
                yield {**entry, "scored": f"{scored}/24", "ours": how_to_get(name) or _alone(runs)}


def _alone(runs: Sequence[MemoryScore] | None) -> str:
    if runs is None:
        return "not run: name it on the command line"
    return f"{mean(run.score.accuracy for run in runs):.3f}" if runs else "every run was lost"


def system_lines(ran: Ran, seeds: Sequence[int]) -> Iterator[dict[str, Any]]:
    """Yield what every system that ran did: accuracy by workload, what went missing, time and its own calls."""
    for name, by_workload in ran.items():
        runs = list(chain(*by_workload.values()))
        right = {TITLES[w]: mean(run.score.accuracy for run in own) for w, own in by_workload.items()}
        scored = f"{len(runs)}/{2 * len(seeds) * len(by_workload)}"
        yield {"memory": name, **right, "all, 95%": _bounds(runs), "scored": scored, **_found(runs), **_measured(runs)}


def _bounds(runs: Sequence[MemoryScore]) -> str | None:
    """Return the interval of the mean accuracy, over seeds."""
    if not runs:
        return None
    found = bootstrap_mean([run.score.accuracy for run in runs], [run.seed for run in runs])
    return f"{found.low:.3f} … {found.high:.3f}"


def _found(runs: Sequence[MemoryScore]) -> dict[str, Any]:
    outcomes = [run.memory.outcomes for run in runs if run.memory is not None]
    missing = sum(sum(counts.values()) for counts in outcomes)
    brought = sum(counts.get("used", 0) + counts.get("not_used", 0) for counts in outcomes)
    low, high = exact_share(brought, missing)
    bounds = f"{low:.3f} … {high:.3f}" if missing else None  # nothing was missing, so that nothing is known
    return {"found of missing": f"{brought} of {missing}", "share found, 95%": bounds}


def _measured(runs: Sequence[MemoryScore]) -> dict[str, Any]:
    memories = [run.memory for run in runs if run.memory is not None]
    found = {outcome: sum(memory.outcomes.get(outcome, 0) for memory in memories) for outcome in OUTCOMES}
    others = ("other_value", "swapped_value", "cut_value", "stale_value")
    return {
        "lost": found["not_stored"],
        "not found": found["not_found"],
        "other value": sum(found[outcome] for outcome in others),
        "ms/write": _milliseconds([(memory.write_seconds, memory.writes) for memory in memories]),
        "ms/search": _milliseconds([(memory.search_seconds, memory.searches) for memory in memories]),
        "own calls": sum(memory.model_calls for memory in memories),
        "own tokens": sum(memory.input_tokens + memory.output_tokens for memory in memories),
    }


def _milliseconds(measured: Sequence[tuple[float, int]]) -> str | None:
    """Return how long one call took, from seconds and numbers of calls."""
    calls = sum(number for _, number in measured)
    return f"{1000 * sum(seconds for seconds, _ in measured) / calls:.1f}" if calls else None


def usable(names: Sequence[str]) -> list[str]:
    """Return those of some systems that can run here."""
    return [name for name in names if how_to_get(name) is None]


def study(systems: Sequence[str], seeds: Sequence[int] = range(SYSTEM_SEEDS)) -> list[Table]:
    """Return the comparison and the details as tables."""
    ran = run_systems(systems, seeds)
    details = "Every memory system that ran: n = 24, m = 8, h = 2 and 4 (Full Lookup m = 16, h = 4 and 8), recoverer"
    compared = f"External systems, pooled over two capacities; published figures by {FOUR}"
    return [
        listed("external", compared, external_lines(ran)),
        listed("absent", "Cells with a figure on one side only", absent_lines(ran)),
        listed("systems", details, system_lines(ran, seeds)),
    ]


def main(arguments: Sequence[str]) -> None:
    named = [word for word in arguments if not word.startswith("--")]
    show(study(named or usable((*OTHERS, *SYSTEMS))), arguments)


if __name__ == "__main__":
    main(sys.argv[1:])
