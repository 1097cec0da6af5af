"""Judges runs on labeled conversations: whether a reply contains the labeled answer, and what became of the evidence.

Evidence is found by its text: a turn by its words, a session by any of its turns, a value by itself. A store that keeps
conversations in words of its own cannot be searched for turns, and then nothing is said to be lost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from eirkit.lacuna.agents.telemetry import Trace
from eirkit.lacuna.conversation.labeled import LabeledConversation, has_words, plain_words
from eirkit.lacuna.conversation.outcomes import LONGEST_EVIDENCE, AnswerVerdict, Seen, looks_at, record_of, retrieval_of
from eirkit.lacuna.conversation.published import ABSTAIN, LabeledQuestion
from eirkit.records.runs import ConversationRun, EvidenceCounts

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
        if submitted is None:
            verdict = AnswerVerdict(t, question.kind, False, "word_unreadable", missed=bool(lacking))
        elif self.task.agrees(t, submitted):
            verdict = AnswerVerdict(t, question.kind, True, missed=bool(lacking))
        else:
            fate, why = self.fate(question, submitted, seen, needed, lacking)
            verdict = AnswerVerdict(t, question.kind, False, fate, why[:LONGEST_EVIDENCE], bool(lacking))
        return verdict, len(needed), shown

    def fate(
        self,
        question: LabeledQuestion,
        submitted: str,
        seen: Seen,
        needed: Sequence[LabeledEvidence],
        lacking: Sequence[LabeledEvidence],
    ) -> tuple[str, str]:
        """Return why an answer does not contain the labeled one, and the text that shows it."""
        stated = [one for one in question.old if has_words(submitted, plain_words(one))]
        if stated and not any(has_words(submitted, plain_words(one.value)) for one in question.values):
            return "word_stale", stated[-1]
        if not lacking:
            return ("word_unmatched" if needed else "word_unlabeled"), question.answer
        return self.of_lacking(lacking[0], seen)

    def of_lacking(self, one: LabeledEvidence, seen: Seen) -> tuple[str, str]:
        """Return what became of evidence that was not shown."""
        text = one.texts[0]
        if not seen.memory:
            return ("word_summary" if seen.summarized else "word_cut"), text
        if (cut := one.cut_in(seen.passages)) is not None:
            return "word_cut", cut
        held = [stored for stored in seen.stored if stored is not None]
        if not held:
            return "word_unlisted", text
        if (found := one.held_in(held[-1])) is not None:
            return "word_not_returned", found
        earlier = next((found for stored in held if (found := one.held_in(stored)) is not None), None)
        if earlier is not None:
            return "word_lost", earlier
        if one.verbatim and not any(self.has_turns(stored) for stored in held):
            return "word_rewritten", text
        return "word_never_stored", text

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
