"""A conversation beside one question of it: which turns the answer needs, and what was stored, returned and used."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from eirkit.lacuna.conversation.outcomes import ConversationJudge
from eirkit.lacuna.conversation.reading import DatedStatement
from eirkit.lacuna.conversation.workload import WorldConversation
from eirkit.lacuna.conversation.world import Statement
from eirkit.lacuna.findings.conversation_measures import ANSWER_CAUSE_MEASURES, SYMPTOM_MEASURES
from eirkit.records.events import Event, MemoryExchange
from eirkit.records.runs import RunRecord
from eirkit.report.viewer.documents import ConversationTurn, Question, TurnPiece, ValueState


def question_document(
    task: WorldConversation,
    record: RunRecord,
    events: Sequence[Event],
    t: int,
    submitted: str | None,
    shown: str | None,
) -> Question:
    """Return the turns of the user with their marks, and why the answer is wrong; marks are None where unknown.

    Args:
        submitted: the answer; None if there is none.
        shown: the conversation as it was shown, where there is no memory; None if that is not known.
    """
    asked = task.questions[t - 1]
    calls = [event for event in events if isinstance(event, MemoryExchange)]
    observed = [call for call in calls if call.verb == "observe"][: asked.after]  # the sessions before the question
    stored = observed[-1].stored if observed else None
    found = [text for call in calls if call.verb == "recall" and call.t == t for text in call.found or ()]
    seen = found if calls else None if shown is None else [shown]
    marks = _Marks(task, t, stored, found if calls else None, submitted, seen)
    needed = {heard.passage for heard in marks.judge.needed(asked)}
    talk = record.conversation
    wrong = next((answer for answer in (() if talk is None else talk.wrong) if answer.t == t), None)
    return Question(
        question=asked.text,
        ability=asked.ability,
        symptom=None if wrong is None else SYMPTOM_MEASURES[wrong.symptom].label,
        cause=None if wrong is None else ANSWER_CAUSE_MEASURES[wrong.cause].label,
        meaning=None if wrong is None else ANSWER_CAUSE_MEASURES[wrong.cause].meaning,
        evidence="" if wrong is None else wrong.evidence,
        turns=tuple(
            marks.of_turn(number, needed=number in needed)
            for number, turn in enumerate(task.turns[: task.turns_before(asked)])
            if "] user: " in turn[:20]
        ),
    )


class _Marks:
    """What became of each statement: kept in the store, returned for the question, and used in the answer."""

    def __init__(
        self,
        task: WorldConversation,
        t: int,
        stored: Sequence[str] | None,
        found: Sequence[str] | None,
        submitted: str | None,
        shown: Sequence[str] | None,
    ) -> None:
        self.judge, self.stored, self.found = ConversationJudge(task), stored, found
        self.used: set[Statement] | None = None
        if submitted is not None and shown is not None:
            asked = task.questions[t - 1]
            self.used = self.judge.used(asked, self.judge.stated(asked, submitted), shown)

    def of_turn(self, number: int, *, needed: bool) -> ConversationTurn:
        """Return a turn with its marks, and its text in pieces, with what became of each value that it states."""
        heard = [heard for heard in self.judge.task.said if heard.passage == number]
        turn = self.judge.task.turns[number]
        return ConversationTurn(
            text=turn,
            needed=needed,
            stored=None if self.stored is None else self._is_in(number, heard, self.stored),
            returned=None if self.found is None else self._is_in(number, heard, self.found),
            used=None if self.used is None else any(statement.statement in self.used for statement in heard),
            pieces=tuple(self._pieces(turn, heard)),
        )

    def _is_in(self, number: int, said: Sequence[DatedStatement], texts: Sequence[str]) -> bool:
        """Return True if texts have a turn: its words, or every statement in it."""
        if any(self.judge.task.turns[number] in text for text in texts):
            return True
        return bool(said) and all(self.judge.holding(statement, texts) is not None for statement in said)

    def _pieces(self, turn: str, said: Sequence[DatedStatement]) -> Iterator[TurnPiece]:
        """Yield the parts of a turn in order, each with the state of the value that it is, or None.

        Statements come in the order in which they were made, so each has the next place where its value stands.
        """
        end = 0
        for one in (statement for statement in said if statement.statement.value is not None):
            found = self._place(one.statement).search(turn, end)
            if found is not None:
                yield TurnPiece(turn[end : found.start()], None)
                end = found.end()
                yield TurnPiece(found[0], self._state(one))
        yield TurnPiece(turn[end:], None)

    def _place(self, said: Statement) -> re.Pattern[str]:
        """Return what finds the value of a statement in its turn; a person may be called by a shorter name."""
        value = str(said.value)
        names = {value}
        if said.attribute == "lead":
            names |= {value.partition(" ")[0], *self.judge.everybody.names(value)}
        return re.compile("|".join(rf"\b{re.escape(name)}\b" for name in sorted(names, key=len, reverse=True)))

    def _state(self, one: DatedStatement) -> ValueState | None:
        if self.used and one.statement in self.used:
            return "used"
        if self.found and self.judge.holding(one, self.found) is not None:
            return "returned"
        if self.stored is None:
            return None
        return "stored" if self.judge.holding(one, self.stored) is not None else "lost"
