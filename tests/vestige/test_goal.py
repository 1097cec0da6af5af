"""Where a run's goal comes from: the patch, the log, or its own last edits, in this order."""

import pytest

from eirkit.vestige.demand.gold_patches import FileChange, Patch
from eirkit.vestige.demand.graph import goal_of
from eirkit.vestige.trajectory import FileRead, FileWrite
from tests.vestige.runs import of_turns, turn


def patch(*paths: str) -> Patch:
    return Patch(tuple(FileChange(path, path, {1: "x"}, 2, 1) for path in paths))


def test_a_patch_goes_before_what_the_log_says():
    run = of_turns([turn(1, [FileRead("src/a.py")])], goal_files=("b.py",))
    goal = goal_of(run, patch("src/a.py", "tests/test_a.py"))
    assert (goal.source, goal.files, goal.paths) == ("gold", ("src/a.py",), {"src/a.py"})
    assert goal_of(run, patch("src/a.py", "tests/test_a.py"), tests=True).files == ("src/a.py", "tests/test_a.py")


def test_a_patch_file_is_found_under_a_log_s_absolute_path():
    run = of_turns(
        [turn(1, [FileRead("/testbed/build/src/a.py"), FileRead("/testbed/src/a.py"), FileRead("/testbed/xsrc/a.py")])]
    )
    assert goal_of(run, patch("src/a.py")).paths == {"/testbed/src/a.py"}


def test_what_the_log_says_goes_before_the_run_s_own_edits():
    run = of_turns([turn(1, [], [FileWrite("a.py")])], goal_files=("b.py",))
    assert (goal_of(run).source, goal_of(run).files) == ("log", ("b.py",))


def test_none_is_an_answer():
    run = of_turns([turn(1, [], [FileWrite("a.py")])], goal_files=())
    assert (goal_of(run).source, goal_of(run).paths) == ("log", frozenset())


OWN_EDITS = [
    ("the last write action", [["a.py"], ["b.py", "c.py"]], ("b.py", "c.py"), ("a.py", "b.py", "c.py")),
    ("the repository before scratch files", [["a.py"], ["/tmp/x.py"]], ("a.py",), ("a.py",)),
    ("scratch files where nothing else was written", [["/tmp/x.py"]], ("/tmp/x.py",), ("/tmp/x.py",)),
    ("what was kept before what was removed", [["a.py"], ["b.py"], ["-b.py"]], ("a.py",), ("a.py",)),
    ("a removal where nothing was kept", [["-b.py"]], ("b.py",), ("b.py",)),
    ("nothing where nothing was written", [[]], (), ()),
]


@pytest.mark.parametrize(("name", "written", "last", "every"), OWN_EDITS, ids=[case[0] for case in OWN_EDITS])
def test_own_edits_stand_in(name, written, last, every):
    writes = [
        [FileWrite(path.removeprefix("-"), kind="delete" if path.startswith("-") else "edit") for path in paths]
        for paths in written
    ]
    run = of_turns([turn(number, [], made) for number, made in enumerate(writes, 1)])
    assert (goal_of(run).source, goal_of(run).files) == ("own-edits", last)
    assert goal_of(run, own_edits="all").files == every
