"""Sessions without a named goal: cut at the user's prompts, and nothing that was read and then edited is in vain."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from eirkit.vestige.audits.occupancy import read_windows
from eirkit.vestige.corpus.analysis import AnalysisOptions, analyze
from eirkit.vestige.demand.graph import session_goal
from eirkit.vestige.tokens import estimating_counter
from eirkit.vestige.trajectory import FileRead, FileWrite, RecordedTurn, Trajectory, Turn
from tests.vestige.runs import of_turns, turn

OPTIONS = AnalysisOptions(read_windows())


def step(number: int, reads: str = "", writes: tuple[FileWrite, ...] = (), **recorded: object) -> Turn:
    """A turn that reads files of 100 tokens, named by letters."""
    made = turn(number, [FileRead(path, tokens=100) for path in reads], list(writes))
    return structs.replace(made, recorded=RecordedTurn(**recorded))  # type: ignore[arg-type]


def edit(path: str, removed: str | None = None, added: str | None = None) -> tuple[FileWrite, ...]:
    return (FileWrite(path, removed=removed, added=added),)


def row(run: Trajectory, **options: object):
    return analyze(run, None, replace(OPTIONS, **options), estimating_counter()).run


def dead(run: Trajectory) -> dict[str, int]:
    files = analyze(run, None, OPTIONS, estimating_counter()).columns()["files"]
    return dict(zip(files["path"], files["dead_tokens"], strict=True))


def test_a_file_that_was_read_and_edited_is_not_in_vain_whatever_was_edited_after_it() -> None:
    # By the paper's rule the goal is the last edit, b: then a and its edit lead nowhere.
    run = of_turns([step(1, "a"), step(2, "", edit("a")), step(3, "b"), step(4, "", edit("b"))])
    assert row(run, rule="paper").dead_read_tokens == 100
    assert dead(run) == {"a": 0, "b": 0}


def test_a_read_before_another_edit_is_used_by_the_later_edit_of_the_file() -> None:
    # The edit of x carries what was read before it; a was read for its own edit.
    run = of_turns([step(1, "a"), step(2, "", (FileWrite("x"),)), step(3, "", (FileWrite("x", "delete"),))])
    assert dead(of_turns([*run.turns, step(4, "c"), step(5, "", edit("c"))]))["a"] == 100
    assert dead(of_turns([*run.turns, step(4, "", edit("a"))]))["a"] == 0


def test_segments_begin_at_prompts_and_have_goals_of_their_own() -> None:
    turns = [
        step(1, "a", asked="Fix a"),
        step(2, "", edit("a")),
        step(3, "bc", asked="How does b work?"),
        step(4, "d", asked="Now d"),
        step(5, "", edit("d")),
        step(6, "e"),
    ]
    goal = session_goal(run := of_turns(turns))
    assert [(one.first, one.last, set(one.goal)) for one in goal.segments] == [
        (1, 2, {"a"}),
        (3, 3, set()),
        (4, 6, {"d"}),
    ]
    # What the question read is carried into the next edit; e was read after everything was done.
    assert dead(run) == {"a": 0, "b": 0, "c": 0, "d": 0, "e": 100}
    assert (row(run).segments, row(run).judged_read_tokens) == (3, 300)


def test_a_last_segment_without_edits_tells_nothing_about_its_reads() -> None:
    run = of_turns([step(1, "a"), step(2, "", edit("a")), step(3, "bc", asked="Explain b and c")])
    assert dead(run) == {"a": 0, "b": 0, "c": 0}
    assert row(run).judged_read_tokens == 100


THROWN_AWAY = {
    "deleted": [(FileWrite("x", "whole", content="new"),), (FileWrite("x", "delete"),)],
    "restored by git": [edit("x"), edit("x"), (FileWrite("x", restored=True),)],
    "undone by the opposite edits": [
        edit("x", "1", "2"),
        edit("x", "3", "4"),
        edit("x", "4", "3"),
        edit("x", "2", "1"),
    ],
}


@pytest.mark.parametrize("writes", THROWN_AWAY.values(), ids=THROWN_AWAY)
def test_what_was_thrown_away_again_is_no_goal(writes: list[tuple[FileWrite, ...]]) -> None:
    made = [step(1, "x"), *(step(number, "", one) for number, one in enumerate(writes, 2))]
    assert session_goal(of_turns(made)).paths == frozenset()
    again = [*made, step(len(made) + 1, "", edit("x", "7", "8"))]
    assert session_goal(of_turns(again)).paths == {"x"}


def test_the_choice_of_own_edits_changes_the_papers_peak_alone() -> None:
    run = of_turns([step(1, "a"), step(2, "", edit("a")), step(3, "b"), step(4, "b"), step(5, "", edit("b"))])
    last, every = row(run, own_edits="last"), row(run, own_edits="all")
    assert structs.replace(last, peak_paper_tokens=None) == structs.replace(every, peak_paper_tokens=None)


def test_a_file_rewritten_whole_was_used_only_if_it_was_read() -> None:
    log = (FileWrite("log", "whole", content="ok"),)
    run = of_turns([step(1, "", log), step(2, "", log), step(3, "a"), step(4, "", edit("a"))])
    states = analyze(run, None, OPTIONS, estimating_counter()).tables["states"]
    assert dict(zip(zip(states["path"], states["version"], strict=True), states["last_used"], strict=True)) == {
        ("log", 1): None,
        ("log", 2): None,
        ("a", 0): 4,
        ("a", 1): None,
    }


letters = st.sets(st.sampled_from("abc"), max_size=2).map(sorted)
writes = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["edit", "whole", "delete"])), max_size=2)
sessions = st.lists(st.tuples(letters, writes, st.booleans()), min_size=1, max_size=8)


@given(sessions)
def test_no_file_read_and_later_edited_in_its_segment_is_in_vain(drawn) -> None:
    turns = [
        step(n, "".join(reads), tuple(FileWrite(path, kind) for path, kind in made), asked="x" if asked else "")
        for n, (reads, made, asked) in enumerate(drawn, 1)
    ]
    found = analyze(of_turns(turns), None, OPTIONS, estimating_counter()).tables["actions"]
    for place, one in enumerate(turns):
        ahead: set[str] = set()  # files edited from here to the end of the segment
        for later in turns[place:]:
            if later is not one and later.recorded.asked:
                break
            ahead |= {write.path for write in later.writes if write.kind != "delete"}
        for turn_of, kind, path, necessary in zip(
            *(found[name] for name in ("turn", "kind", "path", "necessary")), strict=True
        ):
            if (turn_of, kind) == (one.number, "read") and path in ahead:
                assert necessary


def test_a_file_compacted_away_and_edited_blind_is_lost_though_another_was_edited_before() -> None:
    # Turn 2 edits b before the compaction; a is edited after it without being read again.
    text = "\n".join(f"line number {n} of the file" for n in range(20))
    turns = [
        structs.replace(step(1), reads=(FileRead("a", content=text),)),
        step(2, "", edit("b")),
        step(3, "", edit("a", "line number 3 of the file", "another"), broken="compaction", carried="Working on a."),
    ]
    breaks = analyze(of_turns(turns), None, OPTIONS, estimating_counter()).columns()["breaks"]
    tokens = estimating_counter()(text)
    assert (breaks["dropped_tokens"], breaks["overwritten_tokens"]) == ([tokens], [tokens])
    paper = analyze(of_turns(turns), None, replace(OPTIONS, rule="paper"), estimating_counter()).columns()["breaks"]
    assert paper["dropped_tokens"] == [0]  # where an edit uses nothing, as in the paper


def test_what_a_break_dropped_is_what_had_been_shown_before_it() -> None:
    # 6 of 10 lines were shown before the compaction, all of them after it.
    lines = {n: f"line number {n} of the file" for n in range(1, 11)}
    part = {n: line for n, line in lines.items() if n <= 6}
    turns = [
        structs.replace(step(1), reads=(FileRead("a", lines=part),)),
        step(2, broken="compaction", carried="Working on a."),
        structs.replace(step(3), reads=(FileRead("a", lines=lines),)),
        step(4, "", edit("a")),
    ]
    count = estimating_counter()
    tables = analyze(of_turns(turns), None, OPTIONS, count).columns()
    shown = count("\n".join(part.values()))
    assert (tables["breaks"]["live_tokens"], tables["breaks"]["dropped_tokens"]) == ([shown], [shown])
    assert tables["breaks"]["reread_dropped_tokens"] == [shown]
    assert max(tables["files"]["peak_tokens"]) > shown


def test_a_look_at_some_lines_of_an_edited_file_does_not_make_it_small() -> None:
    # The whole file was in the context; after an edit two of its lines were looked at again, then all was dropped.
    lines = {n: f"line number {n} of the file" for n in range(1, 101)}
    turns = [
        structs.replace(step(1), reads=(FileRead("a", lines=lines),)),
        step(2, "", edit("a", "line number 3 of the file", "line number three of the file")),
        structs.replace(step(3), reads=(FileRead("a", lines={n: lines[n] for n in (9, 10)}),)),
        step(4, broken="compaction", carried="Working on a."),
        structs.replace(step(5), reads=(FileRead("a", lines=lines),)),
        step(6, "", edit("a")),
    ]
    count = estimating_counter()
    breaks = analyze(of_turns(turns), None, OPTIONS, count).columns()["breaks"]
    whole = count("\n".join(lines.values()))
    assert whole * 0.98 <= breaks["dropped_tokens"][0] <= whole * 1.02
    assert breaks["reread_dropped_tokens"][0] >= whole * 0.95
