"""The 36 cases with known dependencies: every required file kept, the distractor never; and the cases can fail."""

from dataclasses import replace

import pytest
from msgspec import structs

from eirkit.vestige.demand.validation import DISTRACTOR, SCRATCH, KnownCase, known_cases, validate
from eirkit.vestige.trajectory import FileWrite

CASES = list(known_cases())


def named(case: KnownCase) -> str:
    return f"{case.shape}-{case.length}-{case.place}"


def test_there_are_36_different_cases():
    assert len(CASES) == len({named(case) for case in CASES}) == len({case.turns for case in CASES}) == 36


@pytest.mark.parametrize("case", CASES, ids=named)
def test_required_files_are_kept_and_the_distractor_is_not(case):
    verdict = validate(case)
    assert (verdict.missing, verdict.surplus, verdict.peak_tokens) == (set(), set(), case.peak_tokens)
    assert verdict.holds


@pytest.mark.parametrize("case", [case for case in CASES if case.place != "after"], ids=named)
def test_a_distractor_that_reaches_the_goal_is_noticed(case):
    # The scratch file's writer now makes the goal instead, so the distractor is needed and the case must not hold.
    turns = tuple(
        structs.replace(
            turn, writes=tuple(FileWrite("goal.py", tokens=1) if w.path == SCRATCH else w for w in turn.writes)
        )
        for turn in case.turns
    )
    verdict = validate(replace(case, turns=turns))
    assert DISTRACTOR in verdict.surplus
    assert not verdict.holds
