"""What a version costs where its views are clipped or overlap: by hand, and against the slow reference."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from eirkit.vestige.demand.costs import observe
from eirkit.vestige.demand.graph import build
from eirkit.vestige.shell.effects import shell_touches
from eirkit.vestige.shell.state import ShellState
from eirkit.vestige.trajectory import RecordedTurn, Turn
from tests.vestige import reference

MARK = "<elided_chars>\n900 characters elided\n</elided_chars>\n"
# Long words, since no scaffold cuts what is short; one to three in a line, so that lines differ in what they cost.
FILE = {number: " ".join(["word" * 15] * (number % 3 + 1)) for number in range(1, 61)}
# The tool, its first and last line, and which lines in it the scaffold leaves out: at least ten stand before the cut.
views = st.tuples(
    st.sampled_from(["sed -n '{},{}p' a.py", "nl -ba a.py | sed -n '{},{}p'"]),
    st.integers(1, 20),
    st.integers(40, 60),
    st.none() | st.tuples(st.integers(30, 34), st.integers(1, 40)),
)


def counted_words(text: str) -> int:
    return len(text.split())


def shown_by(view: tuple[str, int, int, tuple[int, int] | None]) -> reference.Shown:
    command, first, last, cut = view
    before = {number: FILE[number] for number in range(first, (cut[0] if cut else last) + 1)}
    behind = {number: FILE[number] for number in range(cut[0] + cut[1] + 1, last + 1)} if cut else {}
    return command.startswith("nl"), before, behind


def printed(printed_numbers: bool, lines: dict[int, str]) -> str:
    return "".join(f"{number:6}\t{line}\n" if printed_numbers else f"{line}\n" for number, line in lines.items())


def cost_of(calls: list[tuple[str, str]]) -> int:
    place = ShellState(roots=("/repo",), folder="/repo", count=counted_words)
    touches = [shell_touches(command, output, 0, place) for command, output in calls]
    turns = [Turn(number, touch.reads, (), 0, RecordedTurn()) for number, touch in enumerate(touches, 1)]
    graph = build(([read.path for read in turn.reads], []) for turn in turns)
    return observe(graph, turns, counted_words).costs[0]


@given(st.lists(views, min_size=1, max_size=4))
def test_views_of_one_version_cost_what_the_reference_says(
    asked: list[tuple[str, int, int, tuple[int, int] | None]],
) -> None:
    calls = []
    for view in asked:
        numbers, before, behind = shown_by(view)
        cut = MARK if view[3] else ""
        calls.append((view[0].format(view[1], view[2]), printed(numbers, before) + cut + printed(numbers, behind)))
    assert cost_of(calls) == reference.content_cost([shown_by(view) for view in asked])


def test_a_clipped_view_costs_its_head_and_its_tail() -> None:
    head, tail = "a b\n" * 300, "c d e\n" * 50
    # 300 lines of two words and 50 of three; the three words of the mark are the scaffold's.
    assert cost_of([("cat a.py", head + MARK + tail)]) == 300 * 2 + 50 * 3


def test_lines_seen_one_after_the_other_cost_more_than_each_view() -> None:
    calls = [("sed -n '1,2p' a.py", "a b\nc\n"), ("sed -n '2,4p' a.py", "c\nd e f\ng\n")]
    assert cost_of(calls) == (2 + 1) + (3 + 1)  # line 2 counts once


def test_a_later_clipped_view_may_cost_more_than_the_lines_that_are_known() -> None:
    head, tail = "a b\n" * 300, "c d e\n" * 50
    calls = [("sed -n '299,301p' a.py", "a b\na b\nx\n"), ("cat a.py", head + MARK + tail)]
    # Known lines: 300 of two words and one of one. The second view alone shows more.
    assert cost_of(calls) == max(300 * 2 + 1, 300 * 2 + 50 * 3)


def repeated_in(calls: list[tuple[str, str]]) -> list[float]:
    place = ShellState(roots=("/repo",), folder="/repo", count=counted_words)
    touches = [shell_touches(command, output, 0, place) for command, output in calls]
    turns = [Turn(number, touch.reads, touch.writes, 0, RecordedTurn()) for number, touch in enumerate(touches, 1)]
    accesses = [([read.path for read in turn.reads], [write.path for write in turn.writes]) for turn in turns]
    return [share for shares in observe(build(accesses), turns, counted_words).repeated for share in shares]


LINES = ["auth sufficient pam_u2f.so", "auth include system-auth", "account include system-auth"]


def test_lines_after_a_prompt_of_another_program_are_the_same_lines_again() -> None:
    shown = "Password:\n" + "".join(f"{line}\n" for line in LINES)
    numbered = "".join(f"{number:6}  {line}\n" for number, line in enumerate(LINES, 1))  # a terminal draws the tab
    assert repeated_in([("sudo cat /etc/a", shown), ("cat -n /etc/a", numbered)]) == [0.0, 1.0]


def test_similar_lines_far_away_in_a_file_were_not_shown_before() -> None:
    numbered = "".join(f"{number:6}\t{line}\n" for number, line in enumerate(LINES, 40))
    assert repeated_in([("cat a.py | head -3", "\n".join(LINES)), ("nl -ba a.py | sed -n '40,42p'", numbered)])[1] == 0


def test_lines_shown_again_count_by_their_text_and_not_as_a_share_of_the_lines() -> None:
    place = ShellState(roots=("/repo",), folder="/repo", count=counted_words)
    long = "x" * 97
    calls = [("sed -n '2,4p' a.py", "a\nb\nc\n"), ("sed -n '1,4p' a.py", f"{long}\na\nb\nc\n")]
    touches = [shell_touches(command, output, 0, place) for command, output in calls]
    turns = [Turn(number, touch.reads, (), 0, RecordedTurn()) for number, touch in enumerate(touches, 1)]
    graph = build(([read.path for read in turn.reads], []) for turn in turns)
    assert [list(shares) for shares in observe(graph, turns, counted_words).repeated] == [[0.0], [3 / 100]]
