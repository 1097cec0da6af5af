"""Statistics of cohorts: figures by hand, plans, files of base lines, and cohorts that have no statistics."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from math import comb, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs, to_builtins

from eirkit.errors import InputFileError, UnknownNameError
from eirkit.records.analysis import TABLES, PlannedTest
from eirkit.vestige.audits.occupancy import read_windows
from eirkit.vestige.cohorts.cohort import TESTS, analyze_cohorts, folder_names
from eirkit.vestige.cohorts.covariates import read_base_lines
from eirkit.vestige.cohorts.finding import (
    OTHER_MODELS,
    AnalysisPlan,
    Settings,
    holm,
    model_columns,
    model_note,
    read_plan,
)
from eirkit.vestige.cohorts.recovery import independent_interval, newcombe_interval, risk_difference
from eirkit.vestige.cohorts.used_later import quantile_interval
from eirkit.vestige.corpus.analysis import AnalysisOptions
from eirkit.vestige.corpus.planted_corpus import PlantedCorpus, plain_lines
from eirkit.vestige.corpus.summary import CorpusTotals
from eirkit.vestige.tables import TableWriter
from tests.vestige.planted import analyzed_corpus, analyzed_lines, by_name

QUICK = AnalysisPlan(settings=Settings(resamples=30, mediation_resamples=25, draws=200))
ROUNDING = 1e-12


def run(name: str, task: str, resolved: bool | None, demand: int, model: str = "m") -> bytes:
    """A run whose peak demand is known: one goal file, read and then edited."""
    turns = [
        {"reads": [{"path": "g.py", "tokens": demand}], "tokens": 100},
        {"writes": [{"path": "g.py", "tokens": demand}], "tokens": 10},
    ]
    reached = turns if demand else [{"reads": [{"path": "x.py", "tokens": 5}], "tokens": 100}]
    fields = {"run_id": name, "task_id": task, "model": model, "resolved": resolved, "goal_files": ["g.py"]}
    return json.dumps({**fields, "turns": reached}).encode() + b"\n"


def document(folder, plan: AnalysisPlan = QUICK, **how):
    found = analyze_cohorts([folder], plan, **how)
    json.dumps(to_builtins(found), allow_nan=False)
    assert all(test.estimate is not None or test.note for test in found.tests)
    return found


# Figures by hand


def test_a_cohort_by_hand(tmp_path):
    lines = [
        run("a", "t1", True, 100), run("b", "t2", False, 300), run("c", "t3", False, 0),
        run("d", "t4", True, 200), run("e", "t5", None, 400),
    ]  # fmt: skip
    (row,) = document(analyzed_lines(lines, tmp_path)).cohorts
    assert (row.runs, row.resolved, row.failed, row.unknown, row.tasks) == (5, 2, 2, 1, 5)
    assert row.goal_access == pytest.approx(4 / 5, abs=ROUNDING)
    assert row.mean_peak_tokens == pytest.approx(1000 / 5, abs=ROUNDING)
    assert row.mean_peak_covered_tokens == pytest.approx(1000 / 4, abs=ROUNDING)
    # Failed 300 and 0 against resolved 100 and 200: 300 beats both, 0 beats none.
    assert row.failure_auc == 0.5
    assert row.covered_failure_auc == 1.0  # 300 against 100 and 200
    assert row.auc_n == 4
    # The area that is shown is that of covered runs, and so is the reason why it has no interval.
    assert row.note.startswith("of runs that touched a goal file: the score separates the two classes")


def test_a_cohort_whose_runs_all_need_the_same_says_so(tmp_path):
    lines = [run(f"r{i}", f"t{i}", i % 2 == 0, 100) for i in range(8)]
    (row,) = document(analyzed_lines(lines, tmp_path)).cohorts
    assert (row.failure_auc, row.auc_low) == (0.5, None)
    assert row.note == "all scores are equal, so no error can be estimated"


def test_a_difference_of_shares_by_hand():
    outcome, exposed = np.array([1.0, 0, 0, 1, 1, 0]), np.array([1.0, 1, 1, 0, 0, 0])
    apart = risk_difference(outcome, exposed, np.arange(6))
    assert apart.estimate == pytest.approx(1 / 3 - 2 / 3, abs=ROUNDING)
    # Each run its own cluster: squared residuals over squared sizes, 6 clusters.
    variance = (2 / 3 / 9 + 2 / 3 / 9) * 6 / 5
    assert apart.standard_error == pytest.approx(sqrt(variance), abs=ROUNDING)
    together = risk_difference(outcome, exposed, np.array([0, 0, 0, 1, 1, 1]))
    assert together.estimate == apart.estimate
    assert together.low is None  # residuals of a whole group add up to nothing: no error, and no false certainty


def test_the_published_interval_of_the_raw_difference():
    """48.5% of 2,405 and 35.8% of 1,187 gave −12.7 points, −16.1 to −9.3."""
    low, high = independent_interval(0.358, 1187, 0.485, 2405)
    printed = 0.0005  # the published figures have three decimals
    assert (low, high) == (pytest.approx(-0.161, abs=printed), pytest.approx(-0.093, abs=printed))


def test_newcombes_published_example():
    """56 of 70 against 48 of 80 gives 0.0524 to 0.3339 (Newcombe 1998, method 10)."""
    low, high = newcombe_interval(56 / 70, 70, 48 / 80, 80)
    printed = 0.00005  # four decimals
    assert (low, high) == (pytest.approx(0.0524, abs=printed), pytest.approx(0.3339, abs=printed))


def test_a_group_of_few_has_an_interval_though_all_of_it_failed():
    low, high = newcombe_interval(0.0, 5, 0.6, 20)
    assert -1 < low < -0.6 < high < 0


@pytest.mark.parametrize("share", [0.5, 0.9])
@pytest.mark.parametrize("n", [60, 200])
def test_a_quantile_lies_between_its_order_statistics_with_95_percent(n, share):
    low, high = quantile_interval(np.arange(1.0, n + 1), share)
    chance = sum(comb(n, k) * share**k * (1 - share) ** (n - k) for k in range(int(low), int(high)))
    assert 0.94 <= chance <= 0.99  # a whole number of runs cannot meet 95% exactly


def test_a_quantile_beyond_the_sample_has_no_interval():
    assert quantile_interval(np.arange(20.0), 0.99)[1] is None


def test_the_most_frequent_model_is_the_one_that_others_are_compared_with():
    columns = model_columns(np.array(["b", "a", "b", "c"], dtype=object))
    assert {name: list(values) for name, values in columns.items()} == {
        "model a": [0, 1, 0, 0],
        "model c": [0, 0, 0, 1],
    }


def test_models_beyond_the_sixtieth_share_an_indicator_and_a_note_says_so():
    # 66 models, the first of which has two runs: 60 indicators, and one for the last five.
    models = np.array(["m00", *(f"m{n:02}" for n in range(66))], dtype=object)
    columns = model_columns(models)
    assert len(columns) == 61
    assert columns[OTHER_MODELS].sum() == 5
    apart = np.sum(list(columns.values()), axis=0)
    assert list(np.unique(models[apart == 0])) == ["m00"]  # the reference has no company
    assert model_note(models) == "the rarest 5 of 66 models share one indicator"
    assert model_note(models[:62]) == ""
    assert OTHER_MODELS not in model_columns(models[:62])


def test_a_test_with_too_many_models_notes_it(tmp_path):
    lines = [run(f"r{i}", f"t{i % 4}", i % 3 == 0, 100 + i, f"m{i % 66}") for i in range(132)]
    found = by_name(document(analyzed_lines(lines, tmp_path), analyses=("gaps",)))
    assert "the rarest 5 of 66 models share one indicator" in found["closed-gap"].note


# Cohorts


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    return analyzed_corpus(PlantedCorpus(200, 40, 2, "two"), tmp_path_factory.mktemp("planted"))


def test_equal_seeds_give_equal_documents_and_other_seeds_only_move_what_is_drawn(planted):
    first, again = document(planted, analyses=("demand", "gaps")), document(planted, analyses=("demand", "gaps"))
    assert first == again
    other = document(
        planted, replace(QUICK, settings=structs.replace(QUICK.settings, seed=9)), analyses=("demand", "gaps")
    )
    moved = {a.name for a, b in zip(first.tests, other.tests, strict=True) if a != b}
    assert moved == {"fair-clock-gap"}


def test_every_test_has_a_name_that_a_plan_can_fix(planted):
    found = document(planted)
    assert {test.name for test in found.tests} <= set(TESTS)
    assert all(test.shows and test.does_not_show and test.scale for test in found.tests)


def test_runs_split_by_model_tell_each_other_how_hard_tasks_are(planted):
    found = document(planted, by="model", analyses=("demand",))
    assert [(row.cohort, row.runs) for row in found.cohorts] == [("planted/0", 120), ("planted/1", 80)]
    hard = by_name(found, "planted/0")["demand-failure-difficulty"]
    assert (hard.n, hard.excluded) == (120, ())
    pooled = by_name(document(planted, analyses=("demand",)))["demand-failure-difficulty"]
    assert pooled.estimate is None
    assert "disjoint" in pooled.note


def test_a_run_is_never_its_own_other_run(planted):
    found = by_name(document(planted, analyses=("demand",), disjoint=[planted]))
    assert found["demand-failure-difficulty"].estimate is None


def attempts(number: int) -> list[bytes]:
    """Runs named after their tasks, as many scaffolds name them; each attempt has outcomes and needs of its own."""
    return [run(f"r{i}", f"t{i}", (i * (number + 2)) % 5 < 2, 100 + 37 * i + 11 * number) for i in range(24)]


def test_another_attempt_under_the_same_id_is_another_run(tmp_path):
    first, second = (analyzed_lines(attempts(number), tmp_path / str(number)) for number in (0, 1))
    found = by_name(document(first, analyses=("demand",), disjoint=[second]))["demand-failure-difficulty"]
    assert (found.n, found.excluded) == (24, ())
    assert found.estimate is not None
    assert "analyzed set itself" not in found.note
    assert analyze_cohorts([first, second], QUICK, analyses=("demand",)).repeated_runs == 0


def test_an_attempt_that_differs_in_its_outcome_alone_is_another_run(tmp_path):
    first = analyzed_lines([run("r", "t", True, 100), run("s", "u", False, 100)], tmp_path / "0")
    second = analyzed_lines([run("r", "t", False, 100), run("s", "u", False, 100)], tmp_path / "1")
    assert analyze_cohorts([first, second], QUICK, analyses=("later",)).repeated_runs == 1


def test_copies_given_as_other_runs_are_left_out_and_counted(tmp_path):
    first, second = (analyzed_lines(attempts(number), tmp_path / str(number)) for number in (0, 1))
    copy = analyzed_lines(attempts(0), tmp_path / "copy", "renamed")
    both = by_name(document(first, analyses=("demand",), disjoint=[second, copy]))["demand-failure-difficulty"]
    alone = by_name(document(first, analyses=("demand",), disjoint=[second]))["demand-failure-difficulty"]
    assert both.estimate == alone.estimate
    said = "24 runs are left out of the difficulty estimate, being in the analyzed set itself"
    assert said in both.note
    only = by_name(document(first, analyses=("demand",), disjoint=[copy]))["demand-failure-difficulty"]
    assert only.estimate is None
    assert said in only.note


def test_a_copy_is_known_again_whatever_goal_it_was_analyzed_with(tmp_path):
    lines = attempts(0)
    other = [line.replace(b'"goal_files": ["g.py"]', b'"goal_files": ["elsewhere.py"]') for line in lines]
    folders = [analyzed_lines(lines, tmp_path / "a"), analyzed_lines(other, tmp_path / "b")]
    assert analyze_cohorts(folders, QUICK, analyses=("later",)).repeated_runs == len(lines)


def test_folders_are_told_apart_by_name_or_path(planted, tmp_path):
    other = analyzed_lines(same(True), tmp_path / "a", planted.name)
    found = analyze_cohorts([planted, other], QUICK, by="folder", analyses=("demand",))
    assert [row.cohort for row in found.cohorts] == [str(planted), str(other)]
    assert folder_names([planted, tmp_path / "b"]) == [planted.name, "b"]


def test_runs_that_occur_twice_are_counted(planted):
    assert analyze_cohorts([planted, planted], QUICK, analyses=("demand",)).repeated_runs == 200


def test_resampling_runs_within_tasks_says_what_is_wrong_with_it(planted):
    plan = replace(QUICK, settings=structs.replace(QUICK.settings, resampled="runs"))
    assert "bias" in by_name(document(planted, plan, analyses=("gaps",)))["fair-clock-gap"].note


def test_sparse_and_far_bins_are_reported(planted):
    bins = by_name(document(planted, analyses=("rereads",)))["reread-failed-distance"].details.bins
    assert {one.midpoint_tokens for one in bins} >= {500, 1500, 3000, 6000}
    assert all(one.entered == (one.rereads >= 5 and one.midpoint_tokens <= 24_000) for one in bins)


# Cohorts that have no statistics


def same(resolved: bool | None, tasks: int = 8, demand: int = 100) -> list[bytes]:
    return [run(f"r{i}", f"t{i % tasks}", resolved, demand * (1 + i % 3)) for i in range(16)]


HOPELESS = {
    "all resolved": same(True),
    "all failed": same(False),
    "nobody says": same(None),
    "one task": [run(f"r{i}", "t", i % 2 == 0, 100 + i) for i in range(12)],
    "no goal access": [run(f"r{i}", f"t{i}", i % 2 == 0, 0) for i in range(12)],
    "separation": [run(f"r{i}", f"t{i}", i < 6, 10 if i < 6 else 10_000) for i in range(12)],
    "one run": [run("r", "t", True, 50)],
    "two runs": [run("r", "t", True, 50), run("s", "u", False, 60)],
}


@pytest.mark.parametrize("name", HOPELESS)
def test_a_degenerate_cohort_is_described_and_never_nan(name, tmp_path):
    found = document(analyzed_lines(HOPELESS[name], tmp_path))
    (row,) = found.cohorts
    assert row.runs == len(HOPELESS[name])
    assert len(found.tests) >= 3
    if name in ("all resolved", "all failed", "nobody says", "one run"):
        assert row.failure_auc is None
        assert "nothing to compare" in row.note
    if name == "no goal access":
        assert row.mean_peak_tokens == 0
        assert "missing coverage" in row.note
    if name == "separation":
        assert by_name(found)["demand-failure"].estimate is None
        assert "separation" in by_name(found)["demand-failure"].note


def test_an_analysis_without_runs_is_refused(tmp_path):
    with TableWriter(tmp_path / "empty", TABLES) as writer:
        writer.finish(CorpusTotals().summary(AnalysisOptions(read_windows())))
    with pytest.raises(InputFileError, match="holds no runs"):
        analyze_cohorts([tmp_path / "empty"], QUICK)


def test_a_folder_that_is_no_analysis_is_refused(tmp_path):
    with pytest.raises(InputFileError, match="eirkit vestige analyze"):
        analyze_cohorts([tmp_path], QUICK)


# Plans


def test_holm_by_hand():
    # 0.01 × 4, 0.02 × 3, 0.04 × 2; what has no p value counts as planned all the same.
    assert holm([0.04, None, 0.01, 0.02]) == pytest.approx([0.08, None, 0.04, 0.06], abs=ROUNDING)


@given(st.lists(st.floats(0, 1), max_size=8))
def test_corrected_p_values_keep_their_order_and_are_never_smaller(values):
    corrected = holm(values)
    assert all(p <= q <= 1 for p, q in zip(values, corrected, strict=True))
    order = sorted(range(len(values)), key=values.__getitem__)
    assert all(corrected[a] <= corrected[b] for a, b in pairwise(order))


def test_a_plan_is_read_printed_and_corrected(planted, tmp_path):
    suite = tmp_path / "suite.toml"
    suite.write_text(
        '[cohort]\nplanned = ["demand-failure", "demand-failure-tokens"]\nrecorded = "2026-01-31"\nresamples = 50\n'
    )
    plan = read_plan(suite, TESTS)
    assert plan.settings.resamples == 50
    found = document(planted, plan, analyses=("demand",))
    tests = by_name(found)
    assert [test.name for test in found.tests if test.planned] == ["demand-failure", "demand-failure-tokens"]
    smaller = min(tests["demand-failure"].p, tests["demand-failure-tokens"].p)
    corrected = min(tests["demand-failure"].p_holm, tests["demand-failure-tokens"].p_holm)
    assert corrected == pytest.approx(min(1, 2 * smaller), abs=ROUNDING)
    assert tests["clipped-demand-failure"].p_holm is None
    assert found.plan.recorded == "2026-01-31"


def test_leaving_planned_tests_out_does_not_sharpen_the_rest(planted):
    plan = replace(QUICK, planned=("demand-failure", "demand-failure-tokens", "fair-clock-gap", "closed-gap"))
    whole = by_name(document(planted, plan, analyses=("demand", "gaps")))
    part = document(planted, plan, analyses=("gaps",))
    tests = by_name(part)
    assert part.plan.not_run == (PlannedTest("demand-failure", "all"), PlannedTest("demand-failure-tokens", "all"))
    # Four are planned: the smaller of the two p values counts four times, the other at least three times.
    smaller, larger = sorted((tests[name] for name in ("fair-clock-gap", "closed-gap")), key=lambda test: test.p)
    assert smaller.p_holm == pytest.approx(min(1, 4 * smaller.p), abs=ROUNDING)
    assert larger.p_holm == pytest.approx(min(1, max(4 * smaller.p, 3 * larger.p)), abs=ROUNDING)
    assert all(tests[name].p_holm >= whole[name].p_holm for name in ("fair-clock-gap", "closed-gap"))


def test_a_planned_test_counts_in_every_cohort_and_once_where_no_run_allows_it(planted):
    plan = replace(QUICK, planned=("demand-failure", "task-entities-auc"))
    found = document(planted, plan, by="model", analyses=("demand",))
    assert found.plan.not_run == (PlannedTest("task-entities-auc", None),)
    values = [test.p for test in found.tests if test.planned]
    assert len(values) == 2
    corrected = [test.p_holm for test in found.tests if test.planned]
    assert min(corrected) == pytest.approx(min(1, 3 * min(values)), abs=ROUNDING)
    assert len(document(planted, plan, by="model", analyses=("later",)).plan.not_run) == 3


def test_a_plan_of_an_unknown_test_is_refused(tmp_path):
    suite = tmp_path / "suite.toml"
    suite.write_text('[cohort]\nplanned = ["demand-failur"]\n')
    with pytest.raises(UnknownNameError, match="did you mean 'demand-failure'"):
        read_plan(suite, TESTS)


@pytest.mark.parametrize(
    "text", ["", "planned = 3", "[cohort]\nplaned = []", "[cohort]\nresamples = 1", '[cohort]\nresample = "x"', "[["]
)
def test_what_is_no_plan_is_refused(text, tmp_path):
    (tmp_path / "suite.toml").write_text(text)
    with pytest.raises(InputFileError, match=r"give TOML with \[cohort\] planned"):
        read_plan(tmp_path / "suite.toml", TESTS)


# Base lines


@pytest.mark.parametrize("text", ['{"t1": 120, "t2": 7.0}', "task_id,lines\nt1,120\nt2,7\n"])
def test_base_lines_are_read_from_json_or_csv(text, tmp_path):
    (tmp_path / "lines").write_text(text)
    assert read_base_lines(tmp_path / "lines") == {"t1": 120.0, "t2": 7.0}


@pytest.mark.parametrize("text", ['{"t1": "many"}', "a,b\n1,2\n", '{"t1": -1}', '{"t1": NaN}', "{"])
def test_base_lines_that_are_none_are_refused(text, tmp_path):
    (tmp_path / "lines").write_text(text)
    with pytest.raises(InputFileError, match="JSON object that maps tasks to lines"):
        read_base_lines(tmp_path / "lines")


def test_lines_of_a_planted_corpus_are_json():
    assert all(json.loads(line)["turns"] for line in plain_lines(PlantedCorpus(5, 2), 0))
