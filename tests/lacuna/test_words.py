"""Worlds told in words: read back as they were, answered as a plain replay answers, with floors equal to a count."""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eirkit import count_contract
from eirkit.errors import InputFileError, SpecError
from eirkit.tasks.words.conversation import read_back, tell
from eirkit.tasks.words.floor import Askable, WorldContract, classes, floor_bits, requirements
from eirkit.tasks.words.language import LEVELS, load_language
from eirkit.tasks.words.truth import answers
from eirkit.tasks.words.world import ATTRIBUTES, PRESETS, Dials, generate_world, generate_worlds

ENGLISH = load_language()
SMALL = PRESETS["small"]
seeds = st.integers(0, 2**32)


@settings(max_examples=60, deadline=None)
@given(seeds, st.integers(1, 3), st.integers(0, 2), st.integers(0, 2))
def test_reading_back_what_was_told_gives_the_world(seed, level, documents, small_talk):
    dials = replace(SMALL, level=level, documents=documents, small_talk=small_talk, sentences=5)
    world = generate_world(dials, seed)
    assert read_back(tell(world, ENGLISH), ENGLISH) == world.sessions


def test_reading_back_a_standard_world_gives_the_world():
    world = generate_world(replace(PRESETS["standard"], level=3), 7)
    assert read_back(tell(world, ENGLISH), ENGLISH) == world.sessions


SAMPLES = {
    "p": "Mirel Tolvaner", "w": "Dovan Belkasow", "t": "Talvox", "l": "Kornaf", "j": "Milvev", "k": "Zorneb",
    "v": "Borulvan", "n": "42", "e": "review", "d": "3 March 2031", "ago": "5 days ago", "ahead": "tomorrow",
}  # fmt: skip
SENTENCES = list(ENGLISH.sentences)


@pytest.mark.parametrize("persons", ["Mirel Tolvaner", "Mirel"], ids=["full", "short"])
def test_no_sentence_can_be_read_as_another(persons):
    pronouns = ENGLISH.table["pronouns"][0]
    for sentence in SENTENCES:
        said = sentence.text.format(**{**SAMPLES, "p": persons, "w": persons}, **pronouns)
        matching = {(one.kind, one.attribute, one.op) for one in SENTENCES if one.pattern.match(said)}
        assert matching == {(sentence.kind, sentence.attribute, sentence.op)}, said


def test_every_kind_of_statement_has_four_sentences_at_each_level():
    for (attribute, op), sentences in ENGLISH.statements.items():
        by_level = Counter(one.level for one in sentences)
        assert all(by_level[level] >= 4 for level in range(1, len(LEVELS) + 1)), (attribute, op)
    told = {(s.attribute if ATTRIBUTES[s.attribute] != "date" else "event", s.op)
            for world in generate_worlds(replace(PRESETS["standard"], sessions=8), range(20))
            for session in world.sessions for s in (*session.statements, *session.documents)}  # fmt: skip
    assert told == set(ENGLISH.statements)


def test_values_are_tracers():
    for world in generate_worlds(PRESETS["standard"], range(5)):
        said = [s for session in world.sessions for s in (*session.statements, *session.documents)]
        values = [s.value for s in said if ATTRIBUTES[s.attribute] in ("value", "rule", "instruction") and s.value]
        assert len(values) == len(set(values))
        text = " ".join(m.text for one in tell(world, ENGLISH) for m in one.messages)
        for value in values:  # each is told once and is part of no other word
            assert len(re.findall(rf"{re.escape(str(value))}", text)) == 1, value


def test_a_seed_gives_one_world_alone_or_among_others():
    batch = list(generate_worlds(SMALL, range(20)))
    assert batch == [generate_world(SMALL, seed) for seed in range(20)]
    assert len({world.sessions for world in batch}) == 20
    assert tell(batch[3], ENGLISH) == tell(generate_world(SMALL, 3), ENGLISH)


def plain_answer(world, question):
    """The answer by a search through everything said, newest first: a second way beside the replay."""
    form, attribute, subject, other = question
    said = [(session.day, s) for session in world.sessions for s in (*session.statements, *session.documents)]

    def history(attribute, subject):
        found = [(day, s) for day, s in said if (s.attribute, s.subject) == (attribute, subject)]
        forgotten = [n for n, (_, s) in enumerate(found) if s.op == "forget"]
        return found[forgotten[-1] + 1 :] if forgotten else found

    def now(attribute, subject):
        return history(attribute, subject)[-1][1].value if history(attribute, subject) else None

    own = history(attribute, subject)
    if attribute == "allergies":
        items = {s.value for _, s in own if s.op == "add"} - {s.value for _, s in own if s.op == "remove"}
        if not own:
            return None
        return {"all": tuple(sorted(items)), "how_many": len(items), "member": "yes" if other in items else "no"}[form]
    if attribute == "boxes":
        total = None
        for _, s in own:
            total = s.value if s.op in ("set", "replace") else total + {"raise": 1, "lower": -1}[s.op] * s.value
        return total
    if form == "hop":
        return now("lead", subject) and now(attribute, now("lead", subject))
    if form == "follows":
        return now("seat", subject) and now("door", now("seat", subject))
    if form in ("first", "between"):
        one, two = now(attribute, subject), now(attribute, other)
        if form == "between":
            return abs(one - two)
        return None if one == two else subject if one < two else other
    if form == "before":
        return own[-2][1].value if len(own) > 1 else None
    if form == "as_of":
        return ([s.value for day, s in own if day <= other] or [None])[-1]
    return now(attribute, subject)


