"""`summary` with a model on loopback: what it is asked, keeps and costs, and that nothing is paid for twice."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from eirkit.cli import run
from eirkit_coding.compactors.records import read_runs
from tests.coding.compactors.planted_sessions import file_lines, write_sessions
from tests.lacuna.servers import Answer, ModelServer, document

NAMES = ["ada", "ben", "cleo"]
PROMPT_TOKENS, REPLY_TOKENS = 100, 10  # as the server reports every call
PRICES = '[prices."openai/m"]\ninput = 10\noutput = 1000\ncached = 10\nas_of = 2026-01-31\n'
COST = (PROMPT_TOKENS * 10 + REPLY_TOKENS * 1000) / 1e6


def quoting(received) -> Answer:
    """Quotes the first five lines of the needed file, as a summary that keeps code does."""
    asked = received.body["messages"][0]["content"]
    name = next(name for name in NAMES if f"{name}_needed_value_1 " in asked)
    text = "The file has these lines:\n" + "\n".join(file_lines(f"{name}_needed", 20)[:5])
    return Answer(json.dumps(document({"role": "assistant", "content": text})).encode())


@pytest.fixture
def words(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    write_sessions(tmp_path / "logs", NAMES)
    (tmp_path / "prices.toml").write_text(PRICES)
    first = [
        "vestige",
        "compact",
        "logs",
        "--compactor",
        "summary",
        "--at",
        "every:5",
        "--context-tokens",
        "600",
        "--json",
    ]

    def of(server: ModelServer, *more: str) -> list[str]:
        sets = ["summary.model=openai/m", f"summary.base_url={server.url}/v1"]
        return [*first, *(word for one in sets for word in ("--set", one)), "--prices", "prices.toml", *more]

    return of


def test_a_summary_keeps_what_it_quotes_and_its_calls_are_counted(words, capsys):
    with ModelServer(quoting) as server:
        assert run(words(server, "--out", "out")) == 0
        found = json.loads(capsys.readouterr().out)
        (row,) = [row for row in found["rows"] if row["compactor"].startswith("summary")]
        assert row["calls"] == len(server.received) == row["tried"]
        assert row["cost_usd"] == pytest.approx(len(server.received) * COST)
        assert row["kept_share"] == pytest.approx(5 / 20, abs=0.01)  # the lines have nearly equal tokens
        asked = server.received[0].body["messages"][0]["content"]
        assert "Set the third value" not in asked, "the opening stays, so it is not summarized"
        calls = len(server.received)
        assert run(words(server, "--out", "out")) == 0
        assert len(server.received) == calls, "nothing is asked again"


def test_a_dry_run_asks_nothing_and_counts_the_calls(words, capsys):
    with ModelServer(quoting) as server:
        assert run(words(server, "--out", "out", "--dry-run")) == 0
        estimated = json.loads(capsys.readouterr().out)
        assert not server.received
        assert not Path("out").exists()
        assert run(words(server, "--out", "out")) == 0
        assert estimated["calls"] == len(server.received)
        assert estimated["rows"][0]["most_usd"] >= len(server.received) * COST


def test_a_cap_stops_before_more_is_spent_and_a_higher_one_continues(words, capsys):
    with ModelServer(quoting) as server:
        run(words(server, "--out", "out", "--cap-usd", "0.02"))
        first, known = len(server.received), [record.run_id for record in read_runs(Path("out"))]
        assert first * COST <= 0.02
        capsys.readouterr()
        assert run(words(server, "--out", "out", "--cap-usd", "100")) == 0
        found = json.loads(capsys.readouterr().out)
        assert found["runs"] == len(NAMES) > len(known)
        assert len(server.received) == found["cuts"], "what was paid for before the stop is not paid for again"


def test_without_a_model_it_says_which_word_is_missing(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_sessions(tmp_path / "logs", NAMES[:1])
    assert (
        run(
            [
                "vestige",
                "compact",
                "logs",
                "--compactor",
                "summary",
                "--at",
                "every:5",
                "--context-tokens",
                "600",
                "--out",
                "out",
            ]
        )
        == 2
    )
    assert "give --set summary.model=PROVIDER/NAME" in capsys.readouterr().err
