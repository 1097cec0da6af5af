"""Two folders compared: pairs, intervals and p values by hand, what changed, and what is refused."""

import math
from dataclasses import replace
from statistics import fmean, stdev

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from eirkit.cli import run
from eirkit.errors import InputFileError
from eirkit.lacuna.findings.measures import CAUSE_MEASURES, OUTCOME_MEASURES
from eirkit.report import comparison
from eirkit.report.comparison import (
    COSTS,
    MeasuredPair,
    changes_between,
    compare_folders,
    comparison_page,
    difference_of,
    fates_sentence,
    group_of,
    measure_of,
    sides_of,
    verdict_of,
)
from eirkit.report.html import render
from eirkit.report.runs.comparison import compare_sweeps, contrast_axes
from eirkit.report.runs.folder import read_sweep
from eirkit.vestige.corpus.planted_corpus import PlantedCorpus, write_plain
from tests import runs
from tests.report.conftest import PLANTED
from tests.report.folders import command, make_analysis, make_sweep
from tests.report.reading_pages import faults

ROUNDING = 1e-12  # means of a few dozen numbers, in another order
SHARES = st.floats(0, 1).map(lambda value: round(value, 6))


@pytest.fixture(scope="module")
def memories(tmp_path_factory):
    """The same tasks with a memory that keeps everything and with one that drops every third write."""
    root = tmp_path_factory.mktemp("memories")
    how = ("--workload", "store-recall", "--n", 32, "--m", 8, "--h", 4, "--seeds", "0:8", "--json")
    for name in ("key-value", "broken-drops"):
        where = ("--memory", name, "--out", root / name)
        command("lacuna", "run", *how, "--model", "reference/recoverer", *where)
    return root


@pytest.fixture(scope="module")
def sweeps(tmp_path_factory):
    """The same grid with two policies, and a third with other seeds."""
    root = tmp_path_factory.mktemp("compared")
    make_sweep(root / "a", seeds="0:4")
    make_sweep(root / "b", "--policy", "lru", seeds="0:4")
    make_sweep(root / "c", seeds="10:12")
    make_sweep(root / "d", "--fan-in", 1, seeds="0:4")
    return root


def raw_scores(folder):
    """Return accuracies by what was asked."""
    found = {}
    for record in runs.records(folder):
        place = (record.setting.task.workload, record.setting.model, record.setting.access.h, record.seed)
        found[place] = record.score.correct / record.score.steps
    return found


def test_the_difference_is_that_of_the_records(sweeps):
    found = compare_folders(sweeps / "a", sweeps / "b")
    a, b = raw_scores(sweeps / "a"), raw_scores(sweeps / "b")
    (accuracy,) = [one for one in found.overall if one.measure == "accuracy"]
    assert set(a) == set(b)
    assert accuracy.pairs == len(a) == 48
    assert accuracy.difference == pytest.approx(fmean(b[place] - a[place] for place in a), abs=ROUNDING)
    assert accuracy.difference == pytest.approx(accuracy.b - accuracy.a, abs=ROUNDING)
    cells = [one for one in found.parts if one.measure == "accuracy"]
    assert len(cells) == 12
    assert all((one.low, one.high) == (None, None) for one in cells)  # four tasks each
    assert accuracy.low is None or accuracy.low <= accuracy.difference <= accuracy.high
    assert [(change.name, change.a, change.b) for change in found.changes if "policy" in change.name] == [
        ("settings.grid.0.policy", None, "lru")
    ]


def test_seeds_are_tasks_where_their_graphs_coincide(tmp_path):
    how = ("--workload", "running-max", "--n", 16, "--m", 4, "--h", 1, "--seeds", "0:6", "--no-control", "--json")
    for name in ("sloppy", "calculator"):
        command("lacuna", "run", *how, "--model", f"reference/{name}", "--out", tmp_path / name)
    assert len({record.fingerprint for record in runs.records(tmp_path / "sloppy")}) == 1, "a chain has one graph"
    (accuracy,) = [
        one
        for one in compare_folders(*map(tmp_path.joinpath, ("sloppy", "calculator"))).overall
        if one.measure == "accuracy"
    ]
    assert (accuracy.pairs, accuracy.clusters) == (6, 6)
    assert accuracy.low <= accuracy.difference <= accuracy.high


