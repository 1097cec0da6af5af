"""The first screen of a sweep: its arithmetic against the events on disk, its words, and what it may not say."""

import shlex
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from eirkit.cli import run
from eirkit.lacuna.findings.measures import CAUSE_MEASURES
from eirkit.lacuna.tasks.generation import demand_of, generate
from eirkit.lacuna.tasks.task import TaskSpec
from eirkit.records.events import Decision, Verdicts
from eirkit.records.settings import RescueArm
from eirkit.records.sweeps import Excluded, FailureGroup
from eirkit.report.runs.accuracy import accuracy_section
from eirkit.report.runs.answers import headline_of, losses_of, repair_of
from eirkit.report.runs.demand import curve_of, demand_chart
from eirkit.report.runs.folder import read_sweep
from eirkit.report.runs.page import next_rescue, page_of, repair_near
from eirkit.report.table import share
from tests import runs
from tests.report.folders import command

ROUNDING = 1e-12  # sums of a few hundred shares, in another order


@pytest.fixture(scope="module")
def events(chain):
    """The events of every run of the sweep."""
    return {run.run: runs.events(chain.folder, run.run) for run in runs.records(chain.folder)}


def test_the_lost_share_is_that_of_the_events(chain, events):
    # A second way: count decisions with references by run, and those of them that miss one; mean over runs.
    rates = []
    for own in events.values():
        needing = [event for event in own if isinstance(event, Decision) and event.required]
        rates.append(sum(bool(event.missing) for event in needing) / len(needing))
    assert losses_of(chain.rows).lost_share == pytest.approx(sum(rates) / len(rates), abs=ROUNDING)
    assert len(rates) == losses_of(chain.rows).runs


def test_the_causes_are_those_of_the_verdicts(chain, events):
    verdicts = [event for own in events.values() for event in own if isinstance(event, Verdicts)]
    causes = [step.cause for event in verdicts for step in event.wrong]
    found = losses_of(chain.rows)
    assert found.wrong_steps == len(causes)
    # All runs of the chain have as many steps, so the mean over runs is the share of all steps.
    for cause in ("state_supply", "cascade", "not_answered", "computation"):
        assert found.error_shares[cause] == pytest.approx(causes.count(cause) / found.steps, abs=ROUNDING)


def test_the_repair_is_that_of_the_trials(chain):
    # A second way: answers at steps that missed something, from the rescue's own events and the tasks' answers.
    folder = chain.folder / "rescue"
    right, steps = {}, {}
    for record in runs.records(folder):
        if not isinstance(record.setting.intervention, RescueArm):
            continue
        arm = record.setting.intervention.arm
        truth = {step.t: step.answer for step in generate(TaskSpec.of(record.setting.task, record.seed)).steps}
        for event in runs.events(folder, record.run):
            if isinstance(event, Decision) and event.missing:
                steps[arm] = steps.get(arm, 0) + 1
                right[arm] = right.get(arm, 0) + (event.submitted == truth[event.t])
    found = repair_near(chain)
    assert found.steps == steps["oracle"]
    for arm in ("oracle", "sham", "control"):
        assert getattr(found, arm) == pytest.approx(right[arm] / steps[arm], abs=ROUNDING)
    assert (found.oracle, found.alike) == (1.0, True)


def test_the_sentence_says_these_figures(chain):
    page = page_of(chain)
    found, repair = losses_of(chain.rows), repair_near(chain)
    first, where, *_ = page.headline.sentences
    least, most = sorted(chain.rows, key=lambda row: row.miss_rate)[:: len(chain.rows) - 1]
    accuracies = sorted(row.accuracy for row in chain.rows)
    assert page.headline.number == share(accuracies[0])
    assert f", {share(accuracies[-1])} (" in page.headline.caption
    # What is lost depends on h, so that a figure over several would say which were run.
    wrong = share(sum(most.error_shares.values()))
    assert first.startswith(
        f"{share(least.miss_rate)} (h = {least.h}) to {share(most.miss_rate)} (h = {most.h}) of the steps that need an "
        f"earlier answer lacked it in context; at most {wrong} of steps were wrong (h = {most.h}): "
    )
    assert f"{CAUSE_MEASURES['state_supply'].label} {share(most.error_shares['state_supply'])}" in first
    assert where == f"That is over {len(chain.rows)} settings and {found.runs} runs."
    assert first.endswith(f"{repair.sentence}, measured on h = {chain.rescues()[0].settings.h}.")
    lucky = replace(repair, control=0.003)
    arms = f"(sham {share(repair.sham)}, nothing {share(lucky.control)})"
    assert lucky.sentence == f"of steps with a miss {share(repair.oracle)} are right with it restored {arms}"
    assert replace(repair, control=0.0).sentence == "restoring it repairs 100% (sham 0%)"
    assert page.answers.losses.lost_share == found.lost_share


