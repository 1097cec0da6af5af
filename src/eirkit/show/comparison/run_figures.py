"""One figure of one run for each thing in which two sweeps are compared; None where the run does not have it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from eirkit.findings.fates import Fate
from eirkit.show.runs.folder import RunFacts

Figure = Callable[[RunFacts], float | None]


def _of_steps(run: RunFacts, count: int) -> float:
    return count / max(1, run.score.steps)


def _unanswered(run: RunFacts) -> int:
    kinds = run.score.kinds
    return kinds.get("unreached", 0) + kinds.get("unanswered", 0)


def _fate(fate: Fate, run: RunFacts) -> float | None:
    """Return the share of needed results out of sight with this fate; None where none was needed."""
    if run.memory is None:
        return None
    needed = sum(run.memory["fates"].values())
    return run.memory["fates"][fate] / needed if needed else None


def _milliseconds(seconds: str, calls: str, run: RunFacts) -> float | None:
    if run.memory is None or not run.memory[calls]:
        return None
    return float(1000 * run.memory[seconds] / run.memory[calls])


def _of_memory(name: str, run: RunFacts) -> float | None:
    found = None if run.memory is None else run.memory[name]
    return None if found is None else float(found)


def _own_tokens(run: RunFacts) -> float | None:
    return None if run.memory is None else float(run.memory["input_tokens"] + run.memory["output_tokens"])


def _of_agent(name: str, run: RunFacts) -> float | None:
    found = run.usage.get(name)
    return None if found is None else float(found)


def _agent_tokens(run: RunFacts) -> float | None:
    return float(run.usage["input_tokens"] + run.usage["output_tokens"]) if "input_tokens" in run.usage else None


FIGURES: Mapping[str, Figure] = {
    "accuracy": lambda run: run.score.accuracy,
    "task right": lambda run: float(run.score.final_correct),
    "out of sight": lambda run: run.score.miss_rate,
    "missing state": lambda run: _of_steps(run, run.score.errors["state_supply"]),
    "from an earlier error": lambda run: _of_steps(run, run.score.errors["cascade"]),
    "never answered": lambda run: _of_steps(run, _unanswered(run)),
    "own mistake": lambda run: _of_steps(run, run.score.errors["computation"] - _unanswered(run)),
    "came back, used": partial(_fate, "used"),
    "came back, not used": partial(_fate, "not_used"),
    "another label’s value": partial(_fate, "other_value"),
    "stored, not found": partial(_fate, "not_found"),
    "lost by the store": partial(_fate, "not_stored"),
    "never searched for": partial(_fate, "not_sought"),
    "never written": partial(_fate, "unwritten"),
    "ms a write": partial(_milliseconds, "write_seconds", "writes"),
    "ms a search": partial(_milliseconds, "search_seconds", "searches"),
    "records held": partial(_of_memory, "records"),
    "bytes held": partial(_of_memory, "bytes"),
    "its own calls": partial(_of_memory, "model_calls"),
    "its own tokens": _own_tokens,
    "its own cost, $": partial(_of_memory, "cost_usd"),
    "agent’s calls": partial(_of_agent, "calls"),
    "agent’s tokens": _agent_tokens,
    "agent’s cost, $": partial(_of_agent, "cost_usd"),
}