def test_a_folder_does_not_differ_from_itself(sweeps):
    found = compare_folders(sweeps / "a", sweeps / "a")
    assert all((one.difference, one.low, one.high, one.p) == (0, None, None, 1) for one in found.overall)
    assert found.changes == ()


def test_no_pair_is_made_of_different_tasks(sweeps):
    with pytest.raises(InputFileError, match=r"was asked the same task.*use the same seeds"):
        compare_folders(sweeps / "a", sweeps / "c")
    # Another fan-in is another graph under the same seed.
    with pytest.raises(InputFileError, match="was asked the same task"):
        compare_folders(sweeps / "a", sweeps / "d")


def test_what_keeps_folders_apart_is_named_with_both_values(sweeps, tmp_path):
    how = (
        "--workload",
        "stepwise-sum",
        "--model",
        "reference/calculator",
        "--n",
        24,
        "--h",
        4,
        "--no-control",
        "--json",
    )
    for m in (8, 16):
        command("lacuna", "run", *how, "--m", m, "--seeds", "0:2", "--out", tmp_path / f"m{m}")
    with pytest.raises(InputFileError, match=r"the tasks differ in m: 16 / 8; run both with the same$"):
        compare_folders(tmp_path / "m16", tmp_path / "m8")
    command("lacuna", "run", *how, "--m", 8, "--seeds", "4:6", "--out", tmp_path / "later")
    with pytest.raises(InputFileError, match=r"use the same seeds \(0:2 / 4:6\)$"):
        compare_folders(tmp_path / "m8", tmp_path / "later")
    command("lacuna", "run", *how, "--m", 8, "--h", "2,3", "--seeds", "0:2", "--out", tmp_path / "small")
    with pytest.raises(InputFileError, match=r"no setting of m8 has a partner in small \(h: 4 / 2, 3\); run both"):
        compare_folders(tmp_path / "m8", tmp_path / "small")


@pytest.mark.parametrize("swapped", [False, True])
def test_a_folder_without_scored_runs_is_named_first(sweeps, tmp_path, swapped):
    how = ("--workload", "store-recall", "--model", "reference/recoverer", "--memory", "broken-raises", "--no-control")
    assert run(["lacuna", "run", *how, "--m", "8", "--h", "4", "--out", str(tmp_path / "bad"), "--json"]) == 1
    folders = [sweeps / "a", tmp_path / "bad"]
    with pytest.raises(InputFileError, match=r"^no scored runs in bad \(memory: .*\); run it again, then compare$"):
        compare_folders(*(reversed(folders) if swapped else folders))


def test_folders_of_different_kinds_are_refused(sweeps, planted):
    with pytest.raises(
        InputFileError, match=r"of `vestige analyze`; compare two of `lacuna run` or two of `vestige an"
    ):
        compare_folders(sweeps / "a", planted)


def test_a_folder_that_does_not_compare_is_called_by_its_command(tmp_path):
    how = ("--workload", "store-recall", "--n", 12, "--m", 4, "--h", 2, "--seeds", "0:2", "--json")
    command("lacuna", "rescue", *how, "--model", "reference/calculator", "--out", tmp_path / "b")
    with pytest.raises(InputFileError, match=r"b is of `lacuna rescue`; compare two of `lacuna run` or two of"):
        compare_folders(tmp_path / "b", tmp_path / "b")


def test_what_differs_as_a_whole_is_what_is_compared(sweeps):
    a, b = read_sweep(sweeps / "a"), read_sweep(sweeps / "b")
    assert contrast_axes(a.rows, b.rows) == ("memory",)
    assert contrast_axes(a.rows, a.rows) == ()


def test_several_changes_at_once_are_named(sweeps, tmp_path):
    how = ("--workload", "stepwise-sum", "--m", 8, "--n", 16, "--no-control", "--json")
    command("lacuna", "run", *how, "--model", "reference/calculator", "--h", 4, "--out", tmp_path / "x")
    command("lacuna", "run", *how, "--model", "reference/sloppy", "--h", 2, "--out", tmp_path / "y")
    found = compare_sweeps(read_sweep(tmp_path / "x"), read_sweep(tmp_path / "y"))
    assert any("differ in model, h at once" in warning for warning in found.warnings)
    assert any("no full-information control was run" in warning for warning in found.warnings)


