"""Clipped views and what became of the lines they left out, each case worked out by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eirkit.records.analysis import HiddenLine
from eirkit.vestige.audits.clipping import clipped_views, clipping_group, hidden_lines
from eirkit.vestige.demand.gold_patches import old_lines, read_patch
from eirkit.vestige.trajectory import Call, FileRead, FileWrite, Lines, RecordedTurn, Trajectory, Turn
from tests.vestige.runs import of_turns

CLIP = "<response clipped>"
ELIDED = "<elided_chars>\n2778 characters elided\n</elided_chars>"


def turn(number: int, *reads: FileRead, writes: tuple[FileWrite, ...] = (), calls: tuple[Call, ...] = ()) -> Turn:
    return Turn(number, reads, writes, 10, RecordedTurn(calls))


def run(*turns: Turn) -> Trajectory:
    return of_turns(list(turns))


def clipped(path: str = "a.py", content: str = "one\n" + CLIP, requested: Lines | None = None) -> FileRead:
    return FileRead(path, content=content, requested=requested, clipped=True)


def whole(content: str, path: str = "a.py", requested: Lines | None = None) -> FileRead:
    return FileRead(path, content=content, requested=requested)


# Clipped observations


def test_observations_goal_files_and_later_writes_are_counted() -> None:
    marked = Call("bash", {"command": "cat a.py"}, "one\n" + CLIP)
    plain = Call("bash", {"command": "ls"}, "a.py")
    views = clipped_views(
        run(
            turn(1, clipped(), calls=(marked,)),
            turn(2, calls=(plain,)),
            turn(3, calls=(marked,)),  # a command that shows no file
            turn(4, clipped("b.py"), calls=(marked,), writes=(FileWrite("b.py"),)),
            turn(5, clipped("b.py"), calls=(marked,)),
        ),
        {"a.py"},
    )
    assert [(view.turn, view.paths, view.on_goal, view.later_modified) for view in views] == [
        (1, ("a.py",), True, False),
        (3, (), False, False),
        (4, ("b.py",), False, True),  # reads come before writes in a turn
        (5, ("b.py",), False, False),
    ]


def test_hidden_characters_come_from_the_mark_or_from_the_whole_output() -> None:
    calls = (
        Call("bash", {}, "head" + ELIDED + "tail", full_output="x" * 12_778),
        Call("bash", {}, "x" * 100 + CLIP, full_output="x" * 5_000),
        Call("bash", {}, "x" * 100 + CLIP),
    )
    views = clipped_views(run(turn(1, calls=calls)), ())
    assert [view.call for view in views] == [1, 2, 3]
    assert [view.hidden_characters for view in views] == [2_778, 5_000 - 100 - len(CLIP), None]


def test_a_note_behind_the_mark_says_how_much_is_hidden() -> None:
    note = "<NOTE>Observations should not exceed 100000 characters. 23,456 characters were elided. Try less.</NOTE>"
    (view,) = clipped_views(run(turn(1, calls=(Call("bash", {}, "x" * 100 + CLIP + note),))), ())
    assert view.hidden_characters == 23_456


def test_a_view_of_just_the_lines_that_were_asked_for_is_not_clipped() -> None:
    output = (
        "IMPORTANT: The file content has been truncated.\nStatus: Showing lines 11-12 of 90 total lines.\n"
        "--- FILE CONTENT (truncated) ---\na\nb"
    )
    exact = Call("read_file", {"offset": 10, "limit": 2}, output)
    longer = Call("read_file", {"offset": 10, "limit": 9}, output)
    views = clipped_views(run(turn(1, calls=(exact,)), turn(2, calls=(longer,))), ())
    assert [view.turn for view in views] == [2]


def test_among_several_clipped_calls_a_file_goes_to_the_one_that_shows_it() -> None:
    calls = (Call("bash", {}, "alpha " + CLIP), Call("bash", {}, "beta " + CLIP))
    reads = (clipped("a.py", "alpha " + CLIP), clipped("b.py", "beta " + CLIP), whole("c", "c.py"))
    views = clipped_views(run(turn(1, *reads, calls=calls)), {"b.py"})
    assert [(view.paths, view.on_goal) for view in views] == [(("a.py",), False), (("b.py",), True)]


# Lines of the reference patch

PATCH = read_patch(
    "--- a/src/a.py\n+++ b/src/a.py\n@@ -10,3 +10,3 @@\n keep\n-old = 1\n+new = 1\n last\n"
    "@@ -40,1 +40,2 @@\n keep\n+only added\n"
    "--- a/tests/test_a.py\n+++ b/tests/test_a.py\n@@ -1,1 +1,1 @@\n-x\n+y\n"
)


def test_old_lines_are_those_of_goal_files_and_additions_have_none() -> None:
    assert old_lines(PATCH, {"src/a.py"}) == {"src/a.py": {11: "old = 1"}}
    assert old_lines(PATCH, {"/repo/src/a.py"}) == {"/repo/src/a.py": {11: "old = 1"}}
    assert old_lines(PATCH, {"/repo/osrc/a.py"}) == {}
    assert old_lines(None, {"src/a.py"}) == {}


CHANGED = {"a.py": {11: "old = 1"}}
FIRST = turn(1, clipped())


@pytest.mark.parametrize(
    ("turns", "expected"),
    [
        # never shown again before the run ends
        ((FIRST,), [("never", None)]),
        # shown by a later view, whatever its white space
        ((FIRST, turn(2, whole("x\n  old  =  1\n"))), [("recovered", 2)]),
        # part of a line is not the line
        ((FIRST, turn(2, whole("old = 12"))), [("never", None)]),
        # the clipped view itself shows it
        ((turn(1, clipped(content="old = 1\n" + CLIP)),), []),
        # the range that was asked for does not cover it
        ((turn(1, clipped(requested=Lines(12, 90))),), []),
        ((turn(1, clipped(requested=Lines(11, 90))),), [("never", None)]),
        # a view that was not clipped left nothing out
        ((turn(1, whole("one")),), []),
        # after the first write of the file nothing counts, in its own turn everything does
        ((FIRST, turn(2, writes=(FileWrite("a.py"),)), turn(3, whole("old = 1"))), [("never", None)]),
        ((FIRST, turn(2, whole("old = 1"), writes=(FileWrite("a.py"),))), [("recovered", 2)]),
        ((FIRST, turn(2, writes=(FileWrite("b.py"),)), turn(3, whole("old = 1"))), [("recovered", 3)]),
        ((turn(1, writes=(FileWrite("a.py"),)), turn(2, clipped())), []),
        # a later view that does not cover the line shows some other one
        ((FIRST, turn(2, whole("old = 1", requested=Lines(50, 60)))), [("never", None)]),
        # a search asks for no range, so it hides nothing, and covers what it shows
        ((turn(1, clipped(requested=Lines(1, 0))),), []),
        ((FIRST, turn(2, whole("old = 1", requested=Lines(1, 0)))), [("recovered", 2)]),
        # a view of another file shows nothing
        ((FIRST, turn(2, whole("old = 1", "b.py"))), [("never", None)]),
        # the same text twice in a view: nobody knows which line it was
        ((FIRST, turn(2, whole("old = 1\nold = 1"))), [("ambiguous", None)]),
        # two clipped views are one instance
        ((FIRST, turn(2, clipped()), turn(3, whole("old = 1"))), [("recovered", 3)]),
        # a second clipped view may show what the first left out
        ((FIRST, turn(2, clipped(content=CLIP + "\nold = 1"))), [("recovered", 2)]),
    ],
)
def test_what_became_of_a_line(turns: tuple[Turn, ...], expected: list[tuple[str, int | None]]) -> None:
    found = hidden_lines(run(*turns), CHANGED)
    assert [(line.outcome, line.recovered_turn) for line in found] == expected


def test_numbered_views_go_by_number() -> None:
    cut = FileRead("a.py", lines={1: "one", 2: "two"}, clipped=True)
    right = FileRead("a.py", lines={10: "keep", 11: "old = 1"})
    elsewhere = FileRead("a.py", lines={30: "old = 1"})
    assert [line.outcome for line in hidden_lines(run(turn(1, cut), turn(2, right)), CHANGED)] == ["recovered"]
    # The text stands on line 30 too, so it is not unique in the file.
    assert [line.outcome for line in hidden_lines(run(turn(1, cut), turn(2, elsewhere)), CHANGED)] == ["ambiguous"]


def test_behind_the_cut_a_view_has_no_numbers_but_its_text_counts() -> None:
    # The head has numbers, the tail does not, since nobody knows how many lines lie between.
    cut = FileRead("a.py", content=f"one\n{ELIDED}\nold = 1\n", lines={1: "one"}, clipped=True)
    assert hidden_lines(run(turn(1, cut)), CHANGED) == ()


@pytest.mark.parametrize("printed", ["old = 1", "    11\told = 1", "  old   = 1"])
def test_a_line_that_a_clipped_output_shows_among_other_text_is_not_hidden(printed: str) -> None:
    # `ls; cat a.py`: the read has no text of its own, but the line stands in what was printed.
    cut = FileRead("a.py", tokens=5, clipped=True)
    shown = Turn(1, (cut,), (), 0, RecordedTurn((Call("bash", {}, f"a.py\none\n{ELIDED}\n{printed}\n"),)))
    assert hidden_lines(run(shown), CHANGED) == ()
    left_out = Turn(1, (cut,), (), 0, RecordedTurn((Call("bash", {}, f"a.py\none\n{ELIDED}\nlast\n"),)))
    assert [line.outcome for line in hidden_lines(run(left_out), CHANGED)] == ["never"]
    again = Turn(2, (FileRead("a.py", tokens=5),), (), 0, RecordedTurn((Call("bash", {}, f"a.py\n{printed}\n"),)))
    assert [line.outcome for line in hidden_lines(run(left_out, again), CHANGED)] == ["recovered"]


def test_blank_lines_and_texts_that_the_patch_changes_twice_are_ambiguous() -> None:
    changed = {"a.py": {3: "  ", 5: "return x", 9: "return  x", 12: "unique"}}
    found = hidden_lines(run(FIRST, turn(2, whole("unique"))), changed)
    assert [(line.line, line.outcome) for line in found] == [
        (3, "ambiguous"),
        (5, "ambiguous"),
        (9, "ambiguous"),
        (12, "recovered"),
    ]


def test_a_line_seen_before_it_was_left_out_is_marked() -> None:
    found = hidden_lines(run(turn(1, whole("old = 1")), turn(2, clipped())), CHANGED)
    assert found == (HiddenLine("a.py", 11, 2, "never", None, shown_before=True),)


def line(outcome: str) -> HiddenLine:
    return HiddenLine("a.py", 1, 1, outcome, None, False)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("outcomes", "group"),
    [
        ([], "none"),
        (["recovered", "recovered"], "recovered"),
        (["never"], "never"),
        (["never", "recovered"], "mixed"),
        (["never", "ambiguous"], "ambiguous"),
    ],
)
def test_groups_are_exclusive(outcomes: list[str], group: str) -> None:
    assert clipping_group(map(line, outcomes)) == group


# A slow second reading of the definition, for one file whose views are unnumbered.

texts = st.sampled_from(["p", "q", "r", ""])
contents = st.lists(texts, max_size=4)
spans = st.none() | st.builds(lambda first, size: Lines(first, first + size), st.integers(1, 6), st.integers(0, 5))
visits = st.lists(st.tuples(contents, spans, st.booleans(), st.booleans()), max_size=6)


@given(visits, st.dictionaries(st.integers(1, 6), texts, max_size=3))
def test_hidden_lines_agree_with_a_slow_reading(
    visits: list[tuple[list[str], Lines | None, bool, bool]], changed: dict[int, str]
) -> None:
    turns = [
        turn(
            n,
            FileRead("a.py", content="\n".join(lines), requested=span, clipped=cut),
            writes=(FileWrite("a.py"),) * written,
        )
        for n, (lines, span, cut, written) in enumerate(visits, 1)
    ]
    found = {(row.line, row.turn, row.outcome) for row in hidden_lines(run(*turns), {"a.py": changed})}
    first_write = next((n for n, visit in enumerate(visits, 1) if visit[3]), len(visits))
    counted = visits[:first_write]
    expected = set()
    for number, text in changed.items():
        covering = [(n, visit) for n, visit in enumerate(counted, 1) if visit[1] is None or _within(visit[1], number)]
        left_out = [n for n, visit in covering if visit[2] and text not in "\n".join(visit[0]).splitlines()]
        if not left_out:
            continue
        twice = list(changed.values()).count(text) > 1 or any(visit[0].count(text) > 1 for visit in counted)
        later = [n for n, visit in covering if n > left_out[0] and text in "\n".join(visit[0]).splitlines()]
        outcome = "ambiguous" if twice or not text else "recovered" if later else "never"
        expected.add((number, left_out[0], outcome))
    assert found == expected


def _within(span: Lines, number: int) -> bool:
    return span.first <= number <= span.last
