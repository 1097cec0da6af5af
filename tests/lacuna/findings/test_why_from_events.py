"""Cards of wrong answers about conversations, drawn by lot, against the raw events of their runs.

Nothing that decides causes is used here: what was said comes from the generator of worlds, and what was stored,
returned and answered from the events. Values are unique words: a search of the texts for them settles every statement.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

from eirkit.lacuna.conversation.world import PRESETS, WorldQuestion, generate_world
from eirkit.lacuna.findings.why import WhyCard
from eirkit.records.events import Event, MemoryExchange, ModelExchange
from eirkit.records.runs import RunRecord
from eirkit.report.viewer.lacuna_run import LacunaRun
from tests.report.folders import command
from tests.runs import events, records

MEMORIES = (
    "text",
    "bm25",
    "vector",
    "words-last-writer",
    "words-add-only",
    "words-forgets",
    "words-truncates",
    "words-merges",
)
TRACED = ("employer", "desk", "tea", "phone", "door")  # whose values occur nowhere else
FORMS = ("now", "before", "as_of")
DRAWN = 6  # of each memory
LONGEST = 2_000  # characters of a passage, where it is cut
ANSWER = re.compile(r"ANSWER:\s*(.+)")


class Said(NamedTuple):
    session: int
    day: int
    op: str
    value: str


class Facts:
    """Everything that the events of one run and the generator of its world tell about one question."""

    def __init__(self, record: RunRecord, events: list[Event], t: int, question: WorldQuestion) -> None:
        calls = [event for event in events if isinstance(event, MemoryExchange)]
        self.stores = [event.stored or () for event in calls if event.verb == "observe"]
        self.told = [(event.text or "").splitlines() for event in calls if event.verb == "observe"]
        (recall,) = [event for event in calls if event.verb == "recall" and event.t == t]
        (exchange,) = [event for event in events if isinstance(event, ModelExchange) and event.t == t]
        self.query, self.found = recall.text, recall.found or ()
        found = ANSWER.search(exchange.reply or "")
        assert found is not None
        self.answer = found[1].strip().rstrip(".").casefold()
        self.question, self.memory = question, record.setting.access.memory
        world = generate_world(PRESETS["small"], record.seed)
        self.history: dict[tuple[str, str], list[Said]] = {}
        for number, session in enumerate((one for one in world.sessions if one.statements), 1):
            for op, attribute, subject, value in session.statements:
                said = Said(number, session.day, op, str(value))
                self.history.setdefault((attribute, subject), []).append(said)
        self.own = self.history.get((question.attribute, question.subject), [])

    @property
    def is_traced(self) -> bool:
        taken_back = any(one.op == "retract" for one in self.own)  # its value stands for two statements
        return (
            self.question.attribute in TRACED and self.question.form in FORMS and bool(self.needed) and not taken_back
        )

    @property
    def needed(self) -> list[Said]:
        """The statements that the answer needs."""
        if self.own[-1:] and self.own[-1].op == "forget":
            return []  # a request to forget has no value to look for
        if self.question.form == "before":
            return self.own[-2:]
        if self.question.form == "as_of":
            return [one for one in self.own if one.day <= int(self.question.other or 0)][-1:]
        return self.own[-1:]

    def held(self, said: Said) -> list[int]:
        """The sessions after which the store has a value."""
        return [number for number, texts in enumerate(self.stores, 1) if any(has(text, said.value) for text in texts)]

    def rank(self, said: Said) -> int | None:
        return next((rank for rank, text in enumerate(self.found, 1) if has(text, said.value)), None)

    def unexplained(self) -> list[Said]:
        """The nickname under which a needed value came back, if nothing that came back says whose it is."""
        names = self.history.get(("nickname", self.question.subject), [])
        values = [text for text in self.found for one in self.needed if has(text, one.value)]
        used = [one for one in names if any(has(text, one.value) for text in values)]
        explained = any(has(text, one.value) and self.question.subject in text for one in used for text in self.found)
        return [] if explained else used

    @property
    def others(self) -> set[str]:
        """What was said in answer to the same question about others."""
        others = [key for key in self.history if key[0] == self.question.attribute and key[1] != self.question.subject]
        return {one.value for key in others for one in self.history[key]}

    def symptom(self) -> str:
        """What is wrong with the answer, by what was said alone."""
        if self.answer in {one.value.casefold() for one in self.own}:
            return "outdated value"
        if self.answer in {value.casefold() for value in self.others}:
            return "somebody else's"
        return "said to be unknown"

    def cause(self) -> str:
        """Why the answer is wrong, by search for values alone."""
        lacking = [said for said in self.needed if self.rank(said) is None] or self.unexplained()
        if not lacking:
            named = any(
                has(text, one.value) and self.question.subject in text for one in self.needed for text in self.found
            )
            if any(has(text, value) and self.question.subject in text for value in self.others for text in self.found):
                return "retrieved beside a contradiction"
            return "shown, not used" if named else "uncertain"
        sessions = self.held(lacking[0])
        if sessions and sessions[-1] == len(self.stores):
            is_long = any(len(text) >= LONGEST for text in self.found)
            return "retrieved below the budget" if is_long else "stored, not retrieved"
        if sessions:
            return "stored, then deleted"
        is_cut = any(not text.rstrip().endswith((".", "!", "?")) for text in (*self.found, *self.stores[-1]))
        return "cut off" if is_cut else "never stored"


def has(text: str, value: str) -> bool:
    return re.search(rf"\b{re.escape(value)}\b", text, re.IGNORECASE) is not None


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("cards") / "out"
    how = ("--memory", ",".join(MEMORIES), "--model", "scripted/reader", "--seeds", "0:4", "--no-control")
    command("lacuna", "run", "words", "--preset", "small", *how, "--out", out, "--json")
    return out


def test_what_cards_say_follows_from_the_events(folder):
    draw, causes, checked = random.Random(21), Counter[str](), Counter[str]()
    wrong: dict[str, list[tuple[LacunaRun, int]]] = {name: [] for name in MEMORIES}
    for record in records(folder):
        run = LacunaRun(folder, record, plugins=False)
        wrong[record.setting.access.memory or ""] += [
            (run, t) for t, verdict in run.verdicts.items() if not verdict.correct
        ]
    for lot in wrong.values():
        for run, t in draw.sample(lot, min(DRAWN, len(lot))):
            card = run.card(t)
            question = run.task.instance.questions[t - 1].question
            facts = Facts(run.record, events(folder, run.record.run), t, question)
            check_any(card, facts)
            checked["any"] += 1
            if facts.is_traced:
                checked["traced"] += 1
                causes[facts.cause()] += 1
                check_traced(card, facts)
    assert all(wrong.values())
    assert checked["any"] >= 30
    assert checked["traced"] >= 20
    assert len(causes) >= 4, causes


def check_any(card: WhyCard, facts: Facts) -> None:
    """Compare what holds for every question: what was asked and answered, and where texts were said and came back."""
    words = " ".join(card.sentences())
    assert card.asked == facts.query
    assert sorted(card.submitted.split(", ")) == sorted(facts.answer.split(", "))
    assert words.startswith(f"Question {card.t} is wrong: the answer was {card.submitted}, and ")
    for one in card.inputs:
        said, turn = dict(one.lines), one.name.partition("] ")[2].rstrip("…")
        session = next(
            number for number, lines in enumerate(facts.told, 1) if any(line.startswith(turn) for line in lines)
        )
        assert said["said"] == f"in session {session} of {len(facts.told)}"
        assert said["sought with"] == facts.query
        if one.rank is None:
            count = len(facts.found)
            assert said["returned"] == f"no; {count or 'no'} passage{'' if count == 1 else 's'} came back"
            assert "used" not in said
            assert not any(turn in text for text in facts.found)
        else:
            assert facts.found[one.rank - 1] == one.returned
            assert said["used"] in ("yes, the answer rests on it", "no")
            assert (one.used is True) == said["used"].startswith("yes")
    for one in card.rests_on:
        assert one.text in facts.found[one.rank - 1]
        assert f"returned at rank {one.rank} of {len(facts.found)}, said in session {one.session}" in words
        turns = [line for lines in facts.told[one.session - 1 : one.session] for line in lines]
        assert one.about is None or any(one.about.split()[0] in line for line in turns)


def check_traced(card: WhyCard, facts: Facts) -> None:
    """Compare what became of values that occur nowhere else, symptom and cause."""
    words = " ".join(card.sentences())
    assert f"Symptom: {facts.symptom()}; " in words, (facts.memory, facts.query, facts.answer)
    assert f"Cause: {facts.cause()}; " in words, (facts.memory, facts.query, facts.answer)
    stated = card.inputs[: len(facts.needed)]  # a nickname that nothing explains may follow
    for one, said in zip(stated, facts.needed, strict=True):
        lines, sessions = dict(one.lines), facts.held(said)
        assert lines["said"].startswith(f"in session {said.session} of ")
        assert lines["in the store"] == ("yes" if sessions and sessions[-1] == len(facts.stores) else "no")
        assert lines["stored"].startswith(f"after session {sessions[0]}" if sessions else "after no session")
        assert ("no longer after session" in lines["stored"]) == (bool(sessions) and lines["in the store"] == "no")
        assert one.rank == facts.rank(said)
        if one.rank is not None:
            # An earlier value is told from what came before and after it; any other question has one value.
            uses = (
                facts.answer != "unknown" if facts.question.form == "before" else facts.answer == said.value.casefold()
            )
            assert one.used == uses
    if facts.symptom() in ("outdated value", "somebody else's"):
        misled = [one for one in card.rests_on if has(one.text, facts.answer)]
        sessions = [
            one.session for said in facts.history.values() for one in said if one.value.casefold() == facts.answer
        ]
        assert misled
        assert {one.session for one in misled} <= set(sessions)
