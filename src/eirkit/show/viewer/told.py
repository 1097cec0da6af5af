"""A conversation beside one question of it: which turns the answer needs, and what was stored, returned and used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from eirkit.findings.conversations import ConversationJudge
from eirkit.findings.word_measures import WORD_FATES
from eirkit.tasks.conversations import ToldWorld, unspell
from eirkit.tasks.task import Payload
from eirkit.tasks.words.reading import Heard


def told_document(
    task: ToldWorld,
    record: Mapping[str, Any],
    events: Sequence[Mapping[str, Any]],
    t: int,
    submitted: Payload | None,
    shown: str,
) -> dict[str, Any]:
    """Return the turns of the user with their marks, and why the answer is wrong; marks are None where unknown.

    Args:
        submitted: the answer; None if there is none.
        shown: the conversation as it was shown, where there is no memory.
    """
    calls = [one for one in events if one["type"] == "memory"]
    stored = next((one.get("stored") for one in reversed(calls) if one["verb"] == "observe"), None)
    found = [text for one in calls if one["verb"] == "recall" and one["t"] == t for text in one.get("found", ())]
    marks = _Marks(task, t, stored, found if calls else None, submitted, found if calls else [shown])
    needed = {one.passage for one in marks.judge.needed(task.asked[t - 1])}
    wrong = {number: (fate, evidence) for number, fate, evidence in record["words"]["wrong"]}
    fate, evidence = wrong.get(t, (None, ""))
    return {
        "question": task.asked[t - 1].text,
        "ability": task.asked[t - 1].ability,
        "fate": None if fate is None else WORD_FATES[fate].label,
        "meaning": None if fate is None else WORD_FATES[fate].meaning,
        "evidence": evidence,
        "turns": [
            {"text": turn, "needed": number in needed, **marks.of_turn(number)}
            for number, turn in enumerate(task.turns)
            if "] user: " in turn[:20]
        ],
    }


class _Marks:
    """What became of each statement: kept in the store, returned for the question, and used in the answer."""

    def __init__(
        self,
        task: ToldWorld,
        t: int,
        stored: Sequence[str] | None,
        found: Sequence[str] | None,
        submitted: Payload | None,
        shown: Sequence[str],
    ) -> None:
        self.judge, self.stored, self.found = ConversationJudge(task), stored, found
        self.used = None if submitted is None else self.judge.used(task.asked[t - 1], unspell(submitted), shown)

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
        """Yield the parts of a turn in order, each with the state of the value that it is, or None."""
        places = [(turn.find(str(one.statement.value)), one) for one in said if one.statement.value is not None]
        end = 0
        for start, one in sorted((place for place in places if place[0] >= 0), key=lambda place: place[0]):
            if start >= end:
                yield turn[end:start], None
                end = start + len(str(one.statement.value))
                yield turn[start:end], self._state(one)
        yield turn[end:], None

    def _state(self, one: Heard) -> str | None:
        if self.used and one.statement in self.used:
            return "used"
        if self.found and self.judge.holding(one, self.found) is not None:
            return "returned"
        if self.stored is None:
            return None
        return "stored" if self.judge.holding(one, self.stored) is not None else "lost"
