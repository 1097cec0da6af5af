"""Judges runs on labeled conversations: whether a reply contains the labeled answer, and what became of the evidence.

Evidence is found by its text: a turn by its words, a session by any of its turns, a value by itself. A store that keeps
conversations in words of its own cannot be searched for turns, and then nothing is said to be lost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from eirkit.lacuna.agents.telemetry import Trace
from eirkit.lacuna.conversation.causes import Finding, Seen
from eirkit.lacuna.conversation.labeled import LabeledConversation, has_words, is_said_unknown, plain_words
from eirkit.lacuna.conversation.outcomes import AnswerVerdict, looks_at, record_of, retrieval_of
from eirkit.lacuna.conversation.published import ABSTAIN, LabeledQuestion
from eirkit.records.runs import ConversationRun, EvidenceCounts, Symptom

LEAST_BEGINNING = 40  # characters of a turn by which one that was cut is known


@dataclass(frozen=True, slots=True)
class LabeledEvidence:
    """One piece of evidence: it is there where any of its texts is."""

    texts: tuple[str, ...]
    verbatim: bool  # a turn in its own words, which a memory may have put differently

    def held_in(self, texts: Sequence[str]) -> str | None:
        """Return the first text that has it; None if there is none."""
        wanted = [plain for one in self.texts if (plain := plain_words(one))]
        return next((text for text in texts if any(has_words(plain_words(text), one) for one in wanted)), None)

    def cut_in(self, texts: Sequence[str]) -> str | None:
        """Return a text that ends in the beginning of a turn; None if there is none."""
        for text in texts:
            for one in self.texts if self.verbatim else ():
                place = text.find(one[:LEAST_BEGINNING])
                if len(one) > LEAST_BEGINNING and place >= 0 and one.startswith(text[place:]):
                    return text
        return None


def evidence_of(task: LabeledConversation, question: LabeledQuestion) -> list[LabeledEvidence]:
    """Return what a question needs, as finely as it is labeled."""
    if question.kind == ABSTAIN:
        return []
    if question.values:
        return [LabeledEvidence((one.value,), verbatim=False) for one in question.values]
    if question.turns is not None:
        return [LabeledEvidence((task.dialogues[s].messages[t].text,), verbatim=True) for s, t in question.turns]
    return [
        LabeledEvidence(tuple(one.text for one in task.dialogues[s].messages), verbatim=True) for s in question.sessions
    ]


class LabelJudge:
    """Judges the answers of one run."""

    def __init__(self, task: LabeledConversation) -> None:
        self.task = task
        self.turns = {plain_words(one.text) for told in task.sessions for one in told.messages}

    def judge(self, t: int, submitted: str | None, seen: Seen) -> tuple[AnswerVerdict, int, int]:
        """Return the verdict on one answer, how much evidence it needs, and how much of it was shown."""
        question = self.task.labels[t - 1]
        needed = evidence_of(self.task, question)
        lacking = [one for one in needed if one.held_in(seen.passages) is None]
        shown = len(needed) - len(lacking)
        symptom = "unreadable" if submitted is None else self.symptom(t, submitted)
        if symptom is None:
            return AnswerVerdict(t, question.kind, True, missed=bool(lacking)), len(needed), shown
        why = Finding("shown_not_used") if submitted is None else self.cause(question, seen, needed, lacking)
        return AnswerVerdict(t, question.kind, False, symptom, why, bool(lacking)), len(needed), shown

    def symptom(self, t: int, submitted: str) -> Symptom | None:
        """Return what is wrong with an answer that does not contain the labeled one; None of one that does."""
        question = self.task.labels[t - 1]
        if self.task.agrees(t, submitted):
            return None
        stated = any(has_words(submitted, plain_words(one)) for one in question.old)
        if stated and not any(has_words(submitted, plain_words(one.value)) for one in question.values):
            return "outdated"
        return "said_unknown" if is_said_unknown(submitted) else "other_answer"

    def cause(
        self,
        question: LabeledQuestion,
        seen: Seen,
        needed: Sequence[LabeledEvidence],
        lacking: Sequence[LabeledEvidence],
    ) -> Finding:
        """Return why an answer does not contain the labeled one."""
        if lacking:
            return self.of_lacking(lacking[0], seen)
        return Finding("answered_otherwise" if needed else "cause_uncertain", evidence=question.answer)

    def of_lacking(self, one: LabeledEvidence, seen: Seen) -> Finding:
        """Return what became of evidence that was not shown."""
        text, listed = one.texts[0], seen.listed
        if not seen.memory:
            return Finding("left_out" if seen.summarized else "out_of_view", text)
        if (found := one.held_in(seen.unshown)) is not None:
            return Finding("below_budget", text, found)
        if (found := one.cut_in(seen.passages)) is not None:
            return Finding("cut_off", text, found)
        if not listed:
            return Finding("store_unknown", text)
        if (found := one.held_in(listed[-1])) is not None:
            return Finding("not_retrieved", text, found)
        earlier = next((found for stored in listed if (found := one.held_in(stored)) is not None), None)
        if earlier is not None:
            return Finding("deleted", text, earlier)
        # A store that has no turn in its own words keeps them in others, and cannot be searched for them.
        is_reworded = one.verbatim and not any(self.has_turns(stored) for stored in listed)
        return Finding("cause_uncertain" if is_reworded else "never_stored", text)

    def has_turns(self, texts: Sequence[str]) -> bool:
        """Return whether texts have any turn of the conversation in its own words."""
        return any(has_words(plain_words(text), turn) for text in texts for turn in self.turns)


def judge_labeled(
    task: LabeledConversation, trace: Trace, condition: str, shown: Mapping[int, str]
) -> tuple[list[AnswerVerdict], ConversationRun]:
    """Return the verdicts on all questions of a run, and what its record says about them."""
    judge, submitted = LabelJudge(task), {one.t: one.text for one in trace.decisions}
    verdicts, retrieval = [], []
    labeled = all_shown = some_shown = 0
    for question, seen in zip(task.questions, looks_at(task, trace, condition, shown), strict=True):
        verdict, needed, found = judge.judge(question.t, submitted.get(question.t), seen)
        verdicts.append(verdict)
        retrieval.append(retrieval_of(question.t, seen))
        labeled += needed > 0
        all_shown += 0 < needed == found
        some_shown += 0 < found < needed
    evidence = EvidenceCounts(labeled, all_shown, some_shown)
    return verdicts, replace(record_of(task, trace, verdicts, tuple(retrieval)), evidence=evidence)
