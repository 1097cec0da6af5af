"""Planted corpora: the pipeline finds in every single run what was planted, and the tests find the planted ratios."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import islice, pairwise
from math import log, sqrt

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eirkit.errors import SpecError
from eirkit.records.analysis import Gaps, RunRow
from eirkit.vestige.cohorts.cohort import analyze_cohorts
from eirkit.vestige.cohorts.covariates import read_base_lines
from eirkit.vestige.cohorts.finding import AnalysisPlan, Settings
from eirkit.vestige.corpus.planted_corpus import (
    BLOCK,
    PAPER,
    PlantedCorpus,
    PlantedEffects,
    draw_blocks,
    plain_lines,
    write_logs,
)
from eirkit.vestige.tables import read_rows
from tests.vestige.planted import analyzed, analyzed_corpus, by_name

SMALL = PlantedCorpus(60, 12, name="small")
QUICK = AnalysisPlan(settings=Settings(resamples=40, mediation_resamples=30, draws=250))
# A correct interval misses by more once in 16,000 cohorts; the seeds are fixed, so it cannot happen here by chance.
STANDARD_ERRORS = 4.0
HALF_WIDTH = 1.96  # standard errors in half a 95% interval


def is_near(test, truth: float) -> bool:
    error = (log(test.high) - log(test.low)) / (2 * HALF_WIDTH)
    return abs(log(test.estimate) - log(truth)) < STANDARD_ERRORS * error


@given(st.integers(0, 2**32), st.integers(0, 40), st.integers(1, 9), st.integers(1, 3))
@settings(max_examples=20, deadline=None)
def test_equal_seeds_give_equal_bytes_and_as_many_runs_as_asked(seed, runs, tasks, models):
    corpus = PlantedCorpus(runs, tasks, models)
    lines = list(plain_lines(corpus, seed))
    assert lines == list(plain_lines(corpus, seed))
    assert len(lines) == runs


def test_another_seed_gives_other_runs():
    assert list(plain_lines(SMALL, 1)) != list(plain_lines(SMALL, 2))


def test_a_longer_corpus_begins_like_a_shorter_one_of_whole_blocks():
    short = PlantedCorpus(BLOCK, 50)
    long = list(islice(plain_lines(replace(short, runs=BLOCK + 10), 3), BLOCK))
    assert long == list(plain_lines(short, 3))


def test_the_published_sizes():
    assert [corpus.runs for corpus in PAPER] == [4_988, 500, 67_074]
    assert sum(corpus.runs for corpus in PAPER) == 72_562


def test_a_corpus_without_tasks_is_refused():
    with pytest.raises(SpecError, match="correct the numbers"):
        PlantedCorpus(10, 0)


def test_every_run_has_its_planted_demand_length_and_outcome(tmp_path):
    corpus = replace(SMALL, coverage=0.7)
    (block,) = draw_blocks(corpus, 5)
    rows = read_rows(analyzed_corpus(corpus, tmp_path, 5), RunRow)
    assert [row.peak_demand_tokens for row in rows] == block.demand_tokens.tolist()
    assert [row.goal_accessed for row in rows] == block.covered.tolist()
    assert [row.trajectory_tokens for row in rows] == block.length_tokens.tolist()
    assert [row.resolved for row in rows] == (~block.is_failed).tolist()
    assert 0 < block.covered.sum() < len(rows)


def test_every_run_has_its_planted_gap(tmp_path):
    corpus = replace(SMALL, needed_reads="gap")
    (block,) = draw_blocks(corpus, 5)
    rows = [row for row in read_rows(analyzed_corpus(corpus, tmp_path, 5), Gaps) if row.needed]
    for clock in ("fair_clock_tokens", "closed_tokens", "end_censored_tokens"):
        assert [getattr(row, clock) for row in rows] == block.gap_tokens.tolist()


def test_every_logged_run_has_its_planted_clipping_and_rework(tmp_path):
    (block,) = draw_blocks(SMALL, 5)
    logs = write_logs(SMALL, 5, tmp_path)
    rows = read_rows(analyzed(logs, tmp_path / "tables", tmp_path / "gold"), RunRow)
    found = {(row.task_id, row.source.split("/")[-3]): row for row in rows}
    assert len(found) == SMALL.runs
    for place, number in enumerate(block.number.tolist()):
        row = found[f"small-{block.task[place]}", f"trial-{number // SMALL.tasks:03d}"]
        clipped, never = bool(block.is_clipped[place]), bool(block.is_never[place])
        assert row.clipping_group == ("never" if never else "recovered" if clipped else "none")
        assert (row.repeated_commands > 0) == block.is_rework[place]
        assert row.resolved == (not block.is_failed[place])
        assert (row.gold_files, row.gold_additions, row.gold_deletions) == (1, 1, 1)
    lines = read_base_lines(tmp_path / "base-lines.json")
    assert lines["small-3"] == block.base_lines[3]


def test_rereads_follow_the_planted_rates():
    """Below a distance of 1k other files are reread 1/5000 times a token, times the run's own rate: counted by hand."""
    corpus = PlantedCorpus(3000, 100, name="rates")
    (block,) = draw_blocks(corpus, 0)
    expected = reread = 0.0
    for line, rate in zip(plain_lines(corpus, 0), block.rate, strict=True):
        clocks, end = _clocks(line, "src/one.py"), _clocks(line, None)[-1]
        for here, there in pairwise([*clocks, end]):
            expected += rate * min(there - here, 1000) / 5000
            reread += there != end and there - here <= 1000
    errors = 4  # of a Poisson count; the seed is fixed
    assert abs(reread - expected) < errors * sqrt(expected)


