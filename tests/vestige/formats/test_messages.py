"""Messages to turns: whose answer is whose, calls in the text, usage."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eirkit.errors import InputFileError
from eirkit.vestige.formats.messages import arguments_of, read_conversation, text_of, textual_calls, usage_of
from eirkit.vestige.trajectory import LoggedUsage
from tests.timing import UNITS_IN_A_SECOND, cost

TAGS = ("<function=", "</function>", "<parameter=", "</parameter>", "a", ">", "\n", "name>")
LONGEST = 20 * UNITS_IN_A_SECOND  # a million characters take a twentieth of it at most; a quadratic scan takes hours


def call(id: str, tool: str, arguments: object) -> dict[str, object]:
    return {"id": id, "function": {"name": tool, "arguments": arguments}}


def test_answers_find_their_calls_whatever_their_order():
    said = read_conversation(
        [
            {"role": "system", "content": "be good"},
            {"role": "user", "content": [{"type": "text", "text": "go"}, {"type": "image_url"}]},
            {
                "role": "assistant",
                "content": "both",
                "tool_calls": [call("1", "bash", '{"command": "a"}'), call("2", "b", {})],
            },
            {"role": "tool", "tool_call_id": "2", "content": "second"},
            {"role": "tool", "tool_call_id": "1", "content": "first"},
            {"role": "user", "content": "more"},
            {"role": "assistant", "content": "no call", "usage": {"prompt_tokens": 5, "completion_tokens": 1}},
        ]
    )
    assert said.prompt == "be good\n\ngo"
    assert [[(c.tool, c.output) for c in turn.calls] for turn in said.turns] == [
        [("bash", "first"), ("b", "second")],
        [],
    ]
    assert said.heard == ("more", "")
    assert [turn.usage for turn in said.turns] == [None, LoggedUsage(5, 1, 0)]


def test_an_answer_without_a_name_goes_to_the_first_that_waits():
    said = read_conversation(
        [
            {"role": "assistant", "tool_calls": [call("1", "a", None), call("2", "b", None)]},
            {"role": "tool", "content": "first"},
            {"role": "tool", "tool_call_id": "unknown", "content": "second"},
            {"role": "tool", "content": "one too many"},
        ]
    )
    assert [c.output for c in said.turns[0].calls] == ["first", "second"]
    assert said.heard == ("one too many",)


def test_the_older_function_call():
    message = {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": '{"x": 1}'}}
    said = read_conversation([message, {"role": "function", "name": "f", "content": "done"}])
    assert [(c.tool, c.arguments, c.output) for c in said.turns[0].calls] == [("f", {"x": 1}, "done")]


def test_calls_in_the_text():
    text = (
        "Think.\n<function=execute_bash>\n<parameter=command>\necho '</function>'\n\n</parameter>\n</function>\n"
        "<function=view>\n<parameter=path>/a</parameter>\n<parameter=view_range>[1, 2]</parameter>\n</function>"
    )
    beside, found = textual_calls(text)
    assert beside == "Think."
    assert found == [
        ("execute_bash", {"command": "echo '</function>'\n"}),
        ("view", {"path": "/a", "view_range": [1, 2]}),
    ]


def test_a_call_that_was_cut_off_keeps_what_there_is():
    assert textual_calls("<function=f>\n<parameter=a>1</parameter>\n<parameter=b>two\n</function>")[1] == [
        ("f", {"a": "1", "b": "two"})
    ]


@pytest.mark.parametrize(
    "wrapped", ["EXECUTION RESULT of [f]:\nout", "OBSERVATION:\nout", "<tool_response>\nout\n</tool_response>"]
)
def test_an_answer_to_a_call_in_the_text_is_unwrapped(wrapped):
    said = read_conversation(
        [{"role": "assistant", "content": "<function=f></function>"}, {"role": "user", "content": wrapped}]
    )
    assert [c.output for c in said.turns[0].calls] == ["out"]


@given(st.lists(st.sampled_from(TAGS), max_size=40).map("".join))
def test_any_text_gives_named_calls_and_what_stands_before_them(text):
    beside, found = textual_calls(text)
    assert text.startswith(beside)
    assert all(tool for tool, _ in found)


@pytest.mark.parametrize(
    "piece", ["<function=a>", "<function=a><parameter=b>", "<parameter=b>", "</function>", "<function="]
)
def test_a_million_tags_take_no_time(piece):
    text = "<function=x>" + piece * (1_000_000 // len(piece))
    assert cost(lambda: textual_calls(text)) < LONGEST


@pytest.mark.parametrize(
    "given_arguments, expected",
    [
        ('{"a": 1, "b": null}', {"a": 1}),
        ({"a": 1, "b": None}, {"a": 1}),
        ("", {}),
        (None, {}),
        ("{broken", {"arguments": "{broken"}),
        ("[1]", {"arguments": [1]}),
        ("[" * 100_000, {"arguments": "[" * 100_000}),
    ],
)
def test_arguments_of_every_kind(given_arguments, expected):
    assert arguments_of(given_arguments) == expected


@pytest.mark.parametrize(
    "counts, expected",
    [
        (
            {"prompt_tokens": 10, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 4}},
            LoggedUsage(10, 2, 4),
        ),
        ({"prompt_tokens": 10, "completion_tokens": 2, "cache_read_tokens": 3}, LoggedUsage(10, 2, 3)),
        # Anthropic keeps cached input apart: 1 + 2 + 4 = 7 tokens went in.
        (
            {"input_tokens": 1, "cache_creation_input_tokens": 2, "cache_read_input_tokens": 4, "output_tokens": 5},
            LoggedUsage(7, 5, 4),
        ),
        ({"prompt_tokens": 10, "completion_tokens": None}, LoggedUsage(10, 0, 0)),
        # What is no number of tokens is not 0: the whole is unknown.
        ({"prompt_tokens": -1, "completion_tokens": 2}, None),
        ({"prompt_tokens": 10, "completion_tokens": "x"}, None),
        ({"prompt_tokens": float("nan")}, None),
        ({"input_tokens": 1, "cache_read_input_tokens": float("inf"), "output_tokens": 5}, None),
        ({"input_tokens": True, "output_tokens": 5}, None),
        ({}, None),
        (None, None),
    ],
)
def test_usage_of_every_kind(counts, expected):
    assert usage_of(counts) == expected


def test_text_of_blocks_and_strings():
    assert text_of(["a", {"type": "text", "text": "b"}, {"type": "image"}, 3, None]) == "a\nb"
    assert text_of(None) == ""


def test_what_is_no_message_is_an_error_that_names_it():
    with pytest.raises(InputFileError, match="message 2"):
        read_conversation([{"role": "user", "content": "x"}, "no message"])
