"""The paper's studies: none is missing, few seeds give whole findings, and what no seed can change holds."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import msgspec
import numpy as np
import pytest

from eirkit.cli import run
from eirkit.eir.demand import store_recall
from eirkit.errors import UsageError
from eirkit.lacuna.findings.measures import CAUSE_MEASURES
from eirkit.lacuna.models.model import ModelOptions
from eirkit.lacuna.models.network.decoding import Memory, cached_replies
from eirkit.lacuna.runs.rescue import RescueSetup, rescue
from eirkit.lacuna.tasks.task import TaskSpec
from eirkit.records.settings import Access
from eirkit.registry import load_object
from eirkit.vestige.audits.occupancy import read_windows
from eirkit.vestige.corpus.analysis import AnalysisOptions
from eirkit.vestige.corpus.pipeline import Corpus, analyze_here
from eirkit.vestige.corpus.planted_corpus import PlantedCorpus, write_logs
from eirkit_paper.page import row_tables
from eirkit_paper.published import figures_by_id
from eirkit_paper.studies import cascades, cones, managed, policies, pressure, recorded, requirements
from eirkit_paper.studies import comparison as shapes
from eirkit_paper.studies.agents import STANDS_IN, StudyAgent, reference, repeated, run_cell
from eirkit_paper.studies.architectures import MemoryScore, by_seed
from eirkit_paper.studies.catalog import BY_ID, STUDIES, find_study
from eirkit_paper.studies.comparison import TOO_FEW, compare, spread, stand_in
from eirkit_paper.studies.recorded import Published
from eirkit_paper.studies.rescue import in_arms
from eirkit_paper.study import (
    KINDS,
    NO_REASON,
    OWN_HOLD,
    REPRODUCED,
    VERDICTS,
    Findings,
    Setting,
)
from eirkit_paper.verdicts import AGREES, DIFFERS, NOT_SAME, TOO_WIDE

# Every \label of a table or figure environment of the paper.
PAPER = {
    "tab:lacuna-workloads", "tab:smuggling-audit", "tab:capability", "tab:rq2-agg-capacity", "tab:rq5-cross",
    "tab:rq5-agent-architectures", "tab:rq4-extended-architectures", "tab:rq2", "tab:full-lookup-pressure",
    "tab:rescue", "tab:rq1-stepwise-max-rescue", "tab:rq3-cone", "tab:rq3-amp", "tab:rq2-recovery-workloads",
    "tab:rq3-stepwise-max-behaviors", "tab:swe-retrospective", "tab:eir-anchors", "tab:reread-distance",
    "fig:trajectory-clipping-mechanism", "fig:pressure-failure", "fig:eir-equivalence", "fig:lacuna-framework",
    "fig:temporal-alignment", "fig:rq1-causal-rescue", "fig:rq2-arb-theory", "fig:rq2-failure-heatmap",
    "fig:rq3-cost", "fig:rq3-geometry", "fig:rq2-cascade-gap", "fig:results-recovery", "fig:rq3-trace",
    "fig:results-policy-cross-family", "fig:rq4-agent-architectures",
}  # fmt: skip
MODEL_FREE = ("cross-family-policies", "recovery-cones", "channel-audit")
SLOW = {"exact-requirements", "two-by-two", "agent-managed-behaviour", "recovery-enabled-maximum"}  # seconds each
FEW = Setting(seeds=range(3))
FINITE = ("published", "ours", "low", "high")
DOCS = Path(__file__).parents[2] / "docs"


@cache
def found(identity: str) -> Findings:
    """Return a study over three seeds, as far as it takes seeds."""
    return find_study(identity).run(find_study(identity).own(FEW))


def ours(identity: str, agent: str) -> dict[str, float | None]:
    return {row.label: row.ours for row in found(identity).rows if row.ours_by == agent}


quick = pytest.mark.parametrize(
    "identity", [pytest.param(s.id, marks=pytest.mark.slow if s.id in SLOW else ()) for s in STUDIES]
)


def test_no_table_and_no_figure_is_missing():
    labels = [label for study in STUDIES for label in study.labels]
    assert set(labels) == PAPER
    assert len(labels) == len(PAPER), "each has one study"


def test_ids_are_words_and_functions_exist():
    assert len(BY_ID) == len(STUDIES)
    for study in STUDIES:
        assert re.fullmatch(r"[a-z]+(-[a-z]+)*", study.id)
        assert study.kind in KINDS
        assert study.place
        assert callable(load_object(f"eirkit_paper.studies.{study.function}"))


@quick
def test_findings_are_whole_and_survive_the_disk(identity):
    made = found(identity)
    assert made.rows
    assert msgspec.json.decode(msgspec.json.encode(made, enc_hook=float), type=Findings) == made
    for row in made.rows:
        assert row.verdict in VERDICTS
        assert row.section
        assert row.source, "published figures say where they stand"
        assert all(value is None or math.isfinite(value) for value in (getattr(row, name) for name in FINITE))
        if row.ours is not None:
            assert row.low is not None
            assert row.high is not None
            assert row.low <= row.ours <= row.high


@quick
def test_a_row_has_a_printed_figure_or_is_our_own_check(identity):
    """What is compared stands in the file of figures, which is checked against the paper; nothing else is counted."""
    made = found(identity)
    for row in made.rows:
        if row.is_printed:
            figure = figures_by_id()[row.figure]
            assert row.published in (figure.value, figure.value / (figure.n or 1)), row
            assert row.expected is None
        else:
            assert (row.published, row.expected is None) == (None, False), row
    assert len(made.printed) == len({figures_by_id()[row.figure].same_as or row.figure for row in made.printed})
    assert made.judged <= len(made.printed)


def test_figures_that_the_paper_does_not_print_are_own_checks():
    """By hand from the paper: what it shows or says without a number."""
    own = {
        "framework": 4,  # one task through four panels
        "channel-audit": 1,  # planted leaks
        "known-dependencies": 1,  # known peaks
        "cone-growth": 2,  # that cones of the printed sizes are found
        "error-heat-map": 9,  # shares read off a heat map
    }
    for identity, number in own.items():
        assert len(found(identity).own_checks) == number, identity
    assert {row.label for row in found("known-dependencies").own_checks} == {"cases with the known peak"}
    assert [row.published for row in found("workload-requirements").rows] == [212.603, 13.288, 212.603, 106.302, 93.014]


@quick
def test_a_reason_is_computed_or_unknown(identity):
    """Why a row is not judged is what it lacks; why it differs has a number, or is not known."""
    for row in found(identity).rows:
        lacks, _, reason = row.why.rpartition("it differs: ")
        if row.verdict in (NOT_SAME, DIFFERS) and row.ours is not None and reason not in (STANDS_IN, NO_REASON):
            assert re.search(r"\d", reason), row.why
        assert not lacks or lacks == f"{STANDS_IN}; ", row.why
    for table in found(identity).tables:
        for line in table.rows:
            assert line.get("why not", "") in ("", NO_REASON, TOO_FEW)


def test_more_reads_than_references_are_said_so_with_both_numbers():
    """By hand: 64 steps with two references each, but for none in the first step and one in the second: 125."""
    assert managed.beyond_references(125.0) == ""
    assert managed.beyond_references(184.0) == "184.0 is more than one read for each of a run's 125 references"


@quick
def test_what_is_not_judged_says_what_it_needs_and_how_to_get_it(identity):
    made = found(identity)
    for row in made.rows:
        if row.verdict not in (AGREES, TOO_WIDE):
            assert row.why or row.published_by == "", row.label
    if any(row.verdict not in (AGREES, TOO_WIDE, DIFFERS) for row in made.rows):
        assert all(command.startswith("eirkit ") for command in made.commands)
        assert any(identity in command for command in made.commands)


@quick
def test_every_row_is_printed_once_and_every_chart_speaks_in_figures(identity):
    made = found(identity)
    printed = row_tables(identity, made)
    assert len({table.id for table in printed}) == len(printed)
    assert sum(len(table.rows) for table in printed) == len(
        {(row.section, row.label, row.published, row.expected, row.published_by) for row in made.rows}
    )
    for figure in made.figures:
        for chart in figure.panels:
            assert re.search(r"\d", chart.alt), chart.id
            assert len(chart.alt) > 30
            assert chart.csv().count("\n") > 1


@cache
def whole(identity: str) -> Findings:
    """Return a study with its own seeds."""
    return find_study(identity).run(Setting())


@pytest.mark.parametrize("identity", MODEL_FREE)
def test_model_free_studies_reproduce(identity):
    made = found(identity) if identity == "channel-audit" else whole(identity)  # it takes no seeds
    assert made.verdict == REPRODUCED


def test_the_page_of_policies_names_the_figures_that_differ():
    made = whole("cross-family-policies")
    page = " ".join((DOCS / "policies.md").read_text("utf-8").split())
    named = re.search(r"Two of the (\d+) that can be judged do: ([^;]+);", page)
    assert named is not None
    assert int(named[1]) == made.judged
    assert re.findall(r"\*([^*]+)\*", named[2]) == [row.label for row in made.printed if row.verdict == DIFFERS]
    assert {row.why for row in made.printed if row.verdict == DIFFERS} == {NO_REASON}


def test_stepwise_maximum_with_two_references_is_not_what_was_simulated():
    """Its rows are those of fan-in 1; with fan-in 2 all six of FIFO and LRU lie outside."""
    made = policies.cross_family(Setting(seeds=range(600)))
    (other,) = (table for table in made.tables if table.id == "fan-in-2")
    outside = [row["figure"] for row in other.rows if row["verdict"] == DIFFERS]
    assert len([label for label in outside if "FIFO" in label or ("LRU" in label and "gap" not in label)]) == 6


def test_every_mean_of_the_cone_table_agrees_without_the_target_and_not_with_it():
    made = cones.recovery_cones(Setting(seeds=range(3000)))
    (readings,) = made.tables
    by_name = {row["reading"]: row["means that differ"] for row in readings.rows}
    assert by_name["without the target, steps 32 … 64"] == 0
    assert by_name["target counted"] == 1
    assert by_name["references drawn with replacement"] >= 1


def test_sizes_without_the_target_are_one_less_by_definition():
    seeds = range(4)
    for counted, without in zip(
        cones.of_steps(cones.cones(2, seeds), target=1), cones.of_steps(cones.cones(2, seeds)), strict=True
    ):
        assert np.array_equal(counted - 1, without)


def test_accuracy_falls_with_what_is_retained():
    figures = ours("pressure-grid", "calculator")
    for family in pressure.FAMILIES:
        curve = [figures[f"{family}, h = {h}"] for h in pressure.CAPACITIES]
        assert curve[0] == 1
        assert curve == sorted(curve, reverse=True)
        assert len(set(curve)) == len(curve)


def test_the_calculator_errs_where_a_sum_first_misses_and_never_in_arithmetic():
    assert ours("alignment-and-rescue", "calculator")["Stepwise Sum: first miss = first error"] == 1
    causes = next(table for table in found("cascade-gap").tables if table.id == "causes")
    assert all(row[CAUSE_MEASURES["computation"].label] == 0 for row in causes.rows)


def test_misses_alone_predict_store_recall_and_flatter_the_sum():
    predictions = next(table for table in found("cascade-gap").tables if table.id == "predictions")
    for row in predictions.rows:
        if row["workload"] == "Stepwise Sum":
            assert row["residual"] < 0
        elif row["agent"] == "calculator":  # in place of a missing record it says 0, which none of these holds
            assert row["residual"] == pytest.approx(0, abs=1e-12)  # rounding of two ways to the same mean


def test_restoration_closes_the_gap_of_lru_at_sufficient_capacity_and_a_sham_does_not():
    figures = ours("sufficient-capacity", "calculator")
    assert figures["exact window, h = 16: accuracy"] == figures["LRU, h = 16 + correct restoration: accuracy"] == 1
    assert figures["LRU, h = 16: accuracy"] < 1
    assert figures["LRU, h = 16 + sham: accuracy"] < 1
    misses = {figures[f"LRU, h = 16{arm}: steps with a miss"] for arm in ("", " + correct restoration", " + sham")}
    assert len(misses) == 1  # what is injected does not enter retention


@pytest.mark.slow
def test_recovery_reads_rise_with_pressure_and_the_recoverer_stays_right():
    for agent in ("recoverer, LRU, READ", "recoverer, LRU, RECOMPUTE", "recoverer, window, READ"):
        figures = ours("recovery-enabled-maximum", agent)
        reads = [figures[f"m/h = {pressure}: recovery reads"] for pressure in (1, 2, 4, 8)]
        assert reads == sorted(reads)
        assert {figures[f"m/h = {pressure}: accuracy"] for pressure in (1, 2, 4, 8)} == {1.0}


@pytest.mark.slow
def test_what_is_not_written_is_lost_in_text_and_kept_in_keys():
    lines = next(table for table in found("two-by-two").tables if table.id == "shapes").rows

    def verdict(claim: str, agent: str) -> str:
        (line,) = (row for row in lines if claim in row["shape"] and row["ours by"] == f"reference/{agent}")
        return str(line["verdict"])

    for p in ("0.4", "0.0"):  # reads bring everything back
        assert verdict("key–value above text", f"note-taker, p = {p}") == f"{AGREES} / {DIFFERS}"
    assert verdict("Scratch below LRU", "note-taker, p = 0.0").startswith(AGREES)


def test_a_model_that_is_given_takes_the_place_of_reference_agents():
    setting = Setting(model="reference/sloppy", seeds=range(3))
    for identity in ("rescue", "recovery-probes", "read-traces"):
        made = find_study(identity).run(setting)
        assert {row.ours_by for row in made.rows} == {"reference/sloppy"}
        assert not made.commands


WITH_A_MODEL = [study.id for study in STUDIES if study.kind in ("agents", "memories")]


@pytest.mark.parametrize(
    "identity", [pytest.param(name, marks=pytest.mark.slow if name in SLOW else ()) for name in WITH_A_MODEL]
)
def test_every_study_with_agents_takes_a_model(identity):
    """A reference agent that is given is a model like any other, whichever agents a study would take by itself."""
    made = find_study(identity).run(Setting(model="reference/calculator", seeds=range(1)))
    assert msgspec.json.decode(msgspec.json.encode(made, enc_hook=float), type=Findings) == made
    assert {row.ours_by.split(",")[0] for row in made.rows} <= {"reference/calculator", ""}


def cells_of_tiny(seeds: Sequence[int], access: Access) -> list[tuple[object, ...]]:
    agent = StudyAgent("bundled/lacuna-tiny", "bundled/lacuna-tiny", ModelOptions())
    runs = run_cell(TaskSpec("stepwise-sum", n=8, m=8), access, agent, seeds)
    return [(run.score, run.verdicts) for run in runs]


@pytest.mark.parametrize("access", [Access(h=4), Access("lru", None, h=4, reads=0)], ids=["controlled", "managed"])
def test_a_learned_cell_is_the_same_in_any_batch_and_from_memory(access):
    """Runs one by one, in pairs or all together, written anew or remembered: the same answers step by step."""
    together = cells_of_tiny(range(4), access)
    assert [cell for seed in range(4) for cell in cells_of_tiny([seed], access)] == together
    assert [*cells_of_tiny([0], access), *cells_of_tiny([1, 2, 3], access)] == together
    memory: Memory = {}
    with cached_replies(memory):
        assert cells_of_tiny(range(4), access) == together
        steps = len(memory)
        assert cells_of_tiny(range(4), access) == together
        assert cells_of_tiny([3, 0], access) == [together[3], together[0]]
    assert 0 < steps == len(memory)


def test_arms_that_are_run_at_once_are_those_of_each_three():
    """A study runs all trajectories together and then takes them in threes."""
    setup, agent = RescueSetup(TaskSpec("store-recall", n=24, m=8), 4), reference("substituter")
    found = in_arms(setup, agent, range(9))
    for number, three in enumerate(([0, 1, 2], [3, 4, 5], [6, 7, 8])):
        for row in rescue(setup, three, [agent.model], agent.options).rows:
            assert found[row.arm][number] == row


def test_recorded_runs_are_judged_where_they_are_given(tmp_path):
    logs = write_logs(PlantedCorpus(60, 20, clipped=1.0), 0, tmp_path)
    corpus = Corpus((logs,), tmp_path / "gold")
    (tmp_path / "data").mkdir()
    analyze_here(
        corpus,
        tmp_path / "data" / "openhands",
        AnalysisOptions(read_windows(), rule="paper"),
        estimate=True,
        progress=lambda *told: None,
    )
    setting = Setting(data=tmp_path / "data")
    cohorts = find_study("vestige-cohorts").run(setting)
    by_label = {row.label: row for row in cohorts.rows}
    assert by_label["OpenHands/Qwen3: runs"].ours == 60
    assert by_label["OpenHands/Qwen3: goal access"].ours == 1
    assert by_label["Verified: runs"].ours is None
    assert not any("openhands" in command for command in cohorts.commands)
    assert find_study("clipping-example").run(setting).verdict == OWN_HOLD
    clipped = {row.label: row.ours for row in find_study("clipping-and-anomalies").run(setting).rows}
    assert clipped["OpenHands/Qwen3: runs with one"] == 60
    recovery = {row.label: row for row in find_study("demand-and-mediation").run(setting).rows}
    assert recovery["Random intercepts: odds ratio of success"].ours is not None
    assert "base-lines" in recovery["Gold-file lines, given length: odds ratio a doubling"].why


def test_a_range_is_counted_where_there_are_enough_repetitions():
    few, many = [0.0, 1.0], [*([0.0] * 960), *([5.0] * 30), *([10.0] * 10)]
    middle, low, high = spread(few)
    assert (middle, high - middle) == (0.5, middle - low)
    assert high == pytest.approx(0.5 + 12.7062 * math.sqrt(0.5 * 1.5), abs=1e-3)  # t with one degree of freedom
    assert spread(many) == (0.25, 0.0, 5.0)  # never below the least; 2.5% lie above


def test_without_a_repetition_there_is_no_figure_and_no_agreement():
    by = ("theirs", "ours")
    assert spread([]) is None
    nothing = compare("x", 0.5, [], by)
    assert (nothing.ours, nothing.low, nothing.high) == (None, None, None)
    assert (nothing.verdict, nothing.published_by, nothing.ours_by) == (DIFFERS, *by)
    assert nothing.why
    unjudged = stand_in("x", 0.5, [], by, "why")
    assert (unjudged.ours, unjudged.verdict) == (None, NOT_SAME)


@pytest.mark.parametrize("seeds", [[], [7], [3, 4]])
@pytest.mark.parametrize("study", [study for study in STUDIES if study.least_seeds > 1], ids=lambda study: study.id)
def test_too_few_seeds_for_one_published_mean_are_refused(study, seeds):
    with pytest.raises(UsageError, match="give --seeds 0:3 or more"):
        study.run(Setting(seeds=seeds))


def published_ratio(cohort: str) -> Published:
    figure = replace(figures_by_id()["sec:deployment-swebench|Rework to failure|odds ratio"], value=1.2)
    return Published(cohort, "t", "ratio", replace(figure, low=None, high=None))


def test_an_estimate_is_judged_by_both_intervals():
    ratio = published_ratio("c")
    near = recorded.estimate(ratio, 1.20, 1.15, 1.25)
    assert (near.verdict, near.why) == (AGREES, "")
    wide = recorded.estimate(ratio, 1.20, 0.40, 3.00)
    assert wide.verdict == TOO_WIDE
    assert "also holds 1, no association" in wide.why
    off = recorded.estimate(ratio, 2.0, 1.8, 2.2)
    assert (off.verdict, off.why) == (DIFFERS, NO_REASON)
    assert recorded.estimate(ratio, 1.20, None, None).verdict == AGREES
    (table,) = row_tables("x", Findings((near, wide, off)))
    assert "judged by" in table.markdown()


def test_what_the_gap_analysis_prints_is_not_called_missing(tmp_path, capsys):
    """The notes on figures that no study compares name the command that prints ours."""
    logs = write_logs(PlantedCorpus(60, 20), 0, tmp_path)
    options = AnalysisOptions(read_windows(), rule="paper")
    analyze_here(
        Corpus((logs,), tmp_path / "gold"), tmp_path / "a", options, estimate=True, progress=lambda *told: None
    )
    assert run(["vestige", "cohort", str(tmp_path / "a"), "--only", "gaps", "--json"]) == 0
    tests = {test["name"]: test for test in json.loads(capsys.readouterr().out)["tests"]}
    assert tests["fair-clock-gap-without-length"]["n"] == tests["fair-clock-gap"]["n"] > 0
    assert {"clusters", "median_resolved_tokens", "median_failed_tokens"} <= tests["fair-clock-gap"]["details"].keys()
    noted = [figure for figure in figures_by_id().values() if figure.row.startswith("Fair clock")]
    assert len(noted) == 5
    assert all("`eirkit vestige cohort --only gaps --json` prints ours" in figure.note for figure in noted)


def test_other_runs_than_the_papers_are_not_judged():
    row = recorded.estimate(published_ratio("openhands"), 1.20, 1.15, 1.25)
    assert recorded.same_cohort("openhands", 67_000, row).verdict == AGREES
    other = recorded.same_cohort("openhands", 60, row)
    assert other.verdict == NOT_SAME
    assert "67,074 in the paper" in other.why


def test_capacities_are_pooled_before_seeds_are_compared():
    """Seeds that agree have no spread, however far apart the capacities are."""
    (run,) = run_cell(TaskSpec("store-recall", n=8, m=4), Access(h=2), reference("guesser"), [0])
    low, high = (
        [MemoryScore(seed, msgspec.structs.replace(run.score, correct=right), None) for seed in range(3)]
        for right in (2, 6)
    )
    assert by_seed([low, high]) == [0.5, 0.5, 0.5]
    assert by_seed([low[:2], high[1:]]) == [0.5]  # the others lost a run at one capacity
    assert by_seed([low[:1], high[1:]]) == []


@pytest.mark.parametrize(("t", "reach", "stored"), [(0, 2, 0), (3, 2, 1), (4, 4, 1), (4, 10, 2), (5, 10, 3)])
def test_store_recall_is_enumerated_as_a_process(t, reach, stored):
    """By hand: the STORE steps that the next RECALL can reach, three values each."""
    assert requirements._recalled(3, t, reach) == 3**stored == store_recall(3, t + 2, reach, t)


def test_a_run_without_an_error_has_no_first_error():
    """It is left out, and does not err at step 0."""
    agent, spec = reference("calculator"), pressure.FAMILIES["Stepwise Sum"]
    (erring,), (clean,) = (run_cell(spec, Access(h=h), agent, [0]) for h in (12, 16))
    grid = {("Stepwise Sum", 12, agent.name): [erring, clean], ("Stepwise Sum", 4, agent.name): [clean]}
    rows = {row.label: row for row in cascades._trajectory_rows(grid, [agent])}
    assert rows["h = 12: first error"].ours == erring.score.first_error
    assert rows["h = 4: first error, pilot"].ours is None


def test_reference_agents_stand_in_and_are_not_judged():
    for identity in ("alignment-and-rescue", "store-recall-theory", "pressure-grid", "rescue", "read-traces"):
        assert {row.verdict for row in found(identity).rows if row.published_by} == {NOT_SAME}, identity


def test_one_three_of_seeds_spreads_like_means_of_three_draws():
    values = [0.0, 0.3, 0.9]
    drawn = repeated(values)
    assert len(drawn) == 27
    assert np.mean(drawn) == pytest.approx(np.mean(values))
    assert np.std(drawn) == pytest.approx(np.std(values) / math.sqrt(3))
    assert repeated([*values, *values]) == pytest.approx([0.4, 0.4])


def test_rows_by_hand():
    by, threes = ("theirs", "ours"), [0.48, 0.5, 0.52, 0.49, 0.51] * 4  # mean 0.5, standard deviation 0.014
    assert compare("x", 0.5, threes, by).verdict == AGREES
    assert compare("x", 0.52, threes, by, "why").why == ""
    assert compare("x", 0.56, threes, by, "why").verdict == DIFFERS
    assert compare("x", 0.56, threes, by, "why").why == "why"
    assert compare("x", 0.56, threes, by).why == NO_REASON
    assert compare("x", 4.4e4, [43_600.0], digits=-3).verdict == AGREES  # printed in thousands
    assert compare("x", 4.4e4, [43_400.0], digits=-3).verdict == DIFFERS
    assert stand_in("x", 0.56, threes, by, "why").verdict == NOT_SAME
    assert stand_in("x", 0.56, threes, by, "why").why == "why; it differs: no reason known"
    assert stand_in("x", 0.5, threes, by, "why").why == "why"


def test_signs_orders_and_places_by_hand():
    up, down = [0.5, 0.7], [0.4, 0.3]
    assert shapes.above(up, down) == shapes.Judged("+0.250 ± 0.150", 2, 2, True)
    assert shapes.below(up, down).verdict == DIFFERS
    assert shapes.below(down, up).verdict == shapes.above(up, down).verdict == AGREES
    assert shapes.above([0.9, 0.4, 0.4], [0.5, 0.5, 0.5]).verdict == TOO_WIDE  # in 1 of 3, and on average
    assert shapes.ordered({"a": up, "b": down}).verdict == AGREES
    assert shapes.ordered({"a": up, "b": up}).verdict == DIFFERS
    assert shapes.never_rises({"a": up, "b": up}).verdict == AGREES
    floor = {4: [0.6, 0.6], 2: [0.5, 0.5]}
    assert shapes.lowest_at(4, {4: [0.4, 0.5], 2: [0.5, 0.5]}, floor) == shapes.Judged(
        "-0.150 ± 0.050 at h = 4", 2, 2, True
    )
    assert shapes.lowest_at(4, floor, floor).verdict == DIFFERS  # nowhere below
