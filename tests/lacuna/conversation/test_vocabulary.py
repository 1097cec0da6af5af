"""The lists of names and values: large enough, without overlap, and without words that sentences have."""

from __future__ import annotations

import re
from collections import Counter
from itertools import chain

import pytest

from eirkit.errors import SpecError
from eirkit.lacuna.conversation.language import load_language
from eirkit.lacuna.conversation.vocabulary import KINDS, names, near_names, women
from eirkit.lacuna.conversation.world import ATTRIBUTES, PRESETS, Dials, generate_world, generate_worlds

NAMED = ("women", "men", "surnames", "places", "companies", "sectors", "teams", "projects", "nicknames")
LEAST = {"surnames": 600, "places": 300, "companies": 200, "teams": 100, "projects": 100, "nicknames": 100}
LANGUAGES = [load_language(name) for name in ("english", "german")]
by_language = pytest.mark.parametrize("language", LANGUAGES, ids=[one.name for one in LANGUAGES])


def test_the_lists_are_as_long_as_they_must_be_and_have_no_name_twice():
    near = list(chain.from_iterable(near_names()))
    assert len(names("women")) + len(names("men")) + len(near) >= 400
    assert all(len(names(kind)) >= least for kind, least in LEAST.items())
    every = Counter(chain(near, *(names(kind) for kind in NAMED)))
    assert [name for name, count in every.items() if count > 1] == []
    assert all(re.fullmatch("[A-Z][a-z]+", name) for name in every)
    assert 0.35 < sum(name in women() for name in (*names("women"), *names("men"))) / 480 < 0.65


@by_language
def test_a_name_that_is_used_alone_is_no_word_of_any_sentence_or_value(language):
    table = language.table
    texts = [one.text for one in language.sentences]
    texts += [
        phrase for kind in table["values"].values() for phrase in (*kind["a"], *([] if kind["b"] == 66 else kind["b"]))
    ]
    texts += [*table["topics"], *names("companies"), *names("sectors"), *names("surnames"), *table["months"]]
    used = {word for text in texts for word in re.findall(r"\w+", re.sub(r"\{\w+\}", " ", text).casefold())}
    alone = chain(
        *(names(kind) for kind in ("women", "men", "places", "teams", "projects", "nicknames")), *near_names()
    )
    assert sorted({name for name in alone if name.casefold() in used}) == []


@by_language
def test_every_kind_has_more_than_4096_values_and_no_two_are_one(language):
    for kind in set(KINDS.values()):
        values = language.vocabulary.kinds[kind]
        found = {values.value(number).casefold() for number in range(min(values.size, 10_000))}
        assert len(found) == min(values.size, 10_000) > 4096
        assert all(re.fullmatch(values.pattern(), values.value(number)) for number in range(0, values.size, 97))


@by_language
def test_no_value_of_a_world_is_part_of_another_text_of_it(language):
    for world in generate_worlds(PRESETS["large"], range(2), language.vocabulary):
        said = [s for one in world.sessions for s in (*one.statements, *one.documents)]
        values = [
            str(s.value)
            for s in said
            if s.attribute in KINDS and s.value is not None and s.op not in ("remove", "retract")
        ]
        assert len(values) == len(set(values))
        text = "\n".join(values).casefold()
        assert all(len(re.findall(rf"\b{re.escape(value.casefold())}\b", text)) == 1 for value in values)


def test_the_values_of_different_facts_have_nothing_in_common_while_there_are_enough():
    world = generate_world(Dials(people=60, values=16), 1)
    assert world.crowded == frozenset()
    assert generate_world(PRESETS["standard"], 1).crowded >= {"tea"}


def test_a_world_with_more_values_than_there_are_is_refused():
    with pytest.raises(SpecError, match=r"too few for this world|foods to be allergic to"):
        generate_world(Dials(people=1000, facts=6, updates=40, sessions=60, candidates=12), 0)


def test_similar_first_names_are_in_every_world():
    pairs = set(near_names())
    for world in generate_worlds(PRESETS["small"], range(10)):
        firsts = {s.subject.split()[0] for one in world.sessions for s in one.statements if " " in s.subject}
        assert any({one, other} <= firsts for one, other in pairs)
    assert ATTRIBUTES["tea"] == "value"
