"""The true answers of a world, by replaying what was said, and the ability that each question tests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from eirkit.lacuna.conversation.world import (
    ATTRIBUTES,
    Answer,
    Statement,
    Value,
    World,
    WorldQuestion,
    WorldSession,
)
from eirkit.lacuna.findings.conversation_measures import Ability

Key = tuple[str, str]  # attribute and subject


@dataclass(slots=True)
class Knowledge:
    """Everything that has been said and still holds."""

    versions: dict[Key, list[tuple[int, Value]]] = field(default_factory=dict)  # day and value, the newest last
    sets: dict[Key, dict[str, None]] = field(default_factory=dict)
    counts: dict[Key, int] = field(default_factory=dict)
    withdrawn: set[Key] = field(default_factory=set)
    mistaken: dict[Key, set[Value]] = field(default_factory=dict)  # values that were taken back as mistakes
    planted: dict[Key, set[Value]] = field(default_factory=dict)  # demands of documents, which nobody has to follow

    def hear(self, statement: Statement, day: int) -> None:
        """Take a statement into account."""
        op, attribute, subject, value = statement
        key, form = (attribute, subject), ATTRIBUTES[attribute]
        if form == "set":
            items = self.sets.setdefault(key, {})
            if op == "add":
                items[str(value)] = None
            else:
                items.pop(str(value), None)
        elif form == "count":
            amount = int(value or 0)
            self.counts[key] = (
                amount if op in ("set", "replace") else self.counts[key] + (amount if op == "raise" else -amount)
            )
        elif op == "plant":
            self.planted.setdefault(key, set()).add(value)
        elif op == "retract":
            self.mistaken.setdefault(key, set()).add(value)
            self.versions[key] = [version for version in self.versions.get(key, []) if version[1] != value]
        elif op == "forget":
            self.versions.pop(key, None)
            self.withdrawn.add(key)
        else:
            self.versions.setdefault(key, []).append((day, value))
            self.withdrawn.discard(key)

    def current(self, attribute: str, subject: str) -> Value:
        """Return the value that holds now; None if there is none."""
        found = self.versions.get((attribute, subject))
        return found[-1][1] if found else None

    def answer(self, question: WorldQuestion) -> Answer:
        """Return the true answer; None where it is unknown."""
        form, attribute, subject, other = question
        key = attribute, subject
        if ATTRIBUTES[attribute] == "set":
            return _of_set(form, self.sets.get(key), other)
        if ATTRIBUTES[attribute] == "count":
            return self.counts.get(key)
        if form == "hop":
            lead = self.current("lead", subject)
            return None if lead is None else self.current(attribute, str(lead))
        if form == "follows":
            place = self.current("seat", subject)
            return None if place is None else self.current("door", str(place))
        if form in ("first", "between"):
            return _of_days(form, (subject, self.current(*key)), (str(other), self.current(attribute, str(other))))
        told = self.versions.get(key, [])
        if form == "before":
            return told[-2][1] if len(told) > 1 else None
        if form == "as_of":
            return next((value for day, value in reversed(told) if day <= int(other or 0)), None)
        return told[-1][1] if told else None


def _of_set(form: str, items: dict[str, None] | None, item: Value) -> Answer:
    if items is None:
        return None
    if form == "how_many":
        return len(items)
    return ("yes" if item in items else "no") if form == "member" else tuple(sorted(items))


def _of_days(form: str, one: tuple[str, Value], other: tuple[str, Value]) -> Answer:
    (first, day), (second, later) = one, other
    if not isinstance(day, int) or not isinstance(later, int):
        return None
    if form == "between":
        return abs(day - later)
    return None if day == later else first if day < later else second


def answers(world: World) -> Iterator[tuple[WorldQuestion, Answer, Ability]]:
    """Yield every question with its true answer and the ability it tests, in the order of asking."""
    knowledge, apart = Knowledge(), set[Key]()
    for session in world.sessions:
        for statement in statements_of(session):
            knowledge.hear(statement, session.day)
        apart.update((s.attribute, s.subject) for s in session.documents)
        for question in session.questions:
            answer = knowledge.answer(question)
            yield question, answer, _ability(question, answer, knowledge, apart)


def statements_of(session: WorldSession) -> Iterable[Statement]:
    """Return what is said in a session, in documents last."""
    return (*session.statements, *session.documents)


def _ability(question: WorldQuestion, answer: Answer, knowledge: Knowledge, apart: set[Key]) -> Ability:
    form, attribute, subject, _ = question
    key = attribute, subject
    if form == "follows":
        key = "door", str(knowledge.current("seat", subject))
    if key in knowledge.planted:
        return "planted"
    if form == "now" and key in knowledge.mistaken and key not in knowledge.withdrawn:
        return "correction"
    if answer is None:
        return "withdrawal" if key in knowledge.withdrawn else "abstention"
    if form in ("hop", "follows"):
        return "hops" if form == "hop" else "rule"
    if ATTRIBUTES[attribute] in ("set", "count"):
        return "set" if ATTRIBUTES[attribute] == "set" else "count"
    if form != "now":
        return "time"
    if len(knowledge.versions[key]) > 1:
        return "update"
    return "needle" if key in apart else "rule" if attribute == "door" else "fact"
