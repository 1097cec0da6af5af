"""The control of a sweep: who may carry claims about lost information, that it is kept, paid for and done once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

import pytest

from eirkit.lacuna.findings.summary import summarize
from eirkit.lacuna.models.model import ModelOptions
from eirkit.lacuna.runs.budget import SpendingLimits
from eirkit.lacuna.runs.capability import GATE, Control, assess, assess_gate, wants_control
from eirkit.lacuna.runs.journal import read_journal
from eirkit.lacuna.runs.suite import read_suite
from eirkit.lacuna.runs.sweep import resume_sweep, start_sweep
from eirkit.lacuna.tasks.task import TaskSpec
from eirkit.lacuna.tasks.workload import References
from eirkit.lacuna.tasks.workloads import StepwiseSum
from eirkit.records.database import SweepDatabase
from eirkit.records.settings import control_key
from eirkit.records.sweeps import CONTROL, Excluded, read_verdicts
from tests.lacuna.servers import ModelServer, answers_as
from tests.runs import digest, lose_last, manifest, records

HERE = "tests.lacuna.runs.test_control"
TRIALS = len(GATE.windows) * len(GATE.seeds)


class OnlySixteen(StepwiseSum):
    """A workload of a user's that knows one window."""

    def references(self, spec: TaskSpec, seeds: Sequence[int]) -> References:
        if spec.m != 16:
            raise RuntimeError(f"I was made for 16, not {spec.m}")
        return super().references(spec, seeds)


def suite(**changes):
    grid = {"workload": "stepwise-sum", "n": 12, "m": 8, "h": [8, 4], "seeds": "0:3", "model": "reference/calculator"}
    return read_suite({**grid, **changes})


def test_the_gate_is_the_registered_control():
    assert (GATE.windows, list(GATE.seeds), GATE.threshold, GATE.calculator) == ((4, 8, 16), [0, 1, 2], 0.9, False)
    spec = TaskSpec("stepwise-sum", n=12)
    (cell,) = assess(["reference/sloppy"], [spec], Control(calculator=False), ModelOptions())
    assert assess_gate("reference/sloppy", spec, ModelOptions()) == cell


def test_rows_say_what_their_control_found(tmp_path):
    found = start_sweep(suite(model=["reference/calculator", "reference/sloppy"]), tmp_path)
    assert [(row.model, row.claims) for row in found.rows] == [
        ("reference/calculator", True), ("reference/calculator", True),
        ("reference/sloppy", False), ("reference/sloppy", False),
    ]  # fmt: skip
    passes, fails = found.rows[0].control, found.rows[-1].control
    assert [gate.estimate for gate in passes.gates] == [1.0, 1.0]
    assert (passes.verdict, passes.passes) == ("passes", True)
    expected = assess_gate("reference/sloppy", TaskSpec("stepwise-sum", n=12), ModelOptions())
    assert fails == expected.standing()
    assert fails.reason.startswith("undecided: ")
    assert found.excluded == ()
    assert found.undecided == (Excluded("reference/sloppy", "stepwise-sum", fails.reason),)
    assert not found.rows[-1].is_withheld, "only a control that fails excludes"
    assert found.rows[-1].errors["state_supply"] > 0, "scripts still find the raw counts"


def test_a_control_is_run_once_for_all_that_shares_it(tmp_path):
    wanted = suite(m=[8, 6], h=[4, 2], workload=["stepwise-sum", "store-recall"])
    start_sweep(wanted, tmp_path)
    assert len(records(tmp_path, control=True)) == 2 * TRIALS
    assert len({control_key(cell.setting) for cell, _ in wanted.plan()}) == 2
    (cell, _), *_ = wanted.plan()
    other = replace(cell, task=replace(cell.task, fan_in=3))
    assert len({control_key(own.setting) for own in (cell, other, replace(cell, options=ModelOptions(seed=1)))}) == 3


def test_what_costs_nothing_is_controlled_unless_told_otherwise(tmp_path):
    assert wants_control("reference/guesser", ModelOptions(), None)
    assert not wants_control("openai/any", ModelOptions(base_url="http://127.0.0.1:9/v1"), None)
    found = start_sweep(suite(), tmp_path, control=False)
    assert not (tmp_path / CONTROL).exists()
    assert not records(tmp_path, control=True)
    assert {(row.control, row.claims) for row in found.rows} == {(None, False)}
    later = resume_sweep(tmp_path, control=True)
    assert all(row.claims for row in later.rows), "it may be had later"
    assert manifest(tmp_path).control is True
    with SweepDatabase(tmp_path) as database:
        assert summarize(database) == later, "from the files alone"