def test_causes_of_a_failed_control_are_withheld(sweeps):
    a = read_sweep(sweeps / "a")
    weak = tuple(structs.replace(row, control=runs.standing("fails", "excluded"), claims=False) for row in a.rows)
    found = compare_sweeps(replace(a, rows=weak), a)
    causes = {one.measure for one in found.overall if group_of(one.measure) is CAUSE_MEASURES}
    assert causes == {"not_answered", "malformed", "truncated", "undetermined", "computation"}


@given(st.lists(st.tuples(st.sampled_from("pqrs"), SHARES, SHARES), min_size=1, max_size=12))
def test_a_difference_is_its_definition(rows):
    found = difference_of("", "x", [MeasuredPair(*row) for row in rows])
    assert found.difference == pytest.approx(fmean(b - a for _, a, b in rows), abs=ROUNDING)
    assert found.clusters == len({task for task, _, _ in rows})
    assert (found.low, found.high) == (None, None)  # at most four tasks
    if found.clusters == 1:
        assert found.p is None
        return
    # Sign flips of the tasks' mean differences, every pattern counted.
    means = [fmean(b - a for t, a, b in rows if t == task) for task in dict.fromkeys(t for t, _, _ in rows)]
    patterns = np.array(np.meshgrid(*[[1, -1]] * len(means))).reshape(len(means), -1).T
    sums = np.abs(patterns @ np.array(means))
    assert found.p == pytest.approx(float((sums >= abs(sum(means)) - ROUNDING).mean()), abs=ROUNDING)


# Quantiles of Student's t from a printed table.
@pytest.mark.parametrize(("tasks", "t"), [(6, 2.5706), (12, 2.2010), (31, 2.0423), (5_001, 1.9604)])
def test_the_interval_is_students_over_tasks(tasks, t):
    rng = np.random.default_rng(0)
    values = rng.normal(0.1, 1, tasks)
    found = difference_of("", "x", [MeasuredPair(str(task), 0.0, value) for task, value in enumerate(values.tolist())])
    half = t * stdev(values.tolist()) / math.sqrt(len(values))
    assert found.high - found.low == pytest.approx(2 * half, rel=1e-4)
    assert found.p is not None


@pytest.mark.parametrize("tasks", [6, 8, 40])
def test_equal_differences_of_shares_have_an_interval_that_95_percent_of_samples_cover(tasks):
    found = difference_of("", "accuracy", [MeasuredPair(str(task), 0.5, 0.75) for task in range(tasks)])
    assert found.low < 0.25 < found.high
    # A truth at the end of the interval: a share u of tasks differs by −1 (or +1), and none of them was drawn.
    for end, other in ((found.low, -1.0), (found.high, 1.0)):
        unseen = (end - 0.25) / (other - 0.25)
        assert (1 - unseen) ** tasks == pytest.approx(0.05, abs=1e-9)


def test_few_tasks_are_not_called_better():
    one = difference_of("", "accuracy", [MeasuredPair(str(i), 0.1, 0.9 + i / 100) for i in range(4)])
    told = verdict_of(comparison.Comparison("lacuna-run", "a", "b", "runs", (one,), (), (), ()))
    assert one.p == 0.125
    assert "better" not in told
    assert "too few tasks (4) for an interval; use 6 or more seeds" in told


def test_many_pairs_of_one_task_move_the_interval_with_the_mean():
    single = 5_001
    rng = np.random.default_rng(1)
    pairs = [MeasuredPair("one", 0.0, 1.0)] * 4_000
    pairs += [MeasuredPair(str(task), 0.0, value) for task, value in enumerate(rng.normal(0, 1, single).tolist())]
    found = difference_of("", "x", pairs)
    assert found.difference == pytest.approx(fmean(pair.b for pair in pairs), abs=ROUNDING)
    assert (found.low + found.high) / 2 == pytest.approx(found.difference, abs=ROUNDING)
    # A second way: what is left of each pair, added up by a matrix that says which task it is of.
    left = np.array([pair.b for pair in pairs]) - found.difference
    which = np.r_[np.zeros(4_000, dtype=int), 1 + np.arange(single)]
    sums = np.bincount(which, weights=left)
    error = math.sqrt(len(sums) / (len(sums) - 1) * float(sums @ sums)) / len(pairs)
    assert found.high - found.low == pytest.approx(2 * 1.9604 * error, rel=1e-4)
    assert found.high - found.low > 10 * 2 * 1.96 / math.sqrt(len(pairs))  # 4,000 pairs of one task are one fact


