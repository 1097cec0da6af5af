"""The same estimates by independent libraries, and their numbers in `reference.json` for machines without them.

`session stats` installs the libraries and asks them; `python -m tests.vestige.inference.peers [NAME …]` in the same
environment writes the file again.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np

from tests.vestige.inference import samples

REFERENCE = Path(__file__).with_name("reference.json")
Numbers = dict[str, float]
RESAMPLES, RESAMPLING_SEED = 40, 3
P_VALUES = (0.04, 0.001, 0.3, 0.012, 0.012, 0.9)
QUANTILE_RUNS = 400


@dataclass(frozen=True, slots=True)
class Peer:
    """One table of one library."""

    libraries: tuple[str, ...]
    compute: Callable[[], Numbers]


def statsmodels_logistic() -> Numbers:
    """Logit with cluster-robust covariance; its small-sample factor is (G/(G−1))·((n−1)/(n−k)), as ours."""
    import statsmodels.api as sm

    runs = samples.runs()
    matrix = sm.add_constant(np.column_stack(list(runs.columns.values())).astype(float))
    fit = sm.Logit(runs.failed, matrix).fit(disp=0, tol=1e-12, cov_type="cluster", cov_kwds={"groups": runs.task})
    return _named(("intercept", *runs.columns), fit.params, fit.bse) | {"p demand": float(fit.pvalues[1])}


def statsmodels_poisson() -> Numbers:
    """GLM with a dummy per task that has counts, which also counts toward k."""
    import statsmodels.api as sm

    cells = samples.cells()
    kept = cells.task >= 2
    dummies = (cells.task[kept, None] == np.unique(cells.task[kept])).astype(float)
    matrix = np.column_stack([np.column_stack(list(cells.columns.values()))[kept], dummies])
    model = sm.GLM(cells.count[kept], matrix, family=sm.families.Poisson(), offset=np.log(cells.exposure[kept]))
    fit = model.fit(tol=1e-12, cov_type="cluster", cov_kwds={"groups": cells.run[kept]})
    return _named(tuple(cells.columns), fit.params[:3], fit.bse[:3])


def pyfixest_poisson() -> Numbers:
    """fepois with absorbed tasks; k counts slopes and tasks."""
    import pandas as pd
    import pyfixest as pf

    cells = samples.cells()
    table = pd.DataFrame({"y": cells.count, "task": cells.task, "run": cells.run, **cells.columns})
    table["offset"] = np.log(cells.exposure)
    small = pf.ssc(k_adj=True, k_fixef="full", G_adj=True, G_df="min")
    formula = "y ~ failed + distance + failed_distance | task"
    fit = pf.fepois(formula, table, vcov={"CRV1": "run"}, offset="offset", ssc=small, iwls_tol=1e-12, fixef_tol=1e-12)
    return _named(tuple(cells.columns), fit.coef().to_numpy(), fit.se().to_numpy())


def statsmodels_conditional() -> Numbers:
    """Its likelihood and score under SciPy's optimizer: its own stops where the score is still 1e-3."""
    from scipy.optimize import minimize
    from statsmodels.discrete.conditional_models import ConditionalLogit

    runs = samples.runs()
    matrix = np.column_stack(list(runs.columns.values())).astype(float)
    model = ConditionalLogit(runs.failed, matrix - matrix.mean(axis=0), groups=runs.task)
    start = np.zeros(matrix.shape[1])
    found = minimize(lambda t: -model.loglike(t), start, jac=lambda t: -model.score(t), options={"gtol": 1e-8})
    errors = np.sqrt(np.diag(np.linalg.inv(-model.hessian(found.x))))
    return _named(tuple(runs.columns), found.x, errors) | {"log-likelihood": -float(found.fun)}


def statsmodels_resampled() -> Numbers:
    """The conditional fit of every resample of whole tasks, in the order in which a generator draws them."""
    from scipy.optimize import minimize
    from statsmodels.discrete.conditional_models import ConditionalLogit

    runs, rng = samples.runs(tasks=30), np.random.default_rng(RESAMPLING_SEED)
    tasks = [t for t in np.unique(runs.task) if 0 < runs.failed[runs.task == t].mean() < 1]
    demand = runs.demand - runs.demand.mean()
    slopes = []
    for _ in range(RESAMPLES):
        drawn = [np.flatnonzero(runs.task == tasks[place]) for place in rng.integers(len(tasks), size=len(tasks))]
        rows, groups = np.concatenate(drawn), np.repeat(np.arange(len(drawn)), [len(one) for one in drawn])
        model = ConditionalLogit(runs.failed[rows], demand[rows, None], groups=groups)
        found = minimize(lambda t, m=model: -m.loglike(t), [0.0], jac=lambda t, m=model: -m.score(t), tol=1e-9)
        slopes.append(float(found.x[0]))
    low, high = np.quantile(slopes, [0.025, 0.975])
    return {"low": float(low), "high": float(high), "se": float(np.std(slopes, ddof=1))}


