"""Rereads and gaps: a run worked out by hand, and a slow second reading of the definitions on random runs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eirkit.records.analysis import Gaps, RereadBin, RereadInterval
from eirkit.vestige.audits.reread import bin_of, cells, gaps, intervals
from eirkit.vestige.trajectory import FileRead, FileWrite, Trajectory, Turn
from tests.vestige.runs import of_turns, turn

# tokens, reads, writes of each turn
Plan = list[tuple[int, list[str], list[str]]]


def run_of(plan: Plan) -> Trajectory:
    turns: list[Turn] = []
    for number, (tokens, reads, writes) in enumerate(plan, 1):
        turns.append(turn(number, [FileRead(path) for path in reads], [FileWrite(path) for path in writes], tokens))
    return of_turns(turns)


# The clock after each turn: 400, 900, 2,600, 2,700, 6,700, 7,000.
BY_HAND: Plan = [
    (400, ["g.py", "o.py"], []),
    (500, ["o.py"], []),
    (1_700, ["g.py"], []),
    (100, ["g.py"], ["g.py"]),
    (4_000, ["g.py"], ["s.py"]),
    (300, [], []),
]


def test_intervals_worked_out_by_hand() -> None:
    assert intervals(run_of(BY_HAND), {"g.py"}) == (
        RereadInterval("o.py", False, 1, 400, 2, 900 - 400, "reread"),
        RereadInterval("g.py", True, 1, 400, 3, 2_600 - 400, "reread"),
        RereadInterval("g.py", True, 3, 2_600, 4, 2_700 - 2_600, "reread"),
        RereadInterval("g.py", True, 4, 2_700, 4, 0, "overwrite"),  # read and written in one turn: the read comes first
        RereadInterval("o.py", False, 2, 900, 6, 7_000 - 900, "end"),
        RereadInterval("g.py", True, 5, 6_700, 6, 7_000 - 6_700, "end"),  # the new version's first read is no reread
    )


def test_cells_worked_out_by_hand() -> None:
    # Needed: waits of 2,200 (reread), 100 (reread), 0 and 300. The first crosses 0–1k and 1–2k and ends in 2–4k.
    # Other: 500 (reread) and 6,100: 1,000 + 1,000 + 2,000 + 2,100.
    assert cells(intervals(run_of(BY_HAND), {"g.py"})) == (
        RereadBin(False, 0, 0, 1_000, 500, 500 + 1_000, 1),
        RereadBin(False, 1, 1_000, 2_000, 1_500, 1_000, 0),
        RereadBin(False, 2, 2_000, 4_000, 3_000, 2_000, 0),
        RereadBin(False, 3, 4_000, 8_000, 6_000, 2_100, 0),
        RereadBin(True, 0, 0, 1_000, 500, 1_000 + 100 + 0 + 300, 1),
        RereadBin(True, 1, 1_000, 2_000, 1_500, 1_000, 0),
        RereadBin(True, 2, 2_000, 4_000, 3_000, 200, 1),
    )


def test_gaps_worked_out_by_hand() -> None:
    run = run_of(BY_HAND)
    needed, other = gaps(run, intervals(run, {"g.py"}))
    # The last write of any file, s.py, comes at 6,700: o.py's open wait from 900 stops there, g.py's never starts.
    assert needed == Gaps(True, end_censored_tokens=2_200, closed_tokens=2_200, fair_clock_tokens=2_200)
    assert other == Gaps(False, end_censored_tokens=6_100, closed_tokens=500, fair_clock_tokens=5_800)


def test_a_closed_gap_that_passes_the_last_write_is_stopped_there_too() -> None:
    # Clock 100, 300, 1,300; the wait from 100 to 1,300 is closed, but the run wrote for the last time at 300.
    run = run_of([(100, ["g.py"], []), (200, [], ["x.py"]), (1_000, ["g.py"], [])])
    assert gaps(run, intervals(run, {"g.py"}))[0] == Gaps(True, 1_200, 1_200, 200)


def test_a_run_without_writes_has_no_fair_clock() -> None:
    run = run_of([(100, ["g.py"], []), (50, [], [])])
    assert gaps(run, intervals(run, {"g.py"})) == (Gaps(True, 50, None, None), Gaps(False, None, None, None))


@pytest.mark.parametrize(
    ("distance", "expected"),
    [
        (0, 0),
        (1, 0),
        (1_000, 0),
        (1_001, 1),
        (2_000, 1),
        (2_001, 2),
        (16_001, 5),
        (32_000, 5),
        (32_001, 6),
        (64_001, 7),
    ],
)
def test_a_bin_holds_its_upper_end(distance: int, expected: int) -> None:
    assert bin_of(distance) == expected


def test_midpoints_are_those_of_the_paper() -> None:
    run = run_of([(1, ["g.py"], []), (64_000, [], [])])
    found = [cell.midpoint_tokens for cell in cells(intervals(run, {"g.py"}))]
    assert found == [500, 1_500, 3_000, 6_000, 12_000, 24_000, 48_000]


# A slow second reading: scan for each read, then walk the wait token by token.

paths = st.sampled_from(["a", "b", "c"])
plans = st.lists(st.tuples(st.integers(0, 900), st.lists(paths, max_size=3), st.lists(paths, max_size=2)), max_size=12)


def slow_waits(plan: Plan, path: str) -> list[tuple[int, int | None, str]]:
    """Return for each turn that reads a path: its clock, the clock of what ended the wait, and what that was."""
    clocks = [sum(tokens for tokens, _, _ in plan[: place + 1]) for place in range(len(plan))]
    waits: list[tuple[int, int | None, str]] = []
    for place, (_, reads, writes) in enumerate(plan):
        if path not in reads:
            continue
        if path in writes:
            waits.append((clocks[place], clocks[place], "overwrite"))
            continue
        later = [at for at in range(place + 1, len(plan)) if path in plan[at][1] or path in plan[at][2]]
        if not later:
            waits.append((clocks[place], None, "end"))
        else:
            waits.append((clocks[place], clocks[later[0]], "reread" if path in plan[later[0]][1] else "overwrite"))
    return waits


def slow_cells(plan: Plan, needed: set[str]) -> dict[tuple[bool, int], tuple[int, int]]:
    ends = [0, 1_000, 2_000, 4_000, 8_000, 16_000]
    total = sum(tokens for tokens, _, _ in plan)
    found: dict[tuple[bool, int], tuple[int, int]] = {}
    for path in ("a", "b", "c"):
        for start, end, how in slow_waits(plan, path):
            distance = (total if end is None else end) - start
            for token in range(1, distance + 1):  # the token'th of the wait lies in the bin (low, high] that holds it
                place = next(at for at in range(5) if ends[at] < token <= ends[at + 1])
                exposure, events = found.get((path in needed, place), (0, 0))
                event = how == "reread" and token == distance
                found[path in needed, place] = (exposure + 1, events + event)
    return found


def slow_gaps(plan: Plan, chosen: list[str]) -> tuple[int | None, int | None, int | None]:
    total = sum(tokens for tokens, _, _ in plan)
    writing = [at for at, (_, _, writes) in enumerate(plan) if writes]
    stop = sum(tokens for tokens, _, _ in plan[: writing[-1] + 1]) if writing else None
    ended, closed, fair = [], [], []
    for path in chosen:
        for start, end, _ in slow_waits(plan, path):
            ended.append((total if end is None else end) - start)
            if end is not None:
                closed.append(end - start)
            if stop is not None and start <= stop:
                fair.append(min(total if end is None else end, stop) - start)
    return (max(ended, default=None), max(closed, default=None), max(fair, default=None))


@given(plans, st.sets(paths))
def test_cells_agree_with_counting_token_by_token(plan: Plan, needed: set[str]) -> None:
    fast = {
        (cell.needed, cell.bin): (cell.exposure_tokens, cell.rereads) for cell in cells(intervals(run_of(plan), needed))
    }
    assert fast == slow_cells(plan, needed)


@given(plans, st.sets(paths))
def test_gaps_agree_with_scanning(plan: Plan, needed: set[str]) -> None:
    run = run_of(plan)
    for gap in gaps(run, intervals(run, needed)):
        chosen = [path for path in ("a", "b", "c") if (path in needed) == gap.needed]
        fast = (gap.end_censored_tokens, gap.closed_tokens, gap.fair_clock_tokens)
        assert fast == slow_gaps(plan, chosen)


@given(plans, st.sets(paths))
def test_every_waited_token_lies_in_one_cell(plan: Plan, needed: set[str]) -> None:
    waits = intervals(run_of(plan), needed)
    rows = cells(waits)
    assert sum(cell.exposure_tokens for cell in rows) == sum(wait.distance_tokens for wait in waits)
    after_a_wait = [wait for wait in waits if wait.ending == "reread" and wait.distance_tokens]
    assert sum(cell.rereads for cell in rows) == len(after_a_wait)
    assert all(cell.exposure_tokens > 0 for cell in rows)
