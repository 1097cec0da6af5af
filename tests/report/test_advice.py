"""What to do about an analysis: sentences that hold, and no money for tokens that were not spent."""

from __future__ import annotations

from eirkit.report.logs.sentences import advice_lines, advice_rows

WHERE = {"run_id": "r1", "model": "claude-sonnet-4-5", "turn": 3}


def lines(**thing: object) -> str:
    [line] = advice_lines(advice_rows({"advice": [{**WHERE, **thing}]}))
    return line


def test_what_a_cut_output_hid_was_not_paid_for() -> None:
    told = lines(kind="clip", subject="a.py, b.py, c.py", tokens=8_000_000)
    assert "An output that showed a.py and 2 other files was cut by about 8,000,000 tokens" in told
    assert "$" not in told
    assert told.endswith("[turn 3 of r1]")


def test_a_compaction_costs_what_was_read_again() -> None:
    # A million tokens dropped, and a hundred thousand of them read again, at 3 dollars a million.
    told = lines(kind="compaction", subject="compaction", tokens=1_000_000, count=100_000)
    assert "reading them again took 100,000 tokens" in told
    assert "at least $0.30" in told
    assert "$" not in lines(kind="compaction", subject="compaction", tokens=1_000_000, count=0)


def test_less_than_a_cent_is_no_money() -> None:
    told = lines(kind="file", subject="a.py", tokens=600, count=2, runs=1)
    assert "a.py, or a part of it, was shown again 2 times though unchanged" in told
    assert "$" not in told
