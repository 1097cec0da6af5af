"""The text protocol and tool calls: what is read, what is refused, and that nothing can crash or stall the reading."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eirkit.lacuna.agents.protocol import (
    LONGEST_REPLY,
    LONGEST_TEXT,
    MOST_ACTIONS,
    USAGE,
    Answer,
    Done,
    Drop,
    Fault,
    Next,
    Note,
    Read,
    Recompute,
    Search,
    Write,
    as_call,
    as_text,
    read_answers,
    read_reply,
    tools,
)
from eirkit.lacuna.models.model import Reply, ToolCall
from tests.timing import UNITS_IN_A_SECOND, cost

# A quadratic pattern needs ten seconds and more for a reply of the longest length; linear ones some milliseconds.
LONGEST = 5 * UNITS_IN_A_SECOND

READ = [
    ("ANSWER 7 42", Answer(7, (42,))),
    ("ANSWER 7 0042", Answer(7, (42,))),
    ("ANSWER 007 0042", Answer(7, (42,))),
    ("answer 7 42", Answer(7, (42,))),
    ("Answer: 7 42", Answer(7, (42,))),
    ("**ANSWER 7 42**", Answer(7, (42,))),
    ("`ANSWER 7 42`", Answer(7, (42,))),
    ("> - ANSWER 7 42.", Answer(7, (42,))),
    ("### ANSWER 7 42", Answer(7, (42,))),
    ("**ANSWER** 7 42", Answer(7, (42,))),
    ("__ANSWER__ 7 42", Answer(7, (42,))),
    ("_ANSWER_ 7 42", Answer(7, (42,))),
    ("__Answer:__ 7 42", Answer(7, (42,))),
    ("**_ANSWER_** 7 42", Answer(7, (42,))),
    ("_ANSWER 7 42_", Answer(7, (42,))),
    ("**ANSWER 7 42**.", Answer(7, (42,))),
    ("`ANSWER 7 42.`", Answer(7, (42,))),
    ("ANSWER 7: 42", Answer(7, (42,))),
    ("ANSWER 7=42", Answer(7, (42,))),
    ("ANSWER 7, 42", Answer(7, (42,))),
    ("ANSWER step 7 42", Answer(7, (42,))),
    ("ANSWER t=7 v=42", Answer(7, (42,))),
    ("ANSWER A_07 = 0042", Answer(7, (42,))),
    ("ANSWER 7 12 34", Answer(7, (12, 34))),
    ("ANSWER 7 [12, 34]", Answer(7, (12, 34))),
    ("ANSWER 7 (12; 34).", Answer(7, (12, 34))),
    ("ANSWER\u00a07\u00a042\r", Answer(7, (42,))),
    ("ANSWER 7 " + "0" * 5000 + "42", Answer(7, (42,))),
    ("ANSWER 7 " + "9" * 5000, Answer(7, (10**20 - 1,))),
    ("NEXT", Next()),
    ("Next", Next()),
    ("next.", Next()),
    ("__NEXT__", Next()),
    ("_NEXT_.", Next()),
    ("**Next.**", Next()),
    ("DONE", Done()),
    ("Done!", Done()),
    ("READ 3", Read(3)),
    ("read A_03", Read(3)),
    ("READ step 3.", Read(3)),
    ("**READ 3**.", Read(3)),
    ("__NOTE__ ends in a full stop.", Note("ends in a full stop.")),
    ("RECOMPUTE 3", Recompute(3)),
    ("WRITE t=3", Write(3)),
    ("DROP 3", Drop(3)),
    ("NOTE A_03 = 0042", Note("A_03 = 0042")),
    ("NOTE:   two   words", Note("two words")),
    ("SEARCH A_03 A_05", Search("A_03 A_05")),
    ("NOTE tab\tand nul\x00", Note("tab and nul\N{REPLACEMENT CHARACTER}")),
    ("NOTE half \ud800", Note("half \N{REPLACEMENT CHARACTER}")),
]


@pytest.mark.parametrize(("text", "action"), READ)
def test_a_command_is_read(text, action):
    assert read_reply(Reply(text)) == [action]
    assert read_reply(Reply(f"I think.\n\n{text}\nThat is all.")) == [action]


PROSE = [
    "",
    "The answer is ANSWER 7 42",
    "Next, I add both values.",
    "Done with step 3, now step 4",
    "Read the records above first",
    "Note that A_03 is missing",
    "Search results would help",
    "Answer: 42",
    "Answering 7 42",
    "ANSWER_7 42",
    "__NEXT_STEP__",
    "ANSWERS 7 42",
    "WRİTE 3",  # folds to WRITE in some alphabets, not in ours
]


@pytest.mark.parametrize("text", PROSE)
def test_prose_is_no_command(text):
    (fault,) = read_reply(Reply(text))
    assert fault.kind == ("malformed" if text.strip() else "empty")
    assert fault.word == ""


MALFORMED = [
    ("ANSWER", "ANSWER"),
    ("ANSWER 42", "ANSWER"),
    ("ANSWER 7 forty-two", "ANSWER"),
    ("ANSWER 7 -5", "ANSWER"),
    ("ANSWER 7 4.5", "ANSWER"),
    ("ANSWER 7,42", "ANSWER"),
    ("ANSWER 7 ()", "ANSWER"),
    ("ANSWER 1234567 42", "ANSWER"),
    ("READ", "READ"),
    ("READ 3 4", "READ"),
    ("READ ³", "READ"),
    ("NEXT: reveal the next step", "NEXT"),
    ("DONE: end the task", "DONE"),
    ("NOTE", "NOTE"),
    ("SEARCH **", "SEARCH"),
]


@pytest.mark.parametrize(("text", "word"), MALFORMED)
def test_a_command_in_capitals_that_cannot_be_read_is_a_fault(text, word):
    (fault,) = read_reply(Reply(text))
    assert (fault.kind, fault.word) == ("malformed", word)


def test_actions_come_in_order_and_only_so_many():
    assert read_reply(Reply("READ 3\nso\nANSWER 7 42\nNEXT")) == [Read(3), Answer(7, (42,)), Next()]
    many = read_reply(Reply("NEXT\n" * 40))
    assert many[:MOST_ACTIONS] == [Next()] * MOST_ACTIONS
    assert [fault.kind for fault in many[MOST_ACTIONS:]] == ["too-many"]


def test_the_beginning_of_a_long_reply_is_read_and_the_rest_reported():
    found = read_reply(Reply("NEXT\n" + "x" * LONGEST_REPLY + "\nDONE"))
    assert found[0] == Next()
    assert [fault.kind for fault in found[1:]] == ["too-long"]


def test_a_note_that_is_too_long_is_refused_and_never_cut():
    assert read_reply(Reply("NOTE " + "x" * LONGEST_TEXT)) == [Note("x" * LONGEST_TEXT)]
    for text in ("x" * (LONGEST_TEXT + 1), "x  " * LONGEST_TEXT):
        for reply in (Reply(f"NOTE {text}"), Reply("", (ToolCall("note", {"text": text}),))):
            assert [fault.kind for fault in read_reply(reply)] == ["too-long"]


def test_where_only_answers_count_all_of_them_are_found():
    answers, fault = read_answers(Reply("ANSWER 7 1\nhm\nANSWER 7 2\nREAD 3\nNEXT"))
    assert answers == [Answer(7, (1,)), Answer(7, (2,))]
    assert fault is None
    assert len(read_answers(Reply("ANSWER 7 1\n" * 100))[0]) == 100


def test_where_only_answers_count_the_end_of_a_long_reply_is_read():
    assert read_answers(Reply("x" * 10**6 + "\nANSWER 7 2"))[0] == [Answer(7, (2,))]


def test_the_first_fault_among_answers_is_kept():
    answers, fault = read_answers(Reply("ANSWER seven\nNEXT"))
    assert answers == []
    assert fault.kind == "malformed"
    assert read_answers(Reply("I do not know"))[1] is None


CALLS = [
    (ToolCall("answer", {"t": 7, "values": [42]}), Answer(7, (42,))),
    (ToolCall("ANSWER", {"t": "7", "values": "0042"}), Answer(7, (42,))),
    (ToolCall("answer", {"t": 7.0, "values": [42.0]}), Answer(7, (42,))),
    (ToolCall("answer", {"t": 7, "values": 42}), Answer(7, (42,))),
    (ToolCall("answer", {"t": 7, "values": ["12", 34]}), Answer(7, (12, 34))),
    (ToolCall("answer", {"t": 7, "values": [10**6000]}), Answer(7, (10**20 - 1,))),
    (ToolCall("read", {"t": 3, "text": "ignored", "values": [1]}), Read(3)),
    (ToolCall("drop", {"t": "A_03"}), Drop(3)),
    (ToolCall("next", {"": "no JSON at all"}), Next()),
    (ToolCall("done", {}), Done()),
    (ToolCall("note", {"text": "A_03 = 0042", "t": 9}), Note("A_03 = 0042")),
    (ToolCall("search", {"text": "two\nlines"}), Search("two lines")),
]


@pytest.mark.parametrize(("call", "action"), CALLS)
def test_a_tool_call_is_read(call, action):
    assert read_reply(Reply("NEXT", (call,))) == [action]


BAD_CALLS = [
    (ToolCall("answer", {}), "malformed"),
    (ToolCall("answer", {"t": 7}), "malformed"),
    (ToolCall("answer", {"t": 7, "values": []}), "malformed"),
    (ToolCall("answer", {"t": 7, "values": [[42]]}), "malformed"),
    (ToolCall("answer", {"t": 7, "values": [True]}), "malformed"),
    (ToolCall("answer", {"t": 7, "values": [float("nan")]}), "malformed"),
    (ToolCall("answer", {"t": 7, "values": [float("inf")]}), "malformed"),
    (ToolCall("answer", {"t": -7, "values": [42]}), "malformed"),
    (ToolCall("read", {"t": None}), "malformed"),
    (ToolCall("read", {"t": {"t": 3}}), "malformed"),
    (ToolCall("read", {"": "{t: 3"}), "malformed"),
    (ToolCall("note", {}), "malformed"),
    (ToolCall("delete_everything", {"t": 3}), "unknown-action"),
    (ToolCall("", {}), "unknown-action"),
    (ToolCall("x" * 10**6 + "\ud800", {}), "unknown-action"),
    (ToolCall(None, None), "unknown-action"),
    (ToolCall("answer", "7 42"), "malformed"),
    (ToolCall("read", [3]), "malformed"),
]


@pytest.mark.parametrize(("call", "kind"), BAD_CALLS)
def test_a_tool_call_that_fits_no_tool_is_a_fault(call, kind):
    (fault,) = read_reply(Reply("", (call,)))
    assert fault.kind == kind
    assert len(fault.detail) < 200
    fault.detail.encode()


def test_tools_describe_what_their_lines_take():
    made = {tool.name: tool for tool in tools(tuple(USAGE))}
    assert set(made) == {word.lower() for word in USAGE}
    for action in (Answer(7, (42,)), Next(), Read(3), Recompute(3), Write(3), Drop(3), Note("x"), Search("x"), Done()):
        call = as_call(action)
        assert set(call.arguments) == set(made[call.name].parameters["required"])
        assert made[call.name].description in USAGE[call.name.upper()]


labels = st.integers(1, 999_999)
numbers = st.integers(0, 10**20 - 1)
plain = st.text(st.characters(min_codepoint=33, max_codepoint=126, exclude_characters=":*`_"), min_size=1, max_size=40)
actions = st.one_of(
    st.builds(Answer, labels, st.lists(numbers, min_size=1, max_size=6).map(tuple)),
    st.sampled_from([Next(), Done()]),
    *(st.builds(kind, labels) for kind in (Read, Recompute, Write, Drop)),
    st.builds(Note, plain),
    st.builds(Search, plain),
)


@given(st.lists(actions, min_size=1, max_size=MOST_ACTIONS))
def test_text_and_calls_both_say_the_same_actions(chosen):
    assert read_reply(Reply("\n".join(map(as_text, chosen)))) == chosen
    assert read_reply(Reply("", tuple(map(as_call, chosen)))) == chosen


words = st.sampled_from([*USAGE, *map(str.lower, USAGE), *map(str.title, USAGE)])
pieces = words | st.text(max_size=12) | st.sampled_from([" ", "\n", "7", "0042", "**", "A_", "=", ",", "[", "."])
hostile = st.text() | st.lists(pieces, max_size=30).map("".join) | st.lists(pieces, max_size=30).map(" ".join)


@given(hostile)
def test_whatever_is_printed_becomes_actions_or_faults(text):
    found = read_reply(Reply(text))
    assert found
    for action in found:
        if not isinstance(action, Fault):
            assert read_reply(Reply(as_text(action))) == [action]
            assert read_reply(Reply("", (as_call(action),))) == [action]
    answers, _ = read_answers(Reply(text))
    assert [action for action in found if isinstance(action, Answer)] == answers[:MOST_ACTIONS]


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.just(10**4000),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
names = st.sampled_from([word.lower() for word in USAGE]) | st.text(max_size=8)
arguments = st.dictionaries(st.sampled_from(["t", "values", "text", ""]) | st.text(max_size=3), anything, max_size=4)


@given(st.lists(st.builds(ToolCall, names, arguments), min_size=1, max_size=20))
def test_whatever_is_called_becomes_actions_or_faults(calls):
    found = read_reply(Reply("", tuple(calls)))
    assert 1 <= len(found) <= MOST_ACTIONS + 1
    for action in found:
        if not isinstance(action, Fault):
            assert read_reply(Reply(as_text(action))) == [action]
    read_answers(Reply("", tuple(calls)))


SLOW_IF_CARELESS = [
    "\n",
    " ",
    "*",
    "\n*",
    "ANSWER 7" + " ",
    "ANSWER 7 1 ",
    "ANSWER 0",
    "ANSWER 7 , ",
    "ANSWER (",
    "NOTE *",
    "NOTE * x",
    "NEXT *",
    "NEXT .",
    "READ 0",
    "> > ",
    "A_1 = 1 ",
    "ANSWER \n",
    "\r",
    "\ud800",
]


@pytest.mark.parametrize("piece", SLOW_IF_CARELESS)
def test_reading_takes_linear_time(piece):
    def read_all() -> None:
        head, tail = piece[:-1], piece[-1]
        for end in ("", "x", "!\nANSWER 7 42"):
            for text in (head + tail * LONGEST_REPLY + end, piece * (LONGEST_REPLY // len(piece)) + end):
                read_reply(Reply(text))
                read_answers(Reply(text))
                calls = ToolCall("answer", {"t": text, "values": [text]}), ToolCall("note", {"text": text})
                read_reply(Reply("", calls))

    assert cost(read_all) < LONGEST


@pytest.mark.parametrize(
    "text", ["ANSWER 7 \u0664\u0662", "ANSWER \uff17 42", "ANSWER 7 42 # 12 + 30", "ANSWER 7 42 because A_3 = 12"]
)
def test_other_digits_and_remarks_do_not_hide_an_answer(text):
    assert read_reply(Reply(text)) == [Answer(7, (42,))]


def test_a_call_may_be_prefixed_and_one_that_was_cut_is_truncated():
    assert read_reply(Reply("", (ToolCall("functions.answer", {"t": 7, "values": [42]}),))) == [Answer(7, (42,))]
    (fault,) = read_reply(Reply("", (ToolCall("answer", {"": '{"t": 7, "val'}),), finish="length"))
    assert isinstance(fault, Fault)
    assert fault.kind == "truncated"
