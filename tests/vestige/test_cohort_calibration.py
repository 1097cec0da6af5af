"""The calibration study: one cohort goes through it, and the table it left is whole and says that intervals hold."""

from __future__ import annotations

import csv

import pytest
from studies.cohorts_calibration import COHORTS, SCENARIOS, TABLE, Found, indirect, judge, summarize

from eirkit.vestige.corpus.planted_corpus import PlantedCorpus, PlantedEffects

# Of 200 cohorts a true 95% leaves this with a chance of 1 in 1,000 for each row.
LOWEST_COVERAGE = 0.895


@pytest.fixture(scope="module")
def rows():
    with TABLE.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def test_a_cohort_gives_what_the_table_needs():
    found = judge(("demand", 0))
    assert [one.test for one in found] == ["demand-failure", "demand-failure-tokens", "demand-failure-difficulty"]
    assert all(one.truth == 1.25 and one.low < one.estimate < one.high for one in found)


def test_coverage_and_rejections_by_hand():
    found = [
        Found("demand", "x", 1.0, 1.1, 0.9, 1.3, 0.3),
        Found("demand", "x", 1.0, 1.4, 1.2, 1.6, 0.01),
        Found("demand", "x", 1.0, None, None, None, None),
        Found("demand", "x", 1.0, 0.9, 0.7, 1.2, 0.4),
    ]
    (row,) = summarize(found)
    assert (row["cohorts"], row["estimated"], row["median estimate"]) == (4, 3, 1.1)
    assert (row["coverage of 95%"], row["p < 0.05"]) == (0.6667, 0.3333)


def test_without_an_effect_of_the_mediator_nothing_is_mediated():
    corpus = PlantedCorpus(100, 20, effects=PlantedEffects(size_never_odds=2.0))
    assert indirect(corpus, 0)["mediation-never-recovered"] == 0


def test_every_scenario_has_its_cohorts_in_the_table(rows):
    assert {row["planted"] for row in rows} == set(SCENARIOS)
    assert all(int(row["cohorts"]) >= COHORTS for row in rows)


def test_intervals_hold_where_nothing_is_planted(rows):
    null = [row for row in rows if row["planted"].startswith("nothing planted")]
    assert len(null) >= 20
    low = [row["test"] for row in null if float(row["coverage of 95%"]) < LOWEST_COVERAGE]
    assert low == []
