"""Files of LongMemEval and MEME, and worlds of ours, in one form: dialogues with questions, answers and evidence.

Nothing of these benchmarks is shipped; the files are the user's. Where labels are coarse, so is the evidence: turns and
sessions in LongMemEval, values of sessions in MEME. A file is read entry by entry, however large it is.
"""

from __future__ import annotations

import json
import mmap
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from eirkit.errors import InputFileError
from eirkit.lacuna.conversation.dialogues import Dialogue, Utterance, tell
from eirkit.lacuna.conversation.language import Language, Listener, read, show_answer
from eirkit.lacuna.conversation.truth import Key, Knowledge, answers
from eirkit.lacuna.conversation.world import Statement, World, WorldQuestion
from eirkit.registry import refuse_untrusted

Turn = tuple[int, int]  # a session and a message in it, both from 0
LONGMEMEVAL, MEME = "longmemeval", "meme"
ABSTAIN = "abstention"  # the kind of questions whose right answer is that it is unknown
LARGEST_ENTRY = 1 << 28  # bytes; those of the largest file of LongMemEval have some millions
_TRACKING = ("Agg", "Tr")  # tasks of MEME that ask for every value, not only for the last
_MARK = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[\[\]{}]', re.DOTALL)


class LabeledValue(NamedTuple):
    """A value that a session states of something, as MEME labels it."""

    session: int
    entity: str
    value: str


class LabeledQuestion(NamedTuple):
    """One question about the first `after` sessions."""

    text: str
    answer: str
    kind: str  # as the benchmark calls it
    day: int  # as `date.toordinal` counts
    after: int
    sessions: tuple[int, ...]  # those with evidence
    turns: tuple[Turn, ...] | None  # the messages with evidence; None if only sessions are labeled
    values: tuple[LabeledValue, ...] = ()  # that it needs, where values are labeled
    old: tuple[str, ...] = ()  # earlier values of the same things


class LabeledEntry(NamedTuple):
    """Dated sessions, and questions about them with their answers and the place of the evidence."""

    name: str
    sessions: tuple[Dialogue, ...]
    questions: tuple[LabeledQuestion, ...]


def label_world(world: World, language: Language) -> LabeledEntry:
    """Return a world of ours in this form; evidence is every turn that says something of what a question rests on."""
    told = tell(world, language)
    spoken: dict[Key, list[Turn]] = {}
    listener, knowledge = Listener(), Knowledge()
    known, found = iter(answers(world)), []
    for number, session in enumerate(told):
        for place, message in enumerate(session.messages):
            for one in read(language, message.text, session.day, listener) if message.role == "user" else ():
                if isinstance(one, Statement):
                    spoken.setdefault((one.attribute, one.subject), []).append((number, place))
                    knowledge.hear(one, session.day)
        for text in session.questions:
            question, answer, ability = next(known)
            turns = sorted({turn for key in _keys(question, knowledge) for turn in spoken.get(key, ())})
            where = tuple(sorted({session for session, _ in turns}))
            shown = show_answer(language, question, answer)
            found.append(LabeledQuestion(text, shown, ability, session.day, number + 1, where, tuple(turns)))
    return LabeledEntry(f"words-{world.seed}", told, tuple(found))


def _keys(question: WorldQuestion, knowledge: Knowledge) -> tuple[Key, ...]:
    """Return the facts on which an answer rests."""
    form, attribute, subject, other = question
    if form == "hop":
        return ("lead", subject), (attribute, str(knowledge.current("lead", subject)))
    if form == "follows":
        return ("seat", subject), ("door", str(knowledge.current("seat", subject)))
    return ((attribute, subject), (attribute, str(other))) if form in ("first", "between") else ((attribute, subject),)


