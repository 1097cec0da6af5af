"""`eirkit week`: token sums equal a count over the raw logs, and what is kept between two looks changes nothing."""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
from collections import Counter
from contextlib import closing
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from eirkit.cli import ROOT
from eirkit.errors import UsageError
from eirkit.folders import own_folder
from eirkit_coding.cli.week import STORE, stretch_of
from eirkit_coding.week.page import change_words, dropped
from eirkit_coding.week.results import WeekSums
from eirkit_coding.week.totals import Stretch
from tests.coding.week.week_home import RULE, ClaudeSession, claude_home, raw_counts, source_text, write_home
from tests.timing import UNITS_IN_A_SECOND, cost

BEGUN = datetime(2026, 11, 14, 9, 0, tzinfo=UTC).timestamp()
UNTIL = "2026-11-16T20:00:00"
FIELDS = {
    "fresh": "fresh_tokens",
    "read": "cache_read_tokens",
    "write": "cache_write_tokens",
    "output": "output_tokens",
}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder with sessions of four agents, in a machine whose clock shows UTC."""
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("EIRKIT_HOME", str(tmp_path / "own"))
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    import time

    time.tzset()
    write_home(tmp_path / "home", BEGUN)
    return tmp_path / "home"


def week(*words: str) -> dict[str, Any]:
    """Return what `eirkit week --json` prints."""
    done = CliRunner().invoke(ROOT, ["week", "--until", UNTIL, *words, "--json"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_token_sums_equal_a_count_over_the_raw_logs(home: Path) -> None:
    found = week()
    stretch = Stretch(found["since"], found["until"], UTC)
    for rows, key in ((found["agents"], "agent"), (found["days"], "day"), ([found["total"]], "")):
        expected: dict[str, Counter[str]] = {}
        for agent, at, counts in raw_counts(home):
            name = {"agent": agent, "day": datetime.fromtimestamp(at, UTC).date().isoformat(), "": ""}[key]
            if stretch.has(at):
                expected.setdefault(name, Counter()).update(counts)
        named = {row[key] if key else "": row for row in rows if row["tokens"]}
        assert named.keys() == expected.keys()
        for name, counts in expected.items():
            assert {part: named[name][field] for part, field in FIELDS.items()} == {
                part: counts[part] for part in FIELDS
            }
    before = [counts for _, at, counts in raw_counts(home) if stretch.before().has(at)]
    assert found["before"]["tokens"] == sum(counts.total() for counts in before) > 0


def test_money_is_tokens_times_price(home: Path) -> None:
    found = week()
    claude = next(row for row in found["models"] if row["model"].startswith("claude-opus"))
    hours = 100 * claude["responses"]  # the log says that 100 tokens of each write are kept for an hour
    written = (claude["cache_write_tokens"] - hours) * Decimal("6.25") + hours * 10
    parts = {"fresh": claude["fresh_tokens"] * 5, "cache_read": claude["cache_read_tokens"] * Decimal("0.5")}
    parts |= {"cache_write": written, "output": claude["output_tokens"] * 25}
    assert {kind: claude[f"{kind}_usd"] for kind in parts} == pytest.approx(
        {kind: float(usd / 1_000_000) for kind, usd in parts.items()}
    )
    assert [one["model"] for one in found["unpriced"]] == ["some-model"]
    assert next(row for row in found["models"] if row["model"] == "some-model")["usd"] is None


def test_own_prices_take_precedence(home: Path, tmp_path: Path) -> None:
    own = tmp_path / "prices.toml"
    own.write_text('[prices]\n"any/some-model" = { input = 1, output = 1, as_of = 2026-11-15 }\n')
    found = week("--prices", str(own))
    row = next(row for row in found["models"] if row["model"] == "some-model")
    assert row["usd"] == pytest.approx(row["tokens"] / 1_000_000)
    assert (found["unpriced"], found["prices"]["as_of"][-1]) == ([], "2026-11-15")


def test_the_agents_own_costs_stand_beside_the_prices(home: Path) -> None:
    path = home / ".local" / "share" / "opencode" / "opencode.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        for id, cost in (("msg_0_1", 0.5), ("msg_1_1", 0)):  # 0: the agent knows no price
            (text,) = connection.execute("SELECT data FROM message WHERE id = ?", (id,)).fetchone()
            data = json.dumps({**json.loads(text), "modelID": "gpt-5.5", "cost": cost})
            connection.execute("UPDATE message SET data = ? WHERE id = ?", (data, id))
    # 800 fresh, 2,000 cached, 300 written and 35 out.
    usd = (800 * 5 + 2_000 * 0.5 + 300 * 5 + 35 * 30) / 1_000_000
    assert week()["stated"] == {"responses": 1, "stated_usd": 0.5, "usd": pytest.approx(usd)}
    said = CliRunner().invoke(ROOT, ["week", "--until", UNTIL], catch_exceptions=False).stdout
    assert "The agents' own cost of 1 response with a price: $0.50; at the prices here $0.01." in " ".join(said.split())


def test_what_was_lost_and_read_again(home: Path) -> None:
    found = week()
    shop = next(row for row in found["projects"] if row["project"] == "/work/shop")
    assert (shop["compactions"], shop["instructions_dropped"], shop["instructions_broken"]) == (1, 1, 1)
    (file,) = [one for one in found["files"] if one["path"] == "parser.py"]
    assert file["repeat_reads"] == 2  # once before the compaction and once after it
    assert found["advice"][0]["kind"] == "instruction"
    assert found["advice"][0]["subject"] == RULE
    assert len(found["advice"]) <= 5
    assert found["fullest"]["model"].startswith("claude-opus")
    assert found["fullest"]["share"] == found["fullest"]["tokens"] / found["fullest"]["window_tokens"]


def compacted(home: Path, name: str, size: int, *triggers: str) -> None:
    """Write a session that reads a file, has its context compacted and reads the file again, once for each trigger."""
    one = ClaudeSession(name, f"/work/{name}", BEGUN)
    one.ask("Mend big.py.")
    one.read("big.py", source_text(size))
    for trigger in triggers:
        one.compact(trigger)
        one.read("big.py", source_text(size))
        one.write("big.py", source_text(size, "other"))
        one.read("big.py", source_text(size))
    one.save(home / ".claude" / "projects" / f"-work-{name}" / f"{name}.jsonl")


def prices(tmp_path: Path, usd: float) -> Path:
    """Write a list with the price of a million input tokens; everything else costs next to nothing."""
    path = tmp_path / "own.toml"
    path.write_text(
        f'[prices]\n"claude-opus-4-5-20251101" = {{ input = {usd}, cached = 0, cache_write = 0, '
        "output = 0.001, as_of = 2026-11-15 }\n"
    )
    return path


def test_advice_is_worth_a_dollar_and_a_percent_and_is_not_against_what_the_user_did(
    home: Path, tmp_path: Path
) -> None:
    shutil.rmtree(home)
    compacted(home, "small", 6_000, "auto")
    compacted(home, "large", 30_000, "auto")
    compacted(home, "typed", 60_000, "manual")
    assert week()["advice"] == [], "a few cents"
    found = week("--prices", str(prices(tmp_path, 1_000)))
    losses = {one["run_id"]: one for one in found["losses"]}
    expected = {name: one["reread_tokens"] / 1_000 for name, one in losses.items() if name != "typed"}
    assert min(expected.values()) > 1 > found["total"]["usd"] / 100
    told = [(one["run_id"], one["usd"]) for one in found["advice"]]
    assert told == [("large", pytest.approx(expected["large"])), ("small", pytest.approx(expected["small"]))]
    assert {name: one["trigger"] for name, one in losses.items()} == {
        "small": "auto",
        "large": "auto",
        "typed": "manual",
    }
    # What is dearer than a dollar, and still less than a hundredth of the bill, is left out as well.
    other = tmp_path / "own.toml"
    other.write_text(other.read_text().replace("cached = 0", "cached = 200000"))
    found = week("--prices", str(other))
    assert found["total"]["usd"] / 100 > expected["large"]
    assert found["advice"] == []


def test_advice_does_not_presume_that_a_compaction_was_automatic(home: Path, tmp_path: Path) -> None:
    shutil.rmtree(home)
    compacted(home, "silent", 30_000, "")
    words = ["week", "--until", UNTIL, "--prices", str(prices(tmp_path, 1_000))]
    said = " ".join(CliRunner().invoke(ROOT, words, catch_exceptions=False).stdout.split())
    assert "unless you started it yourself, compact between tasks" in said


def test_the_first_sentence_says_what_compactions_cost(home: Path, tmp_path: Path) -> None:
    shutil.rmtree(home)
    compacted(home, "shop", 30_000, "auto", "auto", "manual")
    page = tmp_path / "week.html"
    words = ["week", "--until", UNTIL, "--out", str(page)]
    screen = CliRunner().invoke(ROOT, words, catch_exceptions=False).stdout
    total = week()["total"]
    assert (total["compactions"], total["automatic_compactions"], total["manual_compactions"]) == (3, 2, 1)
    assert total["reread_usd"] == pytest.approx(total["reread_tokens"] * 5 / 1_000_000)
    sentence = (
        f"3 compactions (2 automatic, 1 by hand) dropped {total['dropped_tokens']:,} tokens of files that were used "
        f"later; reading {total['reread_dropped_tokens']:,} of them again cost at least ${total['reread_usd']:,.2f}; "
        "writing the new context cost $0.0"
    )
    assert sentence in " ".join(screen.split()).partition(". ")[0]
    assert sentence in re.sub("<[^>]*>|&#8288;", "", page.read_text())
    again = f"{total['reread_dropped_tokens']:,} (shown in {total['reread_tokens']:,} for at least $"
    assert total["reread_dropped_tokens"] < total["reread_tokens"]
    assert f"dropped, read again {again}{total['reread_usd']:,.2f})" in " ".join(screen.split())
    assert "In tokens; compactions and instructions are counted." in " ".join(screen.split())
    compacted(home, "shop", 30_000)
    screen = " ".join(CliRunner().invoke(ROOT, words, catch_exceptions=False).stdout.split())
    assert screen.partition(". ")[0].endswith(" No compaction")


@pytest.mark.parametrize(
    ("now", "before", "said"),
    [
        (WeekSums(tokens=121, usd=75.9), WeekSums(tokens=100, usd=75.74), ": tokens now +21%, cost +0.2%"),
        (WeekSums(tokens=300, usd=1.0), WeekSums(tokens=100, usd=2.0), ": tokens now 3.0 times as much, cost -50%"),
        (WeekSums(tokens=121, usd=75.9, unpriced_tokens=1), WeekSums(tokens=100, usd=75.74), ": tokens now +21%"),
        (WeekSums(tokens=121, usd=None), WeekSums(tokens=100, usd=75.74), ": tokens now +21%"),
        (WeekSums(tokens=121, usd=1.0, unknown_responses=1), WeekSums(tokens=100, usd=1.0), ""),
    ],
)
def test_the_change_is_that_of_tokens_and_of_money(now: WeekSums, before: WeekSums, said: str) -> None:
    assert change_words(now, before) == said


def test_an_analysis_tells_automatic_from_manual_compactions(home: Path, tmp_path: Path) -> None:
    shutil.rmtree(home)
    compacted(home, "typed", 1_200_000, "manual")
    compacted(home, "large", 1_000_000, "auto")
    compacted(home, "small", 30_000, "auto")  # a few cents
    words = ["vestige", "analyze", str(home / ".claude" / "projects"), "--out", str(tmp_path / "out"), "--json"]
    found = json.loads(CliRunner().invoke(ROOT, words, catch_exceptions=False).stdout)
    assert {one["run_id"]: one["trigger"] for one in found["costliest_breaks"]} == {
        "typed": "manual",
        "large": "auto",
        "small": "auto",
    }
    assert (found["breaks"]["manual_compactions"], found["breaks"]["automatic_compactions"]) == (1, 2)
    assert [one["run_id"] for one in found["advice"] if one["kind"] == "compaction"] == ["large"]


def test_only_new_logs_are_read_and_nothing_changes(home: Path) -> None:
    first, second = week(), week()
    assert (first["new_logs"], second["new_logs"], second["new_bytes"]) == (first["logs"], 0, 0)
    volatile = ("new_logs", "new_bytes")
    assert {k: v for k, v in first.items() if k not in volatile} == {
        k: v for k, v in second.items() if k not in volatile
    }
    claude_home(home, BEGUN + 7200)
    assert week()["new_logs"] == 3


@pytest.mark.parametrize("damage", [b"", b"no database", b"SQLite format 3\0" + bytes(200)])
def test_a_damaged_store_is_made_again(home: Path, damage: bytes) -> None:
    first = week()
    (own_folder() / STORE).write_bytes(damage)
    assert week()["total"] == first["total"]
    assert week()["new_logs"] == 0


def test_the_store_is_for_its_owner_only(home: Path) -> None:
    week()
    assert (own_folder() / STORE).stat().st_mode & 0o077 == 0


def test_a_project_is_chosen_by_its_name_or_folder(home: Path) -> None:
    by_name, by_path = week("--only", "notes"), week("--only", "/work/notes")
    assert [row["project"] for row in by_name["projects"]] == ["/work/notes"]
    assert by_name["total"] == by_path["total"]
    assert week("--only", "nowhere")["total"]["responses"] == 0
    done = CliRunner().invoke(ROOT, ["week", "--until", UNTIL, "--only", "nowhere"], catch_exceptions=False)
    told = " ".join(done.stdout.split())
    assert "Projects with responses then: site, shop" in told
    assert told.endswith("--only site")


def test_logs_elsewhere(home: Path) -> None:
    words = ["week", str(home / ".claude"), str(home / ".codex"), "--until", UNTIL, "--json"]
    done = CliRunner().invoke(ROOT, words, catch_exceptions=False)
    found = json.loads(done.stdout)
    assert [(one["agent"], one["logs"]) for one in found["sources"]] == [("claude-code", 4), ("codex", 1)]
    expected = {row["agent"]: row["tokens"] for row in week()["agents"]}
    assert {row["agent"]: row["tokens"] for row in found["agents"]} == {
        agent: expected[agent] for agent in ("claude-code", "codex")
    }


@pytest.mark.parametrize("agent", [".claude/projects", ".codex/sessions"])
def test_sessions_that_were_appended_to_one_file_keep_their_tokens_and_projects(home: Path, agent: str) -> None:
    first = max((home / agent).rglob("*.jsonl"), key=lambda log: log.stat().st_size)
    other = first.with_name(f"{first.stem}-other.jsonl")
    told = first.read_text().replace('"/work/', '"/other/')
    other.write_text(re.sub(r'"(id|\w*[uU]uid|sessionId|tool_use_id)": ?"', r'"\1": "other-', told))
    before = week()
    first.write_bytes(first.read_bytes() + other.read_bytes())
    other.unlink()
    after = week()
    assert [after[key] for key in ("total", "projects")] == [before[key] for key in ("total", "projects")]
    assert any(row["project"].startswith("/other/") for row in after["projects"])


def test_a_log_that_cannot_be_read_is_named(home: Path) -> None:
    (home / ".claude" / "projects" / "-work-shop" / "s9.jsonl").write_text('{"type": "assistant"\n' * 3)
    found = week()
    assert any(one["source"].endswith("s9.jsonl:1") for one in found["skipped"])


ENDLESS = """
CREATE TABLE session (id, directory, version, parent_id);
INSERT INTO session VALUES ('s', '/work', '1', NULL);
CREATE VIEW message AS WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n)
    SELECT id, 's' AS session_id, '{}' AS data, id AS time_created FROM n;
