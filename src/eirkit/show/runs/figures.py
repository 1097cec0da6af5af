"""What runs are compared by: the figures of one run, and the settings on which cells differ."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from operator import itemgetter
from typing import Any

from eirkit.findings.causes import CAUSES, Cause
from eirkit.findings.fates import FATES, Fate, pool_fates
from eirkit.show.runs.folder import TASK_AXES, RunFacts, condition_of

Row = Mapping[str, Any]
Figure = Callable[[RunFacts], float | None]


def _cause(cause: Cause, run: RunFacts) -> float:
    return run.score.error_shares[cause]


def _fate(fate: Fate, run: RunFacts) -> float | None:
    """Return the share of needed records with this fate; None if no record was needed."""
    return None if run.memory is None else pool_fates([run.memory["fates"]]).of(fate)


def _milliseconds(seconds: str, calls: str, run: RunFacts) -> float | None:
    if run.memory is None or not run.memory[calls]:
        return None
    return float(1000 * run.memory[seconds] / run.memory[calls])


def _of_memory(name: str, run: RunFacts) -> float | None:
    found = None if run.memory is None else run.memory[name]
    return None if found is None else float(found)


def _memory_tokens(run: RunFacts) -> float | None:
    return None if run.memory is None else float(run.memory["input_tokens"] + run.memory["output_tokens"])


def _of_agent(name: str, run: RunFacts) -> float | None:
    found = run.usage.get(name)
    return None if found is None else float(found)


def _agent_tokens(run: RunFacts) -> float | None:
    if "input_tokens" not in run.usage or run.usage.get("unreported_calls"):
        return None
    return float(run.usage["input_tokens"] + run.usage["output_tokens"])


FIGURES: Mapping[str, Figure] = {
    "accuracy": lambda run: run.score.accuracy,
    "final_accuracy": lambda run: float(run.score.final_correct),
    "miss_rate": lambda run: run.score.miss_rate,
    **{cause: partial(_cause, cause) for cause in CAUSES},
    **{fate: partial(_fate, fate) for fate in FATES},
    "write_ms": partial(_milliseconds, "write_seconds", "writes"),
    "search_ms": partial(_milliseconds, "search_seconds", "searches"),
    "records": partial(_of_memory, "records"),
    "bytes": partial(_of_memory, "bytes"),
    "model_calls": partial(_of_memory, "model_calls"),
    "memory_tokens": _memory_tokens,
    "memory_cost_usd": partial(_of_memory, "cost_usd"),
    "calls": partial(_of_agent, "calls"),
    "agent_tokens": _agent_tokens,
    "cost_usd": partial(_of_agent, "cost_usd"),
}


def _of_task(name: str, row: Row) -> Any:
    return row.get(name)


AXES: Mapping[str, Callable[[Row], Any]] = {
    "workload": lambda row: row["workload"],
    "model": lambda row: row["model"],
    "memory": condition_of,
    **{name: itemgetter(name) for name in ("n", "m", "lookback", "fan_in", "h", "b_oracle", "b")},
    **{name: partial(_of_task, name) for name in TASK_AXES},
}
