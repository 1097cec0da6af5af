"""Answers in the words of models and people, with their truth: which are right, and what a wrong one states."""

from __future__ import annotations

import pytest

from eirkit.lacuna.conversation.language import load_language
from eirkit.lacuna.conversation.scoring import AnswerKey, Words, contains, dates_in, is_unknown, stated

ENGLISH, GERMAN = load_language("english").answer_words, load_language("german").answer_words


def key(form, truth, own=(), others=(), table=ENGLISH, item="", **texts):
    """Return a key; a short form of a value is given by name, with spaces as underscores in the value's first word."""
    values = {value: {value} for value in dict.fromkeys((truth, *own)) if value not in ("unknown", "none", "unbekannt")}
    for value, short in texts.items():
        values[value.replace("_", " ")].add(short)
    return AnswerKey(form, truth, values, lambda: {other: {other} for other in others}, table, item)


DESK = key("now", "4127", own=["3310", "9025"], others=["7214"])
TEA = key(
    "now", "mint tea with honey", own=["sage tea with lemon"], others=["plum tea with ghee"],
    mint_tea_with_honey="mint tea",
)  # fmt: skip
DOOR = key("follows", "east door of hall 3", own=["oak door of hall 9"], east_door_of_hall_3="east door")
PHONE = key("now", "0161-482913", own=["0171-990417"])
LEAD = key("now", "marta silva", own=["martha tesfaye"], marta_silva="marta", martha_tesfaye="momo")
GONE = key("now", "unknown", own=["4127"])
DAY = key("day", "2031-01-08")
ALL = key("all", "roasted almonds, wild figs", own=["roasted almonds", "wild figs", "raw plums"], others=["red peas"])
ALL = AnswerKey("all", ALL.truth, {item: {item} for item in ("roasted almonds", "wild figs", "raw plums")},
                ALL.others, ENGLISH)  # fmt: skip
NONE = AnswerKey("all", "none", {"raw plums": {"raw plums"}}, dict, ENGLISH)
COUNT = key("how_many", "2")
ZERO = key("how_many", "0")
BOXES = key("total", "554", own=["217", "400"])
GAP = key("between", "38")
YES = key("member", "yes", item="roasted almonds")
NO = key("member", "no", item="roasted almonds")
FIRST = key("first", "orion", own=["juno"])

