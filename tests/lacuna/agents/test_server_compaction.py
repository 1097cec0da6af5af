"""Conversations that the model's own API compacts, on loopback, through the SDKs of the vendors."""

from __future__ import annotations

import json
from collections import Counter
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from zlib import crc32

import pytest

from eirkit.cli import run
from eirkit.lacuna.conversation.floor import floor_bits, present_requirement
from eirkit.lacuna.conversation.session import TOLD
from eirkit.lacuna.runs.replay import Replays
from eirkit.lacuna.tasks.generation import generate
from eirkit.lacuna.tasks.task import spec_of
from eirkit.records.database import SweepDatabase
from tests.lacuna.compacting_server import (
    COMPACTION_TOKENS,
    CompactingApi,
    drops_instructions,
    keeps_all,
    keeps_half,
    message,
    response,
)
from tests.lacuna.servers import ModelServer
from tests.runs import by_seed, records, replayed

APIS = {"anthropic/m": "messages", "openai/m": "responses"}
WORLDS, TRIGGER = 3, 100


@pytest.fixture(params=APIS)
def model(request, monkeypatch, tmp_path) -> str:
    name = str(request.param)
    if find_spec(name.partition("/")[0]) is None:
        pytest.skip(f"install the extra {name.partition('/')[0]}")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "none")
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    return name


def ran(capsys, model: str, api: CompactingApi, *more: str, trigger: int = TRIGGER) -> tuple[dict, ModelServer]:
    with ModelServer(api) as server:
        words = [
            "lacuna",
            "run",
            "words",
            "--preset",
            "small",
            "--condition",
            "server-compaction",
            "--context-tokens",
            str(trigger),
        ]
        words += ["--model", model, "--set", f"api={APIS[model]}", "--protocol", "text", "--base-url", server.url]
        code = run([*words, "--seeds", ",".join(map(str, range(1, WORLDS + 1))), "--out", "out", "--json", *more])
    said = capsys.readouterr()
    assert code == 0, said.err
    (row,) = json.loads(said.out)["rows"]
    return row["conversation"], server


def test_a_server_that_loses_nothing_keeps_all_bits(model, capsys):
    api = CompactingApi(keeps_all)
    found, server = ran(capsys, model, api)
    kept = found["server"]
    assert kept["server_compacted"] == api.compactions == WORLDS
    assert kept["server_kept_bits"] == pytest.approx(kept["server_probed_bits"])
    assert kept["server_probed_bits"] <= kept["server_needed_bits"]
    assert kept["server_kept_low"] < kept["server_kept_high"] == pytest.approx(kept["server_probed_bits"])
    assert found["instructions"]["kept"] == 1.0
    told = [one.body for one in server.received]
    assert not any("Summary: they talked." in json.dumps(one["messages"][-1]) for one in told if "messages" in one)


def test_a_lossy_server_keeps_the_bits_of_what_it_still_answers(model, capsys):
    """The server itself counts the questions that it answers as it would have with everything."""
    api = CompactingApi(keeps_half)
    found, _ = ran(capsys, model, api)
    kept = found["server"]
    every = found["abilities"][0]
    assert every["right"] == sum(api.as_with_everything.values()) < every["asked"] == len(api.as_with_everything)
    assert 0 < kept["server_kept_bits"] < kept["server_probed_bits"]
    assert kept["server_kept_low"] <= kept["server_kept_bits"] <= kept["server_kept_high"]
    assert set(found["causes"]) == {"compacted"}, "nobody can know what it left out"


def test_a_server_that_drops_instructions_loses_them_and_nothing_else(model, capsys):
    found, _ = ran(capsys, model, CompactingApi(drops_instructions))
    kept = found["server"]
    assert kept["server_kept_bits"] == pytest.approx(kept["server_probed_bits"])
    assert found["instructions"]["kept"] < 1.0
    assert (found["instructions"]["dropped"], found["instructions"]["ignored"]) == (None, None)


def test_what_is_not_compacted_is_said_and_not_counted(model, capsys):
    found, _ = ran(capsys, model, CompactingApi(keeps_half), trigger=10**6)
    assert found["server"].pop("server_compacted") == 0
    assert set(found["server"].values()) == {None}


def test_a_compaction_that_failed_at_the_server_leaves_the_conversation_as_it_was(capsys, model):
    if model != "anthropic/m":
        pytest.skip("only Anthropic's API reports a failed compaction, as a block without content")
    found, _ = ran(capsys, model, CompactingApi(keeps_half, broken=True))
    assert found["server"]["server_compacted"] == 0
    assert found["abilities"][0]["accuracy"] == 1.0


def test_the_request_is_what_the_vendors_own_sdk_sends(model, capsys):
    """Sent by hand through the SDK's typed method, to the same kind of server; the SDK's own headers may differ."""
    name = model.partition("/")[0]
    api = CompactingApi(keeps_all)
    _, server = ran(capsys, model, api)
    for ours in (server.received[0], server.received[-1]):
        asked = dict(ours.body)
        with ModelServer(api) as other:
            sdk = import_module(name)
            if name == "anthropic":
                further = {"temperature": asked.pop("temperature")}  # no parameter of newer versions
                with sdk.Anthropic(api_key="none", base_url=other.url.removesuffix("/v1")) as client:
                    client.beta.messages.create(betas=["compact-2026-01-12"], extra_body=further, **asked)
            else:
                with sdk.OpenAI(api_key="none", base_url=other.url) as client:
                    client.responses.create(**asked)
        (theirs,) = other.received
        assert (theirs.path.partition("?")[0], theirs.body) == (ours.path, ours.body)
        assert theirs.headers.get("anthropic-beta") == ours.headers.get("anthropic-beta")


