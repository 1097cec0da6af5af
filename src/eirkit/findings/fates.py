"""Determines the fate of each record that a run needed from its external memory, and diagnoses the memory.

The store is queried by key whenever a search fails, which separates lost records from records that were not found.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from eirkit.agents.conditions import Values, labels_in, records_in
from eirkit.agents.memory import LONGEST_PASSAGE, SEARCH_LIMIT, MemoryUsage
from eirkit.agents.session import Decision
from eirkit.agents.telemetry import Consultation
from eirkit.findings.causes import Verdict

Fate = Literal["used", "not_used", "other_value", "not_found", "not_stored", "not_sought", "unwritten"]
FATES: tuple[Fate, ...] = ("used", "not_used", "other_value", "not_found", "not_stored", "not_sought", "unwritten")
RETURNED: tuple[Fate, ...] = ("used", "not_used")
NOT_ASKED: tuple[Fate, ...] = (
    "not_sought",
    "unwritten",
)  # fates of records that the agent never wrote or never searched for
FLOOD = 10 * SEARCH_LIMIT * LONGEST_PASSAGE  # characters of one search, ten times what can be shown


@dataclass(frozen=True, slots=True)
class FateCounts:
    """Counts over the missing references of a run; `FATE_MEASURES` says what each fate means.

    What a READ or RECOMPUTE returned counts neither as used nor as not used.
    """

    fates: Mapping[Fate, int]
    confused: int  # searches that returned records of other labels in place of one that was stored
    flooded: int  # searches that returned far more than can be shown


def count_fates(
    decisions: Sequence[Decision], verdicts: Sequence[Verdict], consultations: Sequence[Consultation]
) -> FateCounts:
    """Return the fates of the missing references of a run."""
    written: dict[int, int] = {}  # step → when it was first written
    searches: dict[int, list[Consultation]] = {}
    for one in consultations:
        if one.call.verb == "write":
            written.setdefault(one.call.steps[0], one.t)
        else:
            searches.setdefault(one.t, []).append(one)
    follows = {verdict.t: verdict.self_consistent for verdict in verdicts}
    own = {decision.t: decision.submitted for decision in decisions if decision.submitted is not None}
    fates = Counter(
        _fate(r, decision, written, searches.get(decision.t, ()), own, follows.get(decision.t, False))
        for decision in decisions
        for r in decision.missing
    )
    return FateCounts(
        {fate: fates[fate] for fate in FATES},
        confused=sum(_is_confused(one) for one in consultations),
        flooded=sum(one.returned_characters > FLOOD for one in consultations),
    )


@dataclass(frozen=True, slots=True)
class FateShares:
    """Fates over many runs: means of the shares of each run, so that all seeds have equal weight."""

    runs: int  # that needed a record from memory
    shares: Mapping[Fate, float]  # empty without such a run

    def of(self, *fates: Fate) -> float | None:
        """Return the share of needed records with one of these fates; None if no run needed any."""
        return math.fsum(self.shares[fate] for fate in fates) if self.shares else None


def pool_fates(counts: Iterable[Mapping[str, int]]) -> FateShares:
    """Return the shares of fates from their counts in each run."""
    needing = [(fates, needed) for fates in counts if (needed := sum(fates.values()))]
    shares = (
        {fate: math.fsum(fates[fate] / needed for fates, needed in needing) / len(needing) for fate in FATES}
        if (needing)
        else {}
    )
    return FateShares(len(needing), shares)


def _fate(
    r: int,
    decision: Decision,
    written: Mapping[int, int],
    searches: Sequence[Consultation],
    own: Values,
    follows: bool,
) -> Fate:
    # Returned by a search of this step, not by a READ or RECOMPUTE, which do not involve the memory system.
    if any(_brought(one, r, own) for one in searches):
        return "used" if follows else "not_used"
    if written.get(r, decision.t + 1) > decision.t:
        return "unwritten"
    if any(_mislabelled(one, r) for one in searches):
        return "other_value"
    sought = [one for one in searches if r in one.call.steps]
    if not sought:
        return "not_sought"
    return "not_found" if any(r in one.held for one in sought) else "not_stored"


def _brought(one: Consultation, r: int, own: Values) -> bool:
    """True if a search returned the record of step r with the agent's own value, requested or not."""
    if r in one.call.steps:
        return r not in one.lacking
    return r in records_in("\n".join(one.passages), own)


def _mislabelled(one: Consultation, r: int) -> bool:
    """True if a search returned the label of step r with another value, requested or not."""
    if r in one.call.steps:
        return r in one.mislabelled
    return r in labels_in("\n".join(one.passages))


def _is_confused(one: Consultation) -> bool:
    return bool(one.passages) and any(r in one.held and r not in one.mislabelled for r in one.lacking)


def diagnose(
    fates: Mapping[Fate, int], flooded: int, failures: Mapping[str, int], *, limited: bool = False
) -> list[str]:
    """Return what is wrong with a memory system, in words; empty if everything was returned.

    Args:
        failures: messages of runs that failed because of the system, and their numbers.
        limited: it was limited to a number of records, so that eirkit itself removed some.
    """
    sought = sum(fates[fate] for fate in FATES if fate not in NOT_ASKED)
    said: dict[Fate, str] = {
        "not_stored": "no longer has what is written, held to h records" if limited else "loses what is written",
        "not_found": "does not find what it holds",
        "other_value": "returns another label's value",
    }
    found = [f"{words} ({fates[fate]} of {sought} lookups)" for fate, words in said.items() if fates[fate]]
    if flooded:
        found.append(f"returns far more than can be read ({flooded} searches above {FLOOD:,} characters)")
    late = sum(runs for message, runs in failures.items() if "did not finish" in message)
    broken = sum(failures.values()) - late
    if late:
        found.append(f"answers late ({_runs(late)} lost)")
    if broken:
        found.append(f"raises ({_runs(broken)} lost)")
    return found


def memory_record(
    used: MemoryUsage | None, consultations: Sequence[Consultation], lookups: FateCounts
) -> dict[str, object]:
    """Return calls, holdings, fates and cost of a run's memory as plain data; None means unknown."""
    used = used or MemoryUsage()
    writes = [one.latency_seconds for one in consultations if one.call.verb == "write"]
    searches = [one.latency_seconds for one in consultations if one.call.verb == "search"]
    return {
        "writes": len(writes),
        "searches": len(searches),
        "write_seconds": round(sum(writes), 6),
        "search_seconds": round(sum(searches), 6),
        "slowest_seconds": round(max((*writes, *searches), default=0.0), 6),
        "fates": dict(lookups.fates),
        "confused": lookups.confused,
        "flooded": lookups.flooded,
        "records": used.records,
        "bytes": used.bytes,
        "model_calls": used.model_calls,
        "input_tokens": used.input_tokens,
        "output_tokens": used.output_tokens,
        "cost_usd": used.cost_usd,
    }


def _runs(count: int) -> str:
    return "1 run" if count == 1 else f"{count} runs"
