"""Whatever JSON a server sends, it becomes a reply that can be written down, or a typed failure."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from eirkit.errors import ModelError
from eirkit.lacuna.models.chat_completion import read_completion, read_document, request_body
from eirkit.lacuna.models.message import Message
from eirkit.lacuna.models.model import UNREPORTED, Reply, Request, ToolCall, read_reply, reply_text
from eirkit.lacuna.models.native_servers import GeminiServer, MessagesServer, ResponsesServer
from eirkit.lacuna.models.scrubber import Scrubber

SECRET = "sk-canary-0123456789"
TEXT = st.text(st.characters(), max_size=12) | st.just(SECRET) | st.just(f"<{SECRET}>")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
FUNCTIONS = st.fixed_dictionaries(
    {}, optional={"name": JSON, "arguments": JSON | TEXT.map(lambda t: json.dumps({t: t}))}
)
CALLS = st.lists(st.fixed_dictionaries({"function": FUNCTIONS | JSON}) | JSON, max_size=3) | JSON
MESSAGES = st.fixed_dictionaries({}, optional={"content": TEXT | JSON, "tool_calls": CALLS, "refusal": JSON})
CHOICES = st.fixed_dictionaries({}, optional={"message": MESSAGES | JSON, "finish_reason": TEXT | JSON})
USAGES = st.fixed_dictionaries({}, optional={"prompt_tokens": JSON, "prompt_tokens_details": JSON})
NEARLY = st.fixed_dictionaries(
    {}, optional={"choices": st.lists(CHOICES | JSON, max_size=2) | JSON, "usage": USAGES | JSON, "error": JSON}
)
WELL_CALLED = st.lists(
    st.fixed_dictionaries({"function": st.fixed_dictionaries({"name": TEXT, "arguments": TEXT | JSON})}), max_size=3
)
PROPER_MESSAGES = st.fixed_dictionaries({"content": TEXT | JSON, "tool_calls": WELL_CALLED | st.none()})
PROPER = st.fixed_dictionaries(
    {"choices": st.lists(st.fixed_dictionaries({"message": PROPER_MESSAGES, "finish_reason": JSON}), min_size=1)},
    optional={"usage": USAGES | JSON},
)


def outcome(read, given, scrub):
    """Return the reply or the failure that reading leads to; anything else is a bug."""
    try:
        return read(given, scrub)
    except ModelError as failure:
        return failure


@given(PROPER | NEARLY | JSON)
def test_a_reply_that_can_be_written_or_a_failure_that_can_be_shown(document):
    found = outcome(read_completion, document, Scrubber.knowing(SECRET))
    event(type(found).__name__)
    if isinstance(found, ModelError):
        assert found.kind == "malformed"
        assert str(found).isprintable()
        assert SECRET not in str(found)
    else:
        text = reply_text(found)
        assert SECRET not in text
        assert read_reply(text) == found
        assert 0 <= found.usage.cached_tokens <= found.usage.input_tokens


@given(st.text() | st.binary().map(lambda b: b.decode("utf-8", "replace")) | JSON.map(json.dumps))
def test_any_text_as_a_body(body):
    document = outcome(read_document, body, Scrubber())
    found = document if isinstance(document, ModelError) else outcome(read_completion, document, Scrubber())
    assert isinstance(found, (Reply, ModelError))


@given(st.lists(st.text(st.characters(), max_size=9), max_size=4), st.integers(1, 99))
def test_any_prompt_can_be_sent(contents, limit):
    request = Request(tuple(Message("user", text) for text in contents), max_tokens=limit)
    body = request_body("m", request, "max_tokens", limit)
    sent = json.loads(json.dumps(body, ensure_ascii=False).encode("utf-8"))
    assert (sent["max_tokens"], len(sent["messages"])) == (limit, len(contents))


def completion(**more):
    message = {"role": "assistant", "content": "ANSWER 1 7", **more.pop("message", {})}
    choice = {"index": 0, "finish_reason": "stop", "message": message, **more.pop("choice", {})}
    return {"choices": [choice], **more}


@pytest.mark.parametrize(
    ("usage", "found"),
    [
        ({"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}, (100, 10, 0)),
        ({"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 160}, (100, 60, 0)),  # 50 unexplained
        (
            {"prompt_tokens": 100, "completion_tokens": 10, "completion_tokens_details": {"reasoning_tokens": 50}},
            (100, 60, 50),
        ),
        ({"prompt_tokens": 100}, (0, 0, 0)),  # unknown, and so without a price
        ({"prompt_tokens": "100", "completion_tokens": 10, "total_tokens": 110}, (0, 0, 0)),
        ({"prompt_tokens": 10**12, "completion_tokens": 10}, (0, 0, 0)),
        ({"prompt_tokens": 100, "completion_tokens": -10}, (0, 0, 0)),
        ({"prompt_tokens": 1.5, "completion_tokens": None, "total_tokens": 2}, (0, 0, 0)),
        ({"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": "160"}, (0, 0, 0)),
        ({"prompt_tokens": 100, "completion_tokens": 10, "prompt_tokens_details": {"cached_tokens": -1}}, (0, 0, 0)),
        *(
            ({"prompt_tokens": 100, "completion_tokens": 10, f"{part}_tokens_details": what}, (100, 10, 0))
            for part in ("prompt", "completion")
            for what in (None, [], {}, "none", 7)
        ),
        ({"prompt_tokens": 100.0, "completion_tokens": 10, "total_tokens": 160.0}, (100, 60, 0)),
    ],
)
def test_tokens_that_are_billed_beyond_the_completion_are_output(usage, found):
    usage = read_completion(completion(usage=usage), Scrubber()).usage
    assert (usage.input_tokens, usage.output_tokens, usage.reasoning_tokens) == found


NATIVE = {
    ResponsesServer: ("input_tokens", "output_tokens"),
    MessagesServer: ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"),
    GeminiServer: ("prompt_token_count", "candidates_token_count", "thoughts_token_count"),
}


@pytest.mark.parametrize("bad", ["12", -3, 1.5, math.inf, math.nan, True, [5], 10**12])
def test_a_number_of_tokens_that_is_none_makes_all_of_them_unknown(bad):
    """Counted as 0, it would make a reply cheaper than it was."""
    for server, names in NATIVE.items():
        stated = dict.fromkeys(names, 7)
        assert server._usage(stated).is_reported, server
        for name in names:
            assert server._usage({**stated, name: bad}) == UNREPORTED, (server, name)
    part = {"type": "compaction", "input_tokens": bad, "output_tokens": 7}
    assert MessagesServer._usage({"input_tokens": 7, "output_tokens": 7, "iterations": [part]}) == UNREPORTED


def test_the_first_choice_is_the_one_with_index_0():
    document = completion()
    document["choices"].insert(0, {"index": 1, "message": {"content": "ANSWER 1 8"}})
    assert read_completion(document, Scrubber()).text == "ANSWER 1 7"


def test_a_reply_that_the_server_broke_off_is_a_failure():
    with pytest.raises(ModelError) as failure:
        read_completion(completion(choice={"finish_reason": "error"}), Scrubber())
    assert failure.value.kind == "dropped"


@pytest.mark.parametrize(
    "message",
    [
        {"function_call": {"name": "answer", "arguments": '{"t": 1}'}},
        {"tool_calls": [{"function": {"name": "answer", "arguments": json.dumps('{"t": 1}')}}]},
    ],
)
def test_calls_in_the_former_field_or_encoded_twice_are_read(message):
    assert read_completion(completion(message=message), Scrubber()).calls == (ToolCall("answer", {"t": 1}),)