def test_the_causes_below_the_chart_are_those_of_the_headline(chain):
    page = page_of(chain)
    (chart,) = (item for section in page.sections for item in section.items if getattr(item, "id", "") == "causes")
    most = max(chain.rows, key=lambda row: row.miss_rate)
    given, causes = chart.alt.rstrip(".").split(": ")
    assert given == f"Of scored steps, where most were wrong (h = {most.h})"
    assert f"(h = {most.h}): {causes};" in page.headline.sentences[0]


@pytest.mark.parametrize(
    ("part", "value"),
    [("h", 8), ("h", 11), ("policy", "lru"), ("managed", True), ("models", ("reference/calculator", "another"))]
    + [(f"task.{name}", 3) for name in ("n", "m", "lookback", "fan_in", "slots", "digits", "k", "warm_up")],
)
def test_a_rescue_of_another_condition_is_not_shown_as_the_own(chain, part, value):
    (found,) = chain.evidence
    asked = found.settings
    whole, _, name = part.rpartition(".")
    changed = {"task": structs.replace(asked.task, **{name: value})} if whole else {name: value}
    sweep = replace(chain, evidence=(replace(found, settings=structs.replace(asked, **changed)),))
    # Another capacity of the same sweep is one of its own conditions.
    assert repair_near(sweep).alike == ((part, value) == ("h", 8))
    assert f", measured on {repair_near(sweep).condition}." in page_of(sweep).headline.sentences[0]


def test_the_own_rescue_is_preferred_and_one_without_a_control_describes(chain):
    (own,) = chain.evidence
    other = replace(own, settings=structs.replace(own.settings, h=11))
    assert repair_near(replace(chain, evidence=(other, own))) == repair_near(chain)
    bare = tuple(structs.replace(row, control=None, claims=False) for row in own.result.rows)
    described = replace(own, result=structs.replace(own.result, rows=bare))
    words = page_of(replace(chain, evidence=(described,))).headline.sentences
    assert any("No full-information control of the rescue's own passes" in sentence for sentence in words)
    assert not any("no full-information control of its own" in word for word in page_of(chain).headline.sentences)


def test_the_peak_is_that_of_the_whole_curve_or_said_to_be_a_bound():
    whole = curve_of(TaskSpec("stepwise-max", n=32, m=8))
    assert whole == demand_of(generate(TaskSpec("stepwise-max", n=32, m=8)))
    long = TaskSpec("stepwise-max", n=80, m=8)
    told = demand_chart(long, curve_of(long), [80]).alt
    assert told.startswith("At the computed cuts EIR reaches at least ")
    assert "below every capacity" not in told
    short = TaskSpec("stepwise-max", n=32, m=8)
    assert (
        demand_chart(short, whole, [32]).alt == f"EIR peaks at {whole.peak.lower_bits:.1f} bits, below every capacity."
    )


def test_without_a_rescue_the_page_says_how_to_measure_it(chain):
    alone = replace(chain, evidence=())
    words = page_of(alone).headline.sentences
    assert not any("sham" in sentence for sentence in words)
    assert any("not measured; run `eirkit lacuna rescue --workload stepwise-sum" in sentence for sentence in words)


def without_control(rows):
    return [structs.replace(row, control=None, claims=False) for row in rows]


def failing_control(rows, verdict="fails", reason="excluded: reaches 0.100"):
    return [structs.replace(row, control=runs.standing(verdict, reason), claims=False) for row in rows]


def test_without_a_control_nothing_is_claimed(chain):
    rows = without_control(chain.rows)
    found = losses_of(rows)
    words = headline_of(rows, found, None, "RESCUE", "CONTROL").sentences
    assert not found.claims
    assert any("claims nothing about lost information; run `CONTROL`" in sentence for sentence in words)


