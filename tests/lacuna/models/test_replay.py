"""A recorded run answers again as it was answered, and says so where it was not asked."""

from __future__ import annotations

import asyncio

import pytest

from eirkit.errors import InputFileError, ModelError
from eirkit.lacuna.agents.telemetry import Exchange, Trace, events_of
from eirkit.lacuna.models.factory import make_model, preflight
from eirkit.lacuna.models.message import Message
from eirkit.lacuna.models.model import ModelOptions, Reply, Request, ToolCall, Usage
from eirkit.lacuna.runs.suite import read_suite
from eirkit.lacuna.runs.sweep import start_sweep
from eirkit.records.database import SweepDatabase
from eirkit.records.events import ModelExchange, encode_events, pack
from eirkit.records.export import EVENTS, write_export


def asks(text):
    return Request((Message("system", "rules"), Message("user", text)))


def record(path, *exchanges, texts=True):
    """Write the events of a run as an export has them."""
    trace = Trace([Exchange(1, asks(prompt), reply) for prompt, reply in exchanges])
    path.parent.mkdir(exist_ok=True)
    lines = encode_events(events_of(trace, texts=texts)).splitlines(keepends=True)
    path.write_bytes(pack(b"".join(b'{"run":"0123-1",' + line[1:] for line in lines)))


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
    record(tmp_path / "part-0" / EVENTS, ("a", paid), ("b", call), ("lone \ud800", Reply("?")))
    first, second, third = replies(tmp_path, "a", "b", "lone \ud800")
    assert (first.text, first.latency_seconds) == ("ANSWER 1 7", 1.25)
    assert first.usage == Usage(100, 10, 40, cost_usd=0.0)
    assert second.calls == call.calls
    assert third.text == "?"


def test_a_prompt_asked_again_gets_its_replies_in_order(tmp_path):
    record(tmp_path / EVENTS, ("a", Reply("one")), ("a", Reply("two")))
    assert [r.text for r in replies(tmp_path / EVENTS, "a", "a", "a")] == ["one", "two", "two"]


def test_a_prompt_that_was_never_asked_is_nobodys_wrong_answer(tmp_path):
    record(tmp_path / EVENTS, ("a", Reply("one")))
    with pytest.raises(ModelError, match="has no reply to this prompt") as caught:
        replies(tmp_path, "b")
    assert caught.value.kind == "unrecorded"


def test_other_files_in_the_folder_do_not_matter(tmp_path):
    record(tmp_path / EVENTS, ("a", Reply("one")))
    (tmp_path / "runs.jsonl").write_text('{"x":1}\n')
    (tmp_path / "notes.jsonl").write_text("hello")
    assert replies(tmp_path, "a")[0].text == "one"


def test_a_run_without_texts_cannot_be_replayed(tmp_path):
    record(tmp_path / EVENTS, ("a", Reply("one")), texts=False)
    with pytest.raises(InputFileError, match="without texts"):
        replies(tmp_path, "a")


@pytest.mark.parametrize("name", ["", "nowhere", EVENTS])
def test_a_place_without_a_run(tmp_path, name):
    if name == EVENTS:
        (tmp_path / name).write_bytes(pack(b'{"run":"0123-1","x":1}\n'))
    with pytest.raises(InputFileError):
        replies(tmp_path / name, "a")


def test_what_is_missing_is_said_beforehand(tmp_path):
    with pytest.raises(InputFileError, match="give the folder of a run"):
        preflight(make_model(f"replay/{tmp_path}", ModelOptions()))


def test_damaged_events_are_refused(tmp_path):
    path = tmp_path / EVENTS
    record(path, ("a", Reply("one")))
    whole = path.read_bytes()
    for damage in (pack(b'{"type":"exch')[:-3], pack(b'{"run":"0123-1","type":"exchange","reply":"x"}\n')):
        path.write_bytes(whole + damage)
        with pytest.raises(InputFileError):
            replies(path, "a")


def test_a_sweep_is_replayed_from_its_database_and_from_its_export(tmp_path):
    suite = {"workload": "stepwise-sum", "n": 6, "m": 3, "h": 2, "seeds": [0], "model": "reference/calculator"}
    start_sweep(read_suite(suite), tmp_path / "sweep", control=False)
    write_export(tmp_path / "sweep", tmp_path / "lines")
    with SweepDatabase(tmp_path / "sweep") as database:
        (run,) = database.records()
        exchanges = [event for event in database.events(run.run) if isinstance(event, ModelExchange)]
    for place in ("sweep", "lines", f"lines/{EVENTS}", "sweep/sweep.db"):
        again = read_suite({**suite, "model": f"replay/{tmp_path / place}"})
        out = tmp_path / "again" / place.replace("/", "-")
        start_sweep(again, out, control=False)
        with SweepDatabase(out) as database:
            (replayed,) = database.records()
            told = [event.reply for event in database.events(replayed.run) if isinstance(event, ModelExchange)]
        assert told == [exchange.reply for exchange in exchanges]
        assert replayed.score == run.score
