"""Poisson regression with absorbed groups: against dummies, by hand, by property, and what it leaves out."""

from __future__ import annotations

from math import log

import numpy as np
import pytest

from eirkit.errors import SpecError
from eirkit.vestige.inference.poisson import poisson, profile
from tests.timing import UNITS_IN_A_SECOND, cost
from tests.vestige.inference import samples

SOLVED = 1e-7  # the last Newton step is below 1e-9 standard deviations
RELATIVE = 1e-6
BY_DIFFERENCES = 1e-5  # what central differences at 1e-5 can show
A_SECOND = UNITS_IN_A_SECOND


def test_one_pair_by_hand():
    # Two groups; rates 3/10 → 6/10 and 1/5 → 2/5: doubled inside both, whatever their levels.
    fit = poisson([3, 6, 1, 2], {"x": [0, 1, 0, 1]}, [0, 0, 1, 1], [0, 1, 2, 3], exposure=[10, 10, 5, 5])
    assert fit.term("x").estimate == pytest.approx(log(2), abs=SOLVED)


def test_exposure_is_a_multiplier():
    fit = poisson([3, 6, 1, 2], {"x": [0, 1, 0, 1]}, [0, 0, 1, 1], [0, 1, 2, 3], exposure=[10, 20, 5, 10])
    assert fit.term("x").estimate == pytest.approx(0, abs=SOLVED)


def test_derivatives_are_those_of_the_profile():
    cells = samples.cells(tasks=10)
    kept = cells.task >= 2
    groups = cells.task[kept] - 2
    matrix = np.column_stack(list(cells.columns.values()))[kept]
    offset, theta, step = np.log(cells.exposure[kept]), np.array([0.1, -0.2, 0.05]), 1e-5

    def at(where):
        return profile(cells.count[kept], offset, matrix, groups, where)[0]

    for j in range(3):
        ahead, behind = at(theta + step * np.eye(3)[j]), at(theta - step * np.eye(3)[j])
        assert (ahead.value - behind.value) / (2 * step) == pytest.approx(at(theta).gradient[j], rel=BY_DIFFERENCES)
        slope = (ahead.gradient - behind.gradient) / (2 * step)
        assert -slope == pytest.approx(at(theta).information[j], rel=BY_DIFFERENCES, abs=1e-3)


def test_levels_of_groups_and_units_of_exposure_do_not_count():
    cells = samples.cells()
    plain = poisson(cells.count, cells.columns, cells.task, cells.run, exposure=cells.exposure)
    moved = poisson(cells.count, cells.columns, cells.task, cells.run, exposure=cells.exposure * (1 + cells.task))
    for name in cells.columns:
        assert moved.term(name).estimate == pytest.approx(plain.term(name).estimate, rel=RELATIVE)
        assert moved.term(name).standard_error == pytest.approx(plain.term(name).standard_error, rel=RELATIVE)


def test_what_cannot_inform_is_left_out_and_counted():
    cells = samples.cells(tasks=12)
    plain = poisson(cells.count, cells.columns, cells.task, cells.run, exposure=cells.exposure)
    zeros, all_zero = int((cells.task < 2).sum()), "no count in the whole group"
    assert {e.reason: e.rows for e in plain.excluded} == {all_zero: zeros}
    columns = {name: np.append(values, [1, 2]) for name, values in cells.columns.items()}
    count, task = np.append(cells.count, [4, 1]), np.append(cells.task, [99, 5])
    run, exposure = np.append(cells.run, [900, 901]), np.append(cells.exposure, [10, 0])
    more = poisson(count, columns, task, run, exposure=exposure)
    assert {e.reason: e.rows for e in more.excluded} == {"no exposure": 1, all_zero: zeros, "alone in its group": 1}
    assert more.terms == plain.terms


def test_a_kind_that_is_never_counted_is_separated_and_the_rest_is_fitted_without_it():
    cells = samples.cells()
    silent = cells.run % 5 == 0
    count = np.where(silent, 0, cells.count)
    fit = poisson(count, {**cells.columns, "silent": silent}, cells.task, cells.run, exposure=cells.exposure)
    kept = {name: values[~silent] for name, values in cells.columns.items()}
    rest = poisson(count[~silent], kept, cells.task[~silent], cells.run[~silent], exposure=cells.exposure[~silent])
    assert fit.term("silent").estimate is None
    assert "never counted under silent" in fit.note
    for name in kept:
        assert fit.term(name).estimate == pytest.approx(rest.term(name).estimate, rel=RELATIVE)
        assert fit.term(name).standard_error == pytest.approx(rest.term(name).standard_error, rel=RELATIVE)


def test_a_column_that_only_differs_between_groups_is_absorbed():
    cells = samples.cells()
    fit = poisson(cells.count, {"task level": cells.task}, cells.task, cells.run, exposure=cells.exposure)
    assert fit.term("task level").note == "does not vary within any group"


def test_negative_counts_are_refused():
    with pytest.raises(SpecError, match="numbers of events"):
        poisson([-1, 2], {"x": [0, 1]}, [0, 0], [0, 1], exposure=[1, 1])


def test_the_cohort_of_the_paper_fits_in_a_second():
    rng = np.random.default_rng(0)
    n = 31_779
    run = np.arange(n) // 6
    columns = {f"x{i}": rng.normal(size=n) for i in range(15)}
    exposure = 1 + rng.exponential(1000, n)
    count = rng.poisson(exposure * np.exp(rng.normal(size=500)[run % 500] - 7))
    fits = []
    spent = cost(lambda: fits.append(poisson(count, columns, run % 500, run, exposure=exposure)), times=3)
    assert fits[0].converged
    assert spent < A_SECOND
