"""What to do about an analysis: sentences that hold, and no money for tokens that were not spent."""

from __future__ import annotations

from eirkit.records.analysis import Advice
from eirkit.report.logs.sentences import advice_lines, advice_rows

WHERE = {"run_id": "r1", "model": "claude-sonnet-4-5", "turn": 3}


def lines(**thing: object) -> str:
    [line] = advice_lines(advice_rows([Advice(**{**WHERE, **thing})]))
    return line


def test_what_a_cut_output_hid_was_not_paid_for() -> None:
    told = lines(kind="clip", subject="a.py, b.py, c.py", tokens=8_000_000)
    assert "An output that showed a.py and 2 other files was cut by about 8,000,000 tokens" in told
    assert "$" not in told
    assert told.endswith("[turn 3 of r1]")


def test_a_compaction_costs_what_was_read_again() -> None:
    # A million tokens dropped, and 600,000 of them read again, at 3 dollars a million.
    told = lines(kind="compaction", subject="compaction", tokens=1_000_000, count=600_000)
    assert "reading them again took 600,000 tokens" in told
    assert "at least $1.80" in told


def test_nothing_under_a_dollar_is_advised_and_the_dearest_comes_first() -> None:
    file = {**WHERE, "kind": "file", "subject": "a.py", "count": 2, "runs": 1}
    break_ = {**WHERE, "kind": "compaction", "subject": "compaction", "tokens": 1_000_000}
    given = [
        {**file, "tokens": 300_000},  # 90 cents
        {**file, "tokens": 400_000},
        {**break_, "count": 200_000},  # more tokens dropped, and 60 cents
        {**break_, "count": 200_000, "model": "claude-opus-4-1"},  # at 15 dollars a million
        {**break_, "count": 0},
    ]
    assert [row.usd for row in advice_rows([Advice(**thing) for thing in given])] == [3.0, 1.2]


def test_of_a_model_without_a_price_no_money_is_named() -> None:
    told = lines(kind="file", subject="a.py", tokens=600, count=2, runs=1, model="unheard-of")
    assert "a.py, or a part of it, was shown again 2 times though unchanged" in told
    assert "$" not in told