def test_a_killed_control_goes_on_and_leaves_the_same_runs(tmp_path):
    wanted = suite(model=["reference/calculator", "reference/sloppy"])
    whole = start_sweep(wanted, tmp_path / "whole")
    start_sweep(wanted, tmp_path / "cut")
    for _ in range(len(wanted) + 7):
        lose_last(tmp_path / "cut")
    (tmp_path / "cut" / CONTROL).unlink()
    assert len(records(tmp_path / "cut", control=True)) == 2 * TRIALS - 7
    assert resume_sweep(tmp_path / "cut") == whole
    assert digest(tmp_path / "cut") == digest(tmp_path / "whole")
    assert read_verdicts(tmp_path / "cut") == read_verdicts(tmp_path / "whole")


def test_a_workload_whose_control_cannot_be_run_is_undecided_and_says_why(tmp_path):
    found = start_sweep(suite(workload=f"{HERE}:OnlySixteen", m=16, h=4), tmp_path)
    (row,) = found.rows
    assert (row.scored, row.claims) == (3, False)
    assert row.control.reason == (
        "undecided: the control cannot be run here: workload OnlySixteen raised RuntimeError: I was made for 16, not 4 "
        "(in references); correct it and run again"
    )
    assert found.failures == ()


PRICES = '[prices]\n"openai/any" = { input = 1000, output = 1000, as_of = 2026-01-01 }\n'
CALL_USD = 0.11  # 110 tokens, as the server says


def served(url: str):
    return suite(model="openai/any", h=4, seeds="0:2", model_options={"base_url": url, "max_tokens": 20})


def test_the_control_of_a_real_model_is_paid_from_the_same_purse(tmp_path):
    prices, folder = tmp_path / "prices.toml", tmp_path / "out"
    prices.write_text(PRICES)
    control_usd = TRIALS * 12 * CALL_USD
    with ModelServer(answers_as("calculator")) as server:
        first = start_sweep(served(server.url), folder, SpendingLimits(4.0, prices), control=True)
        assert any(line.startswith("the control: $") for line in first.stopped)
        assert first.rows[0].control is None
        assert read_journal(folder).spending.total_usd <= 4.0
        second = resume_sweep(folder, funds=SpendingLimits(2 * control_usd, prices))
        assert (second.stopped, second.rows[0].claims, second.complete) == ((), True, True)
        asked = len(server.received)
        resume_sweep(folder, funds=SpendingLimits(2 * control_usd, prices))
        assert len(server.received) == asked, "nothing is asked twice"
    spent = read_journal(folder).spending.total_usd
    assert spent == asked * Decimal(str(CALL_USD))
    assert len(records(folder, control=True)) == TRIALS


def test_a_control_that_the_world_broke_is_listed_and_tried_again(tmp_path):
    nobody = suite(model="openai/any", h=4, seeds=0, model_options={"base_url": "http://127.0.0.1:9/v1", "retries": 0})
    found = start_sweep(nobody, tmp_path, control=True)
    by_condition = {group.condition: group for group in found.failures}
    assert by_condition["capability"].runs == TRIALS
    assert by_condition["capability"].kind == "unreachable"
    assert found.rows[0].control.reason == "undecided: no run of the control was scored"


@pytest.mark.parametrize("at_once", [True, False])
def test_the_manifest_has_the_system_messages_of_the_control(tmp_path, at_once):
    """With a memory they are not those of the sweep."""
    start_sweep(suite(memory="key-value", model="reference/recoverer"), tmp_path, control=at_once)
    if not at_once:
        resume_sweep(tmp_path, control=True)
    control = {record.rules_sha256 for record in records(tmp_path, control=True)}
    assert control
    assert not control & {record.rules_sha256 for record in records(tmp_path)}
    assert all("WORKLOAD" in manifest(tmp_path).rules[rules] for rules in control)


def test_rows_are_in_the_order_of_the_suite_where_a_cell_is_one_of_the_control_too(tmp_path):
    found = start_sweep(suite(policy="fifo", h=[4, 8]), tmp_path)
    assert {record.cell for record in records(tmp_path)} & {record.cell for record in records(tmp_path, control=True)}
    assert [row.h for row in found.rows] == [4, 8]
