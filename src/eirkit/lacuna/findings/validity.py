"""Decides when a causal sentence is withheld: more guesses right than chance allows, contradictions, failed controls.

A step whose input was lost can be right by chance only. If more of them are right, either the model has the information
from elsewhere (a *leak*) or a record that was declared lost was there (a *contradiction* of the instrument); then
nothing is claimed about lost information. And restoring repairs only where it does more than nothing and than a sham.
Beside every result of a memory system stands how it was used.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from eirkit.lacuna.findings.intervals import binomial_tail
from eirkit.lacuna.findings.statistics import Interval
from eirkit.lacuna.memories.memory import MOST_PASSAGES
from eirkit.lacuna.tasks.generation import prepare
from eirkit.lacuna.tasks.task import TaskSpec
from eirkit.lacuna.tasks.workload import Workload

ALARM = 0.001  # a probability below this is not chance, even over hundreds of cells
_PROBED = 16  # operands for which an operator is tried

Doubt = Literal["leak", "contradiction"]


@dataclass(frozen=True, slots=True)
class Validity:
    """What was right at steps that had lost an input, against chance."""

    blind: int  # scored steps that were answered although an input was lost
    right: int  # of those, right ones whose answer does not follow from what was visible
    chance: float  # at most, of a guess
    p: float  # probability of so many right answers or more by chance
    finding: Doubt | None

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "sentence": self.sentence}

    @property
    def sentence(self) -> str | None:
        """The finding in words; None without one."""
        if self.finding is None:
            return None
        seen = f"{self.right} of {self.blind} steps are right although an input was lost, where chance gives"
        seen = f"{seen} {self.blind * self.chance:.2g}"
        if self.finding == "leak":
            return f"leak: {seen}; the model has the information from elsewhere, so nothing is claimed about its loss"
        return (
            f"contradiction: {seen}; the records were there in a form that was not recognised, or the model has them "
            "from elsewhere, so nothing is claimed about their loss"
        )


def check_validity(blind: int, right: int, spec: TaskSpec, *, in_words: bool) -> Validity:
    """Return whether steps that had lost an input were right more often than by chance.

    Args:
        blind: steps that were answered although an input was lost.
        right: of those, right ones whose answer does not follow from what was visible.
        in_words: records were recognised in texts of an agent or a memory, so that recognition may have failed.
    """
    chance = chance_of(spec) if right else 1 / spec.q
    p = binomial_tail(right, blind, chance)
    found: Doubt | None = None if p > ALARM else "contradiction" if in_words else "leak"
    return Validity(blind, right, chance, p, found)


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


def doubt_of(row: Mapping[str, Any]) -> str | None:
    """Return the finding against a row of a sweep, in words; None if there is none."""
    sentence: str | None = row["validity"]["sentence"]
    return sentence


def is_withheld(row: Mapping[str, Any]) -> bool:
    """True if a row may not support claims: its control failed or was undecided, or there is a finding against it."""
    return (row["control"] is not None and not row["claims"]) or doubt_of(row) is not None


def is_above(difference: Interval) -> bool:
    """True if an interval of a difference lies above zero."""
    return difference.low > 0


def repair_shown(over: Iterable[Interval], doubt: Doubt | None = None) -> bool:
    """True if restoring a record is shown to repair answers: better than a sham and than nothing, without a doubt."""
    return doubt is None and all(map(is_above, over))


def system_remarks(rows: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return a line for each profile in which a memory system was used, and one for each warning of a system."""
    return tuple(dict.fromkeys(line for row in rows for line in _said(row)))


def _said(row: Mapping[str, Any]) -> Iterator[str]:
    system = row["memory_system"]
    if system is None:
        return
    used = system.get("profile")
    name = row["memory"] if used is None else f"{row['memory']} ({used['name']})"
    if used is not None:
        yield f"{name}: on: {used['on']}; off: {used['off'] or 'nothing'}{_asked_for(used)}"
    yield from (f"{name} warned: {said}" for said in system.get("warnings", ()))


def _asked_for(profile: Mapping[str, Any]) -> str:
    """Return how many passages each search asked for, and who chose that; nothing in records of earlier versions."""
    if "passages" not in profile:
        return ""
    every = f"all passages, of which {MOST_PASSAGES} are shown"
    number = every if profile["passages"] is None else f"{profile['passages']} passages"
    return f"; a search asks for {number} ({profile['passages_from']})"
