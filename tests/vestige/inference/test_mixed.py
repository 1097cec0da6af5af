"""The mixed model: quadrature against brute integration, priors, chains against known densities, recovery of truth."""

from __future__ import annotations

import numpy as np
import pytest

from eirkit.vestige.inference.integration import (
    Proposal,
    collapse,
    derivatives,
    effective_draws,
    log_marginal,
    r_hat,
    sample,
)
from eirkit.vestige.inference.logistic import logistic
from eirkit.vestige.inference.mixed import GROUP_SD, log_prior, mixed_logit, mixed_posterior
from tests.vestige.inference import samples

INTEGRATED = 1e-5  # log-likelihood of 12 groups; steep ones need more nodes, and the fit takes them
BY_DIFFERENCES = 1e-4  # nodes move with the parameters, which differences see and the moments do not
RELATIVE = 1e-6
ERRORS = 5  # standard errors within which a planted truth must lie; a chance of 6e-7 each


def setting(tasks=12):
    runs = samples.runs(tasks=tasks)
    return np.column_stack([np.ones(len(runs.task)), runs.never, runs.demand - 12]), runs


def by_grid(y, matrix, codes, theta):
    """Return the marginal log-likelihood by the trapezium rule on a fine grid, which errs by less than 1e-12 here."""
    grid = np.linspace(-10, 10, 8001)
    weight = np.exp(-(grid**2) / 2) / np.sqrt(2 * np.pi) * (grid[1] - grid[0])
    total = 0.0
    for group in np.unique(codes):
        rows = codes == group
        odds = (matrix[rows] @ theta[:-1])[:, None] + np.exp(theta[-1]) * grid
        signed = (2 * y[rows] - 1)[:, None] * odds
        total += np.log(np.exp(-np.logaddexp(0, -signed).sum(axis=0)) @ weight)
    return total


@pytest.mark.parametrize(("log_sd", "nodes"), [(-3.0, 15), (-0.5, 15), (0.5, 15), (1.5, 63)])
def test_quadrature_is_the_integral(log_sd, nodes):
    matrix, runs = setting()
    theta = np.array([-0.3, 0.5, 0.2, log_sd])
    cells = collapse(runs.failed, matrix, runs.task)
    expected = by_grid(runs.failed, matrix, runs.task, theta)
    assert log_marginal(cells, theta[None, :-1], theta[-1:], nodes)[0] == pytest.approx(expected, abs=INTEGRATED)
    assert derivatives(cells, theta, nodes).value == pytest.approx(expected, abs=INTEGRATED)


def test_more_nodes_come_nearer():
    matrix, runs = setting()
    theta = np.array([-0.3, 0.5, 0.2, 1.5])
    cells = collapse(runs.failed, matrix, runs.task)
    expected = by_grid(runs.failed, matrix, runs.task, theta)
    errors = [abs(log_marginal(cells, theta[None, :-1], theta[-1:], nodes)[0] - expected) for nodes in (3, 7, 15, 31)]
    assert errors == sorted(errors, reverse=True)


def test_derivatives_are_those_of_the_integral():
    matrix, runs = setting()
    cells, theta, step = collapse(runs.failed, matrix, runs.task), np.array([-0.3, 0.5, 0.2, 0.4]), 1e-4
    there = derivatives(cells, theta, nodes=31)
    for j in range(4):
        ahead, behind = (derivatives(cells, theta + sign * step * np.eye(4)[j], nodes=31) for sign in (1, -1))
        assert (ahead.value - behind.value) / (2 * step) == pytest.approx(there.gradient[j], abs=BY_DIFFERENCES)
        assert -(ahead.gradient - behind.gradient) / (2 * step) == pytest.approx(there.information[j], abs=1e-3)


def test_tasks_that_are_nearly_decided_get_the_nodes_they_need():
    rng = np.random.default_rng(7)
    task = np.repeat(np.arange(80), 6)
    x = rng.normal(size=len(task))
    y = (rng.random(len(task)) < 1 / (1 + np.exp(-6 * rng.normal(size=80)[task] - x))).astype(float)
    fit = mixed_logit(y, {"x": x}, task)
    slopes = [fit.term(name).estimate for name in ("intercept", "x")]
    theta = np.array([*slopes, np.log(fit.term(GROUP_SD).estimate)])
    exact = by_grid(y, np.column_stack([np.ones(len(x)), x]), task, theta)
    assert fit.term(GROUP_SD).estimate > 4
    assert fit.log_likelihood == pytest.approx(exact, abs=0.01)  # to which the fit refines its nodes


def test_equal_rows_are_one_cell():
    y, matrix, codes = np.array([1.0, 0, 1, 1]), np.ones((4, 1)), np.array([0, 0, 0, 1])
    cells = collapse(y, matrix, codes)
    assert (list(cells.events), list(cells.trials), list(cells.starts)) == ([2, 1], [3, 1], [0, 1])


