"""Judges the answers of a conversation: for each wrong one its symptom, what is wrong with it, and its cause, why.

The symptom follows from the answer and what was said alone. The cause follows from what was shown, what the memory
returned beyond that, and what it stored after each session, whatever the answer says: `causes.py` finds it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations

from msgspec.structs import replace

from eirkit.lacuna.agents.conditions import COMPACTION, MEMORY
from eirkit.lacuna.agents.telemetry import Trace
from eirkit.lacuna.conversation.causes import CauseFinder, Finding, Seen
from eirkit.lacuna.conversation.instructions import instruction_record
from eirkit.lacuna.conversation.reading import DatedStatement, dated_statements, keys_of, learn, people_in, without_last
from eirkit.lacuna.conversation.scoring import AnswerKey, Words, contains, stated
from eirkit.lacuna.conversation.truth import Key
from eirkit.lacuna.conversation.workload import AnsweredQuestion, Conversation, WorldConversation
from eirkit.lacuna.conversation.world import ATTRIBUTES, Answer, Statement
from eirkit.lacuna.findings.causes import Verdict
from eirkit.records.events import Cause, Kind
from eirkit.records.runs import AbilityCount, AnswerCause, ConversationRun, Retrieval, Symptom, WrongAnswer

COMPUTED = ("how_many", "between", "member", "first", "day")  # forms of questions whose answers no statement has as is
LONGEST_EVIDENCE = 300  # characters of the passage in a record
MOST_SUMMED = 8  # statements of a total of which every part is summed up
_OF_READER: dict[AnswerCause, tuple[Cause, Kind]] = {
    "shown_not_used": ("computation", "correct_inputs"),
    "store_unknown": ("undetermined", "uncertain"),
    "answered_otherwise": ("undetermined", "uncertain"),
    "cause_uncertain": ("undetermined", "uncertain"),
}


@dataclass(frozen=True, slots=True)
class AnswerVerdict:
    """The outcome of one question."""

    t: int
    ability: str
    right: bool
    symptom: Symptom | None = None  # of a wrong answer
    found: Finding | None = None  # why it is wrong
    missed: bool = False  # what was shown does not give the right answer, apart from what an intervention added
    contradicting: bool = False  # what was shown has two values of what is asked, and nothing tells which holds

    @property
    def wrong(self) -> WrongAnswer | None:
        """What a record says of the answer; None of a right one."""
        if self.symptom is None or self.found is None:
            return None
        found = self.found
        return WrongAnswer(
            self.t, self.symptom, found.cause, found.statement[:LONGEST_EVIDENCE], found.evidence[:LONGEST_EVIDENCE]
        )

    def verdict(self) -> Verdict:
        """Return the outcome in the terms of all runs: wrong for lack of information, or by the reader itself."""
        cause: Cause | None = None
        kind: Kind | None = None
        if self.symptom == "unreadable":
            cause, kind = "malformed", "protocol"
        elif self.found is not None:
            cause, kind = _OF_READER.get(self.found.cause, ("state_supply", "missing"))
        return Verdict(
            t=self.t,
            scored=True,
            consumes=True,
            missed=self.missed,
            answered=self.symptom != "unreadable",
            correct=self.right,
            self_consistent=self.right,
            cause=cause,
            kind=kind,
            informed=not self.missed,
        )


class ConversationJudge(CauseFinder):
    """Judges the answers of one run."""

    def judge(self, asked: AnsweredQuestion, submitted: str | None, seen: Seen) -> AnswerVerdict:
        """Return the verdict on one answer, in its canonical form; None if it could not be read."""
        missed = not seen.opaque and not self.tells(asked, seen)
        conflict = self.conflict(asked, seen) is not None
        symptom: Symptom | None = "unreadable"
        if submitted is not None:
            answer = self.stated(asked, submitted)
            right = answer == self.shown(asked, asked.answer)
            symptom = None if right else self.symptom(asked, answer, submitted, seen)
        if symptom is None:
            return AnswerVerdict(asked.t, asked.ability, True, missed=missed, contradicting=conflict)
        found = Finding("shown_not_used") if submitted is None else self.cause(asked, seen)
        # What a server left nobody can read: a wrong answer counts as lost there, as in the bits that it kept.
        lost = missed or (seen.opaque and submitted is not None)
        return AnswerVerdict(asked.t, asked.ability, False, symptom, found, lost, conflict)

    def stated(self, asked: AnsweredQuestion, submitted: str) -> str:
        """Return the answer that a text states by its tracer; the text itself if it states none that is known."""
        return stated(self.key(asked), submitted)

    def key(self, asked: AnsweredQuestion) -> AnswerKey:
        """Return what answers to a question are compared with."""
        question = asked.question
        return AnswerKey(
            "total" if ATTRIBUTES[question.attribute] == "count" else question.form,
            self.shown(asked, asked.answer),
            {self.shown(asked, value): self.texts(asked, value) for value in self.own_values(asked)},
            lambda: {self.shown(asked, value): self.texts(asked, value) for value in self.other_values(asked)},
            self.task.language.answer_words,
            str(question.other),
        )

    def own_values(self, asked: AnsweredQuestion) -> set[Answer]:
        """Return the true answer and every other value of the same subject and attribute."""
        question = asked.question
        if question.form == "first":
            return {question.subject, str(question.other)}
        keys = [key for key in keys_of(question, self.task.truth_at(asked)) if key[0] == question.attribute]
        said = (one.statement for one in self.task.said)
        changes = ("raise", "lower")  # by how much is no value
        values = {one.value for one in said if (one.attribute, one.subject) in keys and one.op not in changes}
        if question.form == "all":
            return {value for value in values if value is not None}
        return {one for one in (asked.answer, *values, *(old for old, _ in self.old_answers(asked))) if one is not None}

    def other_values(self, asked: AnsweredQuestion) -> set[Answer]:
        """Return what may answer the same question about others; of lists, their items."""
        if asked.question.form != "all":
            return set(self.others(asked))
        said = (one.statement for one in self.task.said if one.statement.attribute == asked.question.attribute)
        return {one.value for one in said}

    def symptom(self, asked: AnsweredQuestion, submitted: str, given: str, seen: Seen) -> Symptom:
        """Return what is wrong with an answer.

        Args:
            submitted: what the answer states.
            given: the answer itself.
        """
        if submitted == self.task.language.table["unknown"].casefold():
            return "said_unknown"
        truth = self.task.truth_at(asked)
        keys = keys_of(asked.question, truth)
        if submitted in self._of_keys(asked, keys, truth.planted):
            return "planted_value"
        kind, form = ATTRIBUTES[asked.question.attribute], asked.question.form
        is_single = kind not in ("set", "count") and form not in COMPUTED
        if is_single and asked.answer is not None and Words(given).has_any(self.texts(asked, asked.answer)):
            return "several_values"
        if submitted in self._of_keys(asked, keys, truth.mistaken):
            return "withdrawn_value"
        if self._is_part(asked, submitted):
            return "partial"
        changed = [key for one, key in self.old_answers(asked) if self.shown(asked, one) == submitted]
        if changed:
            is_withdrawn = asked.answer is None and bool(truth.withdrawn.intersection(changed))
            return "withdrawn_value" if is_withdrawn else "outdated"
        if submitted in {self.shown(asked, one) for one in self.others(asked)}:
            return "anothers"
        foreign = self.foreign(seen.passages) if seen.memory else None
        if is_single and foreign is not None and contains(foreign, submitted):
            return "anothers"
        told = " ".join(self.task.turns[: self.task.turns_before(asked)])
        # A number may be counted wrongly, and a list have what was said of several.
        parts = [submitted] if is_single else [word for word in Words(submitted).list if word.isalpha()]
        no_value = {self.task.language.table[word].casefold() for word in ("yes", "no", "none")}
        return "other_answer" if all(contains(told, part) for part in {*parts} - no_value) else "invented"

    def _of_keys(
        self, asked: AnsweredQuestion, keys: Iterable[Key], values: Mapping[Key, Iterable[Answer]]
    ) -> set[str]:
        return {self.shown(asked, value) for key in keys for value in values.get(key, ())}

    def _is_part(self, asked: AnsweredQuestion, submitted: str) -> bool:
        """True if an answer is a list or a total that lacks some of what was said."""
        question, truth = asked.question, asked.answer
        if question.form == "all" and isinstance(truth, tuple):
            none = self.task.language.table["none"].casefold()
            items = set() if submitted == none else set(submitted.split(", "))
            return items < {item.casefold() for item in truth}
        if question.form == "how_many" and isinstance(truth, int):
            return submitted.isdigit() and int(submitted) < truth
        if ATTRIBUTES[question.attribute] != "count" or not submitted.isdigit():
            return False
        if any(self.shown(asked, old) == submitted for old, _ in self.old_answers(asked)):
            return False  # the total before a change
        changes = self.needed(asked)[:MOST_SUMMED]
        parts = chain.from_iterable(combinations(changes, size) for size in range(1, len(changes)))
        sums = (learn(part).answer(question) for part in parts)
        return any(total is not None and str(total) == submitted for total in sums)

    def used(self, asked: AnsweredQuestion, submitted: str, passages: Sequence[str]) -> set[Statement] | None:
        """Return the statements in passages that an answer rests on; None if that is not known."""
        found = self.rests_on(asked, submitted, passages)
        return None if found is None else {self.named_fully(one.statement) for one in found}

    def rests_on(self, asked: AnsweredQuestion, submitted: str, passages: Sequence[str]) -> list[DatedStatement] | None:
        """Return what passages say that an answer rests on, with the passage of each; None if that is not known.

        If the answer is what the passages tell, these are the statements without which they would tell another,
        wherever they are repeated; if it is not, those that state it. What a wrong number was counted from, or that
        nothing is known, no statement states.
        """
        question = asked.question
        heard = dated_statements(self.task.language, passages, asked.day, people_in(question))
        if self.shown(asked, learn(heard).answer(question)) == submitted:
            without = {said: learn([one for one in heard if one.statement != said]) for said, *_ in heard}
            other = {said for said, rest in without.items() if self.shown(asked, rest.answer(question)) != submitted}
            return [one for one in heard if one.statement in other]
        if submitted == self.task.language.table["unknown"].casefold():
            return []
        parts = submitted.split(", ")
        found = [one for one in heard if str(one.statement.value).casefold() in parts]
        computed = question.form in COMPUTED or ATTRIBUTES[question.attribute] == "count"
        return None if computed and not found else found

    def old_answers(self, asked: AnsweredQuestion) -> Iterable[tuple[Answer, Key]]:
        """Yield the answers that were right before the last changes, each with the fact that changed."""
        for key in keys_of(asked.question, self.task.truth_at(asked)):
            for before in without_last(self.task.said_before(asked), key):
                if (answer := learn(before).answer(asked.question)) is not None:
                    yield answer, key

    def others(self, asked: AnsweredQuestion) -> Iterable[Answer]:
        """Yield the present answers to the same question about others."""
        own, before = asked.question, self.task.said_before(asked)
        if own.form in ("now", "before", "as_of") and ATTRIBUTES[own.attribute] != "count":
            stated = (one.statement for one in before if one.statement.attribute == own.attribute)
            yield from (one.value for one in stated if one.subject != own.subject and one.value is not None)
        attribute = {"hop": "lead", "follows": "seat"}.get(asked.question.form, asked.question.attribute)
        about = dict.fromkeys(one.statement.subject for one in before if one.statement.attribute == attribute)
        for subject in about:
            if subject != asked.question.subject and asked.question.form not in (
                "first",
                "between",
                "member",
                "how_many",
            ):
                for said in (before, *without_last(before, (asked.question.attribute, subject))):
                    answer = learn(said).answer(asked.question._replace(subject=subject))
                    if answer not in (None, ()):
                        yield answer


def judge_conversation(
    task: WorldConversation, trace: Trace, condition: str, shown: Mapping[int, str]
) -> tuple[list[AnswerVerdict], tuple[Retrieval, ...]]:
    """Return the verdicts on all questions of a run, and what was put into their prompts.

    Args:
        shown: the conversation as it was shown after a number of sessions, where it is known.
    """
    judge, submitted = ConversationJudge(task), {one.t: one.text for one in trace.decisions}
    looks = list(zip(task.questions, looks_at(task, trace, condition, shown), strict=True))
    verdicts = [judge.judge(asked, submitted.get(asked.t), seen) for asked, seen in looks]
    return verdicts, tuple([retrieval_of(asked.t, seen, judge) for asked, seen in looks])


def looks_at(task: Conversation, trace: Trace, condition: str, shown: Mapping[int, str]) -> Iterator[Seen]:
    """Yield what was shown for each question of a run, and what the memory held."""
    stored = tuple(one.stored for one in trace.consultations if one.call.verb == "observe")
    recalled = {one.t: one for one in trace.consultations if one.call.verb == "recall"}
    opaque = {one.t for one in trace.exchanges if one.is_compacted}
    for asked in task.questions:
        call = recalled.get(asked.t)
        passages = (() if call is None else call.passages) if condition == MEMORY else (shown.get(asked.after, ""),)
        yield Seen(
            passages=() if asked.t in opaque else passages,
            stored=stored[: asked.after],
            memory=condition == MEMORY,
            summarized=condition == COMPACTION,
            opaque=asked.t in opaque,
            unshown=() if call is None else call.unshown,
            unshown_ranks=() if call is None else call.unshown_ranks,
            asked=None if call is None else call.asked,
        )


def retrieval_of(t: int, seen: Seen, judge: ConversationJudge | None = None) -> Retrieval:
    """Return what was put into the prompt of a question, and where it has what the answer needs.

    Args:
        judge: knows what is needed; None where nobody does.
    """
    asked, returned, shown = (seen.asked, seen.returned, len(seen.passages)) if seen.memory else (None, None, None)
    if seen.opaque:
        return Retrieval(t, asked, returned, shown, None)
    characters = sum(map(len, seen.passages))
    if judge is None:
        return Retrieval(t, asked, returned, shown, characters)
    came = [*enumerate(seen.passages, 1), *zip(seen.unshown_ranks, seen.unshown, strict=True)]
    needed = judge.needed(judge.task.questions[t - 1])
    ranks = [next((rank for rank, text in came if judge.has(text, one)), None) for one in needed]
    return Retrieval(
        t,
        asked,
        returned,
        shown,
        characters,
        tuple(ranks) if seen.memory else tuple([None] * len(ranks)),
        sum(judge.holding(one, seen.passages) is not None for one in needed),
    )


def recorded_verdicts(task: Conversation, record: ConversationRun) -> list[Verdict]:
    """Return the verdicts of a recorded run, which names the outcome of every wrong answer."""
    wrong = {answer.t: answer for answer in record.wrong}
    verdicts = []
    for put in task.questions:
        answer, missed = wrong.get(put.t), put.t in record.missed
        symptom, found = (None, None) if answer is None else (answer.symptom, Finding(answer.cause))
        verdicts.append(AnswerVerdict(put.t, put.ability, answer is None, symptom, found, missed).verdict())
    return verdicts


def conversation_record(
    task: WorldConversation, trace: Trace, verdicts: Sequence[AnswerVerdict], retrieval: tuple[Retrieval, ...]
) -> ConversationRun:
    """Return what a run record says about answers."""
    return replace(
        record_of(task, trace, verdicts, retrieval),
        instruction=instruction_record(task, trace),
        floor_bytes=task.floor_bits() / 8,
    )


def record_of(
    task: Conversation, trace: Trace, verdicts: Sequence[AnswerVerdict], retrieval: tuple[Retrieval, ...]
) -> ConversationRun:
    """Return what the record of a run on any conversation says about its answers and its memory."""
    observed = [one for one in trace.consultations if one.call.verb == "observe"]
    last = observed[-1].stored if observed else None
    asked = Counter(verdict.ability for verdict in verdicts)
    right = Counter(verdict.ability for verdict in verdicts if verdict.right)
    return ConversationRun(
        abilities={ability: AbilityCount(right[ability], asked[ability]) for ability in sorted(asked)},
        wrong=tuple(verdict.wrong for verdict in verdicts if verdict.wrong is not None),
        missed=tuple(verdict.t for verdict in verdicts if verdict.missed),
        stored_texts=None if last is None else len(last),
        stored_bytes=None if last is None else sum(len(text.encode()) for text in last),
        said_bytes=sum(len(turn.encode()) for turn in task.turns),
        recalls=sum(one.call.verb == "recall" for one in trace.consultations),
        returned_bytes=sum(one.returned_characters for one in trace.consultations),
        retrieval=retrieval,
        contradicting=tuple(verdict.t for verdict in verdicts if verdict.contradicting),
    )
