"""Sweeps as stories: killed, resumed, drifted, broken by the world, stopped by money."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Callable
from decimal import Decimal
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from eirkit.errors import InputFileError, UnknownNameError, UsageError
from eirkit.lacuna.runs.budget import SpendingLimits
from eirkit.lacuna.runs.journal import read_journal
from eirkit.lacuna.runs.manifest import read_manifest, write_manifest
from eirkit.lacuna.runs.runner import Progress
from eirkit.lacuna.runs.suite import Suite, read_suite
from eirkit.lacuna.runs.sweep import resume_sweep, start_sweep
from eirkit.lacuna.runs.workers import FAILURES_IN_A_ROW
from eirkit.records.database import DATABASE, LOCK, SweepDatabase, SweepWriter
from eirkit.records.documents import MANIFEST, SUMMARY
from eirkit.records.events import ModelExchange, Verdicts
from eirkit.records.sweeps import CONTROL
from tests.lacuna.servers import Answer, ModelServer, Received, answers_as, fails, says
from tests.records.finished import finished
from tests.runs import events, failures, records

HERE = "tests.lacuna.faulty"
SMALL = {"workload": "stepwise-sum", "model": "reference/calculator", "n": 12, "m": 4, "h": [4, 2], "seeds": "0:20"}


def suite(**changes: Any) -> Suite:
    return read_suite({**SMALL, **changes})


def digest(folder: Path) -> str:
    """Return a hash of everything that a sweep recorded, but for time and order."""
    with SweepDatabase(folder) as database:
        return database.digest()


class Stopped(BaseException):
    """What an observer raises to end a sweep at a moment of its choice, as hard as an exception can."""


def stop_after(runs: int) -> Callable[[Progress], None]:
    def observe(progress: Progress) -> None:
        if progress.runs >= runs:
            raise Stopped

    return observe


# --- resuming --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stops", [(1,), (17,), (3, 20, 39), (40,)], ids=str)
def test_a_sweep_that_was_cut_ends_in_the_same_records(tmp_path, stops):
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    summary = start_sweep(suite(), whole)
    for i, runs in enumerate(stops):
        go_on = resume_sweep if i else (lambda folder, observe: start_sweep(suite(), folder, observe=observe))
        with pytest.raises(Stopped):
            go_on(cut, observe=stop_after(runs))
    assert resume_sweep(cut) == summary
    for name in (MANIFEST, SUMMARY, CONTROL):
        assert (cut / name).read_bytes() == (whole / name).read_bytes(), name
    assert records(cut) == records(whole), "in the same order"
    assert digest(cut) == digest(whole)


def test_resuming_what_is_finished_does_nothing_and_says_the_same(tmp_path):
    summary = start_sweep(suite(), tmp_path)
    before = digest(tmp_path)
    seen: list[Progress] = []
    assert resume_sweep(tmp_path, observe=seen.append) == summary
    assert digest(tmp_path) == before
    assert [(p.runs, p.cells, p.steps) for p in seen] == [(40, 2, 0)]


def test_runs_that_overlap_leave_the_same_records_whatever_their_order(tmp_path):
    overlapping = suite(model=f"{HERE}:make_plain/calculator", model_options={"connections": 5})
    start_sweep(overlapping, tmp_path / "whole")
    with pytest.raises(Stopped):
        start_sweep(overlapping, tmp_path / "cut", observe=stop_after(13))
    resume_sweep(tmp_path / "cut")
    assert digest(tmp_path / "cut") == digest(tmp_path / "whole")
    one_by_one = suite(model=f"{HERE}:make_plain/calculator", model_options={"connections": 1})
    start_sweep(one_by_one, tmp_path / "ordered")
    assert digest(tmp_path / "ordered") == digest(tmp_path / "whole")


def test_managed_conditions_and_memories_resume_alike(tmp_path):
    both = read_suite(
        {
            **SMALL,
            "model": ["reference/recoverer", "reference/quitter"],
            "seeds": "0:6",
            "grid": [{"memory": ["key-value", "null"]}, {"condition": ["lru", "paging", "compaction"], "b": 9}],
        }
    )
    start_sweep(both, tmp_path / "whole")
    with pytest.raises(Stopped):
        start_sweep(both, tmp_path / "cut", observe=stop_after(60))
    resume_sweep(tmp_path / "cut")
    assert digest(tmp_path / "cut") == digest(tmp_path / "whole"), "but for the time that memories take"


def test_a_sweep_runs_where_an_event_loop_is_running_already(tmp_path):
    async def notebook() -> bool:
        return start_sweep(suite(seeds=0), tmp_path).complete

    assert asyncio.run(notebook())


def test_a_folder_in_use_is_refused_and_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("dear")
    with pytest.raises(UsageError, match=r"thesis.tex is a file; choose a new or empty folder for --out"):
        start_sweep(suite(), tmp_path / "thesis.tex")
    with pytest.raises(UsageError, match=r"is not empty; continue with --resume .* or choose another --out"):
        start_sweep(suite(), tmp_path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["thesis.tex"]


def test_resuming_where_nothing_was_begun_says_what_to_do(tmp_path):
    with pytest.raises(InputFileError, match=r"has no manifest.json, so nothing was recorded there; start anew with"):
        resume_sweep(tmp_path)


def test_a_sweep_that_died_before_its_manifest_is_simply_started_again(tmp_path):
    (tmp_path / ".lock").touch()
    (tmp_path / ".manifest.json.unfinished").write_text("{")
    assert start_sweep(suite(), tmp_path).complete


# --- drift -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("change", [{"seeds": "0:21"}, {"seeds": "18:24"}, {"h": [4, 3]}, {"n": 13}], ids=repr)
def test_further_seeds_and_settings_run_into_the_same_folder(tmp_path, change):
    start_sweep(suite(), tmp_path / "out")
    first = records(tmp_path / "out")
    assert resume_sweep(tmp_path / "out", suite(**change)).complete
    assert records(tmp_path / "out")[: len(first)] == first, "nothing runs again"
    assert resume_sweep(tmp_path / "out").complete
    start_sweep(suite(**change), tmp_path / "alone")
    alone = {record.run: record for record in records(tmp_path / "alone")}
    both = {record.run: record for record in records(tmp_path / "out")}
    assert both.items() >= alone.items()
    assert both.keys() == alone.keys() | {record.run for record in first}


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("eirkit", "0.0.9", r"was started with eirkit 0.0.9, this is .*; use that version or another --out"),
        ("prompt_sha256", "0" * 64, "the prompts have changed since .*; choose another --out"),
    ],
)
def test_another_version_or_prompt_is_refused(tmp_path, key, value, message):
    start_sweep(suite(), tmp_path)
    write_manifest(structs.replace(read_manifest(tmp_path), **{key: value}), tmp_path)
    with pytest.raises(UsageError, match=message):
        resume_sweep(tmp_path)


def test_a_changed_manifest_is_refused(tmp_path):
    start_sweep(suite(), tmp_path)
    path = tmp_path / MANIFEST
    path.write_bytes(path.read_bytes().replace(b"ANSWER", b"ANSWEr", 1))
    with pytest.raises(InputFileError, match="changed since it was written, as its checksum shows; restore the file"):
        resume_sweep(tmp_path)


def test_how_a_model_is_reached_may_change(tmp_path):
    start_sweep(suite(), tmp_path)
    assert resume_sweep(tmp_path, suite(model_options={"connections": 1, "retries": 0})).complete


def test_runs_that_do_not_belong_are_refused(tmp_path):
    start_sweep(suite(seeds="0:3"), tmp_path)
    with SweepWriter(tmp_path) as writer:
        writer.add([finished(0)], durable=True)
    with pytest.raises(InputFileError, match=rf"run {finished(0).record.run} is not planned; restore the folder"):
        resume_sweep(tmp_path)


# --- before anything runs --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"model": "reference/oracle-of-delphi"}, UnknownNameError),
        ({"model": ["reference/calculator", "opnai/gpt"]}, UnknownNameError),
        ({"model": "openai/gpt"}, UsageError),  # no key, no base URL
        ({"condition": "compaction", "context_tokens": [128, 32]}, UsageError),  # the second is too short
    ],
    ids=repr,
)
def test_a_model_that_cannot_be_made_leaves_no_trace(tmp_path, monkeypatch, change, error):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(error):
        start_sweep(suite(**change), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_secret_in_the_suite_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("SOME_API_KEY", "canary-4711-canary")
    with pytest.raises(UsageError, match="contains a secret of the environment"):
        start_sweep(suite(model_options={"extra": {"p": "canary-4711-canary"}}), tmp_path / "out")
    assert not (tmp_path / "out").exists()


# --- when the world fails --------------------------------------------------------------------------------------------


def test_infrastructure_failures_are_typed_listed_retried_and_never_zeros(tmp_path):
    outage, folder = tmp_path / "outage", tmp_path / "out"
    outage.touch()
    flaky = suite(
        model=f"{HERE}:Flaky/calculator",
        h=4,
        model_options={"extra": {"outage": str(outage)}, "connections": 3, "retries": 0},
    )
    summary = start_sweep(flaky, folder)
    (row,) = summary.rows
    failed = {failure.run for failure in failures(folder)}
    assert 0 < len(failed) < 20
    assert (row.scored, row.attempted) == (20 - len(failed), 20)
    assert row.failures == {"dropped": len(failed)}
    assert row.accuracy == 1.0, "the runs that were scored were perfect, and the others are no zeros"
    (group,) = summary.failures
    assert (group.kind, group.runs) == ("dropped", len(failed))
    assert not summary.complete

    outage.unlink()
    repaired = resume_sweep(folder)
    assert repaired.complete
    assert repaired.failures == ()
    assert (repaired.rows[0].scored, repaired.rows[0].attempted) == (20, 20)
    assert sorted(record.seed for record in records(folder)) == list(range(20))


BROKEN_SIDES = [
    ({"model": f"{HERE}:Broken/calculator"}, "model", "ZeroDivisionError: in the model"),
    (
        {"memory": f"{HERE}:BrokenMemory", "model": "reference/recoverer"},
        "memory",
        "KeyError: 'in the memory' (raised by search)",
    ),
    (
        {"memory": f"{HERE}:StillbornMemory", "model": "reference/recoverer"},
        "memory",
        "OSError: no store (raised by reset)",
    ),
    ({"policy": f"{HERE}:BrokenPolicy"}, "policy", "IndexError: in the policy"),
    ({"condition": f"{HERE}:BrokenPolicy"}, "policy", "IndexError: in the policy"),
    ({"workload": f"{HERE}:BrokenWorkload"}, "workload", "AttributeError: in the workload"),
]


@pytest.mark.parametrize(("change", "side", "message"), BROKEN_SIDES, ids=lambda item: item if str(item) else "")
def test_a_fault_is_put_down_to_the_side_it_came_from(tmp_path, change, side, message):
    sound = {"n": 12, "m": 4, "h": 2, "model": "reference/calculator", "workload": "stepwise-sum", "seeds": "0:2"}
    both = read_suite({"grid": [{**sound, **change}, {**sound, "h": 3}]})
    summary = start_sweep(both, tmp_path, control=False)
    assert [(row.scored, row.attempted) for row in summary.rows] == [(0, 2), (2, 2)], "the rest is finished"
    (group,) = summary.failures
    assert group.kind == side
    assert group.message.startswith(message)


def test_a_model_that_keeps_failing_is_left_alone(tmp_path):
    summary = start_sweep(
        suite(model=f"{HERE}:Broken/calculator", seeds="0:100", h=4, model_options={"connections": 2}), tmp_path
    )
    assert summary.rows[0].attempted < FAILURES_IN_A_ROW + 2
    (line,) = summary.stopped
    assert "16 runs in a row failed (model), so the rest was skipped" in line
    assert line.endswith("resume")


@pytest.mark.parametrize(
    ("model", "condition", "suspicion"),
    [
        ("Mute", "controlled", "every answer failed in the same way (malformed)"),
        ("Mute", "lru", "every answer failed in the same way (unreached, most often malformed)"),
        ("Parrot", "controlled", "every answer is 7"),
        ("make_plain", "controlled", None),
    ],
)
def test_a_broken_adapter_is_not_a_low_score(tmp_path, model, condition, suspicion):
    found = start_sweep(suite(model=f"{HERE}:{model}/calculator", condition=condition, seeds="0:3", h=2), tmp_path)
    assert found.complete
    assert found.rows[0].suspect == suspicion


def test_runs_lost_with_the_power_are_made_again(tmp_path):
    """What was not durable is lost from the end: here the whole log, but for what was folded in."""
    start_sweep(suite(), tmp_path / "whole")
    with pytest.raises(Stopped):
        start_sweep(suite(), tmp_path / "cut", observe=stop_after(16))
    with SweepWriter(tmp_path / "cut") as writer:
        writer.add([finished(0)], durable=False)
        shutil.copytree(tmp_path / "cut", tmp_path / "lost")
    for ending in ("-wal", "-shm"):
        (tmp_path / "lost" / f"{DATABASE}{ending}").unlink()
    resume_sweep(tmp_path / "lost")
    assert digest(tmp_path / "lost") == digest(tmp_path / "whole")


# --- a real server ---------------------------------------------------------------------------------------------------


def served(url: str, **changes: Any) -> Suite:
    return suite(**{"model": "openai/any", "h": 2, "seeds": "0:6", "model_options": {"base_url": url}, **changes})


def test_a_served_model_leaves_the_records_of_the_same_agent_in_process(tmp_path):
    with ModelServer(answers_as("calculator")) as server:
        summary = start_sweep(served(server.url), tmp_path / "served")
    local = start_sweep(suite(h=2, seeds="0:6"), tmp_path / "local")
    for name in ("accuracy", "errors", "miss_rate", "first_error_at_first_miss", "scored"):
        assert getattr(summary.rows[0], name) == getattr(local.rows[0], name)
    assert summary.rows[0].input_tokens == 100 * 12 * 6
    assert summary.rows[0].cost_usd is None, "a server of one's own has no known price"


@pytest.mark.parametrize("connections", [1, 4])
def test_connections_bound_what_is_asked_at_once(tmp_path, connections):
    with ModelServer(answers_as("calculator"), together=connections) as server:
        options = {"base_url": server.url, "connections": connections}
        start_sweep(served(server.url, model_options=options), tmp_path)
        assert server.busiest == connections


PRICES = '[prices]\n"openai/any" = { input = 1000, output = 1000, as_of = 2026-01-01 }\n'


def test_a_spend_cap_stops_cleanly_and_holds_over_a_resume(tmp_path):
    prices, folder = tmp_path / "prices.toml", tmp_path / "out"
    prices.write_text(PRICES)
    with ModelServer(answers_as("calculator")) as server:
        small = {"base_url": server.url, "max_tokens": 20, "connections": 2}
        wanted = served(server.url, model_options=small)
        cap = SpendingLimits(cap_usd=4.0, prices=prices)
        first = start_sweep(wanted, folder, cap)
        asked = len(server.received)
        assert 0 < first.rows[0].scored < 6
        assert any(
            "of $4.0000 is spent" in line and line.endswith("raise the cap and resume") for line in first.stopped
        )
        spent = read_journal(folder).spending.total_usd
        assert spent == asked * Decimal("0.11")
        assert spent <= 4.0

        again = resume_sweep(folder, funds=cap)
        assert len(server.received) - asked <= 8, "what is left under the cap is a few calls, not a second cap"
        assert not again.complete
        assert read_journal(folder).spending.total_usd <= 4.0
        assert resume_sweep(folder, funds=SpendingLimits(cap_usd=100.0, prices=prices)).complete
    assert sorted(record.seed for record in records(folder)) == list(range(6))


def test_a_cache_spares_what_an_interrupted_run_had_asked(tmp_path):
    with ModelServer(answers_as("calculator")) as server:
        wanted = served(server.url)
        start_sweep(wanted, tmp_path / "first", SpendingLimits(cache=tmp_path / "replies.db"))
        asked = len(server.received)
        second = start_sweep(wanted, tmp_path / "second", SpendingLimits(cache=tmp_path / "replies.db"))
        assert len(server.received) == asked
    assert second.rows[0].cache_hits == second.rows[0].calls == 6 * 12


CANARY = "sk-canary-0815-do-not-write-me-down"


@pytest.mark.parametrize("hostile", ["echo", "error", "header"])
def test_a_key_appears_nowhere(tmp_path, monkeypatch, hostile):
    """The server sends back the key it was given, in replies and in errors; no file and no message may hold it."""
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    monkeypatch.setenv("OTHER_SECRET", "another-canary-4711")

    def answer(received: Received) -> Answer:
        key = received.headers["authorization"]
        assert CANARY in key, "the key was sent, or this test proves nothing"
        if hostile == "echo":
            return says(f"your key is {key} and another-canary-4711\nANSWER 1 5")
        if hostile == "error":
            return fails(401, f"Incorrect API key provided: {key}")
        return fails(500, "oops", headers=(("X-Key", key),))

    with ModelServer(answer) as server:
        options = {"base_url": server.url, "retries": 0}
        summary = start_sweep(served(server.url, seeds="0:2", model_options=options), tmp_path / "out")
    everything = b"".join(path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file())
    assert len(everything) > 2000
    for canary in (CANARY, CANARY[3:], "another-canary-4711"):
        assert canary.encode() not in everything
        assert canary not in str(summary)


# --- what is recorded ------------------------------------------------------------------------------------------------


def test_texts_can_be_left_out(tmp_path):
    start_sweep(suite(texts=False, seeds="0:2"), tmp_path)
    exchanges = [event for event in events(tmp_path) if isinstance(event, ModelExchange)]
    assert len(exchanges) == 2 * 2 * 12
    assert all(event.prompt is event.reply is None for event in exchanges)
    assert all(len(event.prompt_sha256) == len(event.reply_sha256 or "") == 64 for event in exchanges)


def test_the_manifest_says_what_was_run_and_with_what(tmp_path):
    start_sweep(suite(), tmp_path)
    manifest = json.loads((tmp_path / MANIFEST).read_text())
    assert (manifest["schema"], manifest["command"], manifest["cells"], manifest["runs"]) == ("runs/1", "run", 2, 40)
    assert read_suite(manifest["settings"]).sha256() == manifest["plan_sha256"] == suite().sha256()
    assert {"click", "numpy", "rich"} <= manifest["dependencies"].keys()
    for record in records(tmp_path):
        assert manifest["rules"][record.rules_sha256].startswith("You carry out a task of 12 steps")


def test_a_prompt_can_be_put_together_again_from_the_records(tmp_path):
    start_sweep(suite(seeds="0:2"), tmp_path)
    rules = read_manifest(tmp_path).rules
    for record in records(tmp_path):
        for event in events(tmp_path, record.run):
            if isinstance(event, ModelExchange):
                whole = f"{rules[record.rules_sha256]}\n{event.prompt}"
                assert sha256(whole.encode()).hexdigest() == event.prompt_sha256


def test_every_wrong_step_has_its_cause_in_the_events(tmp_path):
    start_sweep(suite(seeds="0:5"), tmp_path)
    for record in records(tmp_path):
        *_, verdicts = events(tmp_path, record.run)
        assert isinstance(verdicts, Verdicts)
        assert record.score is not None
        assert len(verdicts.wrong) == record.score.steps - record.score.correct
        assert all(step.cause in ("computation", "state_supply", "cascade") for step in verdicts.wrong)


def test_progress_counts_runs_cells_and_steps(tmp_path):
    seen: list[Progress] = []
    start_sweep(suite(), tmp_path, observe=seen.append)
    assert (seen[0].runs, seen[0].planned_runs, seen[0].planned_cells) == (0, 40, 2)
    assert [p.runs for p in seen] == sorted(p.runs for p in seen)
    assert (seen[-1].runs, seen[-1].cells, seen[-1].steps, seen[-1].failed) == (40, 2, 40 * 12, 0)


def test_no_file_is_left_unfinished(tmp_path):
    start_sweep(suite(seeds=0), tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {LOCK, DATABASE, MANIFEST, SUMMARY, CONTROL}
