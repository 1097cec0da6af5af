"""Whatever JSON a server sends, it becomes a reply that can be written down, or a typed failure."""

from __future__ import annotations

import json

from hypothesis import event, given
from hypothesis import strategies as st

from eirkit.agents.model import Message, Reply, Request, read_reply_record, reply_record
from eirkit.agents.serving.chat_completion import read_body, read_completion, request_body
from eirkit.agents.serving.scrubber import Scrubber
from eirkit.errors import ModelError
from eirkit.records import encode

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
        line = encode("test/1", reply_record(found))
        assert SECRET.encode() not in line
        assert read_reply_record(json.loads(line)) == found
        assert 0 <= found.usage.cached_tokens <= found.usage.input_tokens


@given(st.text() | st.binary().map(lambda b: b.decode("utf-8", "replace")) | JSON.map(json.dumps))
def test_any_text_as_a_body(body):
    assert isinstance(outcome(read_body, body, Scrubber()), (Reply, ModelError))


@given(st.lists(st.text(st.characters(), max_size=9), max_size=4), st.integers(1, 99))
def test_any_prompt_can_be_sent(contents, limit):
    request = Request(tuple(Message("user", text) for text in contents), max_tokens=limit)
    body = request_body("m", request, "max_tokens", limit)
    sent = json.loads(json.dumps(body, ensure_ascii=False).encode("utf-8"))
    assert (sent["max_tokens"], len(sent["messages"])) == (limit, len(contents))
