"""Worlds told in conversations: read back as they were, answered as a replay does, with floors equal to a count."""

from __future__ import annotations

import functools
import hashlib
import json
import math
import os
import random
import re
import sys
from collections import Counter
from dataclasses import replace
from itertools import islice, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eirkit import count_contract
from eirkit.errors import SpecError
from eirkit.lacuna.conversation.dialogues import tell, tell_many
from eirkit.lacuna.conversation.floor import Askable, classes, declared, floor_bits, floor_bytes, requirements
from eirkit.lacuna.conversation.language import load_language
from eirkit.lacuna.conversation.truth import answers
from eirkit.lacuna.conversation.world import (
    ATTRIBUTES,
    DAYS,
    FEWEST_BOXES,
    MOST_BOXES,
    PERSONAL,
    PRESETS,
    Dials,
    Statement,
    WorldQuestion,
    generate_world,
    generate_worlds,
)
from eirkit.lacuna.tasks.generation import generate
from eirkit.lacuna.tasks.workload import find_workload
from tests.lacuna.world_contract import WorldContract
from tests.processes import completed

ENGLISH = load_language()
SMALL = PRESETS["small"]
seeds = st.integers(0, 2**32)


def test_values_are_tracers():
    for world in generate_worlds(PRESETS["standard"], range(5)):
        said = [s for session in world.sessions for s in (*session.statements, *session.documents)]
        traced = [s for s in said if ATTRIBUTES[s.attribute] in ("value", "rule", "instruction") and s.value]
        mistakes = {s.value for s in traced if s.op == "retract"}  # said once more when they are taken back
        values = [s.value for s in traced if s.op != "retract"]
        assert len(values) == len(set(values))
        assert len(mistakes) == 3
        text = " ".join(m.text for one in tell(world, ENGLISH) for m in one.messages)
        for value in values:  # each is told once and is part of no other word
            assert len(re.findall(rf"(?i)\b{re.escape(str(value))}\b", text)) == 1 + (value in mistakes), value


def test_a_seed_gives_one_world_alone_or_among_others():
    batch = list(generate_worlds(SMALL, range(20)))
    assert batch == [generate_world(SMALL, seed) for seed in range(20)]
    assert len({world.sessions for world in batch}) == 20
    assert tell(batch[3], ENGLISH) == tell(generate_world(SMALL, 3), ENGLISH)


def plain_answer(said, question):
    """The answer by a search through everything said so far, newest first: a second way beside the replay."""
    form, attribute, subject, other = question

    def history(attribute, subject):
        found = [(day, s) for day, s in said if (s.attribute, s.subject) == (attribute, subject) and s.op != "plant"]
        mistakes = {s.value for _, s in found if s.op == "retract"}
        found = [(day, s) for day, s in found if s.value not in mistakes]
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
    "rule": {"now", "follows"}, "instruction": {"now"},
}  # fmt: skip
ABILITIES = {
    "fact",
    "update",
    "set",
    "count",
    "time",
    "hops",
    "rule",
    "withdrawal",
    "abstention",
    "needle",
    "correction",
    "planted",
}


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
    } - {("name", "as_of", False), ("set", "member", False)}  # nobody withdraws a name, or is asked what was never told


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
        for question, answer, _ in answers(world):
            if question.attribute == "boxes":  # a total was said itself, or is no number that was said
                counted = [s.value for s in said if s.subject == question.subject and s.op in ("set", "replace")]
                assert answer in counted or answer not in numbers


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