def test_units_of_a_column_scale_its_term_and_nothing_else():
    runs = samples.runs(tasks=30)
    plain = mixed_logit(runs.failed, {"never": runs.never, "demand": runs.demand}, runs.task)
    moved = mixed_logit(runs.failed, {"never": runs.never, "demand": 100 * runs.demand + 3}, runs.task)
    assert 100 * moved.term("demand").estimate == pytest.approx(plain.term("demand").estimate, rel=RELATIVE)
    assert moved.term("never").standard_error == pytest.approx(plain.term("never").standard_error, rel=RELATIVE)
    assert moved.term(GROUP_SD).estimate == pytest.approx(plain.term(GROUP_SD).estimate, rel=RELATIVE)


def test_groups_that_do_not_differ_give_the_plain_regression():
    y, x, task = np.tile([0, 1, 1, 0], 20), np.tile([0, 0, 1, 1], 20), np.repeat(np.arange(20), 4)
    fit = mixed_logit(y, {"x": x}, task)
    plain = logistic(y, {"x": x}, np.arange(80))
    assert fit.term(GROUP_SD).estimate == 0
    assert "no more than chance" in fit.note
    assert fit.term("x").estimate == pytest.approx(plain.term("x").estimate, abs=RELATIVE)


def test_planted_truth_is_found():
    rng = np.random.default_rng(2)
    task = np.repeat(np.arange(300), 8)
    x = rng.normal(size=len(task))
    odds = -0.5 + 0.4 * x + 1.2 * rng.normal(size=300)[task]
    y = rng.random(len(task)) < 1 / (1 + np.exp(-odds))
    fit = mixed_logit(y, {"x": x}, task)
    for name, truth in {"intercept": -0.5, "x": 0.4, GROUP_SD: 1.2}.items():
        assert abs(fit.term(name).estimate - truth) < ERRORS * fit.term(name).standard_error


def test_the_posterior_has_mixed_and_lies_near_the_likelihood():
    runs = samples.runs(tasks=40)
    columns = {"never": runs.never, "demand": runs.demand}
    fit = mixed_logit(runs.failed, columns, runs.task)
    found = mixed_posterior(runs.failed, columns, runs.task, np.random.default_rng(3), draws=600)
    assert found.converged
    assert all(m.r_hat < 1.01 and m.effective_draws > 400 for m in found.mixing)
    for name in columns:
        gap = abs(found.term(name).estimate - fit.term(name).estimate)
        assert gap < 0.5 * fit.term(name).standard_error  # priors this wide hardly move 40 tasks
        assert found.term(name).low < found.term(name).estimate < found.term(name).high
    assert "half Student t(3, 0, 2.5)" in found.priors


def test_the_prior_keeps_separated_data_finite():
    y, x, task = np.repeat([0, 1], 40), np.repeat([0.0, 1], 40), np.tile(np.arange(20), 4)
    assert mixed_logit(y, {"x": x}, task).term("x").estimate is None
    found = mixed_posterior(y, {"x": x}, task, np.random.default_rng(0), draws=300)
    assert 0 < found.term("x").low < found.term("x").high < 60


def test_too_few_draws_are_said_not_to_have_mixed():
    runs = samples.runs(tasks=20)
    found = mixed_posterior(runs.failed, {"never": runs.never}, runs.task, np.random.default_rng(0), draws=20)
    assert not found.converged
    assert "increase the number of draws" in found.note


def test_the_same_generator_gives_the_same_posterior():
    runs = samples.runs(tasks=10)
    once, twice = (
        mixed_posterior(runs.failed, {"x": runs.never}, runs.task, np.random.default_rng(4), draws=50) for _ in "ab"
    )
    assert once == twice


def test_the_prior_integrates_to_one():
    grid = np.linspace(-15, 12, 20001)
    points = np.column_stack([np.zeros_like(grid), grid])  # intercept fixed at its mode, log sd along the grid
    density = np.exp(log_prior(points)) * (grid[1] - grid[0])
    at_mode = 1 / (5 * np.sqrt(2 * np.pi))
    assert density.sum() == pytest.approx(at_mode, rel=1e-5)


def test_chains_reach_a_density_that_the_proposal_does_not_match():
    def target(points):  # a skewed one: log of a gamma(3) variable, and a normal
        return 3 * points[:, 0] - np.exp(points[:, 0]) - points[:, 1] ** 2 / 2

    proposal = Proposal(np.array([np.log(3), 0.3]), np.diag([0.6, 1.2]))
    drawn = sample(target, proposal, np.random.default_rng(0), chains=4, draws=4000, warm_up=100).values
    gamma = np.exp(drawn[..., 0])
    # Mean 3 and variance 3; four standard errors of some 5,000 effective draws.
    assert gamma.mean() == pytest.approx(3, abs=0.1)
    assert gamma.var() == pytest.approx(3, abs=0.35)
    assert drawn[..., 1].mean() == pytest.approx(0, abs=0.06)
    assert r_hat(drawn[..., 0]) < 1.01


def test_mixing_measures_tell_good_chains_from_bad():
    rng = np.random.default_rng(0)
    independent = rng.normal(size=(4, 1000))
    assert r_hat(independent) == pytest.approx(1, abs=0.01)
    assert effective_draws(independent) == pytest.approx(4000, rel=0.2)
    assert r_hat(independent + np.arange(4)[:, None]) > 1.5
    assert effective_draws(np.cumsum(independent, axis=1)) < 100
    assert r_hat(np.zeros((4, 10))) is None
    assert effective_draws(np.zeros((4, 10))) is None
