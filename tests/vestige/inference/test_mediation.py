"""Mediation by standardization: a case by hand, additivity, resampling, and its statements."""

from __future__ import annotations

import numpy as np
import pytest

from eirkit.vestige.inference.mediation import mediate
from tests.vestige.inference import samples

SOLVED = 1e-8
ROUNDING = 1e-12


def test_a_saturated_case_by_hand():
    # x is 0 or 1. P(m|x): 1/4, 3/4. P(y|x, m) with log odds a + b x + c m fitted exactly by these counts:
    # x=0: m=0 4 of 12, m=1 2 of 4; x=1: m=0 2 of 4, m=1 8 of 12: odds ½, 1, 1, 2, so b = c = log 2.
    counts = {(0, 0): (4, 12), (0, 1): (2, 4), (1, 0): (2, 4), (1, 1): (8, 12)}
    rows = [(x, m, int(i < failed)) for (x, m), (failed, n) in counts.items() for i in range(n)]
    x, m, y = np.array(rows * 5).T
    rng = np.random.default_rng(0)
    found = mediate(y, m, x, {}, np.arange(len(y)), rng, percentiles=(0, 100), resamples=20)
    # With x = 1 the risks are ½ and ⅔: (¾ − ¼)·(⅔ − ½) = 1/12. With m as under 0: ½·¾ + ⅔·¼ − (⅓·¾ + ½·¼) = 1/6.
    assert found.indirect.estimate == pytest.approx(1 / 12, abs=SOLVED)
    assert found.direct.estimate == pytest.approx(1 / 6, abs=SOLVED)
    assert found.total.estimate == pytest.approx(1 / 4, abs=SOLVED)


def test_parts_add_up_and_intervals_hold_the_estimate():
    runs = samples.runs()
    covariates = {"tokens": runs.tokens}
    found = mediate(runs.failed, runs.never, runs.lines, covariates, runs.task, np.random.default_rng(1))
    assert found.indirect.estimate + found.direct.estimate == pytest.approx(found.total.estimate, abs=ROUNDING)
    for term in (found.indirect, found.direct, found.total):
        assert term.low < term.estimate < term.high
    assert (found.resamples, found.clusters) == (200, 60)


def test_units_of_the_exposure_do_not_count():
    runs = samples.runs(tasks=20)
    plain, moved = (
        mediate(runs.failed, runs.never, lines, {}, runs.task, np.random.default_rng(1), resamples=30)
        for lines in (runs.lines, 10 - 0.01 * runs.lines)
    )
    assert moved.total.estimate == pytest.approx(-plain.total.estimate, abs=SOLVED)


def test_a_mediator_that_does_nothing_carries_nothing():
    rng = np.random.default_rng(5)
    task = np.repeat(np.arange(150), 6)
    x = rng.normal(size=150)[task]
    m, y = (rng.random(900) < 0.4), (rng.random(900) < 1 / (1 + np.exp(-x)))
    found = mediate(y, m, x, {}, task, rng)
    assert found.indirect.low <= 0 <= found.indirect.high
    assert found.direct.low > 0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"outcome": np.ones(40)}, "the outcome is 1"),
        ({"mediator": np.zeros(40)}, "the mediator is 0"),
        ({"exposure": np.full(40, 3.0)}, "the exposure is 3"),
        ({"exposure": np.r_[np.zeros(39), 1]}, "both percentiles"),
        ({"clusters": np.zeros(40)}, "one cluster"),
        ({"covariates": {"same": np.tile([0, 1], 20)}}, "combination"),
    ],
)
def test_without_a_path_there_is_a_statement(change, words):
    rows = {
        "outcome": np.tile([0, 0, 1, 1], 10),
        "mediator": np.tile([0, 1], 20),
        "exposure": np.arange(40.0),
        "covariates": {},
        "clusters": np.arange(40),
    }
    found = mediate(**{**rows, **change}, rng=np.random.default_rng(0))
    assert found.indirect.estimate is None
    assert words in found.note
