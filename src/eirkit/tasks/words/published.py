"""Conversations with questions, answers and evidence in one form: worlds of ours, and files of LongMemEval and MEME.

Nothing of these benchmarks is shipped; the files are the user's. Where labels are coarse, so is the evidence: sessions
instead of turns.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from eirkit.errors import InputFileError
from eirkit.tasks.words.conversation import Told, Utterance, tell
from eirkit.tasks.words.language import Language, Listener, read, show_answer
from eirkit.tasks.words.truth import Key, Knowledge, answers
from eirkit.tasks.words.world import Saying, World, WorldQuestion

Turn = tuple[int, int]  # a session and a message in it, both from 0


class LabelledQuestion(NamedTuple):
    """One question about the first `after` sessions."""

    text: str
    answer: str
    kind: str  # as the benchmark calls it
    day: int  # as `date.toordinal` counts
    after: int
    sessions: tuple[int, ...]  # those with evidence
    turns: tuple[Turn, ...] | None  # the messages with evidence; None if only sessions are labelled


class LabelledDialogue(NamedTuple):
    """Dated sessions, and questions about them with their answers and the place of the evidence."""

    name: str
    sessions: tuple[Told, ...]
    questions: tuple[LabelledQuestion, ...]


def label_world(world: World, language: Language) -> LabelledDialogue:
    """Return a world of ours in this form; evidence is every turn that says something of what a question rests on."""
    told = tell(world, language)
    spoken: dict[Key, list[Turn]] = {}
    listener, knowledge = Listener(), Knowledge()
    known, found = iter(answers(world)), []
    for number, session in enumerate(told):
        for place, message in enumerate(session.messages):
            for one in read(language, message.text, session.day, listener) if message.role == "user" else ():
                if isinstance(one, Saying):
                    spoken.setdefault((one.attribute, one.subject), []).append((number, place))
                    knowledge.hear(one, session.day)
        for text in session.questions:
            question, answer, ability = next(known)
            turns = sorted({turn for key in _keys(question, knowledge) for turn in spoken.get(key, ())})
            where = tuple(sorted({session for session, _ in turns}))
            shown = show_answer(language, question, answer)
            found.append(LabelledQuestion(text, shown, ability, session.day, number + 1, where, tuple(turns)))
    return LabelledDialogue(f"words-{world.seed}", told, tuple(found))


def _keys(question: WorldQuestion, knowledge: Knowledge) -> tuple[Key, ...]:
    """Return the facts on which an answer rests."""
    form, attribute, subject, other = question
    if form == "hop":
        return ("lead", subject), (attribute, str(knowledge.current("lead", subject)))
    if form == "follows":
        return ("seat", subject), ("door", str(knowledge.current("seat", subject)))
    return ((attribute, subject), (attribute, str(other))) if form in ("first", "between") else ((attribute, subject),)


def read_published(path: Path) -> Iterator[LabelledDialogue]:
    """Yield the dialogues of a file of LongMemEval or MEME, which it tells from the fields.

    Raises:
        InputFileError: the file is of neither.
    """
    try:
        entries = json.loads(path.read_text("utf-8"))
        if not isinstance(entries, list):
            raise TypeError("not a list")
        for entry in entries:
            yield _reader(entry)(entry)
    except (OSError, ValueError, TypeError, KeyError, IndexError) as error:
        raise InputFileError(
            f"{path} is no file of LongMemEval or MEME ({type(error).__name__}: {error}); download it again"
        ) from error


def _reader(entry: Mapping[str, Any]) -> Callable[[Mapping[str, Any]], LabelledDialogue]:
    if "haystack_sessions" in entry:
        return _longmemeval
    if "after_questions" in entry:
        return _meme
    raise KeyError("haystack_sessions")


def _longmemeval(entry: Mapping[str, Any]) -> LabelledDialogue:
    days = [_time(one) for one in entry["haystack_dates"]]
    order = sorted(range(len(days)), key=days.__getitem__)  # the file with evidence alone is not in order
    raw = [entry["haystack_sessions"][old] for old in order]
    sessions = tuple(_told(days[old], turns) for old, turns in zip(order, raw, strict=True))
    names, wanted = [entry["haystack_session_ids"][old] for old in order], set(entry["answer_session_ids"])
    turns = tuple((s, t) for s, one in enumerate(raw) for t, turn in enumerate(one) if turn.get("has_answer"))
    name = str(entry["question_id"])
    question = LabelledQuestion(
        entry["question"],
        str(entry["answer"]),
        "abstention" if name.endswith("_abs") else entry["question_type"],
        _time(entry["question_date"]).toordinal(),
        len(sessions),
        tuple(number for number, one in enumerate(names) if one in wanted),
        turns or None,
    )
    return LabelledDialogue(name, sessions, (question,))


def _meme(entry: Mapping[str, Any]) -> LabelledDialogue:
    raw = entry["sessions"]
    sessions = tuple(_told(_time(one["timestamp"]), one["conversation"]) for one in raw)
    found = []
    for block in filter(None, (entry.get("before_questions"), entry["after_questions"])):
        for asked in block["questions"]:
            after = block["position_after_session"] + 1
            gold = asked.get("gold_answer", asked.get("expected_answer"))
            where = _evidence(raw[:after], asked.get("entity") or ())
            day = _time(block["timestamp"]).toordinal()
            found.append(LabelledQuestion(asked["question"], str(gold), asked["task_type"], day, after, where, None))
    return LabelledDialogue(str(entry["episode_id"]), sessions, tuple(found))


def _evidence(sessions: list[Mapping[str, Any]], entities: str | list[str] | tuple[str, ...]) -> tuple[int, ...]:
    """Return the sessions that state something of these entities; where none says so, all that have evidence."""
    wanted = {entities} if isinstance(entities, str) else set(entities)
    marked = {n: {fact["entity"] for fact in one.get("gold_facts") or ()}
              for n, one in enumerate(sessions) if one["type"] == "evidence"}  # fmt: skip
    return tuple(n for n, stated in marked.items() if stated & wanted) or tuple(marked)


def _told(when: datetime, turns: list[Mapping[str, Any]]) -> Told:
    return Told(when.toordinal(), tuple(Utterance(one["role"], one["content"]) for one in turns), ())


def _time(text: str) -> datetime:
    """Read `2023/05/20 (Sat) 02:21`; the name of the day follows from the date."""
    day, _, clock = text.split(" ")
    return datetime.strptime(f"{day} {clock}", "%Y/%m/%d %H:%M")
