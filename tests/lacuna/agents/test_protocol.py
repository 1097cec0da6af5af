"""Commands in the three protocols: what is read, what is refused, and that nothing can crash or stall the reading."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eirkit.lacuna.agents.protocol import (
    LONGEST_REPLY,
    LONGEST_TEXT,
    MOST_ACTIONS,
    USAGE,
    Answer,
    Calculate,
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
    read_answer,
    read_reply,
    read_text_answer,
    schema_of,
    tools_of,
)
from eirkit.lacuna.models.model import ActionForm, NumberForm, Reply, ToolCall
from eirkit.records.settings import PROTOCOLS
from tests.timing import UNITS_IN_A_SECOND, cost

# A quadratic pattern needs ten seconds and more for a reply of the longest length; linear ones some milliseconds.
LONGEST = 5 * UNITS_IN_A_SECOND

READ = [
    ("ANSWER 7 42", Answer(7, (42,))),
    ("ANSWER 7 0042", Answer(7, (42,))),
    ("ANSWER 007 0042", Answer(7, (42,))),
    ("**ANSWER 7 42**", Answer(7, (42,))),
    ("`ANSWER 7 42`", Answer(7, (42,))),
    ("> - ANSWER 7 42.", Answer(7, (42,))),
    ("### ANSWER 7 42", Answer(7, (42,))),
    ("**ANSWER** 7 42", Answer(7, (42,))),
    ("ANSWER 7 **42**", Answer(7, (42,))),
    ('ANSWER 7 "0042"', Answer(7, (42,))),
    ("__ANSWER__ 7 42", Answer(7, (42,))),
    ("_ANSWER 7 42_", Answer(7, (42,))),
    ("**ANSWER 7 42.**", Answer(7, (42,))),
    ("**ANSWER 7 42**.", Answer(7, (42,))),
    ("ANSWER A_07 0042", Answer(7, (42,))),
    ("ANSWER 7 12 34", Answer(7, (12, 34))),
    ("ANSWER\u00a07\u00a042\r", Answer(7, (42,))),
    ("ANSWER 7 " + "0" * 5000 + "42", Answer(7, (42,))),
    ("ANSWER 7 " + "9" * 5000, Answer(7, (10**20,))),
    ("NEXT", Next()),
    ("__NEXT__", Next()),
    ("NEXT.", Next()),
    ("DONE", Done()),
    ("READ 3", Read(3)),
    ("READ A_03", Read(3)),
    ("**READ 3**.", Read(3)),
    ("RECOMPUTE 3", Recompute(3)),
    ("WRITE 3", Write(3)),
    ("DROP 3", Drop(3)),
    ("CALCULATE 3 5", Calculate((3, 5))),
    ("NOTE A_03 = 0042", Note("A_03 = 0042")),
    ("__NOTE__ ends in a full stop.", Note("ends in a full stop.")),
    ("NOTE: two words", Note("two words")),
    ("SEARCH A_03 A_05", Search("A_03 A_05")),
    ("NOTE nul\x00", Note("nul\N{REPLACEMENT CHARACTER}")),
    ("NOTE half \ud800", Note("half \N{REPLACEMENT CHARACTER}")),
]


@pytest.mark.parametrize(("text", "action"), READ)
def test_a_command_is_read(text, action):
    assert read_reply(Reply(text)) == [action]
    assert read_reply(Reply(f"I think.\n\n{text}\n```\n")) == [action]
    assert isinstance(action, Note | Search) or read_reply(Reply("", (as_call(action),))) == [action]


PROSE = [
    "",
    "The answer is ANSWER 7 42",
    "Next, I add both values.",
    "next.",
    "Done!",
    "answer 7 42",
    "Answer: 42",
    "ANSWER_7 42",
    "__NEXT_STEP__",
    "ANSWERS 7 42",
    "WR\u0130TE 3",  # folds to WRITE in some alphabets, not in ours
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
    ("ANSWER 7: 42", "ANSWER"),
    ("ANSWER 7 1,234", "ANSWER"),
    ("ANSWER 7 42 because A_3 = 12", "ANSWER"),
    ("ANSWER 7 [42]", "ANSWER"),
    ("ANSWER 7 \u0664\u0662", "ANSWER"),
    ("ANSWER 7 42\nWait, no: 43", "ANSWER"),
    ("ANSWER 7 42\nIf you need more, ask.", "ANSWER"),
    ("READ", "READ"),
    ("READ 3 4", "READ"),
    ("READ \u00b3", "READ"),
    ("CALCULATE both", "CALCULATE"),
    ("NEXT: reveal the next step", "NEXT"),
    ("ANSWER: 7 42", "ANSWER"),
    ("NEXT reveal the next step", "NEXT"),
    ("NOTE", "NOTE"),
    ("SEARCH **", "SEARCH"),
]


@pytest.mark.parametrize(("text", "word"), MALFORMED)
def test_a_command_in_capitals_that_cannot_be_read_is_a_fault(text, word):
    (fault,) = read_reply(Reply(text))
    assert (fault.kind, fault.word) == ("malformed", word)


def test_actions_come_in_order_and_only_so_many():
    assert read_reply(Reply("READ 3\nso\nANSWER 7 42\nNEXT")) == [Read(3), Answer(7, (42,)), Next()]
    assert read_reply(Reply("ANSWER 7 41\nANSWER 7 42\nNEXT")) == [Answer(7, (42,)), Next()]
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


NUMBER = NumberForm(7, 1, 10_000)


def test_the_answer_is_the_last_line_however_long_the_reply():
    assert read_answer(Reply("ANSWER 7 1\nhm\nANSWER 7 2"), NUMBER) == Answer(7, (2,))
    assert read_answer(Reply("x" * 10**6 + "\nANSWER 7 2"), NUMBER) == Answer(7, (2,))
    for text in ("ANSWER 7 1\nNEXT", "ANSWER seven", "I do not know", "2"):
        fault = read_answer(Reply(text), NUMBER)
        assert isinstance(fault, Fault)
        assert fault.kind == "malformed"


def test_under_a_schema_the_object_is_read_and_nothing_else():
    right = '{"work": "1 + 1", "values": [2]}'
    for text in (right, f"```json\n{right}\n```", f"<think>values: [3]</think>\n{right}"):
        assert read_answer(Reply(text), NUMBER, "schema") == Answer(7, (2,))
    wrong = (
        "ANSWER 7 2",
        "[2]",
        '{"values": 2.5}',
        '{"values": []}',
        '{"answer": 2}',
        f"{right} or {right}",
        "{" * 9_999,
    )
    for text in wrong:
        fault = read_answer(Reply(text), NUMBER, "schema")
        assert isinstance(fault, Fault)
        assert fault.kind == "malformed"
    cut = read_answer(Reply('{"work": "1 +', finish="length"), NUMBER, "schema")
    assert isinstance(cut, Fault)
    assert cut.kind == "truncated"


def test_where_tools_are_asked_for_text_is_no_answer():
    assert read_answer(Reply("", (ToolCall("answer", {"work": "", "values": [2]}),)), NUMBER, "tools") == Answer(
        7, (2,)
    )
    for reply in (Reply("ANSWER 7 2"), Reply("", (ToolCall("next", {}),))):
        assert isinstance(read_answer(reply, NUMBER, "tools"), Fault)
    assert isinstance(read_reply(Reply("NEXT"), "tools")[0], Fault)


@pytest.mark.parametrize(
    ("text", "answer"),
    {
        "ANSWER: Harrow": "Harrow",
        "**ANSWER:** Harrow": "Harrow",
        "**ANSWER**: Harrow": "Harrow",
        "Captain,\nANSWER: Harrow\nOver.": "Harrow",
        "ANSWER: Harrow\nANSWER: Mira": "Mira",
        "ANSWER: Harrow\nWait, no: Mira": None,
        "ANSWER: Harrow\nOn second thought, it is Mira.": None,
        "ANSWER: Harrow\nWait, no: Mira\nANSWER: Mira": "Mira",
        "Answer: Harrow": None,
        "The ANSWER: Harrow": None,
        "ANSWER:": None,
        "Harrow": None,
    }.items(),
)
def test_an_answer_that_is_a_text_is_one_line(text, answer):
    found = read_text_answer(Reply(text))
    assert (None if isinstance(found, Fault) else found) == answer


def test_an_answer_that_is_a_text_is_a_field_elsewhere():
    assert read_text_answer(Reply('{"work": "", "answer": "Harrow"}'), "schema") == "Harrow"
    assert read_text_answer(Reply("", (ToolCall("answer", {"answer": "Harrow"}),)), "tools") == "Harrow"
    for text in ("ANSWER: Harrow", '{"answer": ["Harrow"]}', '{"answer": " "}'):
        assert isinstance(read_text_answer(Reply(text), "schema"), Fault)


def test_a_schema_has_the_work_first_and_the_exact_width_and_range():
    schema = schema_of(NumberForm(7, 2, 10_000))
    assert list(schema["properties"]) == schema["required"] == ["work", "values"]
    values = schema["properties"]["values"]
    assert (values["minItems"], values["maxItems"]) == (2, 2)
    assert (values["items"]["minimum"], values["items"]["maximum"]) == (0, 9_999)
    listed = schema_of(ActionForm(("NEXT", "READ"), 1, 10))["properties"]["actions"]["items"]["anyOf"]
    assert [one["properties"]["action"]["enum"] for one in listed] == [["next"], ["read"]]


CALLS = [
    (ToolCall("answer", {"t": 7, "values": [42]}), Answer(7, (42,))),
    (ToolCall("ANSWER", {"t": "7", "values": "0042"}), Answer(7, (42,))),
    (ToolCall("answer", {"t": 7.0, "values": [42.0]}), Answer(7, (42,))),
    (ToolCall("answer", {"t": 7, "values": 42}), Answer(7, (42,))),
    (ToolCall("answer", {"t": 7, "values": ["12", 34]}), Answer(7, (12, 34))),
    (ToolCall("answer", {"t": 7, "values": [10**6000]}), Answer(7, (10**20,))),
    (ToolCall("read", {"t": 3, "text": "ignored", "values": [1]}), Read(3)),
    (ToolCall("drop", {"t": "03"}), Drop(3)),
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
    made = {tool.name: tool for tool in tools_of(ActionForm(tuple(USAGE), 1, 100))}
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
    last = {action.t: action for action in chosen if isinstance(action, Answer)}
    wanted = [action for action in chosen if not isinstance(action, Answer) or action is last[action.t]]
    assert read_reply(Reply("\n".join(map(as_text, chosen)))) == wanted
    assert read_reply(Reply("", tuple(map(as_call, chosen)))) == wanted
    actions = [{"action": call.name, **call.arguments} for call in map(as_call, chosen)]
    assert read_reply(Reply(json.dumps({"work": "", "actions": actions})), "schema") == wanted


words = st.sampled_from([*USAGE, *map(str.lower, USAGE), *map(str.title, USAGE)])
pieces = words | st.text(max_size=12) | st.sampled_from([" ", "\n", "7", "0042", "**", "A_", "=", ",", "[", "."])
hostile = st.text() | st.lists(pieces, max_size=30).map("".join) | st.lists(pieces, max_size=30).map(" ".join)


@given(hostile)
@example("NOTE 0  0")
@example("NOTE 0 *\x0b")
def test_whatever_is_printed_becomes_actions_or_faults(text):
    found = read_reply(Reply(text))
    assert found
    for action in found:
        if not isinstance(action, Fault):
            assert read_reply(Reply(as_text(action))) == [action]
            assert read_reply(Reply("", (as_call(action),))) == [action]
    for protocol in PROTOCOLS:
        assert isinstance(read_answer(Reply(text), NUMBER, protocol), Answer | Fault)
        assert isinstance(read_text_answer(Reply(text), protocol), str | Fault)
        assert read_reply(Reply(text), protocol)


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
    for protocol in PROTOCOLS:
        read_answer(Reply("", tuple(calls)), NUMBER, protocol)
        read_text_answer(Reply("", tuple(calls)), protocol)


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
                read_answer(Reply(text), NUMBER)
                read_text_answer(Reply(text))
                calls = ToolCall("answer", {"t": text, "values": [text]}), ToolCall("note", {"text": text})
                read_reply(Reply("", calls))

    assert cost(read_all) < LONGEST


def test_a_call_may_be_prefixed_and_one_that_was_cut_is_truncated():
    assert read_reply(Reply("", (ToolCall("functions.answer", {"t": 7, "values": [42]}),))) == [Answer(7, (42,))]
    (fault,) = read_reply(Reply("", (ToolCall("answer", {"": '{"t": 7, "val'}),), finish="length"))
    assert isinstance(fault, Fault)
    assert fault.kind == "truncated"
