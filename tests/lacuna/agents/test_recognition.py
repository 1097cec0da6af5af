"""A record is present where its label has its value, absent where it has another, and otherwise uncertain."""

from __future__ import annotations

import copy
import json
import pickle
import time

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from eirkit.lacuna.agents.recognition import read_text, recognize, records_in
from eirkit.lacuna.conversation.language import load_language
from eirkit.lacuna.conversation.reading import split_turns
from eirkit.lacuna.memories.validity import EndedText

# {a} and {b} are labels, {x} and {y} their values.
ONE = [
    "{a} = {x}",
    "{a}={x}",
    "{a}: {x}",
    "{a} {x}",
    "{a},{x}",
    "{a}\t{x}",
    "{a} is {x}",
    "{a} is {x}.",
    "The answer of {a} is {x}.",
    "The answer of {a} was found to be {x}!",
    "{a} equals {x}",
    "**{a}** = {x}",
    "`{a}` → **{x}**",
    "_{a}_: _{x}_",
    "{a} -> {x}",
    "{a} - {x}",
    "- **{a}**: `{x}`",
    "*{a}*: {x}",
    "- {a}: `{x}`",
    "1. {a} = {x}",
    "[3] {a} is {x}",
    "${a} = {x}$",
    "| {a} | {x} |",
    "| label | value |\n|---|---|\n| {a} | {x} |",
    "<tr><td>{a}</td><td>{x}</td></tr>",
    '{{"label": "{a}", "value": {x}}}',
    '{{"{a}": "{x}"}}',
    '{{"{a}": [{x}]}}',
    '{{\n  "label": "{a}",\n  "value": {x}\n}}',
    '{{"value": {x}, "label": "{a}"}}',
    '{{"label": "{a}", "score": 0.83, "value": {x}}}',
    "<{a}>{x}</{a}>",
    "## {a}\n\n{x}",
    "{x} is the answer of {a}",
    "The value {x} belongs to {a}.",
    "{a} (written at step 9) = {x}",
    "[2024-05-01T10:00:00Z] {a}: {x}",
    "As of 2024-05-01 10:30, {a} is {x}",
    "id 3f2a1b4c-1234-1234-1234-1234567890ab: {a} = {x}",
    "User's answer for {a} was {x} (confidence 0.9)",
    "{a}'s value is {x}",
    "I remember that {a} holds {x}.",
    "{a} = {x}  # stored",
    "Memory:\n- {a} = {x}\n- end",
]
TWO = [
    "{a} = {x}\n{b} = {y}",
    "{a} = {x}; {b} = {y}",
    "{a} is {x} and {b} is {y}.",
    "{a}, {b}: {x}, {y}",
    "| {a} | {b} |\n|---|---|\n| {x} | {y} |",
    '{{"{a}": {x}, "{b}": {y}}}',
    '[{{"label": "{a}", "value": {x}}}, {{"label": "{b}", "value": {y}}}]',
    '[{{"value": {x}, "label": "{a}"}}, {{"value": {y}, "label": "{b}"}}]',
    "{a}\t{x}\n{b}\t{y}\n",
]
UNCERTAIN = [
    "{x}",
    "The result was {x}.",
    "Record {a}. Its value is {x}.",
    "{a} is {x} or {y}",
    "{a} = {y} + {x}",
    "{a} and {b} are {x} and {y} respectively.",
    "{x} is {a} and {y} is {b}",
    "{b} = max({a}, A_0) = {x}",
    "1) {a} = {x}, from {b}",
    "{a} = -{x}",
    "{a} = {y}, and before that {x}",
    "{a} was computed from {b}; the result is {x}",
    "{a} = {x}. No: {a} = {y}.",
]
ABSENT = [
    "",
    "nothing was found",
    "{a}",
    "{a} = {y}",
    "{a} is {y}.",
    "{b} = {x}",
    "The answer of {b} is {x}.",
    "{a} is not known",
    "{a} = {y}, {b} = {x}",
    "{a}, {b}: {y}, {x}",
    "| {a} | {b} |\n|---|---|\n| {y} | {x} |",
    '{{"{a}": {y}, "{b}": {x}}}',
    "{b} = {x} and is used by {a}",
]
labels = st.integers(1, 999)
values = st.integers(0, 99_999)
spellings = st.sampled_from([str, "{:05d}".format, "{:,}".format])
names = st.sampled_from(["A_{}".format, "A_{:03d}".format])