class PublishedFile:
    """A file of LongMemEval or MEME, of which entries are read one at a time."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __len__(self) -> int:
        return len(self._places)

    def __iter__(self) -> Iterator[LabeledEntry]:
        return (self[number] for number in range(len(self)))

    def __getitem__(self, number: int) -> LabeledEntry:
        """Return a dialogue.

        Raises:
            InputFileError: the file or the entry is of neither benchmark.
        """
        return self.kind_and_entry(number)[1]

    def kind_and_entry(self, number: int) -> tuple[str, LabeledEntry]:
        """Return which benchmark an entry is of, and its dialogue."""
        start, end = self._places[number]
        try:
            with self.path.open("rb") as file:
                file.seek(start)
                entry = json.loads(file.read(end - start))
            kind, reader = _reader(entry)
            return kind, reader(entry)
        except (OSError, ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError) as error:
            raise self._refusal(f"entry {number}: {type(error).__name__}: {error}") from error

    @property
    def _places(self) -> Sequence[tuple[int, int]]:
        refuse_untrusted(self.path, "a file")
        try:
            found = self.path.stat()
            return _places_in(self.path, found.st_size, found.st_mtime_ns)
        except (OSError, ValueError) as error:
            raise self._refusal(str(error)) from error

    def _refusal(self, why: str) -> InputFileError:
        return InputFileError(f"{self.path} is no file of LongMemEval or MEME ({why[:200]}); download it again")


@lru_cache(maxsize=4)
def _places_in(path: Path, size: int, changed: int) -> tuple[tuple[int, int], ...]:
    """Return where the entries of a list of objects begin and end, without reading the file into memory."""
    found: list[tuple[int, int]] = []
    depth = start = 0
    if not size:
        raise ValueError("it is empty")
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        if not re.match(rb"\s*\[", data):
            raise ValueError("it is no list")
        for mark in _MARK.finditer(data):
            sign = data[mark.start()]
            if sign in b"[{":
                depth += 1
                start = mark.start() if depth == 2 else start
            elif sign in b"]}":
                depth -= 1
                if depth == 1:
                    found.append((start, mark.end()))
                    if mark.end() - start > LARGEST_ENTRY:
                        raise ValueError(f"entry {len(found) - 1} is larger than {LARGEST_ENTRY:,} bytes")
    if depth or not found:
        raise ValueError("it is cut off" if depth else "it has no entries")
    return tuple(found)


def _reader(entry: Mapping[str, Any]) -> tuple[str, Callable[[Mapping[str, Any]], LabeledEntry]]:
    if "haystack_sessions" in entry:
        return LONGMEMEVAL, _longmemeval
    if "after_questions" in entry:
        return MEME, _meme
    raise KeyError("haystack_sessions")


def _longmemeval(entry: Mapping[str, Any]) -> LabeledEntry:
    days = [_time(one) for one in entry["haystack_dates"]]
    order = sorted(range(len(days)), key=days.__getitem__)  # the file with evidence alone is not in order
    raw = [entry["haystack_sessions"][old] for old in order]
    sessions = tuple(_told(days[old], turns) for old, turns in zip(order, raw, strict=True))
    names, wanted = [entry["haystack_session_ids"][old] for old in order], set(entry["answer_session_ids"])
    turns = tuple((s, t) for s, one in enumerate(raw) for t, turn in enumerate(one) if turn.get("has_answer"))
    name = str(entry["question_id"])
    question = LabeledQuestion(
        str(entry["question"]),
        str(entry["answer"]),
        ABSTAIN if name.endswith("_abs") else str(entry["question_type"]),
        _time(entry["question_date"]).toordinal(),
        len(sessions),
        tuple(number for number, one in enumerate(names) if one in wanted),
        turns or None,
    )
    return LabeledEntry(name, sessions, (question,))


def _meme(entry: Mapping[str, Any]) -> LabeledEntry:
    raw = entry["sessions"]
    sessions = tuple(_told(_time(one["timestamp"]), one["conversation"]) for one in raw)
    facts = [
        LabeledValue(number, str(fact["entity"]), str(fact["value"]))
        for number, one in enumerate(raw)
        if one["type"] == "evidence"
        for fact in one.get("gold_facts") or ()
    ]
    marked = tuple(number for number, one in enumerate(raw) if one["type"] == "evidence")
    found = []
    for block in filter(None, (entry.get("before_questions"), entry["after_questions"])):
        after, day = int(block["position_after_session"]) + 1, _time(block["timestamp"]).toordinal()
        found += [_meme_question(one, facts, marked, after, day) for one in block["questions"]]
    return LabeledEntry(str(entry["episode_id"]), sessions, tuple(found))


def _meme_question(
    asked: Mapping[str, Any], facts: Sequence[LabeledValue], marked: Sequence[int], after: int, day: int
) -> LabeledQuestion:
    """Return a question with the values that it needs; where none is labeled, all sessions with evidence."""
    entities = asked.get("entity") or ()
    wanted = {entities} if isinstance(entities, str) else set(map(str, entities))
    stated = [one for one in facts if one.entity in wanted and one.session < after]
    last = {one.entity: one for one in stated}
    kind = str(asked["task_type"])
    needed = tuple(stated) if kind in _TRACKING else tuple(last.values())
    old = tuple(dict.fromkeys(one.value for one in stated if one not in needed))
    gold = asked.get("gold_answer", asked.get("expected_answer"))
    where = tuple(sorted({one.session for one in needed})) or tuple(n for n in marked if n < after)
    kind = ABSTAIN if kind == "Abs" else kind
    return LabeledQuestion(str(asked["question"]), str(gold), kind, day, after, where, None, needed, old)


def _told(when: datetime, turns: Sequence[Mapping[str, Any]]) -> Dialogue:
    said = tuple(Utterance(_role(one["role"]), str(one["content"])) for one in turns)
    return Dialogue(when.toordinal(), said, ())


def _role(name: str) -> Any:
    if name not in ("user", "assistant"):
        raise ValueError(f"a turn of {name!r}, neither user nor assistant")
    return name


def _time(text: str) -> datetime:
    """Read `2023/05/20 (Sat) 02:21`; the name of the day follows from the date."""
    day, _, clock = text.split(" ")
    return datetime.strptime(f"{day} {clock}", "%Y/%m/%d %H:%M")
