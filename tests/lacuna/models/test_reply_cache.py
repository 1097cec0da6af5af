"""The reply cache: what goes in comes out, from any process, and nothing damaged is believed."""

from __future__ import annotations

import sqlite3
import sys
import threading
from contextlib import ExitStack
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eirkit.errors import InfrastructureError, InputFileError
from eirkit.lacuna.models.message import Message
from eirkit.lacuna.models.model import (
    Reply,
    Request,
    Tool,
    ToolCall,
    Usage,
    canonical,
    prompt_hash,
    read_reply,
    reply_key,
    reply_text,
)
from eirkit.lacuna.models.reply_cache import ReplyCache
from tests.processes import PATIENCE_SECONDS, running

TEXT = st.text(st.characters(), max_size=20)  # lone surrogates included
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
CALLS = st.builds(ToolCall, TEXT, st.dictionaries(TEXT, VALUES, max_size=3))
COUNTS = st.integers(0, 10**9)
USAGES = st.builds(Usage, COUNTS, COUNTS, COUNTS, st.none() | st.floats(0, 1e6), st.booleans())
REPLIES = st.builds(Reply, TEXT, st.lists(CALLS, max_size=3).map(tuple), USAGES, st.floats(0, 1e4), TEXT)
MESSAGES = st.builds(Message, st.sampled_from(["system", "user", "assistant"]), TEXT)
TOOLS = st.builds(Tool, TEXT, TEXT, st.dictionaries(TEXT, VALUES, max_size=2))
REQUESTS = st.tuples(
    st.lists(MESSAGES, max_size=3).map(tuple), st.lists(TOOLS, max_size=2).map(tuple), st.integers(1, 99)
).map(lambda parts: Request(*parts))


@pytest.fixture
def cache(tmp_path):
    made = ReplyCache(tmp_path / "deep" / "replies.sqlite")
    yield made
    made.close()


@given(REPLIES)
def test_a_reply_survives_its_record(reply):
    assert read_reply(reply_text(reply)) == reply


def test_replies_survive_the_disk(tmp_path):
    kept = ReplyCache(tmp_path / "c")

    @given(REPLIES, REQUESTS)
    def survives(reply, request):
        key = reply_key("m", {}, request)
        assert kept.put(key, reply) == kept.get(key)

    survives()
    kept.close()


@given(REQUESTS, REQUESTS)
def test_keys_differ_exactly_where_questions_do(a, b):
    assert (reply_key("m", {"t": 0}, a) == reply_key("m", {"t": 0}, b)) == (a == b)
    assert (prompt_hash(a) == prompt_hash(b)) or [m.content for m in a.messages] != [m.content for m in b.messages]


def test_a_key_by_hand():
    request = Request((Message("user", "ä"),), (), 7)
    text = (
        '{"model":"p/m","request":{"carried":[],"compaction":null,"max_tokens":7,'
        '"messages":[{"content":"\\u00e4","role":"user"}],"tools":[]},'
        '"settings":{"a":1,"b":[]}}'
    )
    assert reply_key("p/m", {"b": [], "a": 1}, request) == sha256(text.encode()).hexdigest()


def test_keys_do_not_depend_on_the_order_of_settings():
    request = Request(())
    assert reply_key("m", {"a": 1, "b": 2}, request) == reply_key("m", {"b": 2, "a": 1}, request)
    assert len({reply_key(m, s, request) for m in "xy" for s in ({}, {"a": 1}, {"a": None})}) == 6


def test_what_is_no_json_has_no_key():
    for value in (object(), float("nan"), b"x"):
        with pytest.raises((TypeError, ValueError)):
            canonical({"a": value})


def test_the_first_reply_stays(cache):
    key = "ab" * 32
    assert cache.get(key) is None
    assert cache.put(key, Reply("one")).text == "one"
    assert cache.put(key, Reply("two")).text == "one"
    cache.close()
    assert cache.get(key).text == "one"
    assert len(cache) == 1


def test_threads_share_one_cache(cache):
    def work(offset):
        for i in range(50):
            cache.put(f"{(i + offset) % 60:064x}", Reply(str((i + offset) % 60)))

    threads = [threading.Thread(target=work, args=(10 * n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(cache) == 60
    assert all(cache.get(f"{i:064x}").text == str(i) for i in range(60))


WRITER = """
import sys
from pathlib import Path
from eirkit.lacuna.models.model import Reply
from eirkit.lacuna.models.reply_cache import ReplyCache
cache = ReplyCache(Path(sys.argv[1]))
for i in range(200):
    assert cache.put(f"{i:064x}", Reply(sys.argv[2])).text in "abc"
cache.close()
"""


def test_processes_share_one_cache(tmp_path):
    path = tmp_path / "c"
    with ExitStack() as stack:
        writers = [stack.enter_context(running([sys.executable, "-c", WRITER, path, name])) for name in "abc"]
        assert [writer.wait(PATIENCE_SECONDS) for writer in writers] == [0, 0, 0]
    cache = ReplyCache(path)
    assert len(cache) == 200
    cache.close()


def test_somebody_elses_files_are_left_alone(tmp_path):
    text, database = tmp_path / "text", tmp_path / "database"
    text.write_text("this is not a database at all, but long enough to look like one" * 40)
    with sqlite3.connect(database) as connection:
        connection.execute("CREATE TABLE theirs (x)")
    connection.close()
    for path in (text, database):
        before = path.read_bytes()
        with pytest.raises(InputFileError, match="another"):
            ReplyCache(path).get("00" * 32)
        assert path.read_bytes()[:100] == before[:100]


def test_a_damaged_reply_is_not_believed(cache):
    cache.put("00" * 32, Reply("x"))
    for damage in ("{", "{}", "[]", '{"text": 1, "calls": [1]}'):
        cache._open().execute("UPDATE replies SET reply = ?", (damage,))
        with pytest.raises(InputFileError, match="delete the file"):
            cache.get("00" * 32)


def test_a_cache_that_cannot_be_written_says_so(tmp_path):
    cache = ReplyCache(tmp_path / "c")
    cache.put("00" * 32, Reply("x"))
    cache._open().execute("PRAGMA query_only = ON")
    with pytest.raises(InfrastructureError, match="free disk space"):
        cache.put("11" * 32, Reply("x"))
    assert cache.get("00" * 32).text == "x"
    cache.close()
