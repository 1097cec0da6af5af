"""Every estimator against an independent library: its committed numbers, and the library itself where installed."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from functools import cache
from importlib import import_module

import numpy as np
import pytest

from eirkit.vestige.cohorts.covariates import disjoint_difficulty
from eirkit.vestige.cohorts.finding import holm
from eirkit.vestige.cohorts.used_later import quantile_interval
from eirkit.vestige.inference.auc import failure_auc
from eirkit.vestige.inference.conditional import bootstrap_conditional_logit, conditional_logit
from eirkit.vestige.inference.design import impute_median
from eirkit.vestige.inference.integration import effective_draws, r_hat
from eirkit.vestige.inference.logistic import logistic
from eirkit.vestige.inference.mediation import mediate
from eirkit.vestige.inference.mixed import GROUP_SD, mixed_logit, mixed_posterior
from eirkit.vestige.inference.poisson import poisson
from eirkit.vestige.inference.results import Fit, Term
from tests.vestige.inference import peers, samples
from tests.vestige.inference.peers import Numbers

EXACT = 1e-9  # both sides iterate to about 1e-12
SOLVED = 1e-6  # the peer stops its optimizer there
WITHOUT_GRADIENT = 1e-5  # the peer's optimizer takes differences of the likelihood
ERRORS_BY_DIFFERENCES = 1e-3  # relative: the peer differentiates twice by finite differences
MONTE_CARLO = 0.06  # about four standard errors of a tail quantile: sd 0.4, some 1,000 effective draws
SD_TAIL = 0.15  # the same for the upper tail of the sd, which is longer
SINGLE = 1e-6  # relative: the peer counts ranks in single precision
PLACES = 1.0  # the peer counts with binomial probabilities, we with their normal limit
CORRELATION = 0.02  # relative: the peer estimates autocovariances with another divisor


def of_fit(fit: Fit) -> Numbers:
    """Return estimates and errors under the names that peers use."""
    known = [term for term in fit.terms if term.estimate is not None]
    return {t.name: t.estimate for t in known} | {f"se {t.name}": t.standard_error for t in known}


def our_logistic() -> Numbers:
    runs = samples.runs()
    fit = logistic(runs.failed, runs.columns, runs.task)
    return of_fit(fit) | {"p demand": fit.term("demand").p}


def our_poisson() -> Numbers:
    cells = samples.cells()
    return of_fit(poisson(cells.count, cells.columns, cells.task, cells.run, exposure=cells.exposure))


def our_conditional() -> Numbers:
    runs = samples.runs()
    fit = conditional_logit(runs.failed, runs.columns, runs.task)
    return of_fit(fit) | {"log-likelihood": fit.log_likelihood}


def our_auc() -> Numbers:
    runs = samples.runs()
    return {
        "auc": failure_auc(runs.demand, runs.failed).estimate,
        "tied": failure_auc(np.round(runs.demand), runs.failed).estimate,
    }


def our_imputation() -> Numbers:
    imputed = impute_median(peers.holed_lines())
    return {"sum": float(imputed.values.sum()), "missing": float(imputed.missing.sum())}


def our_mixed() -> Numbers:
    runs = samples.runs(tasks=30)
    fit = mixed_logit(runs.failed, {"never": runs.never, "demand": runs.demand - 12}, runs.task)
    numbers = {name: fit.term(name).estimate for name in ("intercept", "never", "demand")}
    return numbers | {"log sd": float(np.log(fit.term(GROUP_SD).estimate)), "log-likelihood": fit.log_likelihood}


def our_posterior() -> Numbers:
    runs = samples.runs(tasks=30)
    columns = {"never": runs.never, "demand": runs.demand}
    found = mixed_posterior(runs.failed, columns, runs.task, np.random.default_rng(5), draws=1500)
    assert found.converged
    return _quantiles("never", found.term("never")) | _quantiles("demand", found.term("demand")) | _quantiles(
        "sd", found.group_sd
    )  # fmt: skip


def our_diagnostics() -> Numbers:
    chains = peers.correlated_chains()
    return {"r_hat": r_hat(chains), "effective": effective_draws(chains)}


def our_mediation() -> Numbers:
    runs = samples.runs()
    covariates = {"tokens": runs.tokens}
    rng = np.random.default_rng(0)
    found = mediate(runs.failed, runs.never, runs.lines, covariates, runs.task, rng, resamples=20)
    return {"indirect": found.indirect.estimate, "direct": found.direct.estimate}


def our_resampled() -> Numbers:
    runs, rng = samples.runs(tasks=30), np.random.default_rng(peers.RESAMPLING_SEED)
    fit = bootstrap_conditional_logit(runs.failed, {"demand": runs.demand}, runs.task, rng, resamples=peers.RESAMPLES)
    term = fit.term("demand")
    return {"low": term.low, "high": term.high, "se": term.standard_error}


def our_holm() -> Numbers:
    return {f"{place}": p for place, p in enumerate(holm(peers.P_VALUES))}


def our_delong() -> Numbers:
    runs = samples.runs()
    found = failure_auc(np.round(runs.demand), runs.failed)
    return {"auc": found.estimate, "error": found.standard_error}


def our_quantile() -> Numbers:
    ordered = np.arange(peers.QUANTILE_RUNS, dtype=float)
    ends = {share: quantile_interval(ordered, share) for share in (0.5, 0.9)}
    return {
        f"{side} {share}": end for share, both in ends.items() for side, end in zip(("low", "high"), both, strict=True)
    }


def our_difficulty() -> Numbers:
    runs = samples.runs()
    analyzed = np.arange(len(runs.task)) % 2 == 0
    found = disjoint_difficulty(runs.task, 1 - runs.failed, analyzed)
    return {f"{task}": float(found.success_logit[runs.task[analyzed] == task][0]) for task in (0, 17, 59)}


def _quantiles(name: str, term: Term) -> Numbers:
    return {f"{name} low": term.low, f"{name} median": term.estimate, f"{name} high": term.high}


OURS: dict[str, Callable[[], Numbers]] = {
    "statsmodels_logistic": cache(our_logistic),
    "statsmodels_poisson": cache(our_poisson),
    "pyfixest_poisson": cache(our_poisson),
    "statsmodels_conditional": cache(our_conditional),
    "statsmodels_resampled": cache(our_resampled),
    "statsmodels_holm": cache(our_holm),
    "confidenceinterval_delong": cache(our_delong),
    "scipy_quantile": cache(our_quantile),
    "scipy_difficulty": cache(our_difficulty),
    "sklearn_auc": cache(our_auc),
    "sklearn_imputation": cache(our_imputation),
    "scipy_mixed": cache(our_mixed),
    "numpyro_posterior": cache(our_posterior),
    "numpyro_diagnostics": cache(our_diagnostics),
    "statsmodels_mediation": cache(our_mediation),
}


def assert_agree(name: str, theirs: Numbers) -> None:
    ours = OURS[name]()
    for key, number in theirs.items():
        assert ours[key] == pytest.approx(number, **_tolerance(name, key)), key


def _tolerance(name: str, key: str) -> dict[str, float]:
    if name == "numpyro_posterior":
        return {"abs": SD_TAIL if key == "sd high" else MONTE_CARLO}
    if name == "numpyro_diagnostics":
        return {"rel": CORRELATION}
    if name == "confidenceinterval_delong":
        return {"rel": SINGLE}
    if name == "scipy_quantile":
        return {"abs": PLACES}
    if name == "statsmodels_resampled":
        return {"abs": SOLVED}
    if name == "scipy_mixed":
        return {"abs": WITHOUT_GRADIENT}
    if name == "statsmodels_conditional":
        return {"rel": ERRORS_BY_DIFFERENCES} if key.startswith("se ") else {"abs": SOLVED}
    return {"rel": EXACT, "abs": EXACT}


def wait_for(name: str) -> None:
    """Skip where a library is missing, unless somebody insists."""
    for library in peers.PEERS[name].libraries:
        if os.environ.get("EIRKIT_PEERS") == "all":
            import_module(library)
        pytest.importorskip(library)


REFERENCE = json.loads(peers.REFERENCE.read_text("utf-8"))


def test_every_peer_has_committed_numbers():
    assert set(REFERENCE) == set(peers.PEERS) == set(OURS)


@pytest.mark.parametrize("name", sorted(REFERENCE))
def test_ours_agree_with_the_committed_numbers(name):
    assert_agree(name, REFERENCE[name]["numbers"])


@pytest.mark.parametrize("name", sorted(set(peers.PEERS) - {"numpyro_posterior"}))
def test_ours_agree_with_the_library(name):
    wait_for(name)
    assert_agree(name, peers.ask(name))


@pytest.mark.slow
def test_the_posterior_agrees_with_the_no_u_turn_sampler():
    wait_for("numpyro_posterior")
    assert_agree("numpyro_posterior", peers.ask("numpyro_posterior"))