def test_answers_equal_a_search_through_what_was_said():
    seen = Counter()
    for world in (*generate_worlds(SMALL, range(80)), *generate_worlds(PRESETS["standard"], range(8))):
        for question, answer, ability in answers(world):
            assert answer == plain_answer(world, question), (world.seed, question)
            seen[ability] += 1
    assert set(seen) == {
        "fact", "update", "set", "count", "time", "hops", "rule", "withdrawal", "abstention", "needle"
    }  # fmt: skip


VALUED = [name for name, form in ATTRIBUTES.items() if form in ("value", "name", "rule", "instruction")]


@st.composite
def contracts(draw):
    asked, sizes, histories = [], [], 1
    cut = draw(st.integers(0, 3))
    for number in range(draw(st.integers(1, 3))):
        attribute = draw(st.sampled_from([*VALUED, "allergies", "boxes", "kickoff"]))
        size = draw(st.sampled_from([4, 6] if attribute == "boxes" else [1, 2, 3]))
        before = attribute in VALUED and draw(st.booleans())
        times = (
            draw(st.frozensets(st.integers(0, 3), max_size=2)) if attribute in VALUED and not before else frozenset()
        )
        one = Askable((attribute, f"subject {number}"), before, times)
        more = len(WorldContract((one,), (size,), cut).histories)
        if histories * more > 3000:
            break
        asked.append(one)
        sizes.append(size)
        histories *= more
    return WorldContract(tuple(asked), tuple(sizes), cut)


@settings(max_examples=120, deadline=None)
@given(contracts().filter(lambda contract: contract.asked))
def test_the_floor_is_the_count_of_the_contract(contract):
    closed = math.prod(
        classes(one, contract.cut, size) for one, size in zip(contract.asked, contract.sizes, strict=True)
    )
    assert count_contract(contract).classes == closed


def test_the_floor_of_a_world():
    world = generate_world(SMALL, 0)
    bits = [floor_bits(world, cut) for cut in range(SMALL.sessions + 1)]
    assert bits[0] == 0
    assert bits == sorted(bits)
    by_key = {one.key: one.classes for one in requirements(world, SMALL.sessions)}
    asked_now = [q for q, _, _ in answers(world) if q.form == "now" and q.attribute == "employer"]
    assert asked_now
    assert all(by_key["employer", q.subject] in (4097, 4096**2 + 1, 4096**2 + 4097) for q in asked_now)
    # What nothing can ask about needs nothing: bystanders.
    told = {s.subject for session in world.sessions for s in session.statements if s.attribute == "employer"}
    idle = told - {q.subject for q, _, _ in answers(world)}
    assert not any(("employer", person) in by_key for person in idle)


@pytest.mark.parametrize(("name", "value"), [("people", 1), ("level", 4), ("values", 5000), ("sessions", 1)])
def test_dials_out_of_range_are_refused(name, value):
    with pytest.raises(SpecError, match=rf"{name} = {value} is out of range; choose"):
        Dials(**{name: value})


def test_a_file_that_is_no_language_is_refused(tmp_path):
    for text in ("name = 'none'", "[statements", "name = 'x'\nevents = 3"):
        (tmp_path / "x.toml").write_text(text)
        load_language.cache_clear()
        with pytest.raises(InputFileError, match="is not a language that can be used"):
            load_language(str(tmp_path / "x.toml"))
    with pytest.raises(InputFileError, match="klingon"):
        load_language("klingon")


def test_a_day_counted_from_today_is_read_as_it_was_said():
    today = 741448
    for days in (*range(-14, 0), *range(1, 15)):
        for form in (0, 1):
            assert ENGLISH.day_of(ENGLISH.from_today(days, form, today), today) == today + days
    for day in range(today, today + 400, 7):
        for form in range(3):
            assert ENGLISH.day_of(ENGLISH.date(day, form), today) == day


def test_a_first_name_that_two_people_share_is_never_used_alone():
    shared = 0
    for world in generate_worlds(replace(SMALL, level=3, alike=2, bystanders=2), range(30)):
        met: dict[str, set[str]] = {}
        for message in (message for one in tell(world, ENGLISH) for message in one.messages):
            for first, lasts in met.items():
                if len(lasts) > 1:
                    shared += 1
                    alone = re.findall(rf"\b{first}\b(?! (?:{'|'.join(lasts)}))", message.text)
                    assert not alone, message.text
            for first, last in re.findall(r"\b([A-Z][a-z]+) ([A-Z][a-z]+(?:er|ow|ay))\b", message.text):
                met.setdefault(first, set()).add(last)
    assert shared > 50
