"""What a break took and what getting it back cost, worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec import structs

from eirkit.records.analysis import BreakCost, DroppedState
from eirkit.vestige.audits.compaction import break_costs, break_cuts, dropped_states
from eirkit.vestige.ledger import Ledger
from eirkit.vestige.trajectory import (
    Break,
    FileRead,
    FileWrite,
    KeptContext,
    Lines,
    LoggedUsage,
    RecordedTurn,
    Trajectory,
    Turn,
)
from eirkit.vestige.viewer_output import names_file
from tests.vestige.runs import of_turns


def words(text: str) -> int:
    return len(text.split())


def turn(
    number: int,
    reads: tuple[FileRead, ...] = (),
    writes: tuple[FileWrite, ...] = (),
    broken: Break | None = None,
    carried: str = "",
) -> Turn:
    if broken == "compaction":
        carried = carried or "The work goes on."  # without any text it would be unknown what stayed
    return Turn(number, reads, writes, 10 * number, RecordedTurn(broken=broken, carried=carried))


A = "def first(x):\n    return x + 1\n\ndef second(y):\n    return y + 2\n"  # four telling lines, one blank
SUMMARY = "The file a.py holds:\n  def first(x):\nThe rest of it is elsewhere."  # one of the four, squeezed

# Tokens of the turns: 10, 20, 30, 40, 50, 60. Turn 3 begins after a compaction.
RUN = of_turns(
    [
        turn(1, (FileRead("src/a.py", content=A), FileRead("b.py", content="b = 1 + 1\n"))),
        turn(2, (FileRead("c.py", content="c = 2 + 2\n"), FileRead("d.py", lines={7: "d = 3 + 3"}))),
        turn(3, (), (), "compaction", SUMMARY),
        turn(4, (FileRead("src/a.py", content=A),), (FileWrite("src/a.py"),)),
        turn(5, (), (FileWrite("b.py"),)),
        turn(6, (FileRead("b.py", content="new"),)),
    ]
)
LIVE = {3: {"src/a.py": 100, "b.py": 40, "c.py": 8, "d.py": 4}}


def test_breaks_are_found() -> None:
    assert break_cuts(RUN) == (3,)
    assert break_cuts(of_turns([turn(1)])) == ()


def test_each_live_state_has_its_fate() -> None:
    by_path = {state.path: state for state in dropped_states(RUN, LIVE, words)}
    a, b, c, d = by_path["src/a.py"], by_path["b.py"], by_path["c.py"], by_path["d.py"]
    assert [a.fate, b.fate, c.fate, d.fate] == ["reread", "overwritten", "never", "never"]
    # Of a.py's 2 + 4 + 2 + 4 words the summary has the first line: 10 of 12 were dropped.
    assert (a.tokens, a.carried_share, a.dropped_tokens, a.named) == (12, 2 / 12, 10, True)
    # It was read again in turn 4, the second after the break: 30 + 40 tokens on; 10 of its 12 words had been dropped.
    assert (a.reread_turn, a.turns_until, a.tokens_until, a.reread_tokens) == (4, 2, 70, 10)
    assert a.reread_dropped_tokens == 10
    # b.py was read again only after a write had made another version of it.
    assert (b.reread_turn, b.turns_until, b.tokens_until, b.reread_tokens) == (None, None, None, 0)
    assert (b.named, d.dropped_tokens, d.kind) == (False, words("d = 3 + 3"), "compaction")


def test_the_cost_of_a_break_is_summed() -> None:
    [cost] = break_costs(RUN, dropped_states(RUN, LIVE, words), words)
    assert (cost.cut, cost.kind, cost.carried_tokens) == (3, "compaction", words(SUMMARY))
    assert (cost.live_files, cost.live_tokens) == (4, 12 + 5 + 5 + 5)
    assert cost.dropped_tokens == 10 + 5 + 5 + 5
    assert (cost.reread_files, cost.reread_tokens, cost.reread_turns) == (1, 10, 1)
    assert (cost.overwritten_files, cost.never_reread_files, cost.never_reread_tokens) == (1, 2, 5 + 5)
    # In the same tokens of files: what was not carried over was read again, edited unread, or neither.
    assert (cost.reread_dropped_tokens, cost.overwritten_tokens) == (10, 5)
    assert cost.dropped_tokens == cost.reread_dropped_tokens + cost.overwritten_tokens + cost.never_reread_tokens


def test_a_break_with_nothing_live_still_has_a_row() -> None:
    run = of_turns([turn(1), turn(2, broken="clear")])
    assert dropped_states(run, {}, words) == ()
    [cost] = break_costs(run, (), words)
    assert (cost.kind, cost.live_files, cost.carried_tokens) == ("clear", 0, 0)


def test_what_a_whole_write_replaced_is_no_longer_what_is_live() -> None:
    # The summary repeats a line of the version that turn 2 wrote over, and none of the one in force.
    before, after = "value = compute(1)\n", "value = compute(2)\n"
    run = of_turns(
        [
            turn(1, (FileRead("a.py", content=before),)),
            turn(2, (), (FileWrite("a.py", kind="whole", content=after),)),
            turn(3, broken="compaction", carried=before),
        ]
    )
    [state] = dropped_states(run, {3: {"a.py": 6}}, words)
    assert state.carried_share == 0.0


def test_a_file_that_the_carried_text_repeats_in_full_was_not_dropped() -> None:
    run = of_turns([turn(1, (FileRead("a.py", content=A),)), turn(2, broken="compaction", carried=f"a.py:\n{A}")])
    [state] = dropped_states(run, {2: {"a.py": 9}}, words)
    assert (state.carried_share, state.dropped_tokens) == (1.0, 0)


def test_two_breaks_are_judged_apart() -> None:
    run = of_turns(
        [
            turn(1, (FileRead("a.py", content=A),)),
            turn(2, broken="compaction"),
            turn(3, (FileRead("a.py", content=A),)),
            turn(4, broken="clear"),
            turn(5),
        ]
    )
    first, second = dropped_states(run, {2: {"a.py": 9}, 4: {"a.py": 9}}, words)
    assert (first.fate, first.reread_turn, second.fate) == ("reread", 3, "never")
    assert [cost.kind for cost in break_costs(run, (first, second), words)] == ["compaction", "clear"]


def test_breaks_without_a_turn_between_are_one_row_that_counts_them() -> None:
    last = turn(2, (), (), "compaction")
    run = of_turns(
        [
            turn(1),
            structs.replace(last, recorded=structs.replace(last.recorded, earlier_breaks=("clear", "compaction"))),
        ]
    )
    [cost] = break_costs(run, (), words)
    assert (cost.kind, cost.compactions, cost.clears) == ("compaction", 2, 1)


def test_many_breaks_take_linear_work() -> None:
    # 2,000 breaks over one large file: a scan of the whole past at each would take minutes.
    turns = [turn(1, (FileRead("a.py", content=A * 200),))]
    turns += [turn(number, broken="compaction", carried="short") for number in range(2, 2_002)]
    run: Trajectory = of_turns(turns)
    live = {number: {"a.py": 1} for number in range(2, 2_002)}
    assert len(dropped_states(run, live, words)) == 2_000


def test_what_one_break_dropped_is_neither_dropped_nor_paid_for_twice() -> None:
    run = of_turns(
        [
            turn(1, (FileRead("a.py", content=A),)),
            turn(2, broken="compaction"),
            turn(3, broken="compaction"),
            turn(4, (FileRead("a.py", content=A),), (FileWrite("a.py"),)),
        ]
    )
    states = dropped_states(run, {2: {"a.py": 100}, 3: {"a.py": 100}}, words)
    assert [(one.held_share, one.dropped_tokens, one.reread_tokens) for one in states] == [
        (1.0, 12, words(A)),
        (0.0, 0, 0),
    ]
    assert [one.fate for one in states] == ["reread", "reread"]
    costs = break_costs(run, states, words)
    assert [(cost.live_files, cost.live_tokens, cost.dropped_tokens) for cost in costs] == [(1, 12, 12), (0, 0, 0)]
    assert [(cost.reread_files, cost.reread_tokens) for cost in costs] == [(1, words(A)), (0, 0)]


def test_what_the_first_break_carried_the_second_can_drop() -> None:
    # One of four telling lines is carried over the first break, and lost at the second.
    run = of_turns(
        [
            turn(1, (FileRead("src/a.py", content=A),)),
            turn(2, broken="compaction", carried=SUMMARY),
            turn(3, broken="clear"),
            turn(4, (FileRead("src/a.py", content=A),)),
        ]
    )
    first, second = dropped_states(run, {2: {"src/a.py": 100}, 3: {"src/a.py": 100}}, words)
    # Turn 4 shows all four lines again: 10 words that the first break dropped, and 2 that the second did.
    assert (first.held_share, first.dropped_tokens, first.reread_tokens) == (1.0, 10, 10)
    assert (second.held_share, second.dropped_tokens, second.reread_tokens) == (2 / 12, 2, 2)


def test_a_rereading_is_paid_at_the_break_that_dropped_the_file() -> None:
    # The first break carries the whole file on, so the second is the one that makes the agent read it again.
    run = of_turns(
        [
            turn(1, (FileRead("a.py", content=A),)),
            turn(2, broken="compaction", carried=A),
            turn(3, broken="clear"),
            turn(4, (FileRead("a.py", content=A),)),
        ]
    )
    states = dropped_states(run, {2: {"a.py": 9}, 3: {"a.py": 9}}, words)
    assert [(one.dropped_tokens, one.reread_tokens) for one in states] == [(0, 0), (12, 12)]


def test_a_file_whose_text_is_not_recorded_is_held_from_reading_to_break() -> None:
    run = of_turns([turn(1, (FileRead("a.py"),)), turn(2, broken="compaction"), turn(3, broken="compaction")])
    states = dropped_states(run, {2: {"a.py": 9}, 3: {"a.py": 9}}, words)
    assert [one.dropped_tokens for one in states] == [9, 0]


@given(st.lists(st.sampled_from(["read", "carry", "drop"]), max_size=8))
def test_over_any_breaks_no_more_is_dropped_than_was_shown(acts: list[str]) -> None:
    # A token of the file is dropped at most once for each time that it was shown; by hand: a flag that reads set.
    turns, live, held, expected = [turn(1, (FileRead("a.py", content=A),))], {}, True, []
    for number, act in enumerate(acts, 2):
        if act == "read":
            turns.append(turn(number, (FileRead("a.py", content=A),)))
            held = True
            continue
        turns.append(turn(number, broken="compaction", carried=A if act == "carry" else ""))
        live[number] = {"a.py": 9}
        expected.append(words(A) if held and act == "drop" else 0)
        held = act == "carry"  # a carried text shows the file, wherever it came from
    states = dropped_states(of_turns(turns), live, words)
    assert [one.dropped_tokens for one in states] == expected
    readings = [one.reread_turn for one in states if one.dropped_tokens and one.reread_turn is not None]
    assert sum(one.reread_tokens for one in states) == words(A) * len(set(readings))


@pytest.mark.parametrize(
    ("text", "path", "named"),
    [
        ("I was editing utils.py.", "src/utils.py", True),
        ("I was editing utils.py...", "utils.py", True),
        ("See src/utils.py, then go on", "utils.py", True),
        ("`utils.py`: done", "utils.py", True),
        ("(utils.py)", "utils.py", True),
        ("utils.py.bak and then utils.py", "utils.py", True),
        ("utils.py.bak", "utils.py", False),
        ("utils.pyc", "utils.py", False),
        ("my-utils.py my_utils.py .utils.py", "utils.py", False),
        ("app/[id].tsx is left", "app/[id].tsx", True),
        ("wrote 'my notes.txt'.", "docs/my notes.txt", True),
        ("c++ is a language", "c", False),
        ("", "utils.py", False),
        ("anything", "src/", False),
    ],
)
def test_a_name_is_found_where_a_sentence_ends_and_not_inside_another(text: str, path: str, named: bool) -> None:
    assert names_file(text, path) is named


def test_the_carried_text_names_a_file_at_the_end_of_a_sentence() -> None:
    run = of_turns(
        [turn(1, (FileRead("a.py", content=A),)), turn(2, broken="compaction", carried="I was editing a.py.")]
    )
    [state] = dropped_states(run, {2: {"a.py": 9}}, words)
    assert state.named


LINES = [f"line number {n} of the file" for n in range(10)]
FILE = "\n".join(LINES)


def after(kept: KeptContext | None, *later: Turn, carried: str = "Go on.") -> tuple[DroppedState, BreakCost]:
    """What a compaction before turn 2 did to a file of ten lines of six words, read before it and edited last."""
    broken = RecordedTurn(broken="compaction", carried=carried, kept=kept)
    end = turn(3 + len(later), (), (FileWrite("a.py"),))
    run = of_turns([turn(1, (FileRead("a.py", content=FILE),)), Turn(2, (), (), 10, broken), *later, end])
    states = dropped_states(run, {2: {"a.py": 100}}, words)
    [cost] = break_costs(run, states, words)
    return states[0], cost


def test_a_file_that_was_put_back_was_not_dropped() -> None:
    # As Claude Code 2.1.325 does it: the summary names the file, and an attachment holds its text.
    for kept in (
        KeptContext("preserved", texts=(FILE,), files=(FileRead("a.py", content=FILE),)),
        KeptContext("preserved", texts=("\n".join(f"{n:6}\t{line}" for n, line in enumerate(LINES, 1)),)),
        KeptContext("removed", turns=(1,)),
        KeptContext("prompt", texts=("system", FILE), is_complete=True),
    ):
        state, cost = after(kept)
        assert (state.carried_share, state.dropped_tokens, cost.overwritten_tokens) == (1.0, 0, 0)
        assert cost.evidence == kept.evidence
    state, cost = after(None)
    assert (state.dropped_tokens, cost.overwritten_tokens, cost.evidence) == (60, 60, "summary")


def test_a_put_back_file_is_held_and_the_next_break_can_drop_it() -> None:
    back = FileRead("/repo/a.py", content=FILE)
    broken = RecordedTurn(broken="compaction", carried="Go on.", kept=KeptContext("preserved", files=(back,)))
    turns = [turn(1, (FileRead("a.py", content=LINES[0]),)), Turn(2, (), (), 10, broken), turn(3, broken="compaction")]
    run = replace(of_turns([*turns, turn(4, (), (FileWrite("a.py"),))]), root="/repo")
    _, second = dropped_states(run, {2: {"a.py": 10}, 3: {"a.py": 100}}, words)
    # The reads alone would say that no more than one line is known of it; an edit of four words for six comes on top.
    assert (second.held_share, second.dropped_tokens) == (1.0, words(FILE))
    edit = turn(3, (), (FileWrite("a.py", removed=f"{LINES[3]}\n", added="now of four words\n"),))
    turns = [*turns[:2], edit, turn(4, broken="compaction"), turn(5, (), (FileWrite("a.py"),))]
    _, second = dropped_states(replace(of_turns(turns), root="/repo"), {2: {"a.py": 6}, 4: {"a.py": 6}}, words)
    assert (second.held_share, second.dropped_tokens) == (1.0, 58)


def edited(removed: str, added: str) -> str:
    assert FILE.count(removed) == 1
    return FILE.replace(removed, added)


@pytest.mark.parametrize(
    ("removed", "added"),
    [
        (f"{LINES[4]}\n", "another line of text\n"),
        (f"{LINES[4]}\n{LINES[5]}\n", ""),
        ("number 4 of", "number forty-four of"),  # a part of one line
        ("4 of the file\nline number 5 of", "6 or 7 of"),  # from inside a line into the next one
    ],
)
@pytest.mark.parametrize("is_put_back", [True, False])
def test_lines_that_an_edit_replaced_are_neither_dropped_nor_never_read_again(
    removed: str, added: str, is_put_back: bool
) -> None:
    whole = FileRead("a.py", content=edited(removed, added))
    kept = KeptContext("preserved", texts=(whole.content or "",), files=(whole,)) if is_put_back else None
    turns = [
        turn(1, (FileRead("a.py", content=FILE),)),
        turn(2, (), (FileWrite("a.py", removed=removed, added=added),)),
        Turn(3, (), (), 10, RecordedTurn(broken="compaction", carried="Go on.", kept=kept)),
        turn(4, (whole,)),
    ]
    states = dropped_states(of_turns(turns), {3: {"a.py": 100}}, words)
    [cost] = break_costs(of_turns(turns), states, words)
    # A line of which the edit changed a part is in the context in two pieces, and in none of them as it is.
    whole_lines = set(FILE.splitlines()) | set(added.splitlines() if added.endswith("\n") else ())
    left = sum(words(line) for line in edited(removed, added).splitlines() if line in whole_lines)
    expected = (0, 0) if is_put_back else (left, left)
    assert (cost.dropped_tokens, cost.reread_dropped_tokens, cost.never_reread_tokens) == (*expected, 0)


def test_a_whole_file_that_was_put_back_shows_which_lines_are_gone() -> None:
    # A program changed the file, which no call shows; of a file that was put back in part nothing follows.
    now = FILE.replace(LINES[4], "another line of text")
    for is_part, never in ((False, 0), (True, 6)):
        whole = FileRead("a.py", content=now, clipped=is_part)
        _, cost = after(KeptContext("preserved", files=(whole,)), turn(3, (FileRead("a.py", content=now),)))
        assert (cost.dropped_tokens, cost.never_reread_tokens) == (never, 0)
        assert cost.overwritten_tokens == never


def test_a_line_of_another_file_that_stayed_is_not_one_of_this_file() -> None:
    other = FileRead("b.py", content="\n".join(LINES[:5]))
    for kept in (
        KeptContext("preserved", texts=(other.content or "",), files=(other,)),
        KeptContext("removed", turns=(1,)),
    ):
        broken = RecordedTurn(broken="compaction", carried="Go on.", kept=kept)
        turns = [turn(1, (other,)), turn(2, (FileRead("a.py", content=FILE),)), Turn(3, (), (), 10, broken)]
        [state] = dropped_states(of_turns([*turns, turn(4, (), (FileWrite("a.py"),))]), {3: {"a.py": 100}}, words)
        assert (state.carried_share, state.dropped_tokens) == (0.0, 60)


@given(st.data())
def test_after_an_edit_no_line_is_known_that_the_text_does_not_have(data: st.DataObject) -> None:
    start, end = sorted(data.draw(st.tuples(st.integers(0, len(FILE)), st.integers(0, len(FILE)))))
    is_numbered = data.draw(st.booleans())
    added = data.draw(st.sampled_from(["", "something new", "one new line\nand another", "one\nnew line\nand another"]))
    removed = FILE[start:end]
    first, *_, last = removed.split("\n") if "\n" in removed else (removed, removed)
    assume(all(len(part) >= 12 and FILE.count(part) == 1 for part in (removed, first, last)))
    before, after = (FILE[:start] + "#" + FILE[end:]).splitlines(), (FILE[:start] + added + FILE[end:]).splitlines()
    ledger = Ledger()
    ledger.take(turn(1, (FileRead("a.py", content=FILE, lines=dict(enumerate(LINES, 1)) if is_numbered else None),)))
    ledger.take(turn(2, (), (FileWrite("a.py", removed=removed, added=added),)))
    found = {line.text for line in ledger.known("a.py")}
    assert found <= {*after, ""}
    assert found >= {line for line in before if "#" not in line}, "untouched"


def test_what_is_encrypted_is_unknown_but_for_what_was_read_again() -> None:
    opaque = KeptContext("history", is_opaque=True)
    state, cost = after(opaque, carried="")
    assert (state.dropped_tokens, state.unknown_tokens, cost.evidence) == (0, 60, "opaque")
    state, cost = after(opaque, turn(3, (FileRead("a.py", content="\n".join(LINES[:3])),)), carried="")
    assert (cost.dropped_tokens, cost.unknown_tokens, cost.reread_dropped_tokens) == (18, 42, 18)
    state, cost = after(None, carried="")
    assert (state.dropped_tokens, state.unknown_tokens, cost.evidence) == (0, 60, "none")


def test_one_grep_hit_is_not_a_reading_of_the_file() -> None:
    # One of ten dropped lines is shown again: 6 of 60 tokens, and the reread cost only that line.
    hit = FileRead("a.py", lines={4: LINES[3]})
    state, cost = after(None, turn(3, (hit,)))
    assert (cost.dropped_tokens, cost.reread_dropped_tokens, cost.never_reread_tokens) == (60, 6, 54)
    assert (state.fate, state.reread_tokens) == ("reread", words(LINES[3]))


def test_a_line_that_was_edited_unread_is_not_among_those_never_read_again() -> None:
    # Two of ten lines are shown again, and an edit replaces a third one.
    part = FileRead("a.py", lines={1: LINES[0], 2: LINES[1]}, requested=Lines(1, 2))
    edit = FileWrite("a.py", removed=f"{LINES[4]}\n", added="other\n")
    state, cost = after(None, turn(3, (part,)), turn(4, (), (edit,)))
    assert (cost.reread_dropped_tokens, cost.overwritten_tokens, cost.never_reread_tokens) == (12, 6, 42)
    assert (state.fate, state.edited_tokens, cost.overwritten_files) == ("reread", 6, 0)


def test_a_file_edited_and_then_shown_by_one_turn_was_edited_unread() -> None:
    # As `sed -i … a.py && cat a.py` does it.
    shown = FileRead("a.py", content=FILE, rewritten=True)
    state, cost = after(None, turn(3, (shown,), (FileWrite("a.py"),)))
    assert (state.fate, cost.overwritten_tokens, cost.reread_tokens) == ("overwritten", 60, 0)


def test_sizes_that_the_log_states_are_kept() -> None:
    _, cost = after(KeptContext("size", tokens_before=900, tokens_after=150))
    assert (cost.shrunk_tokens, cost.evidence) == (750, "summary")


@pytest.mark.parametrize(("request_tokens", "dropped", "unknown"), [(1002, 60, 0), (1042, 0, 60), (None, 60, 0)])
def test_what_a_request_holds_beyond_the_summary_may_be_a_file(
    request_tokens: int | None, dropped: int, unknown: int
) -> None:
    # Claude Code 2.1.1 puts files back and does not log it: its next request is larger than the first and the summary.
    first = RecordedTurn(usage=LoggedUsage(1000, 5))
    usage = None if request_tokens is None else LoggedUsage(request_tokens, 5)
    broken = RecordedTurn(broken="compaction", carried="Go on.", usage=usage)
    turns = [Turn(1, (FileRead("a.py", content=FILE),), (), 10, first), Turn(2, (), (), 10, broken)]
    run = of_turns([*turns, turn(3, (), (FileWrite("a.py"),))])
    [state] = dropped_states(run, {2: {"a.py": 100}}, words)
    assert (state.dropped_tokens, state.unknown_tokens) == (dropped, unknown)


def test_files_touched_last_are_the_ones_that_may_have_been_put_back() -> None:
    other = "\n".join(f"another line {number} of b" for number in range(10))
    broken = RecordedTurn(broken="compaction", carried="Go on.", usage=LoggedUsage(1042, 5))
    turns = [
        Turn(1, (FileRead("a.py", content=FILE),), (), 10, RecordedTurn(usage=LoggedUsage(1000, 5))),
        turn(2, (FileRead("b.py", content=other),)),
        Turn(3, (), (), 10, broken),
        turn(4, (), (FileWrite("a.py"), FileWrite("b.py"))),
    ]
    a, b = dropped_states(of_turns(turns), {3: {"a.py": 100, "b.py": 80}}, words)
    assert (a.dropped_tokens, a.unknown_tokens, b.dropped_tokens, b.unknown_tokens) == (60, 0, 0, 50)
