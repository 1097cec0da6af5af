"""Precision and recall of reads and writes on whole runs, read by hand action by action.

Recorded runs in nine formats were drawn by lot, twice, and sessions on macOS and Windows were written for the purpose;
`docs/design/what-an-action-touched.md` says how. The figures below were measured once, before any rule was changed on
account of an action that they count. A change that falls below has lost something that worked.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import chain
from pathlib import Path

import pytest

from eirkit.vestige.actions.touches import initial_state, touches_of
from eirkit.vestige.corpus.reader import read_corpus
from eirkit.vestige.trajectory import Call, Recording, Touches
from tests.vestige.labels import DRAWN, THIRD_DRAW, command_text, hash_of, read_labels
from tests.vestige.recorded import recorded
from tests.vestige.written_sessions import SESSIONS, WrittenSession

DRAWS = {"second": read_labels(DRAWN), "third": read_labels(THIRD_DRAW)}
LABELS = tuple(chain.from_iterable(DRAWS.values()))
SETS = sorted({label.set for label in LABELS})
RUNS = {"second": 20, "third": 18}  # of the third draw, two runs without a set of their own are left out
FORMATS = 8
# Of all found, of all labeled.
READS = {"second": (134 / 135, 134 / 136), "third": (52 / 53, 52 / 54)}
WRITES = {"second": (79 / 79, 79 / 79), "third": (32 / 32, 32 / 32)}
WRITTEN_READS = (27 / 28, 27 / 29)
WRITTEN_WRITES = (28 / 28, 28 / 29)


def test_the_runs_of_each_draw_are_labeled() -> None:
    assert {draw: len({(label.set, label.run) for label in labels}) for draw, labels in DRAWS.items()} == RUNS
    assert len({(label.set, label.run, label.turn, label.call) for label in LABELS}) == len(LABELS)


@pytest.mark.parametrize("draw", DRAWS)
def test_the_runs_are_of_at_least_eight_formats(draw: str) -> None:
    drawn = {(label.set, label.run) for label in DRAWS[draw]}
    assert len({recorded_runs(name)[run].format for name, run in drawn}) >= FORMATS


@pytest.mark.parametrize("name", SETS)
def test_labels_belong_to_the_actions_of_the_recorded_runs(name: str) -> None:
    runs = recorded_runs(name)
    for label in LABELS:
        if label.set == name:
            call = runs[label.run].turns[label.turn - 1].calls[label.call]
            assert hash_of(command_text(call)) == label.sha256, label


@pytest.mark.parametrize("draw", DRAWS)
def test_every_action_of_the_drawn_runs_is_understood_as_well_as_it_was_measured(draw: str) -> None:
    reads, writes = Counter[str](), Counter[str]()
    for label in DRAWS[draw]:
        touches = touches_by_call(label.set)[label.run, label.turn, label.call]
        count(reads, {read.path for read in touches.reads}, label.reads)
        count(writes, {write.path for write in touches.writes}, label.writes)
    assert_no_worse(reads, READS[draw])
    assert_no_worse(writes, WRITES[draw])


@pytest.mark.parametrize("session", SESSIONS, ids=lambda session: session.name)
def test_written_sessions_of_macos_and_windows_are_read_in_full(session: WrittenSession, tmp_path: Path) -> None:
    assert len(calls_of(session, tmp_path)) == len(session.actions)


@pytest.mark.parametrize("is_held_out", [False, True], ids=["built on", "held out"])
def test_written_sessions_are_understood_as_well_as_they_were_measured(is_held_out: bool, tmp_path: Path) -> None:
    reads, writes = Counter[str](), Counter[str]()
    for session in SESSIONS:
        if session.is_held_out == is_held_out:
            touched = calls_of(session, tmp_path / session.name)
            for (_, touches), action in zip(touched, session.actions, strict=True):
                count(reads, {read.path for read in touches.reads}, action.reads)
                count(writes, {write.path for write in touches.writes}, action.writes)
    assert_no_worse(reads, WRITTEN_READS)
    assert_no_worse(writes, WRITTEN_WRITES)


def count(tally: Counter[str], found: set[str], labeled: frozenset[str]) -> None:
    """Add the files of one action."""
    tally.update(both=len(found & labeled), found=len(found), labeled=len(labeled))


def assert_no_worse(tally: Counter[str], measured: tuple[float, float]) -> None:
    """Compare precision and recall with those measured once."""
    assert tally["both"] / tally["found"] >= measured[0], tally
    assert tally["both"] / tally["labeled"] >= measured[1], tally


def calls_of(session: WrittenSession, folder: Path) -> list[tuple[Call, Touches]]:
    """Write a session as its agent does, read it back, and return its calls with what they touched."""
    for name, content in session.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    (run,) = (one for one in read_corpus([folder]) if isinstance(one, Recording))
    return [(call, touches) for _, _, call, touches in touched_calls(run)]


def touched_calls(run: Recording) -> Iterator[tuple[int, int, Call, Touches]]:
    """Yield turn, place, call and touches of every call of a run."""
    state = initial_state(run)
    for number, turn in enumerate(run.turns, 1):
        for place, call in enumerate(turn.calls):
            yield number, place, call, Touches() if turn.rejected else touches_of(call, state)


@cache
def touches_by_call(name: str) -> Mapping[tuple[str, int, int], Touches]:
    """Return what every call of the labeled runs of a set touched."""
    wanted = {label.run for label in LABELS if label.set == name}
    return {
        (key, number, place): touches
        for key, run in recorded_runs(name).items()
        if key in wanted
        for number, place, _, touches in touched_calls(run)
    }


@cache
def recorded_runs(name: str) -> Mapping[str, Recording]:
    """Return the runs of a set by their names, of which the path of the folder is no part; skips where it is absent."""
    runs = (run for run in read_corpus([recorded(name)]) if isinstance(run, Recording))
    return {re.sub(r"@.*/", "@", run.run_id): run for run in runs}