RIGHT = [
    (DESK, "4127"),
    (DESK, "Desk 4127"),
    (DESK, "desk no. 4127."),
    (DESK, "**4127**"),
    (DESK, "It is desk 4127 now."),
    (DESK, "Marta's desk is 4127, as you said."),
    (DESK, "4127 (not stated otherwise)"),
    (DESK, "#4127"),
    (TEA, "mint tea with honey"),
    (TEA, "Mint tea with honey."),
    (TEA, "mint tea"),
    (TEA, "She drinks mint tea"),
    (TEA, "Mint tea, with honey"),
    (TEA, "“mint tea with honey”"),
    (TEA, "MINT TEA"),
    (DOOR, "the east door"),
    (DOOR, "the east door of Hall 3"),
    (DOOR, "East door, Hall 3"),
    (DOOR, "By the east door."),
    (PHONE, "0161-482913"),
    (PHONE, "0161 482913"),
    (PHONE, "0161482913"),
    (PHONE, "Call 0161.482.913"),
    (PHONE, "(0161) 48 29 13"),
    (LEAD, "Marta Silva"),
    (LEAD, "Marta"),
    (LEAD, "It is led by Marta Silva."),
    (LEAD, "MARTA SILVA!"),
    (GONE, "unknown"),
    (GONE, "Unknown."),
    (GONE, "unknown (not stated)"),
    (GONE, "I don't know."),
    (GONE, ""),
    (GONE, "I don’t have that information"),
    (GONE, "That was never mentioned."),
    (GONE, "It cannot be determined"),
    (GONE, "N/A"),
    (GONE, "Not specified"),
    (GONE, "You asked me to forget it."),
    (GONE, "I'm not sure."),
    (GONE, "No value was recorded."),
    (GONE, "Nothing was said about it."),
    (GONE, "not in memory"),
    (GONE, "There is no information on that."),
    (GONE, "It is no longer known."),
    (GONE, "Not enough information."),
    (DAY, "8 January 2031"),
    (DAY, "January 8, 2031"),
    (DAY, "January 8th, 2031"),
    (DAY, "2031-01-08"),
    (DAY, "8.1.2031"),
    (DAY, "08.01.2031"),
    (DAY, "1/8/2031"),
    (DAY, "8/1/2031"),
    (DAY, "8 Jan 2031"),
    (DAY, "the 8th of January, 2031"),
    (DAY, "Wednesday, January 8 2031"),
    (DAY, "2031/01/08"),
    (DAY, "January 8"),
    (ALL, "roasted almonds, wild figs"),
    (ALL, "Wild figs and roasted almonds."),
    (ALL, "wild figs; roasted almonds"),
    (ALL, "- roasted almonds\n- wild figs"),
    (ALL, "roasted almonds & wild figs"),
    (ALL, "She is allergic to wild figs and to roasted almonds, as you told me"),
    (NONE, "none"),
    (NONE, "Nothing."),
    (NONE, "No allergies"),
    (NONE, "no known allergies"),
    (NONE, "She is not allergic to anything"),
    (COUNT, "2"),
    (COUNT, "two"),
    (COUNT, "Two allergies"),
    (COUNT, "2: almonds and figs"),
    (COUNT, "She has 2."),
    (COUNT, "just two"),
    (ZERO, "0"),
    (ZERO, "none"),
    (ZERO, "zero"),
    (ZERO, "No allergies"),
    (BOXES, "554"),
    (BOXES, "554 boxes"),
    (BOXES, "217 + 337 = 554"),
    (BOXES, "There are 554 boxes."),
    (BOXES, "217 plus 337 makes 554"),
    (BOXES, "217 + 337 = 554, so 554"),
    (BOXES, "554 boxes as of 14 January 2031"),
    (BOXES, "The sum 217 + 337 is 554"),
    (GAP, "38"),
    (GAP, "38 days"),
    (GAP, "From 13 May to 20 June: 38 days"),
    (GAP, "13 May to 20 June, 38 days"),
    (GAP, "38 days apart"),
    (GAP, "They are 38 days apart, from 13 May on."),
    (YES, "yes"),
    (YES, "Yes."),
    (YES, "Yes, she is"),
    (YES, "Correct, yes"),
    (YES, "She is allergic to roasted almonds."),
    (NO, "no"),
    (NO, "No, not any more."),
    (NO, "She isn't."),
    (NO, "No longer"),
    (NO, "She is not allergic to roasted almonds."),
    (FIRST, "Orion"),
    (FIRST, "Project Orion"),
    (FIRST, "Orion, not Juno"),
    (FIRST, "Orion is earlier than Juno"),
    (FIRST, "not Juno; Orion"),
    (FIRST, "Orion (before Juno)"),
    (FIRST, "Of Orion and Juno, Orion is first."),
    (FIRST, "Juno comes after Orion"),
    (FIRST, "Juno is later, so Orion"),
    (FIRST, "Orion comes first, then Juno."),
]
WRONG = [  # with what the answer states
    (DESK, "3310", "3310"),
    (DESK, "Desk 3310", "3310"),
    (DESK, "4127 (formerly 3310)", "3310"),
    (DESK, "7214", "7214"),
    (DESK, "unknown", "unknown"),
    (DESK, "unknown (not stated)", "unknown"),
    (DESK, "41270", "41270"),
    (DESK, "412", "412"),
    (DESK, "desk4127", "desk4127"),
    (DESK, "either 9025 or 4127", "9025"),
    (DESK, "I do not know", "unknown"),
    (DESK, "It moved from 4127 to 9025", "9025"),
    (TEA, "sage tea with lemon", "sage tea with lemon"),
    (TEA, "plum tea with ghee", "plum tea with ghee"),
    (TEA, "tea with honey", "tea with honey"),
    (TEA, "peppermint tea", "peppermint tea"),
    (TEA, "mint", "mint"),
    (TEA, "mint tea, before that sage tea with lemon", "sage tea with lemon"),
    (TEA, "She likes coffee", "she likes coffee"),
    (DOOR, "the oak door of Hall 9", "oak door of hall 9"),
    (DOOR, "the northeast door", "the northeast door"),
    (DOOR, "any door", "any door"),
    (DOOR, "not stated", "unknown"),
    (PHONE, "0171-990417", "0171-990417"),
    (PHONE, "0161-482914", "0161-482914"),
    (PHONE, "482913", "482913"),
    (LEAD, "Martha Tesfaye", "martha tesfaye"),
    (LEAD, "Momo", "martha tesfaye"),
    (LEAD, "Marta or Momo", "martha tesfaye"),
    (LEAD, "Martha", "martha"),
    (LEAD, "nobody was mentioned", "unknown"),
    (GONE, "4127", "4127"),
    (GONE, "It used to be 4127, but I was asked to forget it", "4127"),
    (GONE, "unknown, formerly 4127", "4127"),
    (GONE, "9999", "9999"),
    (DAY, "9 January 2031", "2031-01-09"),
    (DAY, "8 January 2032", "2032-01-08"),
    (DAY, "8 February 2031", "2031-02-08"),
    (DAY, "2031-08-01", "2031-08-01"),
    (DAY, "1.8.2031", "2031-08-01"),
    (DAY, "January 18", "january 18"),
    (DAY, "not given", "unknown"),
    (DAY, "in January 2031", "in january 2031"),
    (ALL, "roasted almonds", "roasted almonds"),
    (ALL, "roasted almonds, wild figs, raw plums", "raw plums, roasted almonds, wild figs"),
    (ALL, "wild figs, red peas", "red peas, wild figs"),
    (ALL, "none", "none"),
    (ALL, "unknown", "unknown"),
    (ALL, "peanuts", "peanuts"),
    (ALL, "roasted almonds, wild figs, peanuts", "roasted almonds, wild figs, peanuts"),
    (NONE, "raw plums", "raw plums"),
    (NONE, "unknown", "unknown"),
    (NONE, "That was not mentioned", "unknown"),
    (COUNT, "3", "3"),
    (COUNT, "three", "3"),
    (COUNT, "none", "0"),
    (COUNT, "It was never said", "unknown"),
    (COUNT, "3 of them", "3"),
    (ZERO, "one", "1"),
    (BOXES, "217", "217"),
    (BOXES, "554 boxes, formerly 217", "217"),
    (BOXES, "It was 217 and is 554 now", "217"),
    (BOXES, "217 + 337 = 544", "544"),
    (BOXES, "either 4 or 5", "either 4 or 5"),
    (BOXES, "not known", "unknown"),
    (GAP, "39 days", "39"),
    (GAP, "From 13 May to 20 June", "from 13 may to 20 june"),
    (GAP, "unclear", "unknown"),
    (YES, "no", "no"),
    (YES, "No, she isn't.", "no"),
    (YES, "No information.", "unknown"),
    (NO, "Yes.", "yes"),
    (NO, "No information.", "unknown"),
    (NO, "She is allergic to roasted almonds", "yes"),
    (FIRST, "Juno", "juno"),
    (FIRST, "Juno or Orion", "juno or orion"),
    (FIRST, "Juno and Orion", "juno and orion"),
    (FIRST, "Juno before Orion", "juno"),
    (FIRST, "Juno, not Orion", "juno"),
    (FIRST, "Orion comes after Juno", "juno"),
]