def statsmodels_holm() -> Numbers:
    from statsmodels.stats.multitest import multipletests

    return {f"{place}": float(p) for place, p in enumerate(multipletests(P_VALUES, method="holm")[1])}


def confidenceinterval_delong() -> Numbers:
    """The area and its error with ties, after the fast algorithm for DeLong's variance."""
    from confidenceinterval.delong import delong_roc_variance

    runs = samples.runs()
    area, variance = delong_roc_variance(runs.failed == 1, np.round(runs.demand))
    return {"auc": float(np.squeeze(area)), "error": float(np.sqrt(np.squeeze(variance)))}


def scipy_quantile() -> Numbers:
    """Exact binomial places of the order statistics around a quantile, in a sample whose values are their places."""
    from scipy.stats import quantile_test

    found = {}
    for share in (0.5, 0.9):
        interval = quantile_test(np.arange(QUANTILE_RUNS), q=0, p=share).confidence_interval()
        found |= {f"low {share}": float(interval.low), f"high {share}": float(interval.high)}
    return found


def scipy_difficulty() -> Numbers:
    """The logit of (s + 1/2)/(n + 1), task by task."""
    from scipy.special import logit

    runs = samples.runs()
    found = {}
    for task in (0, 17, 59):
        other = runs.failed[(runs.task == task) & (np.arange(len(runs.task)) % 2 == 1)]
        found[f"{task}"] = float(logit((len(other) - other.sum() + 0.5) / (len(other) + 1)))
    return found


def sklearn_auc() -> Numbers:
    from sklearn.metrics import roc_auc_score

    runs = samples.runs()
    rounded = np.round(runs.demand)  # so that there are ties
    return {"auc": float(roc_auc_score(runs.failed, runs.demand)), "tied": float(roc_auc_score(runs.failed, rounded))}


def sklearn_imputation() -> Numbers:
    from sklearn.impute import SimpleImputer

    values = holed_lines()
    both = SimpleImputer(strategy="median", add_indicator=True).fit_transform(values[:, None])
    return {"sum": float(both[:, 0].sum()), "missing": float(both[:, 1].sum())}


def scipy_mixed() -> Numbers:
    """Maximum likelihood with every group's integral by adaptive numeric integration."""
    from scipy.integrate import quad_vec
    from scipy.optimize import minimize
    from scipy.special import log_expit

    runs = samples.runs(tasks=30)
    matrix = np.column_stack([np.ones(len(runs.task)), runs.never, runs.demand - 12])
    signs, starts = 2 * runs.failed - 1, np.flatnonzero(np.diff(runs.task, prepend=-1))

    def minus_log(theta):
        fixed = matrix @ theta[:-1]

        def integrand(u):
            logs = np.add.reduceat(log_expit(signs * (fixed + np.exp(theta[-1]) * u)), starts)
            return np.exp(logs - u * u / 2) / np.sqrt(2 * np.pi)

        return -np.log(quad_vec(integrand, -9, 9, epsabs=1e-14, epsrel=1e-12)[0]).sum()

    found = minimize(minus_log, np.zeros(4), method="BFGS", options={"gtol": 1e-7})
    names = ("intercept", "never", "demand", "log sd")
    return {name: float(v) for name, v in zip(names, found.x, strict=True)} | {"log-likelihood": -float(found.fun)}


def numpyro_posterior() -> Numbers:
    """The no-U-turn sampler over slopes, sd and every task's own intercept, under the same priors."""
    import jax
    import numpyro
    import numpyro.distributions as dist

    runs = samples.runs(tasks=30)
    raw = np.column_stack([runs.never, runs.demand])
    center, scale = raw.mean(axis=0), raw.std(axis=0)

    def model():
        level = numpyro.sample("level", dist.Normal(0, 5))
        slopes = numpyro.sample("slopes", dist.Normal(0, 2.5).expand([2]))
        sd = numpyro.sample("sd", dist.FoldedDistribution(dist.StudentT(3, 0, 2.5)))
        own = numpyro.sample("own", dist.Normal(0, 1).expand([30]))
        odds = level + ((raw - center) / scale) @ slopes + sd * own[runs.task]
        numpyro.sample("failed", dist.Bernoulli(logits=odds), obs=runs.failed)

    numpyro.enable_x64()
    sampler = numpyro.infer.NUTS(model, target_accept_prob=0.9)
    chain = numpyro.infer.MCMC(
        sampler, num_warmup=1000, num_samples=4000, num_chains=4, chain_method="sequential", progress_bar=False
    )
    chain.run(jax.random.PRNGKey(0))
    drawn = chain.get_samples()
    slopes = np.asarray(drawn["slopes"]) / scale
    return _quantiles("never", slopes[:, 0]) | _quantiles("demand", slopes[:, 1]) | _quantiles("sd", drawn["sd"])


