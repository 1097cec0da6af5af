"""Determines the fate of each record that a run needed from its external memory, pools fates over runs, diagnoses it.

The store is queried by key whenever a search fails, which separates lost records from records that were not found.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from eirkit.lacuna.agents.conditions import named_steps
from eirkit.lacuna.agents.recognition import Recognition, Values, other_values, recognize
from eirkit.lacuna.agents.telemetry import Consultation
from eirkit.lacuna.findings.causes import Verdict
from eirkit.lacuna.findings.summary import NOT_ASKED
from eirkit.lacuna.memories.memory import FLOOD, MemoryCall, MemoryUsage
from eirkit.lacuna.tasks.generation import prepare
from eirkit.lacuna.tasks.standing import UNTIL, neighbor_text, standing_at
from eirkit.lacuna.tasks.task import Payload, TaskInstance, read_record
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
    """The writes and searches of a run, from which the fate of every needed record follows.

    Args:
        task: of the run, where its records change.
    """

    def __init__(
        self,
        decisions: Sequence[Decision],
        verdicts: Sequence[Verdict],
        consultations: Sequence[Consultation],
        task: TaskInstance | None = None,
    ) -> None:
        self.writes: dict[int, list[Write]] = {}
        self.forgotten: dict[int, list[int]] = {}  # when a record was deleted
        self.searches: dict[int, list[Consultation]] = {}  # by the step at which they were made
        for one in consultations:
            if one.call.verb == "write":
                self.writes.setdefault(one.call.steps[0], []).append((one.t, one.call.text))
            elif one.call.verb == "forget":
                self.forgotten.setdefault(one.call.steps[0], []).append(one.t)
            else:
                self.searches.setdefault(one.t, []).append(one)
        self._follows = {verdict.t: verdict.self_consistent for verdict in verdicts}
        # Steps whose answer follows from a record that was not seen to come back.
        self._in_doubt = {v.t for v in verdicts if v.blind and v.self_consistent and (v.unexplained or not v.correct)}
        self.own = {decision.t: decision.values for decision in decisions if decision.values is not None}
        self.task = task
        self._changed = {} if task is None else standing_values(task, decisions)

    def right(self, t: int) -> Values:
        """Return the values that right records have at a step."""
        return self._changed[t].values if t in self._changed else self.own

    def fate(self, r: int, decision: Decision) -> Outcome:
        """Return the fate of a missing reference of a step."""
        found = self._fate(r, decision)
        if found == "not_stored" and self._came_later(r, decision.t):
            found = "not_found"
        return "unclear" if decision.t in self._in_doubt and found not in (*RETURNED, *NOT_ASKED) else found

    def _came_later(self, r: int, t: int) -> bool:
        """True if a later search shows that the store had the record, though it was not written again."""
        again = min((one for one, _ in self.writes[r] if one > t), default=math.inf)
        later = (one for when, found in self.searches.items() if t < when < again for one in found)
        return any(_shows(one, r) for one in later)

    def _came_before(self, r: int, t: int) -> bool:
        """True if the store was seen to have the record since it was last written."""
        last = max((one for one, _ in self.writes[r] if one <= t), default=math.inf)
        before = (one for when, found in self.searches.items() if last <= when < t for one in found)
        return any(r in one.kept or _shows(one, r) for one in before)

    def _fate(self, r: int, decision: Decision) -> Outcome:
        t, follows = decision.t, self._follows.get(decision.t, False)
        searches, right = self.searches.get(t, ()), self.right(t)
        # Returned by a search of this step, not by a READ or RECOMPUTE, which do not involve the memory system.
        found = [_returned(one, r, right) for one in searches]
        ended = self._ended(r, t)
        if not (t in self._changed and r in self._changed[t].gone):
            found += [_returned_ended(one, r, right) for one in searches if self.task is not None]
        written = {step: [text for when, text in texts if when <= t] for step, texts in self.writes.items()}
        texts = written.get(r, [])
        stated = next((one.stated[r] for one in found if r in one.stated), None)
        # Of several passages the first counts: a wrong one before the right one is what came back.
        came_right = stated is None and r in right and bool(texts)
        if came_right and any(self._contradicts(one, r, right[r], texts) for one in searches):
            return "contradicted_value"
        if any(r in one.present for one in found):
            if follows:
                return "used"
            # Where another input was out of reach, or no answer could be read, nothing shows what was made of this one.
            at_hand = {r, *decision.retained, *decision.fetched, *(r for r, _ in decision.restored)}
            return (
                "not_used" if decision.submitted is not None and at_hand.issuperset(decision.required) else "returned"
            )
        if not texts:
            return "unwritten"
        sought = [one for one in searches if r in one.call.steps]
        if stated is not None:
            was = {read_record(text)[1] for text in texts}
            if ended is not None and tuple(map(int, stated)) in was:
                return ended
            if self._is_foreign(stated, texts):
                return "foreign_value"
            wrong = _wrong(r, stated, {step: some for step, some in written.items() if some})
            is_kept = not any(r in one.lacking and r not in one.held for one in sought)
            return "not_overwritten" if wrong == "stale_value" and not is_kept else wrong
        if any(r in one.uncertain for one in found):
            return "used" if follows else "unclear"
        if not sought:
            return "not_sought"
        if t in self._changed and r in self._changed[t].gone:
            return "gone"
        if any(r in one.held for one in sought):
            return "not_found"
        return "lost" if self.task is not None and self._came_before(r, t) else "not_stored"

    def _ended(self, r: int, t: int) -> Outcome | None:
        """Return the outcome of a record that comes back although it was deleted or its time is over."""
        if t not in self._changed or r not in self._changed[t].gone:
            return None
        if r in self._changed[t].expired:
            return "expired_value"
        last = max((when for when, _ in self.writes[r] if when <= t), default=0)
        return "deleted_value" if any(last <= when <= t for when in self.forgotten.get(r, ())) else None

    def _contradicts(self, one: Consultation, r: int, right: Payload, texts: Sequence[str]) -> bool:
        digits = len(texts[-1].partition(" = ")[2].split()[0])
        return other_values(one.passages, r, right, digits, one.t) is not None

    def _is_foreign(self, digits: tuple[str, ...], texts: Sequence[str]) -> bool:
        """True if another user of the system wrote this value under the label."""
        if self.task is None:
            return False
        scope, users = str(self.task.spec.seed), range(1, self.task.spec.users)
        theirs = {read_record(neighbor_text(scope, user, text))[1] for user in users for text in texts}
        return tuple(map(int, digits)) in theirs


def _shows(one: Consultation, r: int) -> bool:
    """True if a search shows that the store has a record."""
    return r in one.held or r in {*one.call.steps} - {*one.lacking, *one.uncertain}


@dataclass(frozen=True, slots=True)
class StandingRecords:
    """What right records say at one step, and which count as gone."""

    values: Values
    deleted: frozenset[int]
    expired: frozenset[int]

    @property
    def gone(self) -> frozenset[int]:
        return self.deleted | self.expired


def standing_values(task: TaskInstance, decisions: Iterable[Decision]) -> dict[int, StandingRecords]:
    """Return what right records say at each step, by the answers of a run; nothing where records do not change."""
    own = {decision.t: decision.values for decision in decisions if decision.values is not None}
    if not prepare(task.spec).changes:
        return {}
    return {
        step.t: StandingRecords(dict(now.values), frozenset(now.deleted), frozenset(now.expired))
        for step, now in zip(task.steps, standing_at(task, own), strict=True)
    }


def count_fates(
    decisions: Sequence[Decision],
    verdicts: Sequence[Verdict],
    consultations: Sequence[Consultation],
    task: TaskInstance | None = None,
) -> FateCounts:
    """Return the fates of the missing references of a run; `task` is needed where records change."""
    lookups = Lookups(decisions, verdicts, consultations, task)
    fates = Counter(lookups.fate(r, decision) for decision in decisions for r in decision.missing)
    return FateCounts(
        {fate: fates[fate] for fate in OUTCOMES},
        confused=sum(
            bool(one.passages) and any(r in one.held and r not in one.mislabeled for r in one.lacking)
            for one in consultations
        ),
        flooded=sum(one.returned_characters > FLOOD for one in consultations),
    )


def recorded_consultations(
    events: Iterable[Event], decisions: Sequence[Decision], task: TaskInstance | None = None
) -> list[Consultation] | None:
    """Return the calls to a memory from the events of a run; None if their texts were not kept."""
    changed = {} if task is None else standing_values(task, decisions)
    own = {decision.t: decision.values for decision in decisions if decision.values is not None}
    found = []
    for event in events:
        if isinstance(event, MemoryExchange):
            if event.text is None:
                return None
            right = changed[event.t].values if event.t in changed else own
            found.append(_consultation(event, event.text, right))
    return found


def _consultation(event: MemoryExchange, text: str, own: Values) -> Consultation:
    passages = event.found or ()
    steps: tuple[int, ...] = ()
    if event.verb == "write":
        steps = (read_record(text)[0],)
    elif event.verb in ("search", "forget"):
        steps = named_steps(text)
    stated: tuple[tuple[int, tuple[str, ...]], ...] = ()
    if event.mislabeled:
        read = recognize(
            passages, {step: own[step] for step in steps if step in own}, best_first=True, now=event.t
        ).stated
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
        kept=event.kept,
    )


def _returned(one: Consultation, r: int, own: Values) -> Recognition:
    """Return what a search returned for step r, requested or not."""
    if r not in one.call.steps:
        return recognize(one.passages, {r: own[r]} if r in own else {}, best_first=True, now=one.t)
    came = r not in one.lacking and r not in one.uncertain
    return Recognition(frozenset((r,) if came else ()), frozenset(one.uncertain), dict(one.stated))


def _returned_ended(one: Consultation, r: int, own: Values) -> Recognition:
    """Return what a search stated for step r, which holds, with an end that is over: an old or a wrong record."""
    said = recognize(one.passages, {r: own[r]} if r in own else {}, best_first=True)
    return Recognition(frozenset(), frozenset(), said.stated)


def _wrong(r: int, digits: tuple[str, ...], written: Mapping[int, Sequence[str]]) -> Outcome:
    """Return in which way the digits that came back for step r are wrong."""
    *earlier, current = [read_record(text)[1] for text in written[r]]
    values = tuple(map(int, digits))
    if values in earlier:
        return "stale_value"
    whole = written[r][-1].partition(" = ")[2].partition(UNTIL)[0], " ".join(map(str, current))
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
