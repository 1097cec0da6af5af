"""What `scripted/reader` keeps of conversations: notes for memory systems that ask, and summaries that fit.

It reads messages by the inverse of the grammar and notes each statement in the plainest sentence that says it, with
full names and dates as far as the request tells them. What the request does not tell stays as it was said.
A prompt for a summary is taken at its word: one that speaks of instructions gets the user's standing instructions
first, one that speaks of facts and not of instructions gets none of them, and any other gets them as all else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from hashlib import sha256
from typing import NamedTuple

from eirkit.lacuna.conversation.language import NEAR, Language
from eirkit.lacuna.conversation.reading import DatedStatement, dated_statements, plain_sentence, show_note
from eirkit.lacuna.conversation.scoring import Words
from eirkit.lacuna.conversation.session import PASSAGE, PASSAGE_END
from eirkit.lacuna.conversation.world import ATTRIBUTES, USER, Statement
from eirkit.lacuna.memories.openai_dialect import JSON_WORDS, SCHEMA_WORDS
from eirkit.lacuna.scripted.system_requests import Answer, GraphFact, graph_answer, headed, listed

CHANGES = ("replace", "remove", "raise", "lower")  # operations that change what was said before
_DAY = re.compile(r"\d{4}-\d\d-\d\d")


class NotedStatement(NamedTuple):
    """One statement as it is to be kept."""

    statement: Statement
    text: str


class StatementReader:
    """Notes what messages say; a dial is the share of statements that it spoils in its own way.

    misses: a statement is left out. confuses: it is noted of somebody else. keeps_old: a change is left out.
    returns_withdrawn: a withdrawal is left out. keeps_mistakes: that something was a mistake is left out.
    obeys_documents: what a document demands is noted as an instruction. invents: a made-up value is noted.
    """

    def __init__(self, language: Language, dials: Mapping[str, float]) -> None:
        self.language, self.dials = language, dials

    def notes(self, new: Sequence[str], before: Sequence[str], today: int) -> list[NotedStatement]:
        """Return what new messages say that was not said before.

        Args:
            new: what the user says now, message by message.
            before: what else the request shows: earlier messages, or what is already kept.
            today: from which days are counted; 0 if it is unknown, and then days that are counted are left out.
        """
        heard = dated_statements(self.language, [*before, *new], today)
        heard = [one for one in heard if today or not _is_counted(one.statement)]
        people = list(dict.fromkeys(one.statement.subject for one in heard if " " in one.statement.subject))
        found = []
        for one in heard:
            if one.passage >= len(before):
                found += self.spoiled(one, people)
        return [NotedStatement(one, plain_sentence(self.language, one)) for one in found]

    def spoiled(self, one: DatedStatement, people: Sequence[str]) -> list[Statement]:
        """Return the statement as it is noted: as it is, changed or left out by a dial."""
        said = one.statement
        if said.op == "plant":  # what a document demands is no instruction of the user
            return [said._replace(op="set")] if self.is_drawn("obeys_documents", said) else []
        if any(
            self.dials.get(name) and leaves_out(said) and self.is_drawn(name, said) for name, leaves_out in LEFT_OUT
        ):
            return []
        others = [person for person in people if person != said.subject]
        if others and " " in said.subject and self.is_drawn("confuses", said):
            return [said._replace(subject=others[0])]
        if isinstance(said.value, str) and ATTRIBUTES[said.attribute] == "value" and self.is_drawn("invents", said):
            values = self.language.vocabulary.of(said.attribute)
            return [said._replace(value=values.value(int.from_bytes(sha256(repr(said).encode()).digest()[:8], "big")))]
        return [said]

    def is_drawn(self, dial: str, said: Statement) -> bool:
        """True for a share of statements as large as the dial, always the same ones."""
        drawn = int.from_bytes(sha256(f"{dial} {said!r}".encode()).digest()[:8], "big") / 2**64
        return drawn < self.dials.get(dial, 0.0)


def _is_counted(said: Statement) -> bool:
    """True for a date that was counted from an unknown day."""
    return ATTRIBUTES[said.attribute] == "date" and isinstance(said.value, int) and said.value <= NEAR


LEFT_OUT: tuple[tuple[str, Callable[[Statement], bool]], ...] = (
    ("misses", lambda said: True),
    ("keeps_old", lambda said: said.op in CHANGES),
    ("returns_withdrawn", lambda said: said.op == "forget"),
    ("keeps_mistakes", lambda said: said.op == "retract"),
)


class StatementFacts:
    """Reads statements as facts between their subject and their value; dates and amounts are no entities."""

    def __init__(self, taker: StatementReader) -> None:
        self.taker = taker

    def new_facts(self, text: str, before: Sequence[str], since: str | None) -> list[GraphFact]:
        earlier = [said for one in before for said in user_messages(one)]
        return [self._fact(one.statement) for one in self.taker.notes(user_messages(text), earlier, _day(since or ""))]

    def fact_in(self, text: str) -> GraphFact | None:
        heard = dated_statements(self.taker.language, [text], 0)
        return self._fact(heard[0].statement) if heard else None

    def _fact(self, said: Statement) -> GraphFact:
        op, attribute, subject, value = said
        form = ATTRIBUTES[attribute]
        # A member of a set is a topic of its own, and an amount that is added contradicts no other.
        topic: tuple[object, ...] = (attribute, subject, value if form == "set" or op in ("raise", "lower") else None)
        text = plain_sentence(self.taker.language, said)
        target = attribute if value is None or form in ("date", "count") else str(value)
        return GraphFact(subject or "user", target, attribute.upper(), text, topic)


def answer_system(taker: StatementReader, last: str, prompt: str) -> Answer | None:
    """Return the JSON that a memory system asks for; None if it is no request that the reader knows.

    Args:
        last: the last message, which states the required format.
        prompt: the last message of the user.
    """
    if last == JSON_WORDS:
        return _mem0(taker, prompt)
    fields = (schema := json.loads(last.removeprefix(SCHEMA_WORDS))).get("properties", {})
    if "should_evolve" in fields:
        return _evolve(taker, prompt)
    if {"keywords", "context", "tags"} <= fields.keys():
        return _analyze(taker, prompt)
    return graph_answer(StatementFacts(taker), schema, prompt)


def _analyze(taker: StatementReader, prompt: str) -> Answer:
    """Return keywords, context and tags for a note of A-MEM, which embeds them with the note."""
    content = prompt.rpartition("Content for analysis:")[2].strip()
    notes = taker.notes(user_messages(content), (), 0)
    words = [str(word) for one in notes for word in (one.statement.subject, one.statement.value) if word]
    return {
        "keywords": list(dict.fromkeys(words)) or ["conversation"],
        "context": " ".join(one.text for one in notes) or "Small talk",
        "tags": list(dict.fromkeys(one.statement.attribute for one in notes)) or ["small talk"],
    }


def _evolve(taker: StatementReader, prompt: str) -> Answer:
    """Return the decision for A-MEM to link a note with those of its neighbors that are about the same."""
    new, _, near = prompt.partition("nearest neighbors memories")
    subjects = [part for part in new.rpartition("keywords:")[2].split("'")[1::2] if part]
    named = (line.partition("memory_id:")[2].partition("\t") for line in near.split("\n"))
    linked = [name for name, tab, text in named if name and tab and any(one in text for one in subjects)]
    return {
        "should_evolve": bool(linked),
        "actions": ["strengthen"] if linked else [],
        "suggested_connections": linked,
        "tags_to_update": [],
        "new_context_neighborhood": [],
        "new_tags_neighborhood": [],
    }


def _mem0(taker: StatementReader, prompt: str) -> Answer | None:
    """Return what Mem0 should add: a sentence for each statement among the new messages."""
    sections = headed(prompt)
    if "New Messages" not in sections:
        return None
    # What the user of Mem0 instructs is above its own date, which is that of the clock.
    day = _day(sections.get("Custom Instructions", "")) or _day(sections.get("Observation Date", ""))
    kept = [str(one.get("text", "")) for one in listed(sections.get("Existing Memories", ""))]
    before = [*user_messages(sections.get("Last k Messages", "")), *kept]
    notes = taker.notes(user_messages(sections["New Messages"]), before, day)
    return {"memory": [{"id": str(number), "text": one.text} for number, one in enumerate(notes)]}


def user_messages(text: str) -> list[str]:
    """Return what the user says in a conversation that is written as `user: …` and `assistant: …`."""
    said: list[list[str]] = []
    is_user = False
    for line in text.splitlines():
        role, colon, rest = line.partition(": ")
        if colon and role in ("user", "assistant", "system"):
            is_user = role == "user"
            said += [[rest]] if is_user else []
        elif is_user:
            said[-1].append(line)
    return ["\n".join(lines).strip() for lines in said]


def _day(text: str) -> int:
    """Return the first day in a text; 0 if there is none."""
    found = _DAY.search(text)
    return 0 if found is None else date.fromisoformat(found[0]).toordinal()


def sum_up(reader: StatementReader, shown: str) -> str:
    """Return the summary that a request asks for."""
    said, _, prompt = shown.partition(f"{PASSAGE}\n")[2].rpartition(f"\n{PASSAGE_END}")
    heard = _as_noted(reader, dated_statements(reader.language, [said], 0))
    lines = [show_note(one.day, plain_sentence(reader.language, one.statement)) for one in heard]
    asked = Words(prompt)
    asks_for_instructions = asked.has_any(("instruction", "instructions"))
    facts_alone = not asks_for_instructions and asked.has_any(("fact", "facts"))
    ranked = _by_rank(heard, instructions_first=asks_for_instructions)
    wanted = [number for number in ranked if not (facts_alone and heard[number].statement.subject == USER)]
    chosen = _fitting(wanted, lines, room_of(shown))
    return "\n".join(line for number, line in enumerate(lines) if number in chosen)


def lines_that_fit(lines: Sequence[str], heard: Sequence[DatedStatement], room: int) -> set[int]:
    """Return the numbers of the lines that fit into a room: instructions and what still holds first, then the newest.

    Args:
        heard: what each line says, one statement a line.
    """
    return _fitting(_by_rank(heard, instructions_first=True), lines, room)


def _fitting(ranked: Iterable[int], lines: Sequence[str], room: int) -> set[int]:
    chosen = set[int]()
    for number in ranked:
        if len(lines[number]) + 1 <= room:
            room -= len(lines[number]) + 1
            chosen.add(number)
    return chosen


def room_of(request: str) -> int:
    """Return the characters that a summary may have; as many as the request if it does not say."""
    stated = request.rpartition(" characters")[0].rpartition("at most ")[2]
    return int(stated) if stated.isdigit() else len(request)


def _as_noted(reader: StatementReader, heard: Sequence[DatedStatement]) -> list[DatedStatement]:
    """Return what was heard as the reader notes it, which its dials may spoil."""
    people = list(dict.fromkeys(one.statement.subject for one in heard if " " in one.statement.subject))
    return [one._replace(statement=said) for one in heard for said in reader.spoiled(one, people)]


def _by_rank(heard: Sequence[DatedStatement], *, instructions_first: bool) -> Iterable[int]:
    """Yield what was heard in the order in which it is worth its place: what still holds first, then the newest."""
    last: dict[tuple[str, str], int] = {}
    for number, one in enumerate(heard):
        if ATTRIBUTES[one.statement.attribute] not in ("set", "count"):
            last[one.statement.attribute, one.statement.subject] = number

    def rank(number: int) -> tuple[bool, bool, int]:
        said = heard[number].statement
        holds = last.get((said.attribute, said.subject), number) == number
        return not (instructions_first and said.subject == USER and holds), not holds, -number

    return sorted(range(len(heard)), key=rank)
