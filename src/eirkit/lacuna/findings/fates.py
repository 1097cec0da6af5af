"""Determines the fate of each record that a run needed from its external memory, pools fates over runs, diagnoses it.

The store is queried by key whenever a search fails, which separates lost records from records that were not found.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from eirkit.lacuna.agents.conditions import named_steps
from eirkit.lacuna.agents.recognition import Recognition, Values, recognize
from eirkit.lacuna.agents.telemetry import Consultation
from eirkit.lacuna.findings.causes import Verdict
from eirkit.lacuna.findings.summary import NOT_ASKED
from eirkit.lacuna.memories.memory import FLOOD, MemoryCall, MemoryUsage
from eirkit.lacuna.tasks.task import Payload, read_record
from eirkit.records.events import Decision, Event, MemoryExchange
from eirkit.records.runs import OUTCOMES, RETURNED, MemoryRun, Outcome

Write = tuple[int, str]  # when a record was written, and its text


@dataclass(frozen=True, slots=True)
class FateCounts:
    """Counts over the missing references of a run; `OUTCOME_MEASURES` says what each fate means.

    What a READ or RECOMPUTE returned counts neither as used nor as not used.
    """

    fates: Mapping[Outcome, int]
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
        self.own = {decision.t: decision.values for decision in decisions if decision.values is not None}

    def fate(self, r: int, decision: Decision) -> Outcome:
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
        {fate: fates[fate] for fate in OUTCOMES},
        confused=sum(
            bool(one.passages) and any(r in one.held and r not in one.mislabeled for r in one.lacking)
            for one in consultations
        ),
        flooded=sum(one.returned_characters > FLOOD for one in consultations),
    )


def recorded_consultations(events: Iterable[Event], decisions: Sequence[Decision]) -> list[Consultation] | None:
    """Return the calls to a memory from the events of a run; None if their texts were not kept."""
    own = {decision.t: decision.values for decision in decisions if decision.values is not None}
    found = []
    for event in events:
        if isinstance(event, MemoryExchange):
            if event.text is None:
                return None
            found.append(_consultation(event, event.text, own))
    return found


def _consultation(event: MemoryExchange, text: str, own: Values) -> Consultation:
    passages = event.found or ()
    steps: tuple[int, ...] = ()
    if event.verb == "write":
        steps = (read_record(text)[0],)
    elif event.verb == "search":
        steps = named_steps(text)
    stated: tuple[tuple[int, tuple[str, ...]], ...] = ()
    if event.mislabeled:
        read = recognize(passages, {step: own[step] for step in steps if step in own}, best_first=True).stated
        stated = tuple((step, read[step]) for step in event.mislabeled if step in read)
    return Consultation(
        event.t,
        MemoryCall(event.verb, text, steps),
        passages,
        event.latency_seconds,
        event.returned_characters,
        event.lacking,
        event.held,
        stated,
        uncertain=event.uncertain,
        stored=event.stored,
        unshown=event.unshown,
        unshown_ranks=event.unshown_ranks,
        asked=event.asked,
    )


def _fate(
    r: int,
    decision: Decision,
    writes: Mapping[int, Sequence[Write]],
    searches: Sequence[Consultation],
    own: Values,
    follows: bool,
) -> Outcome:
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
        return recognize(one.passages, {r: own[r]} if r in own else {}, best_first=True)
    came = r not in one.lacking and r not in one.uncertain
    return Recognition(frozenset((r,) if came else ()), frozenset(one.uncertain), dict(one.stated))


def _wrong(r: int, digits: tuple[str, ...], written: Mapping[int, Sequence[str]]) -> Outcome:
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


def memory_record(used: MemoryUsage | None, consultations: Sequence[Consultation], lookups: FateCounts) -> MemoryRun:
    """Return calls, holdings, outcomes and cost of a run's memory."""
    used = used or MemoryUsage()
    writes = [one.latency_seconds for one in consultations if one.call.verb in ("write", "observe")]
    searches = [one.latency_seconds for one in consultations if one.call.verb in ("search", "recall")]
    return MemoryRun(
        writes=len(writes),
        searches=len(searches),
        write_seconds=round(sum(writes), 6),
        search_seconds=round(sum(searches), 6),
        slowest_seconds=round(max((*writes, *searches), default=0.0), 6),
        outcomes={outcome: count for outcome, count in lookups.fates.items() if count},
        confused=lookups.confused,
        flooded=lookups.flooded,
        records=used.records,
        bytes=used.bytes,
        model_calls=used.model_calls,
        input_tokens=used.input_tokens,
        output_tokens=used.output_tokens,
        cost_usd=used.cost_usd,
        warnings=used.warnings,
    )
