"""A conversation beside one question of it: which turns the answer needs, and which the memory stored and returned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from eirkit.findings.conversations import ConversationJudge
from eirkit.findings.word_measures import WORD_FATES
from eirkit.tasks.conversations import ToldWorld


def told_document(
    task: ToldWorld, record: Mapping[str, Any], events: Sequence[Mapping[str, Any]], t: int
) -> dict[str, Any]:
    """Return the turns of the user with their marks, and why the answer is wrong; marks are None where unknown."""
    judge = ConversationJudge(task)
    calls = [one for one in events if one["type"] == "memory"]
    stored = next((one.get("stored") for one in reversed(calls) if one["verb"] == "observe"), None)
    found = [text for one in calls if one["verb"] == "recall" and one["t"] == t for text in one.get("found", ())]
    needed = {one.passage for one in judge.needed(task.asked[t - 1])}
    wrong = {number: (fate, evidence) for number, fate, evidence in record["words"]["wrong"]}
    fate, evidence = wrong.get(t, (None, ""))
    return {
        "question": task.asked[t - 1].text,
        "ability": task.asked[t - 1].ability,
        "fate": None if fate is None else WORD_FATES[fate].label,
        "meaning": None if fate is None else WORD_FATES[fate].meaning,
        "evidence": evidence,
        "turns": [
            {
                "text": turn,
                "needed": number in needed,
                "stored": None if stored is None else _is_in(judge, number, stored),
                "returned": _is_in(judge, number, found) if calls else None,
            }
            for number, turn in enumerate(task.turns)
            if "] user: " in turn[:20]
        ],
    }


def _is_in(judge: ConversationJudge, number: int, texts: Sequence[str]) -> bool:
    """Return True if texts have a turn: its words, or every statement in it."""
    said = [one for one in judge.task.said if one.passage == number]
    if any(judge.task.turns[number] in text for text in texts):
        return True
    return bool(said) and all(judge.holding(one, texts) is not None for one in said)