def written(wording: str, a: int, x: int, b: int, y: int, name=None, spell=str) -> str:
    name = name or "A_{}".format
    return wording.format(a=name(a), b=name(b), x=spell(x), y=spell(y))


@pytest.mark.parametrize("wording", [*ONE, *TWO])
@settings(max_examples=40)
@given(labels, values, labels, values, names, spellings)
def test_a_value_beside_its_label_is_present_in_any_wording(wording, a, x, b, y, name, spell):
    assume(a != b)
    # JSON has neither zeros in front of a number nor separators in it.
    spell = str if wording.startswith(("{{", "[{{")) else spell
    text = written(wording, a, x, b, y, name, spell)
    expected = {a: (x,), b: (y,)} if "{b}" in wording else {a: (x,)}
    found = recognize((text,), expected)
    assert found.present == set(expected)
    assert not found.stated


@pytest.mark.parametrize("wording", [*ONE, *TWO])
@settings(max_examples=20)
@given(labels, values, labels, values, values)
def test_another_value_beside_the_label_is_never_taken_for_the_right_one(wording, a, x, b, y, right):
    assume(a != b and right not in (x, y))
    found = recognize((written(wording, a, x, b, y),), {a: (right,)})
    assert a not in found.present


@pytest.mark.parametrize("wording", UNCERTAIN)
@settings(max_examples=20)
@given(labels, st.integers(1000, 9999), labels, st.integers(1000, 9999))
def test_what_cannot_be_told_is_uncertain(wording, a, x, b, y):
    assume(a != b and x != y)
    found = recognize((written(wording, a, x, b, y),), {a: (x,)})
    assert (found.present, found.uncertain) == (set(), {a})


@pytest.mark.parametrize("wording", ABSENT)
@settings(max_examples=20)
@given(labels, st.integers(1000, 99_999), labels, st.integers(1000, 99_999))
def test_what_is_not_there_is_absent(wording, a, x, b, y):
    assume(a != b and x != y)
    found = recognize((written(wording, a, x, b, y),), {a: (x,)})
    assert (found.present, found.uncertain) == (set(), set())


@given(st.dictionaries(labels, st.tuples(values, values), min_size=1, max_size=6), st.booleans())
def test_json_of_a_real_encoder_is_read(records, pretty):
    plain = {f"A_{t}": list(pair) for t, pair in records.items()}
    items = [{"label": f"A_{t}", "value": list(pair)} for t, pair in records.items()]
    for document in (plain, items):
        text = json.dumps(document, indent=2 if pretty else None)
        assert recognize((text,), records).present == set(records)


def test_of_several_texts_the_first_or_the_last_counts():
    texts = ("A_7 = 42", "A_7 is 43.")
    for best_first, right, other in ((True, 42, 43), (False, 43, 42)):
        assert recognize(texts, {7: (right,)}, best_first=best_first).present == {7}
        beside = recognize(texts, {7: (other,)}, best_first=best_first)
        assert (beside.present, beside.uncertain, dict(beside.stated)) == (set(), {7}, {7: (str(right),)})


@pytest.mark.parametrize("until", ["", "2031-01-13"])
def test_a_text_that_has_ended_does_not_count_and_only_its_own_value_stays_uncertain(until):
    ended = EndedText("A_7 = 42. It was A_8 = 9\nand A_9 = 3", until)
    for best_first in (True, False):
        found = recognize((ended, "A_7 = 43"), {7: (43,), 8: (9,), 9: (4,)}, best_first=best_first)
        assert (found.present, found.uncertain, dict(found.stated)) == ({7}, {8}, {})