@pytest.mark.parametrize("how", [("--digits", 3), ("--warm-up", 4)])
def test_other_tasks_over_the_same_graph_are_named(sweeps, tmp_path, how):
    make_sweep(tmp_path / "other", *how, seeds="0:4")
    a, b = read_sweep(sweeps / "a"), read_sweep(tmp_path / "other")
    name = how[0].removeprefix("--").replace("-", "_")
    assert contrast_axes(a.rows, b.rows) == (name,)
    found = compare_sweeps(a, b)
    assert any(
        f"the tasks are not the same: pairs share their references, and differ in {name}" in w for w in found.warnings
    )
    assert not any("tasks are not the same" in warning for warning in compare_sweeps(a, a).warnings)


def test_cells_of_other_digits_are_not_paired(sweeps, tmp_path):
    grid = ("--workload", "stepwise-sum", "--model", "reference/calculator", "--m", 8, "--n", 16, "--h", 4)
    how = ("--seeds", "0:2", "--no-control", "--json")
    command("lacuna", "run", *grid, *how, "--digits", "2,3", "--out", tmp_path / "x")
    command("lacuna", "run", *grid, *how, "--digits", "3,4", "--out", tmp_path / "y")
    found = compare_sweeps(read_sweep(tmp_path / "x"), read_sweep(tmp_path / "y"))
    (accuracy,) = [one for one in found.overall if one.measure == "accuracy"]
    assert (accuracy.pairs, accuracy.difference) == (2, 0.0)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(0, 5) | st.sampled_from("xyz"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from("abc"), JSON, max_size=3))
def test_a_document_has_no_changes_from_itself_and_a_new_key_is_one(document):
    assert changes_between(document, document) == ()
    (change,) = changes_between(document, {**document, "new": "value"})
    assert (change.name, change.a, change.b) == ("new", None, "value")


def test_the_same_runs_measured_otherwise_are_paired_by_run(planted, tmp_path):
    write_plain(PLANTED, 0, tmp_path / "runs.jsonl")
    command(
        "vestige", "analyze", tmp_path / "runs.jsonl", "--visibility", "environment", "--out", tmp_path / "b", "--json"
    )
    found = compare_folders(planted, tmp_path / "b")
    assert found.unit == "runs"
    by_name = {one.measure: one for one in found.overall}
    assert by_name["failed"].difference == 0
    assert by_name["failed"].pairs == PLANTED.runs
    assert by_name["failed"].clusters == PLANTED.tasks
    assert any("visibility is not the same" in warning for warning in found.warnings)
    assert "have the same failure rate in every pair" in verdict_of(found)


def test_fewer_runs_with_the_same_kind_of_goal_are_no_other_setting(planted, tmp_path):
    kept = write_plain(PLANTED, 0, tmp_path / "runs.jsonl").read_text("utf-8").splitlines()[:90]
    (tmp_path / "runs.jsonl").write_text("\n".join(kept) + "\n", "utf-8")
    found = compare_folders(planted, make_analysis(tmp_path / "b", tmp_path / "runs.jsonl"))
    assert [change.name for change in found.changes] == []
    assert found.warnings == ()


def test_other_runs_of_the_same_tasks_are_paired_by_task(planted, tmp_path):
    other = PlantedCorpus(60, 30, models=1, name="planted", coverage=1.0)
    lines = write_plain(other, 7, tmp_path / "runs.jsonl").read_text("utf-8")
    (tmp_path / "runs.jsonl").write_text(lines.replace('"run_id":"', '"run_id":"other-'), "utf-8")
    found = compare_folders(planted, make_analysis(tmp_path / "b", tmp_path / "runs.jsonl"))
    reached = next(one for one in found.overall if one.measure == "goal_accessed")
    assert (found.unit, reached.pairs) == ("tasks", 30)
    assert reached.b == 1
    assert found.sides[0]["runs"] + found.sides[1]["runs"] == 180


def test_analyses_without_a_common_task_are_refused(planted, tmp_path):
    write_plain(PlantedCorpus(8, 4, name="elsewhere"), 0, tmp_path / "runs.jsonl")
    with pytest.raises(InputFileError, match="share neither runs nor tasks"):
        compare_folders(planted, make_analysis(tmp_path / "b", tmp_path / "runs.jsonl"))


