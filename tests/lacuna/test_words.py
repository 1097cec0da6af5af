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
from eirkit.errors import SpecError
from eirkit.tasks.words.conversation import tell
from eirkit.tasks.words.floor import Askable, WorldContract, classes, floor_bits, requirements
from eirkit.tasks.words.language import load_language
from eirkit.tasks.words.truth import answers
from eirkit.tasks.words.world import ATTRIBUTES, PERSONAL, PRESETS, Dials, generate_world, generate_worlds

ENGLISH = load_language()
SMALL = PRESETS["small"]
seeds = st.integers(0, 2**32)


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


def plain_answer(said, question):
    """The answer by a search through everything said so far, newest first: a second way beside the replay."""
    form, attribute, subject, other = question

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
        if one is None or two is None:
            return None
        return abs(one - two) if form == "between" else subject if one < two else other
    if form == "before":
        return own[-2][1].value if len(own) > 1 else None
    if form == "as_of":
        return ([s.value for day, s in own if day <= other] or [None])[-1]
    return now(attribute, subject)


KINDS = {
    "value": {"now", "before", "as_of", "hop"}, "name": {"now", "before", "as_of"},
    "set": {"all", "how_many", "member"}, "count": {"now"}, "date": {"day", "first", "between"},
    "rule": {"now", "follows"},
}  # fmt: skip
ABILITIES = {"fact", "update", "set", "count", "time", "hops", "rule", "withdrawal", "abstention", "needle"}


def test_answers_equal_a_search_through_what_was_said():
    """Every kind of question is asked, is answered by both ways alike, and has known and unknown answers."""
    seen, known = Counter(), Counter()
    probed = [replace(PRESETS[name], probes=2) for name in ("small", "standard")]
    for world in (*generate_worlds(probed[0], range(120)), *generate_worlds(probed[1], range(10))):
        replayed, said = iter(answers(world)), []
        for session in world.sessions:
            said += [(session.day, s) for s in (*session.statements, *session.documents)]
            for asked in session.questions:
                question, answer, ability = next(replayed)
                assert question == asked
                assert answer == plain_answer(said, question), (world.seed, question)
                seen[ability] += 1
                known[ATTRIBUTES[question.attribute], question.form, answer is not None] += 1
        assert next(replayed, None) is None
    assert set(seen) == ABILITIES
    assert set(known) == {
        (kind, form, told) for kind, forms in KINDS.items() for form in forms for told in (True, False)
    } - {("name", "as_of", False)}  # nobody withdraws a name


def test_a_value_as_of_a_date_held_on_the_whole_day():
    days = 0
    for world in generate_worlds(SMALL, range(200)):
        told = {
            (s.attribute, s.subject, one.day) for one in world.sessions for s in one.statements if s.op == "replace"
        }
        for question in world.sessions[-1].questions:
            if question.form == "as_of":
                days += 1
                first = next(one.day for one in world.sessions for s in one.statements
                             if (s.attribute, s.subject) == (question.attribute, question.subject))  # fmt: skip
                assert first <= question.other < world.sessions[-1].day
                assert (question.attribute, question.subject, question.other) not in told
    assert days > 50


def test_names_are_alike_and_the_same_is_told_of_people_who_share_one():
    for world in generate_worlds(PRESETS["standard"], range(10)):
        said = [s for one in world.sessions for s in (*one.statements, *one.documents)]
        told = {}
        for s in said:
            if s.attribute in PERSONAL:
                told.setdefault(s.subject, set()).add(s.attribute)
        firsts = Counter(person.split()[0] for person in told)
        pairs = [[person for person in told if person.split()[0] == first] for first, n in firsts.items() if n > 1]
        assert [len(pair) for pair in pairs] == [2] * PRESETS["standard"].alike
        assert all(told[one] == told[other] for one, other in pairs)
        teams = {s.subject for s in said if s.attribute == "lead"}
        places = {s.subject for s in said if s.attribute == "boxes"}
        assert len(teams & places) == PRESETS["standard"].alike
        assert sum(s.attribute == "nickname" for s in said) == PRESETS["standard"].nicknames
        asked = {q.subject for q in world.sessions[-1].questions}
        assert len(told.keys() - asked) >= PRESETS["standard"].bystanders


def test_numbers_and_dates_are_said_once():
    for world in generate_worlds(PRESETS["standard"], range(20)):
        said = [s for one in world.sessions for s in (*one.statements, *one.documents)]
        numbers = [s.value for s in said if ATTRIBUTES[s.attribute] in ("count", "date")]
        assert len(numbers) == len(set(numbers))


@pytest.mark.parametrize("talk", [0, 1, 7])
def test_a_world_has_the_small_talk_and_the_documents_of_its_dials(talk):
    dials = replace(SMALL, small_talk=talk, documents=5, sentences=9)
    for world in generate_worlds(dials, range(10)):
        told = tell(world, ENGLISH)
        assert sum(len(one.documents) for one in world.sessions) == 5
        papers = [m.text for one in told for m in one.messages if m.text.startswith(ENGLISH.table["here_is"])]
        assert [len(re.findall(r"[.](?= |$)", text.split("\n\n")[1])) for text in papers] == [10] * 5
        filler = [one.pattern for one in ENGLISH.others if one.text in ENGLISH.table["filler"]]
        for session in told[:-1]:
            said = [m.text for m in session.messages if any(one.fullmatch(m.text) for one in filler)]
            assert len(said) == talk


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
    world = generate_world(SMALL, 1)
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