def test_the_replies_of_these_servers_are_of_the_vendors_own_types(model):
    block = {"type": "compaction", "content": "s", "encrypted_content": "e", "id": "cmp_1"}
    if model == "anthropic/m":
        found = import_module("anthropic.types.beta").BetaMessage.model_validate(message("", block), strict=True)
        assert found.content[0].type == found.stop_reason == "compaction"
        assert found.usage.iterations[0].input_tokens == COMPACTION_TOKENS[0]
    else:
        found = import_module("openai.types.responses").Response.model_construct(**response("OK", block))
        item = found.output[0]
        assert (item.type, item.encrypted_content) == ("compaction", "e")


def test_the_tokens_of_a_compaction_are_counted_and_bits_are_those_of_the_worlds(model, capsys):
    api = CompactingApi(keeps_all)
    found, server = ran(capsys, model, api)
    ended = records("out")
    spent = sum(record.usage.input_tokens for record in ended)
    extra = COMPACTION_TOKENS[0] * api.compactions if model == "anthropic/m" else 0
    assert spent == 100 * len(server.received) + extra
    probed = 0.0
    for record in ended:
        task = generate(spec_of(record.setting.task, record.seed))
        world, cut = task.world, len(task.world.sessions) - 1
        told = [one.question for one in task.questions if one.answer is not None and one.after == cut]
        keys = {(q.attribute, q.subject) for q in told if q.form in ("now", "all", "day")}
        probed += sum(present_requirement(world, cut, key).bits for key in keys)
        assert floor_bits(world, cut) >= sum(present_requirement(world, cut, key).bits for key in keys)
    assert found["server"]["server_probed_bits"] == pytest.approx(probed / WORLDS)


def test_a_compaction_within_a_question_is_known_for_that_question_alone(model, capsys):
    """The server compacts while it answers some questions; others after the same session saw the whole conversation."""
    within = {"asked": 0}

    def some(asked: str) -> bool:
        chosen = asked != TOLD and crc32(asked.encode()) % 2 == 0
        within["asked"] += chosen
        return chosen

    api = CompactingApi(keeps_half, when=some)
    found, server = ran(capsys, model, api)
    every, kept = found["abilities"][0], found["server"]
    wrong = every["asked"] - every["right"]
    assert every["right"] == sum(api.as_with_everything.values())
    assert 0 < wrong <= within["asked"] == api.compactions < every["asked"]
    counts = [record.conversation.causes for record in records("out")]
    assert sum(counts, Counter()) == {"compacted": wrong}
    assert sum(record.conversation.server.compactions for record in records("out")) == api.compactions
    assert kept["server_compacted"] > 0
    assert 0 < kept["server_kept_bits"] < kept["server_probed_bits"]
    sent = [one.body for one in server.received]
    assert not any("encrypted_content" in json.dumps(body) for body in sent), "each question is a request of its own"


@pytest.mark.parametrize("when", [lambda asked: asked == TOLD, lambda asked: asked != TOLD])
def test_such_a_run_is_played_again_exactly_from_its_records(model, capsys, when):
    before, _ = ran(capsys, model, CompactingApi(keeps_half, when=when))
    assert replayed("out") == [(True, [])] * WORLDS
    words = [
        "lacuna",
        "run",
        "words",
        "--preset",
        "small",
        "--condition",
        "server-compaction",
        "--context-tokens",
        str(TRIGGER),
    ]
    words += ["--model", "replay/out", "--seeds", ",".join(map(str, range(1, WORLDS + 1))), "--out", "again", "--json"]
    assert run(words) == 0
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    assert row["conversation"] == before
    assert [record.conversation for record in by_seed("again")] == [record.conversation for record in by_seed("out")]


def test_another_compaction_than_the_recorded_one_is_noticed(model, capsys):
    ran(capsys, model, CompactingApi(keeps_half))

    def changed(lines: bytes) -> bytes:
        before, mark, rest = lines.partition(b'"encrypted_content":"')
        return before + mark + (b"A" if rest[:1] != b"A" else b"B") + rest[1:]

    with SweepDatabase(Path("out")) as database:
        lines = [(record, database.event_lines(record.run)) for record in database.records()]
    found = [Replays().check(record, changed(own))[1] for record, own in lines]
    assert len(found) == WORLDS
    assert all("prompt_sha256" in one[0] for one in found)


def test_no_key_that_a_server_repeats_in_what_it_compacted_is_recorded(model, capsys, monkeypatch):
    secret = "sk-repeated-by-the-server-0123456789"
    monkeypatch.setenv("ANTHROPIC_API_KEY" if model == "anthropic/m" else "OPENAI_API_KEY", secret)
    api = CompactingApi(keeps_all)
    whole = api._compacted
    api._compacted = lambda *given: whole(*given) | {"id": secret}
    ran(capsys, model, api)
    written = [path for path in Path("out").rglob("*") if path.is_file()]
    with SweepDatabase(Path("out")) as database:
        events = b"".join(database.event_lines(record.run) for record in database.records())
    assert b"encrypted_content" in events
    assert secret.encode() not in events
    assert not [path for path in written if secret.encode() in path.read_bytes()]


def test_an_api_without_compaction_is_refused_in_one_line(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    with ModelServer(CompactingApi(keeps_all)) as server:
        words = [
            "lacuna",
            "run",
            "words",
            "--preset",
            "small",
            "--condition",
            "server-compaction",
            "--model",
            "openai/m",
        ]
        assert run([*words, "--protocol", "text", "--base-url", server.url, "--seeds", "1", "--out", "out"]) != 0
        assert not server.received
    assert "cannot compact what it is sent; use anthropic models with api=messages" in " ".join(
        "".join(capsys.readouterr()).split()
    )