def _clocks(line: bytes, path: str | None) -> list[int]:
    clock, found = 0, []
    for turn in json.loads(line)["turns"]:
        clock += turn["tokens"]
        if path is None or any(read["path"] == path for read in turn.get("reads", [])):
            found.append(clock)
    return found


def test_planted_ratios_of_demand_and_rereads_are_found(tmp_path):
    effects = PlantedEffects(demand_odds=1.3, reread_ratio=0.8, reread_failed_ratio=0.9)
    corpus = PlantedCorpus(1000, 100, 2, "effects", task_sd=0.0, effects=effects)
    tests = by_name(analyze_cohorts([analyzed_corpus(corpus, tmp_path)], QUICK, analyses=("demand", "rereads")))
    assert is_near(tests["demand-failure"], 1.3)
    assert is_near(tests["demand-failure-tokens"], 1.3)
    assert is_near(tests["reread-failed-needed-distance"], 0.8)
    assert tests["demand-failure"].low > 1
    assert tests["reread-failed-needed-distance"].high < 1


def test_a_planted_gap_is_found_and_the_placebo_is_not(tmp_path):
    corpus = PlantedCorpus(800, 100, 2, "gaps", needed_reads="gap", effects=PlantedEffects(gap_odds=1.4))
    tests = by_name(analyze_cohorts([analyzed_corpus(corpus, tmp_path)], QUICK, analyses=("gaps",)))
    for name in ("fair-clock-gap", "end-censored-gap", "closed-gap", "placebo-needed-gap"):
        assert is_near(tests[name], 1.4)
        assert tests[name].low > 1
    assert is_near(tests["placebo-other-gap"], 1)


@pytest.mark.slow
def test_planted_clipping_and_its_paths_are_found(tmp_path):
    effects = PlantedEffects(never_odds=0.4, rework_odds=2.5, size_never_odds=1.8)
    corpus = PlantedCorpus(700, 70, 1, "clips", clipped=0.8, task_sd=0.4, effects=effects)
    logs = write_logs(corpus, 1, tmp_path)
    tables = analyzed(logs, tmp_path / "tables", tmp_path / "gold")
    lines = read_base_lines(tmp_path / "base-lines.json")
    tests = by_name(analyze_cohorts([tables], QUICK, base_lines=lines, analyses=("clipping", "mediation")))
    for name in ("clipping-mixed", "clipping-correlated-effects", "clipping-disjoint-difficulty"):
        assert is_near(tests[name], 0.4)
    assert tests["clipping-raw-difference"].high < 0
    assert is_near(tests["size-never-recovered"], 1.8)
    assert is_near(tests["never-recovered-failure"], 1 / 0.4)
    assert is_near(tests["rework-failure"], 2.5)
    assert tests["mediation-never-recovered"].low > 0