def test_a_copy_of_a_text_that_has_ended_is_equal_to_it():
    ended = EndedText("A_7 = 42\nand A_9 = 3", "2031-01-13")
    for copied in (copy.deepcopy(ended), pickle.loads(pickle.dumps(ended))):
        assert (copied, copied.text, copied.until) == (ended, ended.text, ended.until)


def test_a_day_that_is_in_no_calendar_is_unknown():
    assert split_turns(load_language(), "[2031-02-30] user: so (until 2031-13-01)") == [(None, "so", 0)]


def test_what_is_stated_instead_is_kept_as_it_was_written():
    assert dict(recognize(("A_07 = 004",), {7: (42,)}).stated) == {7: ("004",)}
    assert dict(recognize(("The answer of A_7 is 1,234.",), {7: (42,)}).stated) == {7: ("1234",)}


@given(st.text(st.sampled_from("A_07 =:,.;{}[]|\n-+is"), max_size=80))
def test_any_text_is_read(text):
    assert records_in(text, {7: (42,), 0: (7,)}) <= {0, 7}


def test_long_texts_take_time_in_proportion_to_their_length():
    def seconds(text: str) -> float:
        read_text.cache_clear()
        start = time.process_time()
        read_text(text)
        return time.process_time() - start

    for piece in ("A_7 ", "42 ", "A_7 = 1,", "{", "1,234,", "step "):
        short, long = (min(seconds(piece * n) for _ in range(3)) for n in (2_000, 8_000))
        assert long < 40 * short + 0.05, piece  # quadratic time would be 16 times the time of 4 times the text


@pytest.mark.parametrize(
    "text",
    [
        *("A_7 = 1 234", "A_7: 12-34", "A_7 = 1234pts", "A_7 = 1234%", "A_7 = 1.234", "A_7 = 0x4D2"),
        *("A_7 = 1.2340e+03", "A_7 changed from 12 to 1234", "A_7 was 12, now 1234"),
        *("A_7 (importance 5): 1234", "A_7 (see A_9) is 1234", "A_7 = 12; A_7 = 1234"),
    ],
)
def test_a_value_in_another_form_or_beside_another_number_is_uncertain_and_no_wrong_one_is_stated(text):
    found = recognize((text,), {7: (1234,)}, best_first=True)
    assert (found.present, found.uncertain, found.stated) == (frozenset(), {7}, {})


@pytest.mark.parametrize(
    "text",
    ["A_7 = \u0661\u0662\u0663\u0664", "A_\uff17 = \uff11\uff12\uff13\uff14", "A_7 = 12\u200b34", "A_7 = 1{,}234"],
)
def test_digits_of_other_scripts_are_values(text):
    assert recognize((text,), {7: (1234,)}).present == {7}


def test_words_are_not_read():
    for text in ("A_7 is not 42", "A_7 is maybe 42", "A_7 is about 42"):
        assert records_in(text, {7: (42,)}) == {7}
    assert recognize(("A_7 is forty-two", "A_7 = XLII"), {7: (42,)}) == recognize((), {7: (42,)})


def test_a_record_of_several_values_is_present_if_all_are_there_in_order():
    for text in ("A_7 = 0042 0051", "A_7: [42, 51]", "A_7: 42 and 51 (step 9)", "A_7,42,51", "A_7 = (042,051)"):
        assert records_in(text, {7: (42, 51)}) == {7}
    for text in ("A_7 = 51 42", "A_7 = 42, 12, 51", "A_7 = 42\n51"):
        found = recognize((text,), {7: (42, 51)})
        assert (found.present, found.uncertain, found.stated) == (set(), {7}, {})
    assert recognize(("A_7 = 42 52",), {7: (42, 51)}).stated == {7: ("42", "52")}


def test_a_wrong_value_is_stated_whatever_other_numbers_are_near():
    assert recognize(("A_7 = 0012 (score 0.87, id 5)",), {7: (1234,)}).stated == {7: ("0012",)}
