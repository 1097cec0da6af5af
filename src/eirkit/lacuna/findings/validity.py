"""Decides when a causal sentence is withheld: more guesses right than chance allows, contradictions, failed controls.

A step whose input was lost can be right by chance only. If more of them are right, either the model has the information
from elsewhere (a *leak*) or a record that was declared lost was there (a *contradiction* of the instrument); then
nothing is claimed about lost information. And restoring repairs only where it does more than nothing and than a sham.
Beside every result of a memory system stands how it was used.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from eirkit.lacuna.findings.intervals import binomial_tail
from eirkit.lacuna.tasks.generation import prepare
from eirkit.lacuna.tasks.task import AnySpec, TaskSpec
from eirkit.lacuna.tasks.workload import Workload
from eirkit.records.evidence import Interval
from eirkit.records.runs import MemoryRun
from eirkit.records.sweeps import Doubt, Gate, MemoryRow, Validity

ALARM = 0.001  # a probability below this is not chance, even over hundreds of cells
_PROBED = 16  # operands for which an operator is tried


# Of conversations nothing is tested: what a question needs may have been said in words that were not recognized.
UNTESTED = Validity(0, 0, None, None, None, None)


def check_validity(blind: int, right: int, spec: AnySpec, *, recognized: bool) -> Validity:
    """Return whether steps that had lost an input were right more often than by chance.

    Args:
        blind: steps that were answered although an input was lost.
        right: of those, right ones whose answer does not follow from what was visible.
        recognized: records were recognized in texts of an agent or a memory, so that recognition may have failed.
    """
    if not isinstance(spec, TaskSpec):
        return UNTESTED
    chance = chance_of(spec) if right else 1 / spec.q
    p = binomial_tail(right, blind, chance)
    found: Doubt | None = None if p > ALARM else "contradiction" if recognized else "leak"
    return Validity(blind, right, chance, p, found, _sentence(blind, right, chance, found))


def _sentence(blind: int, right: int, chance: float, finding: Doubt | None) -> str | None:
    """Return the finding in words; None without one."""
    if finding is None:
        return None
    seen = f"{right} of {blind} steps are right although an input was lost, where chance gives {blind * chance:.2g}"
    if finding == "leak":
        return f"leak: {seen}; the model has the information from elsewhere, so nothing is claimed about its loss"
    return (
        f"contradiction: {seen}; the records were there in a form that was not recognized, or the model has them "
        "from elsewhere, so nothing is claimed about their loss"
    )


def chance_of(spec: TaskSpec) -> float:
    """Return a bound on the probability that a guess of a lost value gives the right answer.

    It is 1/q where every value of an operand gives another answer. Elsewhere, as for a maximum, answers are values that
    were drawn before, and a guess is right with at most the number of values drawn over q.
    """
    workload = prepare(spec)
    if _tells_operands_apart(workload, spec):
        return 1 / spec.q
    return min(1.0, spec.n * workload.width(spec) / spec.q)


def _tells_operands_apart(workload: Workload, spec: TaskSpec) -> bool:
    width = workload.width(spec)
    values = sorted({i * (spec.q - 1) // (_PROBED - 1) for i in range(_PROBED)})
    fresh = None if "recall" in workload.kinds(spec) or "query" in workload.kinds(spec) else (spec.q // 2,) * width
    try:
        results = {workload.operate(spec, fresh, [(value,) * width]) for value in values}
    except Exception:  # noqa: BLE001 - a user's operator may need other operands; then the larger bound holds
        return False
    return len(results) == len(values)


def what_decides(gate: Gate) -> str:
    """Return what to run to decide a gate, and whether it should be enough."""
    doubt = "" if gate.is_enough else f" (so close to {gate.threshold}, even that may not decide)"
    return f"run `{gate.command}`{doubt}"


def papers_verdict(gate: Gate) -> str:
    """Return how the paper's gate ends, in words."""
    if gate.estimate is None:
        return f"the paper's gate ({gate.threshold} end to end) is undecided: no run was scored"
    figures = f"{gate.estimate:.3f} over {gate.counted} runs (95% interval {gate.low:.3f} to {gate.high:.3f})"
    verdict = "is undecided" if gate.verdict == "undecided" else gate.verdict
    more = f"; {what_decides(gate)}" if gate.command else ""
    return f"the paper's gate ({gate.threshold} end to end) {verdict}: {figures}{more}"


def is_above(difference: Interval) -> bool:
    """True if an interval of a difference lies above zero."""
    return difference.low > 0


def repair_shown(over: Iterable[Interval], doubt: Doubt | None = None) -> bool:
    """True if restoring a record is shown to repair answers: better than a sham and than nothing, without a doubt."""
    return doubt is None and all(map(is_above, over))


def system_remarks(systems: Iterable[tuple[str | None, MemoryRow | MemoryRun | None]]) -> tuple[str, ...]:
    """Return a line for each profile in which a memory was used, and one for each warning of its code.

    Args:
        systems: names of memories, each with what it did.
    """
    return tuple(dict.fromkeys(line for name, used in systems if used is not None for line in _remarks(name, used)))


def _remarks(memory: str | None, used: MemoryRow | MemoryRun) -> Iterator[str]:
    profile = used.profile
    name = memory if profile is None else f"{memory} ({profile.name})"
    if profile is not None:
        every = "all passages"
        number = every if profile.passages is None else f"{profile.passages} passages"
        asked = f"a search asks for {number} ({profile.passages_from})"
        yield f"{name}: on: {profile.on}; off: {profile.off or 'nothing'}; {asked}"
    if isinstance(used, MemoryRow) and used.shared_runs and used.model_calls:
        yield f"{name}: budgets share the ingestion of a conversation; calls, tokens and cost are what each needs alone"
    yield from (f"{name} warned: {warning}" for warning in used.warnings)
