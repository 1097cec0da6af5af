"""What a command touched, on the commands of `commands.py`: sets of files, exactly."""

from __future__ import annotations

import pytest

from eirkit.vestige.shell.effects import shell_touches
from eirkit.vestige.shell.place import Place
from tests.vestige.commands import CASES, Case

MANY_ENOUGH = 120  # commands that the set is meant to have at least


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.command[:60])
def test_a_command_touches_what_it_says(case: Case) -> None:
    place = Place(roots=("/repo",), folder="/repo", keeps_folder=False)
    for command in case.before:
        shell_touches(command, "", 0, place)
    touches = shell_touches(case.command, case.output, case.exit_code, place)
    assert {read.path for read in touches.reads} == set(case.reads.split())
    assert {write.path for write in touches.writes} == set(case.writes.split())


def test_the_set_is_large_and_has_no_command_twice_for_the_same_reason() -> None:
    assert len(CASES) >= MANY_ENOUGH
    assert len({(case.command, case.output, case.before) for case in CASES}) == len(CASES)
