"""A recorded run answers again as it was answered, and says so where it was not asked."""

from __future__ import annotations

import asyncio

import pytest

from eirkit.errors import InputFileError, ModelError
from eirkit.lacuna.agents.telemetry import SCHEMA, Exchange, Trace, event_records
from eirkit.lacuna.models.factory import make_model, preflight
from eirkit.lacuna.models.model import Message, ModelOptions, Reply, Request, ToolCall, Usage
from eirkit.records.event_blocks import pack
from eirkit.records.lines import append_records, encode


def asks(text):
    return Request((Message("system", "rules"), Message("user", text)))


def record(path, *exchanges, texts=True):
    """Write a run as the harness does."""
    trace = Trace([Exchange(1, asks(prompt), reply) for prompt, reply in exchanges])
    path.parent.mkdir(exist_ok=True)
    lines = (encode(SCHEMA, event) for event in event_records(trace, "run-1", texts=texts))
    path.write_bytes(pack(b"".join(lines)))


def replies(source, *prompts):
    async def run():
        model = make_model(f"replay/{source}", ModelOptions())
        found = [await model.reply(asks(prompt)) for prompt in prompts]
        await model.close()
        return found

    return asyncio.run(run())


def test_each_prompt_gets_its_reply(tmp_path):
    call = Reply("", (ToolCall("answer", {"t": 3, "values": [42]}),))
    paid = Reply("ANSWER 1 7", usage=Usage(100, 10, 40, cost_usd=0.5), latency_seconds=1.25)
    record(tmp_path / "part-0" / "events.jsonl.zst", ("a", paid), ("b", call), ("lone \ud800", Reply("?")))
    first, second, third = replies(tmp_path, "a", "b", "lone \ud800")
    assert (first.text, first.latency_seconds) == ("ANSWER 1 7", 1.25)
    assert first.usage == Usage(100, 10, 40, cost_usd=0.0)
    assert second.calls == call.calls
    assert third.text == "?"


def test_a_prompt_asked_again_gets_its_replies_in_order(tmp_path):
    record(tmp_path / "e.jsonl.zst", ("a", Reply("one")), ("a", Reply("two")))
    assert [r.text for r in replies(tmp_path / "e.jsonl.zst", "a", "a", "a")] == ["one", "two", "two"]


def test_a_prompt_that_was_never_asked_is_nobodys_wrong_answer(tmp_path):
    record(tmp_path / "e.jsonl.zst", ("a", Reply("one")))
    with pytest.raises(ModelError, match="has no reply to this prompt") as caught:
        replies(tmp_path, "b")
    assert caught.value.kind == "unrecorded"


def test_other_files_in_the_folder_do_not_matter(tmp_path):
    record(tmp_path / "e.jsonl.zst", ("a", Reply("one")))
    append_records(tmp_path / "runs.jsonl", "run/1", [{"x": 1}])
    (tmp_path / "notes.jsonl").write_text("hello")
    assert replies(tmp_path, "a")[0].text == "one"


def test_a_run_without_texts_cannot_be_replayed(tmp_path):
    record(tmp_path / "e.jsonl.zst", ("a", Reply("one")), texts=False)
    with pytest.raises(InputFileError, match="without texts"):
        replies(tmp_path, "a")


@pytest.mark.parametrize("name", ["", "nowhere", "e.jsonl.zst"])
def test_a_place_without_a_run(tmp_path, name):
    if name == "e.jsonl.zst":
        (tmp_path / name).write_bytes(pack(encode("run/1", {"x": 1})))
    with pytest.raises(InputFileError):
        replies(tmp_path / name, "a")


def test_what_is_missing_is_said_beforehand(tmp_path):
    with pytest.raises(InputFileError, match="give the folder of a run"):
        preflight(make_model(f"replay/{tmp_path}", ModelOptions()))


def test_a_torn_tail_is_ignored_and_a_damaged_exchange_is_not(tmp_path):
    path = tmp_path / "e.jsonl.zst"
    record(path, ("a", Reply("one")))
    whole = path.read_bytes()
    path.write_bytes(whole + pack(b'{"schema":"event/1","type":"exch')[:-3])
    assert replies(path, "a")[0].text == "one"
    path.write_bytes(whole + pack(encode(SCHEMA, {"type": "exchange", "prompt_sha256": "0", "reply": "x"})))
    with pytest.raises(InputFileError, match="damaged exchange"):
        replies(path, "a")
