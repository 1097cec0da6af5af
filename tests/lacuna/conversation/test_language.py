"""Languages of the workload `conversation`: every sentence is read as what it says, and as nothing else."""

from __future__ import annotations

import random
import re
from collections import Counter
from dataclasses import replace
from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eirkit.errors import InputFileError
from eirkit.lacuna.conversation.dialogues import tell
from eirkit.lacuna.conversation.language import LEVELS, PRONOUN, Listener, load_language, read
from eirkit.lacuna.conversation.vocabulary import KINDS
from eirkit.lacuna.conversation.world import (
    ATTRIBUTES,
    INSTRUCTIONS,
    PRESETS,
    Statement,
    WorldQuestion,
    generate_worlds,
)
from tests.lacuna.reading_back import read_back

NAMES = ("english", "german")
LANGUAGES = [load_language(name) for name in NAMES]
SMALL = PRESETS["small"]
TODAY = date(2031, 3, 5).toordinal()
by_language = pytest.mark.parametrize("language", LANGUAGES, ids=[one.name for one in LANGUAGES])


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 3), st.integers(0, 2), st.integers(0, 2), st.integers(0, 3))
def test_reading_back_what_was_told_gives_the_world(name, seed, level, documents, small_talk, instructions):
    language = load_language(name)
    dials = replace(SMALL, level=level, documents=documents, small_talk=small_talk, sentences=5)
    dials = replace(dials, instructions=instructions, probes=documents, alike=2)
    (world,) = generate_worlds(dials, (seed,), language.vocabulary)
    assert read_back(tell(world, language), language) == world.sessions


@by_language
@pytest.mark.parametrize(("preset", "seeds"), [("standard", 3), ("instructions", 60), ("large", 1)])
def test_reading_back_a_larger_world_gives_the_world(language, preset, seeds):
    for world in generate_worlds(replace(PRESETS[preset], level=3, alike=3), range(seeds), language.vocabulary):
        assert read_back(tell(world, language), language) == world.sessions, world.seed


PEOPLE = ["Marta Silva", "Marta", "Momo"]
SUBJECTS = {"lead": "t", "boxes": "l", "door": "l", "event": "j"} | dict.fromkeys(INSTRUCTIONS)
VALUES = {"seat": "l", "team": "t", "lead": "w", "boxes": "n"}


def fill(language, rng):
    """Return slots filled at random, and the days that are meant."""
    day, ago, ahead = TODAY + rng.randrange(300), -rng.randrange(1, 14), rng.randrange(1, 14)
    event = rng.choice(list(language.table["events"]))
    slots = {
        "p": rng.choice(PEOPLE), "w": "Boris Becerra", "t": "Lisbon", "l": rng.choice(["Porto", "Lisbon"]),
        "j": "Orion", "k": "Juno", "x": language.table["topics"][rng.randrange(40)], "n": str(rng.randrange(2, 1000)),
        "d": language.date(day, rng.randrange(len(language.table["dates"]))),
        "ago": language.from_today(ago, rng.randrange(2), TODAY),
        "ahead": language.from_today(ahead, rng.randrange(2), TODAY),
        **language.table["events"][event], **rng.choice(language.table["pronouns"]),
    }  # fmt: skip
    return slots, event, {"d": day, "ago": TODAY + ago, "ahead": TODAY + ahead}


def value_of(language, attribute, number):
    return language.vocabulary.of(attribute).value(number) if attribute in KINDS else "Momo"


def meant(sentence, slots, event, days):
    """Return what a sentence says, by its place in the file alone."""
    attribute = event if sentence.attribute == "event" else sentence.attribute
    person = "Marta Silva"  # whatever she is called
    slots = {**slots, "p": person}
    slot = {"hop": "t", "follows": "p"}.get(sentence.op, SUBJECTS.get(sentence.attribute, "p"))
    subject = slots[slot] if slot else ""
    if sentence.kind == "question":
        other = {"as_of": days["d"], "member": slots["v"], "first": slots["k"], "between": slots["k"]}
        return WorldQuestion(sentence.op, attribute, subject, other.get(sentence.op))
    value = slots[VALUES.get(attribute, "v")]
    if sentence.attribute == "event":
        value = next(day for slot, day in days.items() if f"{{{slot}}}" in sentence.text)
    value = int(value) if attribute == "boxes" else None if sentence.op == "forget" else value
    return Statement(sentence.op, attribute, subject, value)


@by_language
def test_every_sentence_is_read_as_what_it_says(language):
    rng = random.Random(1)
    tried = 0
    for sentence in (one for one in language.sentences if one.kind in ("statement", "question")):
        for _ in range(6):
            slots, event, days = fill(language, rng)
            slots["v"] = value_of(language, sentence.attribute, rng.randrange(4096))
            listener = Listener({"Marta": {"Marta Silva"}}, {"Momo": "Marta Silva"})
            text, before = sentence.text.format(**slots), []
            if sentence.level == PRONOUN:
                said = Statement("set", "nickname", "Marta Silva", "Momo")
                name = language.statements["nickname", "set"][0].text.format(p=said.subject, v=said.value)
                text, before = f"{name} {text}", [said]
            assert read(language, text, TODAY, listener) == [*before, meant(sentence, slots, event, days)], text
            tried += 1
    assert tried > 2000