def numpyro_diagnostics() -> Numbers:
    from numpyro.diagnostics import effective_sample_size, split_gelman_rubin

    chains = correlated_chains()
    return {"r_hat": float(split_gelman_rubin(chains)), "effective": float(effective_sample_size(split(chains)))}


def statsmodels_mediation() -> Numbers:
    """Standardization row by row, with the probabilities of statsmodels' own fits."""
    import statsmodels.api as sm

    runs = samples.runs()
    ones = np.ones(len(runs.task))
    first = sm.Logit(runs.never, np.column_stack([ones, runs.lines, runs.tokens])).fit(disp=0, tol=1e-12)
    joint = np.column_stack([ones, runs.lines, runs.tokens, runs.never])
    second = sm.Logit(runs.failed, joint).fit(disp=0, tol=1e-12)
    low, high = np.percentile(runs.lines, [25, 75])

    def risk(outcome_at, mediator_at):
        total = 0.0
        for tokens in runs.tokens:
            share = float(first.predict([[1, mediator_at, tokens]])[0])
            absent, present = (float(second.predict([[1, outcome_at, tokens, m]])[0]) for m in (0, 1))
            total += absent * (1 - share) + present * share
        return total / len(runs.tokens)

    return {"indirect": risk(high, high) - risk(high, low), "direct": risk(high, low) - risk(low, low)}


def holed_lines() -> np.ndarray:
    """Return a column with every seventh value missing."""
    values = samples.runs().lines.copy()
    values[::7] = np.nan
    return values


def correlated_chains() -> np.ndarray:
    """Return four chains of 500 draws, each half of the last one."""
    noise = samples.normals(2000, "chains").reshape(4, 500)
    for i in range(1, 500):
        noise[:, i] += 0.5 * noise[:, i - 1]
    return noise


def split(chains: np.ndarray) -> np.ndarray:
    """Return the halves of chains as chains."""
    half = chains.shape[1] // 2
    return np.concatenate([chains[:, :half], chains[:, half:]])


def _named(names: tuple[str, ...], values: np.ndarray, errors: np.ndarray) -> Numbers:
    numbers = {name: float(value) for name, value in zip(names, values, strict=True)}
    return numbers | {f"se {name}": float(error) for name, error in zip(names, errors, strict=True)}


def _quantiles(name: str, draws: np.ndarray) -> Numbers:
    low, middle, high = (float(q) for q in np.quantile(np.asarray(draws), [0.025, 0.5, 0.975]))
    return {f"{name} low": low, f"{name} median": middle, f"{name} high": high}


PEERS = {
    "statsmodels_logistic": Peer(("statsmodels",), statsmodels_logistic),
    "statsmodels_poisson": Peer(("statsmodels",), statsmodels_poisson),
    "pyfixest_poisson": Peer(("pyfixest",), pyfixest_poisson),
    "statsmodels_conditional": Peer(("statsmodels", "scipy"), statsmodels_conditional),
    "statsmodels_resampled": Peer(("statsmodels", "scipy"), statsmodels_resampled),
    "statsmodels_holm": Peer(("statsmodels",), statsmodels_holm),
    "confidenceinterval_delong": Peer(("confidenceinterval",), confidenceinterval_delong),
    "scipy_quantile": Peer(("scipy",), scipy_quantile),
    "scipy_difficulty": Peer(("scipy",), scipy_difficulty),
    "sklearn_auc": Peer(("sklearn",), sklearn_auc),
    "sklearn_imputation": Peer(("sklearn",), sklearn_imputation),
    "scipy_mixed": Peer(("scipy",), scipy_mixed),
    "numpyro_posterior": Peer(("numpyro",), numpyro_posterior),
    "numpyro_diagnostics": Peer(("numpyro",), numpyro_diagnostics),
    "statsmodels_mediation": Peer(("statsmodels",), statsmodels_mediation),
}


DISTRIBUTIONS = {"sklearn": "scikit-learn"}  # where a library is called otherwise


def ask(name: str) -> Numbers:
    """Return a peer's numbers; its warnings are about its own house."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return PEERS[name].compute()


def write(names: list[str]) -> None:
    """Write the numbers of these peers, or of all, beside the versions that gave them."""
    document = json.loads(REFERENCE.read_text("utf-8")) if names else {}
    for name in names or PEERS:
        peer = PEERS[name]
        versions = {library: version(DISTRIBUTIONS.get(library, library)) for library in peer.libraries}
        document[name] = {"versions": versions, "numbers": ask(name)}
    REFERENCE.write_text(json.dumps(document, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    write(sys.argv[1:])
