"""Explains one step of a finished run: what became of everything that its answer needed, and where its error went.

The explanation is a card of plain data, which the terminal and the viewer show. Only what the records tell is said;
None, or the word "unknown", stands for the rest. `conversation/why.py` makes the cards of conversations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import asdict

from eirkit.lacuna.agents.recognition import read_text, recognize
from eirkit.lacuna.agents.telemetry import Consultation
from eirkit.lacuna.findings.causes import Spread, Verdict, spread_of
from eirkit.lacuna.findings.conversation_measures import ANSWER_CAUSE_MEASURES, SYMPTOM_MEASURES
from eirkit.lacuna.findings.fates import Lookups
from eirkit.lacuna.findings.measures import CAUSE_MEASURES, KIND_MEASURES, OUTCOME_MEASURES
from eirkit.lacuna.tasks.generation import needs_of, prepare
from eirkit.lacuna.tasks.task import Payload, TaskInstance, show_label, show_values
from eirkit.measures import Measure
from eirkit.records.events import ActionTaken, Cause, Decision, Kind
from eirkit.records.runs import RETURNED, Outcome, WrongAnswer

UNKNOWN = "unknown"
NOWHERE = Spread((), (), ())
NO_TEXTS = "unknown: the texts of the run were not kept"
LONGEST_QUOTE = 200  # characters of a query or a passage in a line
MOST_STEPS = 12  # named in a sentence


class NeededInput(Struct, frozen=True):
    """One thing that an answer needed, and what became of it; None means unknown unless a field says otherwise."""

    name: str  # the label of an earlier answer, or a statement
    step: int | None  # the step whose answer it is; None for a statement
    lines: tuple[tuple[str, str], ...]  # what is known about it, in words: a heading and a text each
    in_context: bool | None = None
    written_at: tuple[int, ...] | None = None  # steps or sessions; empty if it was never written
    held: bool | None = None  # by the store, when the step was answered
    queries: tuple[str, ...] | None = None  # of searches for it at this step
    rank: int | None = None  # of the passage that it came back in, from 1; also None if it did not
    returned: str | None = None  # that passage
    used: bool | None = None
    fate: str | None = None  # None also for an input that was in context


class UsedPassage(Struct, frozen=True):
    """One passage that a wrong answer about a conversation rests on."""

    rank: int | None  # at which a memory returned it, from 1; None if the conversation itself was shown
    of: int  # passages that came back
    text: str  # the part of it that states the answer
    session: int | None  # in which that was said; None if it was said in none
    about: str | None = None  # of whom it was said, if the passage says it of another

    def sentence(self) -> str:
        """Return where the passage came from and what it says."""
        said = "not said in this conversation" if self.session is None else f"said in session {self.session}"
        said += "" if self.about is None else f" of {self.about}"
        place = said if self.rank is None else f"returned at rank {self.rank} of {self.of}, {said}"
        return f"The answer rests on ({place}): {quote(self.text)}"


class WhyCard(Struct, frozen=True):
    """Why one step is wrong; a right step has a card too, without a cause."""

    t: int
    correct: bool
    answer: str  # that is right
    submitted: str | None  # None: no valid answer
    cause: Cause | None
    kind: Kind | None
    inputs: tuple[NeededInput, ...]
    fault: str | None = None  # why there is no valid answer
    wrong: WrongAnswer | None = None  # symptom, cause and evidence of a wrong answer about a conversation
    asked: str = ""  # the question about a conversation
    rests_on: tuple[UsedPassage, ...] = ()  # what a wrong answer about a conversation rests on
    spread: Spread = NOWHERE

    @property
    def way(self) -> str | None:
        """The measure that counts failures like this one: an answer's cause, a lost input's fate, else the kind."""
        lost = [one.fate for one in self.inputs if one.fate is not None and one.fate not in RETURNED]
        if self.wrong is not None:
            return self.wrong.cause
        return None if self.correct else lost[0] if lost else self.kind

    def sentences(self) -> Iterator[str]:
        """Yield what happened in sentences."""
        yield self._outcome()
        if self.wrong is not None:
            symptom, cause = SYMPTOM_MEASURES[self.wrong.symptom], ANSWER_CAUSE_MEASURES[self.wrong.cause]
            yield f"Symptom: {symptom.label}; {symptom.meaning}."
            yield f"Cause: {cause.label}; {cause.meaning}."
            if self.wrong.statement:
                yield f"The statement that decides it: {quote(self.wrong.statement)}"
            if self.wrong.evidence:
                yield f"What shows it: {quote(self.wrong.evidence)}"
            yield from self._which_came()
        elif self.cause is not None and self.kind is not None:
            yield f"Cause: {CAUSE_MEASURES[self.cause].label}; {KIND_MEASURES[self.kind].meaning}."
        yield from (one.sentence() for one in self.rests_on)
        for one in self.inputs:
            if one.fate is not None:
                yield f"{one.name}: {OUTCOME_MEASURES[one.fate].label}; {OUTCOME_MEASURES[one.fate].meaning}."
        if not self.correct and not self.asked:
            began = "It began here" if not self.spread.path else f"It began at {name_steps(self.spread.origins)}"
            errors = "the errors at " + name_steps(self.spread.spoilt) if self.spread.spoilt else "no later error"
            yield f"{began}; {errors} {'follow' if len(self.spread.spoilt) > 1 else 'follows'} from it."
            if besides := self.spread.besides:
                use, are = ("uses", "is") if len(besides) == 1 else ("use", "are")
                what = name_steps(besides)
                yield f"{what[0].upper()}{what[1:]} {use} it and {are} wrong too, for another reason."

    def _which_came(self) -> Iterator[str]:
        """Yield which of several needed statements were shown, where only some were."""
        came = [one.name for one in self.inputs if one.rank is not None or one.in_context]
        lacking = [one.name for one in self.inputs if one.name not in came]
        if came and lacking:
            yield f"Of what it needed, this was shown: {'; '.join(came)}; and this was not: {'; '.join(lacking)}."

    def _outcome(self) -> str:
        what = f"Question {self.t}" if self.asked else f"Step {self.t}"
        if self.correct:
            return f"{what} is right: {self.answer}."
        if self.submitted is None:
            return f"{what} is wrong: there is no valid answer ({self.fault or UNKNOWN}), and {self.answer} is right."
        return f"{what} is wrong: the answer was {self.submitted}, and {self.answer} is right."

    def figures(self) -> CardFigures:
        """Return everything that scripts receive."""
        return CardFigures(**asdict(self), way=self.way, sentences=tuple(self.sentences()))


class CardFigures(Struct, frozen=True):
    """A card as scripts receive it."""

    t: int
    correct: bool
    answer: str
    submitted: str | None
    cause: Cause | None
    kind: Kind | None
    inputs: tuple[NeededInput, ...]
    fault: str | None
    wrong: WrongAnswer | None
    asked: str
    rests_on: tuple[UsedPassage, ...]
    spread: Spread
    way: str | None
    sentences: tuple[str, ...]


def name_steps(steps: Sequence[int]) -> str:
    """Return `step 3`, `steps 3 and 5`; beyond a dozen only the number of the others."""
    if len(steps) == 1:
        return f"step {steps[0]}"
    if len(steps) > MOST_STEPS:
        return f"steps {', '.join(map(str, steps[:MOST_STEPS]))} and {len(steps) - MOST_STEPS} more"
    return f"steps {', '.join(map(str, steps[:-1]))} and {steps[-1]}"


def quote(text: str) -> str:
    """Return a text on one line, cut to the length of a quotation."""
    line = " ".join(text.split())
    return line if len(line) <= LONGEST_QUOTE else f"{line[:LONGEST_QUOTE]}…"


def way_measure(way: str) -> Measure:
    """Return the measure of a way to fail."""
    groups = (KIND_MEASURES, OUTCOME_MEASURES, SYMPTOM_MEASURES, ANSWER_CAUSE_MEASURES)
    return next(one for group in groups for one in group if one.id == way)


class StepExplainer:
    """Makes the cards of one run.

    Args:
        consultations: the calls to its memory system; None if their texts were not kept.
        memory: the name of that system; None if the run had none.
        limit: the number of records that the system was held to.
    """

    def __init__(
        self,
        task: TaskInstance,
        decisions: Sequence[Decision],
        verdicts: Mapping[int, Verdict],
        actions: Sequence[ActionTaken] = (),
        consultations: Sequence[Consultation] | None = (),
        memory: str | None = None,
        limit: int | None = None,
    ) -> None:
        self.task, self.verdicts, self.actions = task, verdicts, actions
        self.memory, self.limit = memory, limit
        self.decisions = {decision.t: decision for decision in decisions}
        self.lookups = (
            None
            if consultations is None
            else Lookups(
                decisions, list(verdicts.values()), consultations, task if prepare(task.spec).changes else None
            )
        )
        self.own = {t: decision.values for t, decision in self.decisions.items() if decision.values is not None}

    def card(self, t: int) -> WhyCard:
        """Return the card of a step."""
        step, verdict, decision = self.task.step(t), self.verdicts[t], self.decisions.get(t)
        inputs = tuple(_RecordStory(self, decision, r).told() for r in step.refs) if decision is not None else ()
        submitted = self.own.get(t)
        return WhyCard(
            t,
            verdict.correct,
            self.values(step.answer),
            None if submitted is None else self.values(submitted),
            verdict.cause,
            verdict.kind,
            inputs,
            "the run ended before this step" if decision is None else decision.fault,
            spread=spread_of(needs_of(self.task), self.verdicts, t),
        )

    def values(self, values: Payload) -> str:
        return show_values(self.task.spec.digits, values)


class _RecordStory:
    """What became of the answer of step r that a decision needed."""

    def __init__(self, run: StepExplainer, decision: Decision, r: int) -> None:
        self.run, self.decision, self.r = run, decision, r
        self.needed = r in decision.missing  # from elsewhere than the context
        # What is missing was not in context for certain, and only what a search returned for it can be uncertain.
        self.unsure = r in decision.uncertain and not self.needed
        lookups = run.lookups if run.memory is not None else None
        self.writes = [] if lookups is None else [one for one in lookups.writes.get(r, ()) if one[0] <= decision.t]
        self.searches = [] if lookups is None else lookups.searches.get(decision.t, [])
        self.sought = [one for one in self.searches if r in one.call.steps]
        self.fate: Outcome | None = lookups.fate(r, decision) if lookups is not None and self.needed else None

    def told(self) -> NeededInput:
        """Return everything that is known."""
        rank, passages, passage = self._place()
        known = self.run.lookups is not None and self.run.memory is not None and self.needed
        held, used = (self._held(), self._used()) if known else (None, None)
        lines = [("given", self._given()), ("in context", self._context())]
        if self.needed and self.run.memory is not None:
            lines += self._remembered(rank, passages, passage, held, used) if known else [("memory", NO_TEXTS)]
        elif self.run.memory is None and (kept := "; ".join(self._kept())):
            lines.append(("kept", kept))
        lines += [("obtained otherwise", text) for text in self._otherwise()]
        return NeededInput(
            show_label(self.run.task.spec, self.r),
            self.r,
            tuple(lines),
            None if self.unsure else self.r in self.decision.retained,
            tuple(t for t, _ in self.writes) if known else None,
            held,
            tuple(one.call.text for one in self.sought) if known else None,
            rank,
            passage,
            used,
            self.fate,
        )

    def _given(self) -> str:
        changes = [step for step in self.run.task.steps if step.target == self.r and step.t < self.decision.t]
        if changes:
            last = changes[-1]
            if last.kind == "delete":
                return f"deleted at step {last.t}"
            value = self.run.own.get(last.t)
            said = "nothing" if value is None else self.run.values(value)
            right = (
                "which is right" if value == last.answer else f"which is wrong; right is {self.run.values(last.answer)}"
            )
            return f"{said} at step {last.t}, the last time, {right}"
        right = self.run.values(self.run.task.step(self.r).answer)
        if self.r not in self.run.own:
            return f"never: step {self.r} has no valid answer; right is {right}"
        given = self.run.values(self.run.own[self.r])
        return f"{given} at step {self.r}, " + (
            "which is right" if given == right else f"which is wrong; right is {right}"
        )

    def _context(self) -> str:
        if self.r in self.decision.retained:
            return "yes"
        if self.unsure:
            return UNKNOWN
        seen = [t for t, one in self.run.decisions.items() if self.r < t < self.decision.t and self.r in one.retained]
        if self.r not in self.run.own:
            return "no"
        return f"no; last at step {max(seen)}" if seen else f"no; at no step after step {self.r}"

    def _remembered(
        self, rank: int | None, passages: int, passage: str | None, held: bool | None, used: bool | None
    ) -> list[tuple[str, str]]:
        lines = [("written", self._written()), ("in the store", self._store(held))]
        if self.sought:
            lines.append(("sought with", "; ".join(quote(one.call.text) for one in self.sought)))
        elif self.searches:
            others = "; ".join(quote(one.call.text) for one in self.searches)
            lines.append(("sought with", f"no query that names it; sought was: {others}"))
        else:
            lines.append(("sought with", "nothing: there was no search at this step"))
        if rank is not None and passage is not None:
            which = "" if self.fate in RETURNED else " with another value"
            lines.append(("returned", f"at rank {rank} of {passages}{which}: {quote(passage)}"))
        elif self.fate in ("unclear", "used", "not_used", "returned"):
            lines.append(("returned", "unknown: its value came back without its label, or beside other numbers"))
        elif self.searches:
            lines.append(("returned", f"no; {passages or 'no'} passage{'' if passages == 1 else 's'} came back"))
        if (rank is not None or self.fate in RETURNED) and self.fate != "gone":
            lines.append(("used", {None: UNKNOWN, True: "yes, the answer follows from it", False: "no"}[used]))
        return lines

    def _written(self) -> str:
        if not self.writes:
            return "never"
        last = quote(self.writes[-1][1])
        between = ": " if len(self.writes) == 1 else "; the last time: "
        return f"at {name_steps([t for t, _ in self.writes])}{between}{last}"

    def _store(self, held: bool | None) -> str:
        if held is None:
            return "unknown: it is looked up only where a search for it fails"
        if held:
            return "yes"
        if self.fate == "not_found":
            return "not yet; a later search shows that it was not lost"
        return "no" + ("" if self.run.limit is None else f"; the store was held to {self.run.limit} records")

    def _held(self) -> bool | None:
        """True if the record came back, or was found by its label when a search for it failed."""
        if self.fate in RETURNED and self._place()[0] is not None:
            return True
        if any(self.r in one.held for one in self.sought):
            return True
        return False if any(self.r in one.lacking for one in self.sought) else None

    def _used(self) -> bool | None:
        if self.fate in ("used", "not_used"):
            return self.fate == "used"
        verdict = self.run.verdicts[self.decision.t]
        stated = any(r == self.r for r, _ in self.decision.stated)
        return True if stated and verdict.kind == "misinformed" else None

    def _place(self) -> tuple[int | None, int, str | None]:
        """Return the rank at which the record came back, of how many passages, and the passage itself.

        The first passage about a label counts, so a wrong value before the right one is what came back.
        """
        values = self.run.own if self.run.lookups is None else self.run.lookups.right(self.decision.t)
        own = {self.r: values[self.r]} if self.r in values else {}
        right = self.fate in RETURNED
        for one in self.searches:
            for rank, passage in enumerate(one.passages, 1):
                # Of what came back with another value the end may be over, too.
                seen = recognize((passage,), own, now=one.t if right else None)
                if self.r in (seen.present if right else seen.stated):
                    return rank, len(one.passages), passage
        return None, sum(len(one.passages) for one in self.searches), None

    def _kept(self) -> Iterator[str]:
        """Yield when the agent kept the record in a memory of its own, and when it left."""
        done = [one for one in self.run.actions if one.t <= self.decision.t and one.outcome == "done"]
        notes = any(one.action.startswith("NOTE ") for one in done)  # then DROP names a line, not a record
        commands = (f"WRITE {self.r}", *(() if notes else (f"DROP {self.r}",)))
        for one in done:
            noted = one.action.startswith("NOTE ") and self.r in read_text(one.action).statements
            if one.action in commands or noted:
                yield f"{quote(one.action)} at step {one.t}"
            elif one.evicted == self.r:
                yield f"evicted at step {one.t} by {quote(one.action)}"

    def _otherwise(self) -> Iterator[str]:
        """Yield how the record was obtained without a memory system."""
        label = show_label(self.run.task.spec, self.r)
        done = [one for one in self.run.actions if one.t == self.decision.t and one.outcome == "done"]
        commands = f"READ {self.r}", f"RECOMPUTE {self.r}"
        yield from (f"{one.action}: {one.detail}" for one in done if one.action in commands)
        for r, values in self.decision.restored:
            if r == self.r:
                yield f"put back by the intervention: {label} = {self.run.values(values)}"