def possible(key, cut, values):
    """Yield every way in which one fact can be told in some sessions: a second, plain reading of the contract."""
    attribute, subject = key
    form = ATTRIBUTES[attribute]

    def next_moves(told):
        now = [s for _, s in told]
        if form == "set":
            held = {item for item in values if sum(s.value == item for s in now) % 2}
            for flips in product((False, True), repeat=len(values)):
                yield [("remove" if item in held else "add", item) for item, f in zip(values, flips, strict=True) if f]
            return
        yield []
        if form == "date":
            yield from ([("set", day)] for day in values if not now)
        elif form == "count":
            most, total = values, plain_answer(told, WorldQuestion("now", attribute, subject))
            for n in range(2, most // 2 + 2):
                if total is None:
                    yield [("set", n)]
                else:
                    yield [("replace", n)]
                    yield from ([("raise", n)] for _ in range(total + n <= most))
                    yield from ([("lower", n)] for _ in range(n <= total))
        elif not any(s.op == "forget" for s in now):
            yield from ([("replace" if now else "set", v)] for v in values if all(s.value != v for s in now))
            yield from ([("forget", None)] for _ in now[:1])

    def longer(told, session):
        if session == cut:
            yield told
            return
        for moves in next_moves(told):
            yield from longer([*told, *((session, Statement(op, *key, v)) for op, v in moves)], session + 1)

    yield from longer([], 0)


def enough(one, cut, values, most=600):
    """Return the histories of one fact, or None where there are more than can be tried."""
    found = list(islice(possible(one.key, cut, values), most))
    return found if len(found) < most else None


@functools.cache
def counted_classes(form_of, before, times, cut, values):
    one = Askable((form_of, "subject"), before, times)
    histories = list(possible(one.key, cut, values))
    return len({tuple(plain_answer(told, q) for q in direct(one)) for told in histories})


def direct(one):
    attribute, subject = one.key
    yield WorldQuestion({"set": "all", "date": "day"}.get(ATTRIBUTES[attribute], "now"), attribute, subject)
    yield from [WorldQuestion("before", attribute, subject)] * one.before
    yield from (WorldQuestion("as_of", attribute, subject, time - 1) for time in one.times)


def small_values(world, attribute):
    """Return the possible values of an attribute, few where the real number is out of reach, and how many they are."""
    form, dials = ATTRIBUTES[attribute], world.dials
    places = sorted({s.subject for one in world.sessions for s in one.statements if s.attribute == "boxes"})
    if form == "count":
        return 6, 6
    if form == "name":
        names = {"seat": tuple(places), "lead": world.people}.get(attribute, tuple(f"T{i}" for i in range(dials.teams)))
        return names, len(names)
    count = {"set": dials.candidates, "date": 3}.get(form, dials.values)
    return tuple(range(count)) if form == "date" else tuple(f"v{i}" for i in range(count)), count


@pytest.mark.parametrize("worlds", [100, pytest.param(1000, marks=pytest.mark.slow)])
def test_the_floor_is_exact_on_random_small_worlds(worlds):
    """Every cut: each fact against an enumeration, and whole contracts, where they are small, against `eir count`."""
    whole, rng = Counter(), random.Random(5)
    for seed in range(worlds):
        dials = Dials(
            people=2, alike=1, bystanders=1, nicknames=0, teams=rng.randint(1, 2), places=rng.randint(1, 2),
            projects=rng.randint(0, 2), facts=rng.randint(1, 3), candidates=rng.randint(0, 2), updates=2,
            values=rng.randint(2, 3), questions=rng.randint(1, 4), instructions=rng.randint(0, 1),
            sessions=rng.randint(2, 3),
        )  # fmt: skip
        world = generate_world(dials, seed)
        for cut in range(dials.sessions + 1):
            asked, product_of = declared(world, cut), 1
            sizes = [small_values(world, one.key[0]) for one in asked]
            for one, (values, size) in zip(asked, sizes, strict=True):
                closed = classes(one, cut, size)
                times = frozenset(time for time in one.times if time <= cut)
                assert closed == counted_classes(one.key[0], one.before, times, cut, values), (seed, cut, one)
                product_of *= closed
            real = [classes(one, cut, {"count": MOST_BOXES, "date": DAYS}.get(ATTRIBUTES[one.key[0]], size))
                    for one, (_, size) in zip(asked, sizes, strict=True)]  # fmt: skip
            assert floor_bits(world, cut) == pytest.approx(math.log2(math.prod(real)), rel=1e-12)
            assert 256 ** floor_bytes(world, cut) >= math.prod(real) > 256 ** (floor_bytes(world, cut) - 1)
            each = [enough(one, cut, values) for one, (values, _) in zip(asked, sizes, strict=True)]
            if all(each) and math.prod(map(len, each)) <= 600:
                whole[cut] += 1
                contract = WorldContract(tuple(asked), tuple(size for _, size in sizes), cut)
                assert count_contract(contract).classes == product_of
                seen = {}  # what must be told apart also decides what is really asked
                for told in product(*each):
                    said = [one for fact in told for one in fact]
                    answers_now = tuple(plain_answer(said, q) for one in asked for q in direct(one))
                    asked_then = [q for session in world.sessions[cut:] for q in session.questions if q.form != "as_of"]
                    found = tuple(plain_answer(said, q) for q in asked_then)
                    assert seen.setdefault(answers_now, found) == found
                assert len(seen) == product_of
    assert min(whole[cut] for cut in range(3)) > worlds / 10


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


DIGEST = """
import hashlib
import json
from eirkit.lacuna.tasks.generation import generate
from eirkit.lacuna.tasks.workload import find_workload
from eirkit.lacuna.conversation.dialogues import tell, tell_many
from eirkit.lacuna.conversation.floor import floor_bits
from eirkit.lacuna.conversation.language import load_language
from eirkit.lacuna.conversation.truth import answers
from eirkit.lacuna.conversation.world import PRESETS, generate_world

digest = hashlib.sha256()
for name in ("small", "standard", "instructions", "large"):
    world = generate_world(PRESETS[name], 3)
    digest.update(repr((tell(world, load_language()), list(answers(world)), floor_bits(world, 2))).encode())
print(digest.hexdigest())
"""


def test_a_seed_gives_the_same_bytes_in_every_process():
    def digest(hash_seed):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        done = completed([sys.executable, "-c", DIGEST], env=environment, check=True)
        return done.stdout

    assert len({digest(hash_seed) for hash_seed in ("0", "1", "4242")}) == 1


HARD = Dials(
    level=3, nicknames=3, alike=2, values=2, planted=1, facts=6, updates=3, small_talk=1, documents=3, sentences=5,
    instructions=3, probes=2,
)  # fmt: skip


@pytest.mark.parametrize(
    ("dials", "language", "expected"),
    [
        (PRESETS["small"], "english", "c2fde07ab1e926dd"),
        (PRESETS["standard"], "german", "e0d7448de75dcd6a"),
        (HARD, "english", "3eb6956f1d2dbc59"),
    ],
)
def test_worlds_and_their_words_are_those_of_earlier_versions(dials, language, expected):
    """Results name worlds by their seeds alone, so no world may ever change; new sentences of a language may."""
    digest = hashlib.sha256()
    spoken = load_language(language)
    worlds = list(generate_worlds(dials, range(10), spoken.vocabulary))
    for world, told in zip(worlds, tell_many(worlds, spoken), strict=True):
        digest.update(json.dumps((world.sessions, world.people, told)).encode())
    assert digest.hexdigest()[:16] == expected


def test_presets_grow_and_the_largest_exceeds_a_million_tokens():
    encode = pytest.importorskip("bpe_openai").get_encoding("o200k_base").encode
    sizes = []
    for name in ("small", "standard", "large", "million"):
        told = tell(generate_world(PRESETS[name], 11), ENGLISH)
        sizes.append(sum(len(encode(m.text)) for one in told for m in one.messages))
    small, standard, large, million = sizes
    assert small * 4 < standard < large / 4
    assert million > 1_000_000, sizes


def test_a_number_that_was_said_stands_nowhere_else():
    """Neither small talk nor documents, dates or telephone numbers contain a number of boxes, or a number twice."""
    for world in generate_worlds(replace(PRESETS["standard"], small_talk=6), range(8)):
        said = [s for one in world.sessions for s in (*one.statements, *one.documents)]
        text = "\n".join(m.text for one in tell(world, ENGLISH) for m in one.messages)
        found = Counter(re.findall(r"\d+", text))
        amounts = [str(s.value) for s in said if s.attribute == "boxes"]
        assert {found[amount] for amount in amounts} == {1}
        numbers = [s.value for s in said if s.attribute == "phone" and s.value]
        mistakes = {s.value for s in said if s.op == "retract"}
        assert {text.count(number) - (number in mistakes) for number in numbers} == {1}


def test_every_stock_can_be_reached_in_two_sessions():
    """The closed form of a count with the real bounds, by trying all pairs of numbers that can be said."""
    amounts = range(FEWEST_BOXES, FEWEST_BOXES + MOST_BOXES // 2)
    reached = {total for a in amounts for b in amounts for total in (a, a + b, a - b) if 0 <= total <= MOST_BOXES}
    assert reached == set(range(MOST_BOXES + 1))
    assert classes(Askable(("boxes", "l")), 1, MOST_BOXES) == len(amounts) + 1
    assert classes(Askable(("boxes", "l")), 2, MOST_BOXES) == len(reached) + 1


def test_telephone_numbers_differ_in_the_largest_world():
    for world in generate_worlds(PRESETS["million"], range(3)):
        every = [s for one in world.sessions for s in (*one.statements, *one.documents)]
        said = [s.value for s in every if s.attribute == "phone" and s.op != "retract"]
        numbers = [number for number in said if number]
        assert len(set(numbers)) == len(numbers) > 200


def test_the_floor_of_a_run_counts_sessions_in_which_nothing_is_said():
    preset = "small+people=2+bystanders=0+facts=1+sessions=9+places=1+projects=0+candidates=0"
    spec = find_workload("words").specify({"workload": "words", "preset": preset})
    found = [task for seed in range(20) if len((task := generate(spec.with_seed(seed))).sessions) < 9]
    assert all(task.floor_bits() == floor_bits(task.world, 9) for task in found)
    assert any(floor_bits(task.world, 9) > floor_bits(task.world, len(task.sessions)) for task in found)


def test_conversations_are_told_the_same_alone_and_among_others():
    for preset, language in (("small", "english"), ("standard", "german"), ("small", "german")):
        spoken = load_language(language)
        worlds = list(generate_worlds(PRESETS[preset], range(70 if preset == "small" else 3), spoken.vocabulary))
        assert list(tell_many(worlds, spoken)) == [tell(world, spoken) for world in worlds]