def test_the_page_of_a_comparison_is_in_order(sweeps, planted):
    for a, b in ((sweeps / "a", sweeps / "b"), (planted, planted)):
        found = compare_folders(a, b)
        page = comparison_page(found, a, b)
        assert faults(render(page)) == []
        assert page.answers.overall[0].difference == found.overall[0].difference


def raw_memories(folder):
    """Return what the records say of each run's memory."""
    return {record.seed: record.memory for record in runs.records(folder)}


def test_fates_and_costs_are_those_of_the_records(memories):
    found = compare_folders(memories / "key-value", memories / "broken-drops")
    by_name = {one.measure: one for one in found.overall}
    raw = [raw_memories(memories / name) for name in ("key-value", "broken-drops")]
    lost = [[one.outcomes.get("not_stored", 0) / sum(one.outcomes.values()) for one in side.values()] for side in raw]
    assert (by_name["not_stored"].a, by_name["not_stored"].b) == pytest.approx(tuple(map(fmean, lost)), abs=ROUNDING)
    searched = [[1000 * one.search_seconds / one.searches for one in side.values()] for side in raw]
    assert by_name["search_ms"].difference == pytest.approx(fmean(searched[1]) - fmean(searched[0]), abs=1e-9)
    assert by_name["records"].difference < 0
    shares = [one for one in found.overall if group_of(one.measure) is OUTCOME_MEASURES]
    assert sum(one.a for one in shares) == pytest.approx(1, abs=ROUNDING)
    assert sum(one.b for one in shares) == pytest.approx(1, abs=ROUNDING)
    # A scripted agent and memories without a model cost nothing, and nothing is said of that.
    assert {one.measure for one in found.overall if measure_of(one.measure).unit == "dollars"} == set()


def test_the_verdict_names_the_memories_and_where_results_went(memories):
    found = compare_folders(memories / "key-value", memories / "broken-drops")
    assert sides_of(found) == ("key-value", "broken-drops")
    assert verdict_of(found).startswith("broken-drops is worse than key-value in accuracy: −")
    assert "over 8 pairs of runs of 8 tasks" in verdict_of(found)
    assert OUTCOME_MEASURES["not_stored"].label in fates_sentence(found)
    back = compare_folders(memories / "broken-drops", memories / "key-value")
    assert verdict_of(back).startswith("key-value is better than broken-drops in accuracy: +")
    assert "in every pair" in verdict_of(compare_folders(memories / "key-value", memories / "key-value"))


@given(st.lists(st.tuples(SHARES, SHARES), min_size=2, max_size=9))
def test_a_difference_that_chance_would_make_is_not_called_better(rows):
    one = difference_of("", "accuracy", [MeasuredPair(str(i), *row) for i, row in enumerate(rows)])
    told = verdict_of(comparison.Comparison("lacuna-run", "a", "b", "runs", (one,), (), (), ()))
    shown = one.low is not None and not one.low <= 0 <= one.high and one.p <= 0.05
    assert ("better" in told or "worse" in told) == shown
    if shown:
        assert ("better" in told) == (one.difference > 0)


def test_without_a_memory_on_both_sides_there_are_no_fates(sweeps, memories, tmp_path):
    how = ("--workload", "store-recall", "--n", 32, "--m", 8, "--h", 4, "--seeds", "0:4", "--json")
    command("lacuna", "run", *how, "--model", "reference/recoverer", "--out", tmp_path / "controlled")
    found = compare_folders(tmp_path / "controlled", memories / "key-value")
    assert not [one for one in found.overall if group_of(one.measure) is OUTCOME_MEASURES]
    assert fates_sentence(found) == ""
    assert [one.measure for one in found.overall if group_of(one.measure) in COSTS] == ["calls"]


def test_the_prompts_of_partners_count_and_not_those_of_a_whole_grid(memories, tmp_path):
    how = ("--n", 32, "--m", 8, "--h", 4, "--seeds", "0:8", "--json", "--memory", "key-value")
    grid = ("--workload", "store-recall,stepwise-sum", "--model", "reference/recoverer")
    command("lacuna", "run", *grid, *how, "--out", tmp_path / "both")
    found = compare_folders(memories / "key-value", tmp_path / "both")
    assert not any("prompts" in warning for warning in found.warnings)
    assert not any("sha256" in change.name for change in found.changes)