def test_cells_that_fail_the_control_are_not_spoken_of(chain):
    rows = failing_control(chain.rows)
    assert losses_of(rows) is None
    headline = headline_of(rows, None, None, "RESCUE", "CONTROL")
    assert headline.number == "100%"
    assert not any("lost what" in sentence for sentence in headline.sentences)
    failed = replace(chain, rows=tuple(rows), excluded=(Excluded("m", "w", "too weak"),), evidence=())
    titles = {section.title: section for section in page_of(failed).sections}
    assert titles["Why steps were wrong"].items == ()
    assert "First miss, first error" not in titles


@pytest.mark.parametrize(
    ("verdict", "reason", "said"),
    [
        (
            "fails",
            "excluded: only 0.100 of 90 steps right",
            "No model here answers well enough where nothing is missing",
        ),
        ("undecided", "undecided: 0.933 of 150 steps right; run `X`", "undecided: 0.933 of 150 steps right; run `X`."),
        ("undecided", "undecided: no run of the control was scored", "no run of the control was scored."),
    ],
)
def test_only_a_failed_control_is_said_to_show_that_a_model_is_not_able(verdict, reason, said, chain):
    rows = failing_control(chain.rows, verdict, reason)
    headline = headline_of(rows, losses_of(rows), None, "RESCUE", "CONTROL")
    words = " ".join(headline.sentences)
    assert said in words
    assert ("No model here answers well enough" in words) == (verdict == "fails")
    assert ("is undecided, so this describes and claims nothing" in words) == (verdict == "undecided")
    assert ("nothing may be said" in headline.caption) == (verdict == "fails"), (
        "figures of an undecided model are shown"
    )
    assert "so these are claims" not in words
    assert "CONTROL" not in words  # it has been run


def test_a_rescue_of_a_failed_model_says_nothing(chain):
    (found,) = chain.rescues()
    weak = tuple(failing_control(found.result.rows))
    assert repair_of(structs.replace(found.result, rows=weak)) is None


def test_external_memories_are_asked_what_came_back(tmp_path):
    how = ("--h", 4, "--m", 8, "--n", 24, "--seeds", "0:2", "--model", "reference/recoverer")
    systems = ("--memory", "key-value,null", "--workload", "stepwise-sum")
    command("lacuna", "run", *systems, *how, "--out", tmp_path / "run", "--json")
    sweep = read_sweep(tmp_path / "run")
    found = losses_of(sweep.rows)
    outcomes = [record.memory.outcomes for record in runs.records(tmp_path / "run")]
    returned = [(counts.get("used", 0) + counts.get("not_used", 0)) / sum(counts.values()) for counts in outcomes]
    assert found.external
    assert found.lost_share == pytest.approx(1 - sum(returned) / len(returned), abs=ROUNDING)
    page = page_of(sweep)
    assert page.headline.sentences[0].startswith("Accuracy: key-value 1.000 and null ")
    assert "2 tasks are too few to rank" in page.headline.sentences[0].lower()
    assert not any("together" in sentence for sentence in page.headline.sentences)
    alone = [row for row in sweep.rows if row.memory == "null"]
    assert losses_of(alone).memory == "null"
    assert headline_of(alone, losses_of(alone), None, "R", "C").sentences[0].startswith("null did not retrieve 100% of")
    assert "Memory systems" in [section.title for section in page.sections]
    best = [row for row in sweep.rows if row.memory == "key-value"]
    headline = headline_of(best, losses_of(best), None, "R", "C")
    needed = sum(sum(row.memory_system.outcomes.values()) for row in best)
    assert (headline.number, headline.caption.endswith(f"were retrieved and used ({needed} of {needed})")) == (
        "100%",
        True,
    )
    assert headline.sentences == ("key-value retrieved every record that the task needed from it; no step was wrong.",)


def test_a_memory_has_not_lost_what_it_brought_back_and_the_agent_did_not_use(tmp_path):
    _, sweep = run_memory(tmp_path / "run", "--memory", "key-value,null", workloads="store-recall")
    (best,) = [row for row in sweep.rows if row.memory == "key-value"]
    system = best.memory_system
    unused = {}
    for name in ("outcomes", "outcome_shares"):
        counts = getattr(system, name)
        unused[name] = {**counts, "used": 0, "not_used": counts["used"]}
    idle = structs.replace(best, memory_system=structs.replace(system, **unused))
    found = losses_of([idle])
    assert (found.lost_share, found.unused_share, found.all_came_back) == (0, 1, True)
    headline = headline_of([idle], replace(found, wrong_steps=3), None, "R", "C")
    assert headline.sentences[0].startswith(
        "key-value retrieved every record that the task needed from it (100% retrieved, not used)"
    )
    assert (headline.number, "used" in headline.caption) == ("100%", False)
    assert not any("restoring" in sentence for sentence in headline.sentences), "there is nothing to restore"
    (empty,) = [row for row in sweep.rows if row.memory == "null"]
    both = losses_of([idle, empty])
    assert (both.lost_share, both.unused_share) == (0.5, 0.5), "one brought all of the same needs, one nothing"
    told = headline_of([idle, empty], both, None, "R", "C").sentences[0]
    assert told.startswith(
        "The memories together did not retrieve 50% of the records needed from them (50% retrieved, not used)"
    )