CREATE VIEW part AS SELECT id, 's' AS session_id, id AS message_id, hex(zeroblob(300000000)) AS data FROM message;
"""
REPEATED = """
CREATE TABLE session (id, directory, version, parent_id);
CREATE TABLE message (id, session_id, data, time_created);
CREATE TABLE part (id, session_id, message_id, data);
WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n WHERE id < 9000)
    INSERT INTO session SELECT 's', '/work', '1', NULL FROM n;
WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n WHERE id < 9000)
    INSERT INTO message SELECT id, 's', '{}', id FROM n;
"""


@pytest.mark.parametrize("script", [ENDLESS, REPEATED])
def test_a_database_made_to_be_slow_is_named_and_costs_no_other_log(home: Path, script: str) -> None:
    whole = week()
    with closing(sqlite3.connect(home / ".local" / "share" / "opencode" / "opencode-x.db")) as connection:
        connection.executescript(script)
    (own_folder() / STORE).unlink()
    found: list[dict[str, Any]] = []
    assert cost(lambda: found.append(week())) < 20 * UNITS_IN_A_SECOND
    assert found[0]["total"] == whole["total"]
    assert any(one["source"].startswith("opencode-x.db") for one in found[0]["skipped"])


def test_a_damaged_database_is_named_where_nothing_else_is_logged(home: Path) -> None:
    shutil.rmtree(home)
    (folder := home / ".local" / "share" / "opencode").mkdir(parents=True)
    with closing(sqlite3.connect(folder / "whole.db")) as connection:
        connection.executescript("CREATE TABLE session(id, directory); CREATE TABLE message(id, session_id, data);")
    (folder / "opencode.db").write_bytes((folder / "whole.db").read_bytes()[:4096])
    (folder / "whole.db").unlink()
    said = " ".join(CliRunner().invoke(ROOT, ["week"], catch_exceptions=False).stdout.split())
    assert "No response with its tokens is logged" in said
    assert "Not read: opencode.db: cannot be read as a database" in said


def test_a_name_may_be_any_bytes(home: Path) -> None:
    whole = week()
    folder = home / ".claude" / "projects" / "-work-shop"
    path = min(folder.glob("*.jsonl"))
    path.rename(folder / os.fsdecode(b"\xff\xfe.jsonl"))
    assert week()["total"] == whole["total"]
    assert week()["new_logs"] == 0


def test_the_screen_fits(home: Path) -> None:
    done = CliRunner().invoke(ROOT, ["week", "--until", UNTIL], catch_exceptions=False)
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert len(lines) <= 75
    assert "Worth doing" in lines
    assert lines[-1] == "next: eirkit vestige analyze ~/.claude/projects --out analysis"


def test_the_page_is_written(home: Path, tmp_path: Path) -> None:
    page = tmp_path / "week.html"
    done = CliRunner().invoke(ROOT, ["week", "--until", UNTIL, "--out", str(page)], catch_exceptions=False)
    assert done.exit_code == 0
    assert "parser.py" in page.read_text()
    title = re.search("<h1>(.*)</h1>", page.read_text())
    assert title is not None
    assert title[1].endswith("2026-&#8288;11-&#8288;16"), "a line ends inside a date"


def test_a_home_without_agents(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "empty"))
    done = CliRunner().invoke(ROOT, ["week", "--until", UNTIL], catch_exceptions=False)
    assert done.exit_code == 0
    said = done.stdout.replace("\n", " ")
    assert "No logs of Claude Code, Codex, Gemini CLI or opencode were read." in said
    for folder in (".claude/projects", ".config/claude/projects", ".codex/sessions", ".gemini/tmp"):
        assert f"{tmp_path / 'empty' / folder} (not there)" in said


@pytest.mark.parametrize("bad", ['"12"', "-3", "[5]", "1e30"])
def test_a_response_without_numbers_of_tokens_is_named_and_not_counted_as_none(home: Path, bad: str) -> None:
    whole = week()["total"]
    for log in (home / ".claude" / "projects").rglob("*.jsonl"):
        # of the largest prompt, in the session and in its resumed copy
        log.write_text(log.read_text().replace('"cache_read_input_tokens": 4000', f'"cache_read_input_tokens": {bad}'))
    found = week()
    assert found["total"]["responses"] == whole["responses"] - 1
    assert found["total"]["unknown_responses"] == 1, "in the session and in its copy"
    said = [one["reason"] for one in found["skipped"] if "tokens" in one["reason"]]
    assert said == ["1 response without valid numbers of tokens, which are unknown"]
    screen = CliRunner().invoke(ROOT, ["week", "--until", UNTIL], catch_exceptions=False).stdout
    assert f"for at least {found['total']['tokens']:,} tokens in " in screen
    earlier = week("--since", "2020-01-01", "--until", "2020-02-01")
    assert not [one for one in earlier["skipped"] if "tokens" in one["reason"]], "of another time"


@pytest.mark.parametrize("until", ["2026-11-30", "2026-12-31"])  # logs in the stretch before, and none even there
def test_older_logs_are_named_with_their_time_and_how_to_include_them(home: Path, until: str) -> None:
    done = CliRunner().invoke(ROOT, ["week", "--until", until, "--since", "3d"], catch_exceptions=False)
    found = json.loads(CliRunner().invoke(ROOT, ["week", "--until", until, "--json"]).stdout)
    newest = datetime.fromtimestamp(found["newest"], UTC)
    assert f"The newest log found is of {newest:%Y-%m-%d %H:%M}." in done.stdout
    assert done.stdout.splitlines()[-1].endswith(f" --since {newest:%Y-%m-%d}")
    assert str(home / ".claude" / "projects") in found["looked_in"]
    assert week("--since", f"{newest:%Y-%m-%d}")["total"]["responses"] > 0


def test_a_compaction_has_the_numbers_that_an_analysis_gives_it(home: Path, tmp_path: Path) -> None:
    logs = str(home / ".claude" / "projects")
    asked = ["vestige", "analyze", logs, "--out", str(tmp_path / "out"), "--json"]
    analyzed = json.loads(CliRunner().invoke(ROOT, asked, catch_exceptions=False).stdout)["costliest_breaks"][0]
    asked = ["week", logs, "--until", UNTIL, "--since", "2020-01-01", "--json"]
    (loss,) = json.loads(CliRunner().invoke(ROOT, asked, catch_exceptions=False).stdout)["losses"]
    sums = {name: loss[name] for name in ("live_tokens", "dropped_tokens", "unknown_tokens")}
    assert sums["live_tokens"] > 0
    assert sums == {name: analyzed[name] for name in sums}


def test_what_was_dropped_is_a_bound_where_the_logs_do_not_show_all_of_it() -> None:
    total = WeekSums(compactions=3, dropped_tokens=1_200)
    assert dropped(total) == "1,200"
    assert dropped(replace(total, unknown_tokens=70)) == "at least 1,200"
    assert dropped(replace(total, unmeasured=1)) == "at least 1,200, not measured for 1 of 3"
    assert dropped(replace(total, unmeasured=3, dropped_tokens=0)) == "unknown"
    assert dropped(replace(total, unknown_tokens=70, dropped_tokens=0)) == "unknown"


def test_a_stretch_compares_equal_weekdays() -> None:
    stretch = Stretch.week(BEGUN, UTC)
    assert (stretch.days()[0], stretch.days()[-1]) == ("2026-11-08", "2026-11-14")
    before = stretch.before()
    assert (before.days()[0], before.days()[-1]) == ("2026-11-01", "2026-11-07")
    assert stretch.until - before.until == 7 * 24 * 3600


@pytest.mark.parametrize("words", [("never", None), (None, "yesterday"), ("2026-11-17", UNTIL), ("0d", UNTIL)])
def test_a_wrong_time_is_refused(words: tuple[str | None, str | None]) -> None:
    with pytest.raises(UsageError):
        stretch_of(*words, lambda: BEGUN)
