"""What a bill is explained by: worked by hand, and against a recount of recorded sessions that shares no code."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from msgspec.structs import replace
from studies.usage_recount import KINDS, LONG, SUB_AGENTS, recount

from eirkit.cli import ROOT
from eirkit_coding.week.bill import Money, explain, requests_of
from eirkit_coding.week.responses import METERS, Response
from tests.coding.week.week_home import ClaudeSession
from tests.vestige.recorded import recorded

LINE = {"isSidechain": False, "sessionId": "s", "cwd": "/work/shop", "version": "2.1.325"}


def dollars(response: Response) -> Money:
    """Return a price of $10 for a million tokens; cached 1, written for minutes 20, for an hour 40, output 100."""
    million = Decimal(1_000_000)
    return Money(
        response.fresh_tokens * 10 / million,
        response.cache_read_tokens / million,
        response.cache_write_tokens * 20 / million,
        response.cache_write_hour_tokens * 40 / million,
        response.output_tokens * 100 / million,
        1 / million,
        100 / million,
    )


def response(key: str, at: float, **more: Any) -> Response:
    return replace(Response(key, at, "/work/shop", "claude", 0, 0, 0, 0, 0, thread="s"), **more)


def test_what_a_pause_costs_depends_on_how_long_the_cache_lives() -> None:
    said = [
        response("a", 0, cache_write_tokens=100_000),
        response("b", 299, cache_read_tokens=100_000, cache_write_tokens=20_000),
        response("c", 299 + 301, cache_write_tokens=130_000),  # 120,000 of them had been written
        response("d", 601, cache_read_tokens=10_000, cache_write_hour_tokens=130_000),  # right after: no cause known
        response("e", 601 + 3_599, cache_read_tokens=140_000),
        response("f", 601 + 3_599 + 3_601, cache_read_tokens=10_000, fresh_tokens=131_000),
        response("g", 7_802, model="other", cache_write_tokens=141_000),
    ]
    bill = explain(list(requests_of(said, dollars)))
    parts = {part.kind: part for part in bill.parts}
    # c pays 120,000 at 20 in place of 1; f pays 130,000 at 10 in place of 1.
    assert (parts["expired"].requests, parts["expired"].tokens) == (2, 250_000)
    assert parts["expired"].usd == pytest.approx(0.12 * 19 + 0.13 * 9)
    assert parts["expired"].long_usd == parts["expired"].usd
    assert (parts["unexplained"].tokens, parts["unexplained"].usd) == (120_000, pytest.approx(0.12 * 39))
    assert parts["model changed"].tokens == 10_000  # all that f had in a cache
    assert [(part.most_tokens, part.requests) for part in bill.sizes] == [(100_000, 1), (150_000, 6)]
    total = sum(dollars(one).total for one in said)
    assert sum(part.usd for part in bill.kinds) == pytest.approx(float(total))
    assert sum(part.usd for part in bill.sizes) == pytest.approx(float(total))
    (session,) = bill.sessions
    assert sum(cause.usd for cause in session.causes) == pytest.approx(session.usd) == pytest.approx(float(total))


def test_a_compaction_is_charged_for_the_new_context_and_saves_what_it_left_out() -> None:
    said = [
        response("a", 0, cache_write_tokens=150_000, output_tokens=1_000),
        response("b", 60, before="a", cut="compaction", cache_read_tokens=15_000, cache_write_tokens=25_000,
                 summary_tokens=2_000),
        response("c", 120, before="b", cache_read_tokens=40_000, cache_write_tokens=1_000),
    ]  # fmt: skip
    bill = explain(list(requests_of(said, dollars))).compaction
    assert bill.written_usd == pytest.approx(0.025 * 20)
    assert (bill.unlogged, bill.unlogged_usd) == (1, pytest.approx(0.151 * 1 + 0.002 * 100))
    assert (bill.later_requests, bill.left_out_tokens) == (2, 2 * 111_000)
    assert bill.saved_usd == pytest.approx(2 * 0.111)
    # opencode logs its request for a summary, of which the next request goes on.
    said = [
        said[0],
        response("sum", 60, cache_read_tokens=150_000, output_tokens=2_000, is_summary=True),
        response("b", 90, cache_write_tokens=40_000),
    ]
    bill = explain(list(requests_of(said, dollars))).compaction
    assert (bill.summaries_usd, bill.unlogged) == (pytest.approx(0.150 + 0.2), 0)
    assert (bill.written_usd, bill.later_requests) == (pytest.approx(0.04 * 20), 1)


def line(kind: str, uuid: str, parent: str | None, **more: Any) -> dict[str, Any]:
    return {"type": kind, "uuid": uuid, "parentUuid": parent, "timestamp": "2026-11-15T12:00:00.000Z", **LINE, **more}


def reply(uuid: str, parent: str, **more: Any) -> dict[str, Any]:
    usage = {"input_tokens": 1, "output_tokens": 1}
    message = {"id": f"m-{uuid}", "role": "assistant", "model": "claude", "content": [], "usage": usage}
    return line("assistant", uuid, parent, message=message, **more)


def test_a_request_is_compared_with_the_one_that_its_context_continues() -> None:
    inside = [
        line("user", "p1", None, isSidechain=True, message={"role": "user", "content": "Look."}),
        reply("p2", "elsewhere", isSidechain=True),
        reply("p3", "elsewhere", isSidechain=True),
    ]
    meter = METERS["claude-code"]()
    for entry in (
        line("user", "1", None, message={"role": "user", "content": "Begin."}),
        reply("2", "1"),
        reply("3", "2"),
        *(line("progress", f"x{one['uuid']}", "3", data={"agentId": "helper", "message": one}) for one in inside),
        reply("4", "2"),  # the user went back to the first answer
        line("system", "5", "4", subtype="microcompact_boundary"),
        reply("6", "5"),
        line("system", "7", None, subtype="compact_boundary", logicalParentUuid="6"),
        line("user", "8", "7", isCompactSummary=True, message={"role": "user", "content": "s" * 400}),
        reply("9", "8"),
        line("user", "e", "9", message={"role": "user", "content": "<command-name>/exit</command-name>"}),
        reply("10", "e"),
        line("user", "11", None, message={"role": "user", "content": "<command-name>/clear</command-name>"}),
        reply("12", "11"),
    ):
        meter.take(entry)
    found = {one.key: one for one in meter.responses()}
    assert {key: (one.before, one.cut) for key, one in found.items()} == {
        "m-2": ("", ""),
        "m-3": ("m-2", ""),
        "m-p2": ("", ""),
        "m-p3": ("m-p2", ""),
        "m-4": ("m-2", ""),
        "m-6": ("m-4", "results cleared"),
        "m-9": ("m-6", "compaction"),
        "m-10": ("m-9", "resumed"),
        "m-12": ("", "clear"),
    }
    assert [key for key, one in found.items() if one.sub_agent] == ["m-p2", "m-p3"]
    assert found["m-p2"].thread == "s/helper"
    assert {key for key, one in found.items() if one.summary_tokens == 100} == {"m-9"}


def test_advice_names_pauses_by_their_dollars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EIRKIT_HOME", str(tmp_path / "own"))
    one = ClaudeSession("s", "/work/shop", 1_795_000_000)
    one.ask("Begin.")
    for _ in range(2):
        usage = {"input_tokens": 1, "cache_creation_input_tokens": 190_000, "output_tokens": 1}
        message = {"id": f"m{one.at}", "role": "assistant", "model": "claude-opus-4-5", "content": [], "usage": usage}
        one.add("assistant", message=message)
        one.at += 7_200
    one.save(tmp_path / "logs" / "s.jsonl")
    words = ["week", str(tmp_path / "logs"), "--since", "2026-11-01", "--until", "2026-12-01"]
    found = json.loads(CliRunner().invoke(ROOT, [*words, "--json"], catch_exceptions=False).stdout)
    (advice,) = found["advice"]
    assert (advice["kind"], advice["count"], advice["usd"]) == ("expired", 1, pytest.approx(0.19 * (6.25 - 0.5)))
    said = " ".join(CliRunner().invoke(ROOT, words, catch_exceptions=False).stdout.split())
    assert "1. 1 request came later than the cache lives" in said
    assert "at least $1.09; most of it in s]" in said
    assert "paid again, cache expired 1 190,000 1.09 1.09" in said


def test_the_bill_of_recorded_sessions_equals_a_recount_to_the_last_digit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = recorded("claude-code-real")
    monkeypatch.setenv("EIRKIT_HOME", str(tmp_path))
    logs = [str(path) for path in sorted(folder.glob("*.jsonl")) if '"parentUuid"' in path.read_text()]
    words = ["week", *logs, "--since", "2020-01-01", "--until", "2026-11-19", "--json"]
    week = json.loads(CliRunner().invoke(ROOT, words, catch_exceptions=False).stdout)
    expected = recount(folder)
    assert sum(expected[kind][1] for kind in KINDS) == Decimal("289.0926602500")
    assert round(Decimal(str(week["total"]["usd"])), 10) == Decimal("289.0926602500")
    parts = {part["kind"]: part for part in (*week["bill"]["kinds"], *week["bill"]["parts"])}
    long = [part for part in week["bill"]["sizes"] if part["least_tokens"] >= 100_000]
    parts[LONG] = {key: sum(Decimal(str(part[key])) for part in long) for key in ("tokens", "usd")}
    for kind in (*KINDS, SUB_AGENTS, LONG):
        tokens, usd = expected[kind]
        assert (parts[kind]["tokens"], Decimal(str(parts[kind]["usd"]))) == (tokens, usd)