def test_accuracy_without_carry_over_is_told_only_where_no_memory_serves(tmp_path, chain):
    run_memory(tmp_path / "run", "--memory", "bm25")
    with_memory, without = (accuracy_section(sweep).items[-1] for sweep in (read_sweep(tmp_path / "run"), chain))
    keys = [[column.key for column in table.columns] for table in (with_memory, without)]
    assert ["no_cascade_accuracy" in names for names in keys] == [False, True]
    assert all("miss_rate" in names for names in keys)


@given(st.floats(0, 1))
def test_only_nothing_is_0_and_only_all_is_100(value):
    text = share(value)
    assert (text == "0%") == (value == 0)
    assert (text == "100%") == (value == 1)
    if "er" not in text:  # under 1%, over 99%
        assert abs(float(text.rstrip("%")) / 100 - value) <= 0.005 + ROUNDING


def run_memory(folder, *more, workloads="store-recall,stepwise-sum"):
    how = ("--workload", workloads, "--n", 16, "--m", 8, "--h", 4, "--seeds", "0:2")
    code = run(
        ["lacuna", "run", *map(str, how), "--model", "reference/recoverer", "--out", str(folder), *more, "--json"]
    )
    return code, read_sweep(folder)


def test_where_every_run_failed_the_page_says_why_and_shows_no_empty_table(tmp_path):
    code, sweep = run_memory(tmp_path / "sweep", "--memory", "broken-raises")
    assert code == 1
    page = page_of(sweep)
    assert page.headline.caption.startswith("of 4 runs came to an end; all of them failed")
    (why,) = page.headline.sentences
    assert why.startswith("4 runs: memory: ConnectionError: the store is gone (raised by search); correct the memory")
    titles = {section.title: section for section in page.sections}
    assert {item.id for item in titles["What is not in these figures"].items} == {"failures"}
    assert titles["Memory systems"].items == ()
    assert "Money and tokens" not in titles, "nobody was paid"


def test_reasons_are_counted_over_groups_and_the_most_frequent_comes_first(chain):
    groups = [
        FailureGroup("w", "m", "external", "memory", text, count, "run")
        for text, count in (("late", 1), ("gone", 2), ("late", 4))
    ]
    rows = [structs.replace(row, scored=0) for row in chain.rows]
    told = headline_of(rows, None, None, "RESCUE", "CONTROL", groups).sentences
    assert told == ("5 runs: memory: late.", "2 runs: memory: gone.")


def test_the_rescue_of_a_memory_belongs_to_the_cell_with_that_memory(tmp_path):
    code, sweep = run_memory(tmp_path / "sweep", "--memory", "broken-drops,null")
    assert code == 0
    asked = shlex.split(next_rescue(sweep))
    assert asked[asked.index("--memory") + 1] in ("broken-drops", "null")
    command(*asked[1:], "--json")
    found = repair_near(read_sweep(tmp_path / "sweep"))
    assert (found.alike, found.oracle, found.sham, found.models) == (True, 1.0, 0.0, 1)
    assert found.memory == asked[asked.index("--memory") + 1]
    (evidence,) = read_sweep(tmp_path / "sweep").evidence
    elsewhere = replace(evidence, settings=structs.replace(evidence.settings, panel="strict"))
    assert not repair_near(replace(sweep, evidence=(elsewhere,))).alike


def test_several_models_are_not_one_number(chain):
    (found,) = chain.rescues()
    rows = found.result.rows
    worse = [structs.replace(row, model="other", accuracy=0.4 if row.arm == "oracle" else 0.1) for row in rows]
    repair = repair_of(structs.replace(found.result, rows=(*rows, *worse)))
    assert (repair.oracle, repair.sham, repair.control, repair.models) == (0.4, 0.1, 0.1, 2)
    assert "at least 40% are right with it restored with each of 2 models (sham at most 10%" in repair.sentence
