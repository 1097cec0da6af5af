"""`eirkit lacuna simulate`: documents, tables and refusals."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from eirkit.cli import run

FIELDS = {"workload", "policy", "h", "pressure", "seeds", "miss_rate", "miss_rate_sd", "gap_closed"}
MORE_FIELDS = {
    "reference_miss_rate",
    "hit_rate",
    "miss_regret",
    "eir_pressure",
    "online_miss_rate",
    "online_retrievals",
    "hindsight",
}
USERS_OWN = f"{Path(__file__).parents[2] / 'examples' / 'most_recently_used.py'}:MostRecentlyUsed"


def document(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict:
    assert run(["lacuna", "simulate", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_rows_have_the_agreed_fields(capsys):
    found = document(capsys, "stepwise-sum", "--h", "8,4", "--policy", "fifo,lru", "--seeds", "0:5")
    assert [(row["h"], row["policy"]) for row in found["rows"]] == [(8, "fifo"), (8, "lru"), (4, "fifo"), (4, "lru")]
    assert all(set(row) == FIELDS | MORE_FIELDS for row in found["rows"])
    assert found["rows"][0]["seeds"] == 5


def test_the_defaults_are_the_papers_comparison(capsys):
    rows = document(capsys, "store-recall", "--seeds", "0:9")["rows"]
    assert {row["h"] for row in rows} == {16, 12, 8, 4}
    assert {row["policy"] for row in rows} == {"fifo", "lru", "theory", "belady"}


def test_full_lookup_shows_hit_rates_under_both_streams(capsys):
    found = document(
        capsys, "full-lookup", "--h", "4", "--policy", "lfu,fixed", "--recovery", "direct", "--seeds", "0:99"
    )
    rates = {(row["queries"], row["policy"]): row["hit_rate"] for row in found["hit_rates"]}
    assert set(rates) == {(queries, name) for queries in ("uniform", "zipf") for name in ("lfu", "fixed")}
    assert rates["zipf", "lfu"] > 3 * rates["zipf", "fixed"]  # popular labels are early ones; fixed keeps the last
    assert found["recovery"] == "direct"


def test_first_failures_on_request(capsys):
    found = document(capsys, "stepwise-sum", "--policy", "fifo,unbounded", "--seeds", "0:20", "--all")
    assert found["first_failure_pressure"] == {"fifo": 16 / 14, "unbounded": None}


def test_a_policy_of_ones_own_by_its_path(capsys):
    (row,) = document(capsys, "stepwise-sum", "--h", "8", "--policy", USERS_OWN, "--seeds", "0:3")["rows"]
    assert 0 < row["miss_rate"] < 1


def test_the_table_has_a_line_for_each_pressure_and_a_column_for_each_policy(capsys):
    assert run(["lacuna", "simulate", "stepwise-sum", "--h", "16,4", "--seeds", "0:9", "--all"]) == 0
    shown = capsys.readouterr().out
    assert "fifo    lru  theory  online  belady  closed  closed  hindsight" in shown
    assert [line.split()[:2] for line in shown.splitlines() if line.strip()[:1].isdigit()] == [
        ["1.00", "16"],
        ["4.00", "4"],
    ]
    assert "First pressure" in shown


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--h", "0"], "0 is below 1"),
        (["--policy", "lucky"], "no policy named 'lucky'"),
        (["--policy", ","], "is not a list such as fifo,lru"),
        (["--seed", "3"], "--seeds 3"),
        (["--n", "1"], "larger --n"),
        (["--recovery", "magic"], "magic"),
        (["--policy", "eirkit.lacuna.tasks.task:TaskSpec"], "is not a policy"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_code_two(arguments, said, capsys):
    assert run(["lacuna", "simulate", "stepwise-sum", "--seeds", "0:3", *arguments]) == 2
    errors = capsys.readouterr().err
    assert said in errors
    assert len(errors.strip().splitlines()) == 1