@pytest.mark.parametrize(("key", "text"), RIGHT)
def test_a_right_answer_is_right_in_any_words(key, text):
    assert stated(key, text) == key.truth


@pytest.mark.parametrize(("key", "text", "meant"), WRONG)
def test_a_wrong_answer_states_what_it_says(key, text, meant):
    assert stated(key, text) == meant != key.truth


def test_there_are_sixty_of_each():
    assert min(len(RIGHT), len(WRONG)) >= 60


@pytest.mark.parametrize(
    ("form", "truth", "text"),
    [
        ("day", "2031-03-08", "8. März 2031"),
        ("day", "2031-03-08", "am 8. März des Jahres 2031"),
        ("day", "2031-03-08", "8.3.2031"),
        ("now", "4127", "Schreibtisch 4127"),
        ("now", "unbekannt", "Das wurde nicht erwähnt."),
        ("now", "unbekannt", "Ich weiß es nicht."),
        ("now", "unbekannt", "keine Angabe"),
        ("how_many", "2", "zwei Allergien"),
        ("between", "38", "38 Tage"),
        ("member", "nein", "Nein, nicht mehr."),
        ("first", "orion", "Orion, nicht Juno"),
        ("first", "orion", "Juno kommt nach Orion"),
    ],
)
def test_german_answers_are_scored_by_german_words(form, truth, text):
    assert stated(key(form, truth, own=["juno"] if form == "first" else (), table=GERMAN), text) == truth


def test_a_date_of_three_numbers_is_read_in_both_orders_unless_it_has_points():
    months = ENGLISH.months
    assert dates_in(Words("1/8/2031"), months) == {(2031, 1, 8), (2031, 8, 1)}
    assert dates_in(Words("13/8/2031"), months) == {(2031, 8, 13)}
    assert dates_in(Words("1.8.2031"), months) == {(2031, 8, 1)}
    assert dates_in(Words("30 February 2031"), months) == set()


def test_a_tracer_is_found_as_whole_words_alone():
    assert contains("[2031-01-06] user: Marta drinks Mint tea with honey.", "mint tea with honey")
    assert not contains("spearmint tea with honey", "mint tea with honey")
    assert not contains("desk 41270 and 14127", "4127")
    assert contains("desk 41270, then 4127", "4127")


def test_none_known_is_not_unknown():
    assert not is_unknown(ENGLISH, Words("no known allergies"))
    assert is_unknown(ENGLISH, Words("not known"))
