"""Sums over many graphs against the same sums done plainly."""

from __future__ import annotations

from statistics import mean, median, pstdev

import numpy as np
import pytest

from eirkit.errors import SpecError
from eirkit.lacuna.tasks.cones import ConeSurvey, Site, cone_of, matched_pairs, measure_cones, survey_cones
from eirkit.lacuna.tasks.task import TaskSpec
from eirkit.lacuna.tasks.workload import as_tuples, draw_references

ROUNDING = 1e-12  # relative; sums in another order
SEEDS = [4, 9, 2, 0, 7, 5, 11]
N, M, FROM = 40, 8, 20


def surveyed(fan_in: int) -> ConeSurvey:
    return survey_cones(TaskSpec("stepwise-sum", n=N, m=M, fan_in=fan_in), SEEDS, FROM)


def plain(fan_in: int) -> list[list[Site]]:
    made = []
    for seed, drawn in zip(SEEDS, draw_references(SEEDS, N, M, fan_in), strict=True):
        cones = [cone_of(as_tuples(drawn), t) for t in range(1, N + 1)]
        made.append([Site(fan_in, seed, t, cone.size, cone.depth) for t, cone in enumerate(cones, 1)])
    return made


@pytest.mark.parametrize("fan_in", [1, 2, 4])
def test_means_and_the_spread_of_three_seed_means(fan_in: int) -> None:
    survey = surveyed(fan_in)
    by_seed = [mean(site.size for site in sites[FROM - 1 :]) for sites in plain(fan_in)]
    threes = [mean(by_seed[:3]), mean(by_seed[3:6])]  # the seventh seed is no three
    assert survey.cones == len(SEEDS) * (N - FROM + 1)
    assert survey.size.mean == pytest.approx(mean(by_seed), rel=ROUNDING)
    assert survey.size.spread == pytest.approx(pstdev(threes), rel=ROUNDING)


def test_below_six_graphs_there_is_no_spread() -> None:
    assert survey_cones(TaskSpec("stepwise-sum"), range(5)).size.spread is None


@pytest.mark.parametrize("fan_in", [1, 2, 4])
def test_growth_by_step_and_over_all_steps(fan_in: int) -> None:
    survey, graphs = surveyed(fan_in), plain(fan_in)
    for t in range(1, N + 1):
        sizes = [sites[t - 1].size for sites in graphs]
        growth = survey.growth(t)
        assert (growth.median, growth.largest) == (median(sizes), max(sizes))
        assert growth.share_large == sum(size > 30 for size in sizes) / len(sizes)
    pooled = [site.size for sites in graphs for site in sites]
    assert survey.distribution().median == median(pooled)
    assert survey.distribution().largest == max(pooled)


@pytest.mark.parametrize(("matched", "other"), [("size", "depth"), ("depth", "size")])
def test_pairs_are_the_widest_there_are(matched: str, other: str) -> None:
    everywhere = [site for fan_in in (1, 2, 4) for sites in plain(fan_in) for site in sites]
    pairs = matched_pairs([surveyed(fan_in) for fan_in in (1, 2, 4)], matched)  # type: ignore[arg-type]
    widths: dict[int, list[int]] = {}
    for site in everywhere:
        widths.setdefault(getattr(site, matched), []).append(getattr(site, other))
    differing = {value: (min(found), max(found)) for value, found in widths.items() if min(found) < max(found)}
    assert {
        getattr(pair.low, matched): (getattr(pair.low, other), getattr(pair.high, other)) for pair in pairs
    } == differing
    for pair in pairs:
        assert pair.low in everywhere
        assert pair.high in everywhere


def test_many_graphs_are_surveyed_as_few_are() -> None:
    """More graphs than one chunk holds, and no multiple of three: the plain sums over all of them at once."""
    spec, seeds = TaskSpec("stepwise-sum", m=8, fan_in=4), range(5, 3006)
    survey = survey_cones(spec, seeds, 32)
    cones = measure_cones(draw_references(seeds, 64, 8, 4))
    threes = [block.mean() for block in np.split(cones.size[:3000, 31:].astype(float), 1000)]
    assert survey.size.mean == pytest.approx(cones.size[:, 31:].mean(), rel=ROUNDING)
    assert survey.size.spread == pytest.approx(np.std(threes), rel=1000 * ROUNDING)  # a difference of large squares
    assert survey.naive.mean == pytest.approx(sum(map(int, cones.naive[:, 31:].ravel())) / survey.cones, rel=ROUNDING)


def test_no_seeds_are_refused() -> None:
    with pytest.raises(SpecError, match="give at least one"):
        survey_cones(TaskSpec("stepwise-sum"), [])


def test_a_step_outside_is_refused() -> None:
    with pytest.raises(SpecError, match="from_step = 65 is out of range; choose 1 … n = 64"):
        survey_cones(TaskSpec("stepwise-sum"), range(3), 65)
