"""A conversation beside one question of it: which turns the answer needs, and what was stored, returned and used."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from eirkit.lacuna.conversation.outcomes import ConversationJudge
from eirkit.lacuna.conversation.reading import Heard
from eirkit.lacuna.conversation.workload import Asked, ToldWorld, unspell
from eirkit.lacuna.conversation.world import Saying
from eirkit.lacuna.findings.conversation_measures import WORD_FATES
from eirkit.lacuna.tasks.task import Payload


def told_document(
    task: ToldWorld,
    record: Mapping[str, Any],
    events: Sequence[Mapping[str, Any]],
    t: int,
    submitted: Payload | None,
    shown: str | None,
) -> dict[str, Any]:
    """Return the turns of the user with their marks, and why the answer is wrong; marks are None where unknown.

    Args:
        submitted: the answer; None if there is none.
        shown: the conversation as it was shown, where there is no memory; None if that is not known.
    """
    asked = task.asked[t - 1]
    calls = [one for one in events if one["type"] == "memory"]
    stored = next((one.get("stored") for one in reversed(_observed(calls, asked))), None)
    found = [text for one in calls if one["verb"] == "recall" and one["t"] == t for text in one.get("found", ())]
    seen = found if calls else None if shown is None else [shown]
    marks = _Marks(task, t, stored, found if calls else None, submitted, seen)
    needed = {one.passage for one in marks.judge.needed(asked)}
    wrong = {number: (fate, evidence) for number, fate, evidence in record["words"]["wrong"]}
    fate, evidence = wrong.get(t, (None, ""))
    return {
        "question": asked.text,
        "ability": asked.ability,
        "fate": None if fate is None else WORD_FATES[fate].label,
        "meaning": None if fate is None else WORD_FATES[fate].meaning,
        "evidence": evidence,
        "turns": [
            {"text": turn, "needed": number in needed, **marks.of_turn(number)}
            for number, turn in enumerate(task.turns[: task.turns_before(asked)])
            if "] user: " in turn[:20]
        ],
    }


def _observed(calls: Sequence[Mapping[str, Any]], asked: Asked) -> list[Mapping[str, Any]]:
    """Return the calls in which the memory observed a session before a question."""
    return [one for one in calls if one["verb"] == "observe"][: asked.after]


class _Marks:
    """What became of each statement: kept in the store, returned for the question, and used in the answer."""

    def __init__(
        self,
        task: ToldWorld,
        t: int,
        stored: Sequence[str] | None,
        found: Sequence[str] | None,
        submitted: Payload | None,
        shown: Sequence[str] | None,
    ) -> None:
        self.judge, self.stored, self.found = ConversationJudge(task), stored, found
        self.used: set[Saying] | None = None
        if submitted is not None and shown is not None:
            self.used = self.judge.used(task.asked[t - 1], unspell(submitted), shown)

    def of_turn(self, number: int) -> dict[str, Any]:
        """Return the marks of a turn, and its text in pieces, with what became of each value that it states."""
        said = [one for one in self.judge.task.said if one.passage == number]
        return {
            "stored": None if self.stored is None else self._is_in(number, said, self.stored),
            "returned": None if self.found is None else self._is_in(number, said, self.found),
            "used": None if self.used is None else any(one.statement in self.used for one in said),
            "pieces": list(self._pieces(self.judge.task.turns[number], said)),
        }

    def _is_in(self, number: int, said: Sequence[Heard], texts: Sequence[str]) -> bool:
        """Return True if texts have a turn: its words, or every statement in it."""
        if any(self.judge.task.turns[number] in text for text in texts):
            return True
        return bool(said) and all(self.judge.holding(one, texts) is not None for one in said)

    def _pieces(self, turn: str, said: Sequence[Heard]) -> Iterator[tuple[str, str | None]]:
        """Yield the parts of a turn in order, each with the state of the value that it is, or None.

        Statements come in the order in which they were made, so each has the next place where its value stands.
        """
        end = 0
        for one in (one for one in said if one.statement.value is not None):
            found = self._place(one.statement).search(turn, end)
            if found is not None:
                yield turn[end : found.start()], None
                end = found.end()
                yield found[0], self._state(one)
        yield turn[end:], None

    def _place(self, said: Saying) -> re.Pattern[str]:
        """Return what finds the value of a statement in its turn; a person may be called by a shorter name."""
        value = str(said.value)
        names = {value}
        if said.attribute == "lead":
            names |= {value.partition(" ")[0], *self.judge.everybody.names(value)}
        return re.compile("|".join(rf"\b{re.escape(name)}\b" for name in sorted(names, key=len, reverse=True)))

    def _state(self, one: Heard) -> str | None:
        if self.used and one.statement in self.used:
            return "used"
        if self.found and self.judge.holding(one, self.found) is not None:
            return "returned"
        if self.stored is None:
            return None
        return "stored" if self.judge.holding(one, self.stored) is not None else "lost"
