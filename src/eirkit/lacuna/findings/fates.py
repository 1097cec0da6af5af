"""Determines the fate of each record that a run needed from its external memory, pools fates over runs, diagnoses it.

The store is queried by key whenever a search fails, which separates lost records from records that were not found.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from eirkit.lacuna.agents.conditions import named_steps
from eirkit.lacuna.agents.session import Decision
from eirkit.lacuna.agents.telemetry import Consultation
from eirkit.lacuna.agents.wording import Recognition, Values, recognise
from eirkit.lacuna.findings.causes import Verdict
from eirkit.lacuna.memories.memory import LONGEST_PASSAGE, SEARCH_LIMIT, MemoryCall, MemoryUsage
from eirkit.lacuna.tasks.task import Payload, read_record

Fate = Literal[
    "used",
    "not_used",
    "returned",
    "other_value",
    "swapped_value",
    "cut_value",
    "stale_value",
    "unclear",
    "not_found",
    "not_stored",
    "not_sought",
    "unwritten",
]
FATES: tuple[Fate, ...] = get_args(Fate)
RETURNED: tuple[Fate, ...] = ("used", "not_used", "returned")
LOST: tuple[Fate, ...] = tuple(fate for fate in FATES if fate not in (*RETURNED, "unclear"))  # known not to come back
NOT_ASKED: tuple[Fate, ...] = (
    "not_sought",
    "unwritten",
)  # fates of records that the agent never wrote or never searched for
FLOOD = 10 * SEARCH_LIMIT * LONGEST_PASSAGE  # characters of one search, ten times what can be shown


Write = tuple[int, str]  # when a record was written, and its text


@dataclass(frozen=True, slots=True)
class FateCounts:
    """Counts over the missing references of a run; `FATE_MEASURES` says what each fate means.

    What a READ or RECOMPUTE returned counts neither as used nor as not used.
    """

    fates: Mapping[Fate, int]
    confused: int  # searches that returned records of other labels in place of one that was stored
    flooded: int  # searches that returned far more than can be shown


class Lookups:
    """The writes and searches of a run, from which the fate of every needed record follows."""

    def __init__(
        self, decisions: Sequence[Decision], verdicts: Sequence[Verdict], consultations: Sequence[Consultation]
    ) -> None:
        self.writes: dict[int, list[Write]] = {}
        self.searches: dict[int, list[Consultation]] = {}  # by the step at which they were made
        for one in consultations:
            if one.call.verb == "write":
                self.writes.setdefault(one.call.steps[0], []).append((one.t, one.call.text))
            else:
                self.searches.setdefault(one.t, []).append(one)
        self._follows = {verdict.t: verdict.self_consistent for verdict in verdicts}
        # Steps whose answer follows from a record that was not seen to come back.
        self._in_doubt = {v.t for v in verdicts if v.blind and v.self_consistent and (v.unexplained or not v.correct)}
        self.own = {decision.t: decision.submitted for decision in decisions if decision.submitted is not None}

    def fate(self, r: int, decision: Decision) -> Fate:
        """Return the fate of a missing reference of a step."""
        searches, follows = self.searches.get(decision.t, ()), self._follows.get(decision.t, False)
        found = _fate(r, decision, self.writes, searches, self.own, follows)
        if found == "not_stored" and self._came_later(r, decision.t):
            found = "not_found"
        return "unclear" if decision.t in self._in_doubt and found not in (*RETURNED, *NOT_ASKED) else found

    def _came_later(self, r: int, t: int) -> bool:
        """True if a later search shows that the store had the record, though it was not written again."""
        again = min((one for one, _ in self.writes[r] if one > t), default=math.inf)
        later = (one for when, found in self.searches.items() if t < when < again for one in found)
        return any(r in one.held or r in {*one.call.steps} - {*one.lacking, *one.uncertain} for one in later)


def count_fates(
    decisions: Sequence[Decision], verdicts: Sequence[Verdict], consultations: Sequence[Consultation]
) -> FateCounts:
    """Return the fates of the missing references of a run."""
    lookups = Lookups(decisions, verdicts, consultations)
    fates = Counter(lookups.fate(r, decision) for decision in decisions for r in decision.missing)
    return FateCounts(
        {fate: fates[fate] for fate in FATES},
        confused=sum(_is_confused(one) for one in consultations),
        flooded=sum(one.returned_characters > FLOOD for one in consultations),
    )


def recorded_consultations(
    events: Iterable[Mapping[str, Any]], decisions: Sequence[Decision]
) -> list[Consultation] | None:
    """Return the calls to a memory from the event records of a run; None if their texts were not kept."""
    calls = [event for event in events if event["type"] == "memory"]
    if not all("text" in event for event in calls):
        return None
    own = {decision.t: decision.submitted for decision in decisions if decision.submitted is not None}
    return [_consultation(event, own) for event in calls]


def _consultation(event: Mapping[str, Any], own: Values) -> Consultation:
    passages = tuple(event["found"])
    steps: tuple[int, ...] = ()
    if event["verb"] == "write":
        steps = (read_record(event["text"])[0],)
    elif event["verb"] == "search":
        steps = named_steps(event["text"])
    stated: tuple[tuple[int, tuple[str, ...]], ...] = ()
    if event["mislabelled"]:
        read = recognise(passages, {step: own[step] for step in steps if step in own}, best_first=True).stated
        stated = tuple((step, read[step]) for step in event["mislabelled"] if step in read)
    return Consultation(
        event["t"],
        MemoryCall(event["verb"], event["text"], steps),
        passages,
        event["latency_seconds"],
        event["returned_characters"],
        tuple(event["lacking"]),
        tuple(event["held"]),
        stated,
        uncertain=tuple(event.get("uncertain", ())),
        stored=tuple(event["stored"]) if "stored" in event else None,
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
        {fate: math.fsum(fates.get(fate, 0) / needed for fates, needed in needing) / len(needing) for fate in FATES}
        if needing
        else {}
    )
    return FateShares(len(needing), shares)


def _fate(
    r: int,
    decision: Decision,
    writes: Mapping[int, Sequence[Write]],
    searches: Sequence[Consultation],
    own: Values,
    follows: bool,
) -> Fate:
    # Returned by a search of this step, not by a READ or RECOMPUTE, which do not involve the memory system.
    found = [_returned(one, r, own) for one in searches]
    if any(r in one.present for one in found):
        if follows:
            return "used"
        # Where another input was out of reach, or no answer could be read, nothing shows what was made of this one.
        at_hand = {r, *decision.retained, *decision.fetched, *(t for t, _ in decision.restored)}
        return "not_used" if decision.submitted is not None and at_hand.issuperset(decision.required) else "returned"
    written = {step: [text for t, text in texts if t <= decision.t] for step, texts in writes.items()}
    if not written.get(r):
        return "unwritten"
    if digits := next((one.stated[r] for one in found if r in one.stated), None):
        return _wrong(r, digits, {step: texts for step, texts in written.items() if texts})
    if any(r in one.uncertain for one in found):
        return "used" if follows else "unclear"
    sought = [one for one in searches if r in one.call.steps]
    if not sought:
        return "not_sought"
    return "not_found" if any(r in one.held for one in sought) else "not_stored"


def _returned(one: Consultation, r: int, own: Values) -> Recognition:
    """Return what a search returned for step r, requested or not."""
    if r not in one.call.steps:
        return recognise(one.passages, {r: own[r]} if r in own else {}, best_first=True)
    came = r not in one.lacking and r not in one.uncertain
    return Recognition(frozenset((r,) if came else ()), frozenset(one.uncertain), dict(one.stated))


def _wrong(r: int, digits: tuple[str, ...], written: Mapping[int, Sequence[str]]) -> Fate:
    """Return in which way the digits that came back for step r are wrong."""
    *earlier, current = [read_record(text)[1] for text in written[r]]
    values = tuple(map(int, digits))
    if values in earlier:
        return "stale_value"
    whole = written[r][-1].partition(" = ")[2], " ".join(map(str, current))
    if any(text.startswith(" ".join(digits)) and len(text) > len(" ".join(digits)) for text in whole):
        return "cut_value"
    others: set[Payload] = {read_record(texts[-1])[1] for step, texts in written.items() if step != r}
    return "swapped_value" if values in others else "other_value"


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
        "other_value": "returns a wrong value",
        "swapped_value": "returns another label's value",
        "cut_value": "returns a cut value",
        "stale_value": "returns an old value",
        "unclear": "leaves it unclear whether the value was returned",
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
    writes = [one.latency_seconds for one in consultations if one.call.verb in ("write", "observe")]
    searches = [one.latency_seconds for one in consultations if one.call.verb in ("search", "recall")]
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
        **({"warnings": list(used.warnings)} if used.warnings else {}),
    }


def _runs(count: int) -> str:
    return "1 run" if count == 1 else f"{count} runs"
