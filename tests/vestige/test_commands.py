"""What a command touched, on the commands of `commands.py`: sets of files, exactly."""

from __future__ import annotations

import pytest

from eirkit.vestige.shell.effects import shell_touches
from eirkit.vestige.shell.state import ShellState
from tests.timing import UNITS_IN_A_SECOND, cost
from tests.vestige.commands import CASES, Case

MANY_ENOUGH = 120  # commands that the set is meant to have at least
LONGEST = 5 * UNITS_IN_A_SECOND  # each takes less than a fiftieth of it; without bounds some would never end

HOSTILE = {
    "a long sequence": "touch f{1..100000000000}",
    "sequences of sequences": "touch " + "{1..60}" * 50,
    "choices of choices": "touch " + "{a,b}" * 40,
    "a text that doubles": "f=aaaaaaaaaaaaaaaa; " + "f=$f$f; " * 60 + 'touch "$f"',
    "an array that doubles": "f=(a b); " + 'f+=("${f[@]}" "${f[@]}"); ' * 60 + 'touch "${f[@]}"',
    "loops in loops": "for i in $(seq 64); do for j in {1..64}; do for k in {1..64}; do >$i$j$k; done; done; done",
    "folders of folders": "pushd a; " * 2000 + "popd; " * 2000,
    "scripts of sed": 'sed "' + "s/a/" * 900 + 'w x" a',
    "commands in commands": "echo " + "$(echo " * 500 + "x" + ")" * 500 + " > f",
    "searches for searches": "; ".join(f"find . -name x{i} -exec sed -i s/x/y/ {{}} +" for i in range(500)),
}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.command[:60])
def test_a_command_touches_what_it_says(case: Case) -> None:
    place = ShellState(roots=("/repo",), folder="/repo", keeps_folder=False)
    for command, output in (*case.shown, *((command, "") for command in case.before)):
        shell_touches(command, output, 0, place)
    touches = shell_touches(case.command, case.output, case.exit_code, place)
    assert {read.path for read in touches.reads} == set(case.reads.split())
    assert {write.path for write in touches.writes} == set(case.writes.split())


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_followed_has_bounds(name: str) -> None:
    place = ShellState(roots=("/repo",), folder="/repo", keeps_folder=False)
    assert cost(lambda: shell_touches(HOSTILE[name], "", 0, place)) < LONGEST


def test_the_set_is_large_and_has_no_command_twice_for_the_same_reason() -> None:
    assert len(CASES) >= MANY_ENOUGH
    assert len({(case.command, case.output, case.shown, case.before) for case in CASES}) == len(CASES)
