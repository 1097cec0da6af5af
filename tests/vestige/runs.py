"""Small trajectories for tests, written as pairs of reads and writes."""

from __future__ import annotations

from eirkit.vestige.trajectory import FileRead, FileWrite, RecordedTurn, Recording, Trajectory, Turn
from tests.vestige.reference import Turns

# Seven turns worked out by hand in docs/vestige-demand.md.
BY_HAND: Turns = [
    ([("a.py", 100)], []),
    ([("b.py", 50)], []),
    ([("g.py", 200)], []),
    ([], [("g.py", 210)]),
    ([("c.py", 30)], []),
    ([], [("d.py", 40)]),
    ([("g.py", 210)], []),
]


def trajectory(turns: Turns, **recording: object) -> Trajectory:
    made = [
        turn(number, [FileRead(p, tokens=n) for p, n in reads], [FileWrite(p, tokens=n) for p, n in writes])
        for number, (reads, writes) in enumerate(turns, 1)
    ]
    return of_turns(made, **recording)


def turn(number: int, reads: list[FileRead] = [], writes: list[FileWrite] = [], tokens: int = 10) -> Turn:  # noqa: B006 - never changed
    return Turn(number, tuple(reads), tuple(writes), tokens, RecordedTurn())


def of_turns(turns: list[Turn], **recording: object) -> Trajectory:
    fields = {"run_id": "r1", "task_id": "t1", "format": "plain", "source": "one.jsonl", **recording}
    return Trajectory(Recording(turns=tuple(one.recorded for one in turns), **fields), tuple(turns), None)