@by_language
@pytest.mark.parametrize("person", ["Marta Silva", "Marta"])
def test_no_sentence_can_be_read_as_another(language, person):
    sentences = list(language.sentences)
    slots, _, _ = fill(language, random.Random(2))
    for sentence in sentences:
        value = value_of(language, sentence.attribute or "tea", 7)
        said = sentence.text.format(**{**slots, "p": person, "w": person, "v": value})
        matching = {(one.kind, one.attribute, one.op) for one in sentences if one.pattern.match(said)}
        assert matching == {(sentence.kind, sentence.attribute, sentence.op)}, said


@by_language
def test_every_kind_of_statement_has_twelve_sentences_on_three_levels(language):
    for (attribute, op), sentences in language.statements.items():
        by_level = Counter(one.level for one in sentences)
        levels = 1 if op == "plant" else len(LEVELS)  # documents are plain
        assert all(by_level[level] >= 4 for level in range(1, levels + 1)), (attribute, op)
        assert len({one.text for one in sentences}) == len(sentences)
    personal = {key for key in language.statements if SUBJECTS.get(key[0], "p") == "p"} - {("nickname", "set")}
    assert personal == {key for key, ones in language.statements.items() if any(o.level == PRONOUN for o in ones)}
    told, asked = set(), set()
    for world in generate_worlds(replace(PRESETS["standard"], sessions=8, instructions=3, planted=3), range(40)):
        for session in world.sessions:
            told |= {(s.attribute, s.op) for s in (*session.statements, *session.documents)}
            asked |= {(q.attribute, q.form) for q in session.questions}
    group = {name: "event" if form == "date" else name for name, form in ATTRIBUTES.items()}
    assert {(group[attribute], op) for attribute, op in told} == set(language.statements)
    assert {(group[attribute], form) for attribute, form in asked} | {("lead", "before"), ("lead", "as_of")} == set(
        language.questions
    )


@by_language
def test_the_most_indirect_level_leans_on_the_sentence_before(language):
    """Pronouns and ellipsis across sentences occur, and such a sentence alone says nothing about anybody."""
    alone = Counter()
    leaning = [one for one in language.sentences if one.kind == "again" or one.level == PRONOUN]
    for world in generate_worlds(replace(SMALL, level=3), range(150), language.vocabulary):
        for message in (m for one in tell(world, language) for m in one.messages if m.role == "user"):
            for sentence in leaning:
                for found in re.finditer(rf"(?<=[.] ){sentence.pattern.pattern}", message.text):
                    alone[sentence.kind] += 1
                    assert read(language, found.group(), TODAY, Listener()) == []
    assert alone["again"] > 5
    assert alone["statement"] > 20


@by_language
def test_a_day_counted_from_today_is_read_as_it_was_said(language):
    for days in (*range(-14, 0), *range(1, 15)):
        for form in (0, 1):
            assert language.day_of(language.from_today(days, form, TODAY), TODAY) == TODAY + days
    for day in range(TODAY, TODAY + 400, 7):
        for form in range(len(language.table["dates"])):
            assert language.day_of(language.date(day, form), TODAY) == day


def test_a_file_that_is_no_language_is_refused(tmp_path):
    for number, text in enumerate(("name = 'none'", "[statements", "name = 'x'\nevents = 3")):
        path = tmp_path / f"{number}.toml"
        path.write_text(text)
        with pytest.raises(InputFileError, match="is not a language that can be used"):
            load_language(str(path))
    with pytest.raises(InputFileError, match="is not a language"):
        load_language(str(path.with_suffix("")))  # a name, not a path
    with pytest.raises(InputFileError, match="klingon"):
        load_language("klingon")


@by_language
def test_a_first_name_that_two_people_share_is_never_used_alone(language):
    shared = 0
    for world in generate_worlds(replace(SMALL, level=3, alike=2, bystanders=2), range(30), language.vocabulary):
        met: dict[str, set[str]] = {}
        people = {s.subject.split(" ")[0]: set() for one in world.sessions for s in one.statements if " " in s.subject}
        for person in {s.subject for one in world.sessions for s in one.statements if " " in s.subject}:
            people[person.split(" ")[0]].add(person.split(" ")[1])
        for message in (message for one in tell(world, language) for message in one.messages):
            for first, lasts in met.items():
                if len(lasts) > 1:
                    shared += 1
                    alone = re.findall(rf"\b{first}\b(?! (?:{'|'.join(lasts)}))", message.text)
                    assert not alone, message.text
            for first, lasts in people.items():
                met.setdefault(first, set()).update(last for last in lasts if f"{first} {last}" in message.text)
    assert shared > 50
