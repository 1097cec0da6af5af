"""The control of a sweep: who may carry claims about lost information, that it is kept, paid for and done once."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from eirkit.errors import UsageError
from eirkit.lacuna.models.model import ModelOptions
from eirkit.lacuna.runs.budget import SpendingLimits
from eirkit.lacuna.runs.capability import GATE, Control, assess, assess_gate, wants_control
from eirkit.lacuna.runs.control import FOLDER, key_of
from eirkit.lacuna.runs.journal import read_journal
from eirkit.lacuna.runs.store import RUNS, scan_runs
from eirkit.lacuna.runs.suite import read_suite
from eirkit.lacuna.runs.summary import summarise
from eirkit.lacuna.runs.sweep import resume_sweep, start_sweep
from eirkit.lacuna.tasks.task import TaskSpec
from eirkit.lacuna.tasks.workload import References
from eirkit.lacuna.tasks.workloads import StepwiseSum
from eirkit.records.event_blocks import EVENTS
from tests.lacuna.servers import ModelServer, answers_as

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
    assert [(row["model"], row["claims"]) for row in found.rows] == [
        ("reference/calculator", True), ("reference/calculator", True),
        ("reference/sloppy", False), ("reference/sloppy", False),
    ]  # fmt: skip
    passes, fails = found.rows[0]["control"], found.rows[-1]["control"]
    assert (passes["accuracy"], passes["skill"], passes["verdict"], passes["passes"]) == (1.0, 1.0, "passed", True)
    expected = assess_gate("reference/sloppy", TaskSpec("stepwise-sum", n=12), ModelOptions())
    assert fails == expected.standing()
    assert fails["reason"].startswith("undecided: ")
    assert found.excluded == (("reference/sloppy", "stepwise-sum", fails["reason"]),)
    assert found.rows[-1]["errors"]["state_supply"] > 0, "scripts still find the raw counts"


def test_a_control_is_run_once_for_all_that_shares_it(tmp_path):
    wanted = suite(m=[8, 6], h=[4, 2], workload=["stepwise-sum", "store-recall"])
    start_sweep(wanted, tmp_path)
    assert len(list(scan_runs(tmp_path / FOLDER / RUNS))) == 2 * TRIALS
    assert len({key_of(cell) for cell, _ in wanted.plan()}) == 2
    (cell, _), *_ = wanted.plan()
    other = replace(cell, task=replace(cell.task, fan_in=3))
    assert key_of(cell) != key_of(other) != key_of(replace(cell, options=ModelOptions(seed=1)))


def test_what_costs_nothing_is_controlled_unless_told_otherwise(tmp_path):
    assert wants_control("reference/guesser", ModelOptions(), None)
    assert not wants_control("openai/any", ModelOptions(base_url="http://127.0.0.1:9/v1"), None)
    found = start_sweep(suite(), tmp_path, control=False)
    assert not (tmp_path / FOLDER).exists()
    assert {(row["control"], row["claims"]) for row in found.rows} == {(None, False)}
    later = resume_sweep(tmp_path, control=True)
    assert all(row["claims"] for row in later.rows), "it may be had later"
    assert json.loads((tmp_path / "manifest.json").read_text())["control"] is True
    assert summarise(suite(), tmp_path).rows == later.rows, "from the files alone"


def test_a_killed_control_goes_on_and_leaves_the_same_files(tmp_path):
    wanted = suite(model=["reference/calculator", "reference/sloppy"])
    whole = start_sweep(wanted, tmp_path / "whole")
    start_sweep(wanted, tmp_path / "cut")
    runs = tmp_path / "cut" / FOLDER / RUNS
    lines = runs.read_bytes().splitlines(keepends=True)
    runs.write_bytes(b"".join(lines[:11]) + lines[11][:50])
    (tmp_path / "cut" / FOLDER / "summary.json").unlink()
    assert resume_sweep(tmp_path / "cut") == whole
    for name in (RUNS, EVENTS, "summary.json", "manifest.json"):
        of = [(tmp_path / folder / FOLDER / name).read_bytes() for folder in ("whole", "cut")]
        assert of[0] == of[1], name


def test_a_workload_whose_control_cannot_be_run_is_excluded_and_says_why(tmp_path):
    found = start_sweep(suite(workload=f"{HERE}:OnlySixteen", m=16, h=4), tmp_path)
    (row,) = found.rows
    assert (row["scored"], row["claims"]) == (3, False)
    assert row["control"]["reason"] == (
        "excluded: the control cannot be run here: workload OnlySixteen raised RuntimeError: I was made for 16, not 4 "
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
        assert first.rows[0]["control"] is None
        assert read_journal(folder).spending.total_usd <= 4.0
        second = resume_sweep(folder, funds=SpendingLimits(2 * control_usd, prices))
        assert (second.stopped, second.rows[0]["claims"], second.complete) == ((), True, True)
        asked = len(server.received)
        resume_sweep(folder, funds=SpendingLimits(2 * control_usd, prices))
        assert len(server.received) == asked, "nothing is asked twice"
    spent = read_journal(folder).spending.total_usd
    assert spent == asked * Decimal(str(CALL_USD))
    records = [record for record, _ in scan_runs(folder / FOLDER / RUNS)]
    assert len(records) == TRIALS
    rules = json.loads((folder / FOLDER / "manifest.json").read_text())["rules"]
    assert all("WORKLOAD" in rules[record["rules_sha256"]] for record in records)


def test_a_control_that_the_world_broke_is_listed_and_tried_again(tmp_path):
    nobody = suite(model="openai/any", h=4, seeds=0, model_options={"base_url": "http://127.0.0.1:9/v1", "retries": 0})
    found = start_sweep(nobody, tmp_path, control=True)
    by_condition = {group.condition: group for group in found.failures}
    assert by_condition["capability"].runs == TRIALS
    assert by_condition["capability"].kind == "unreachable"
    assert found.rows[0]["control"]["reason"] == "excluded: no run was scored"


def test_a_control_folder_of_something_else_is_refused(tmp_path):
    (tmp_path / "out").mkdir()
    start_sweep(suite(), tmp_path / "out", control=False)
    (tmp_path / "out" / FOLDER).mkdir()
    (tmp_path / "out" / FOLDER / "notes.txt").write_text("mine")
    with pytest.raises(UsageError, match="contains other files"):
        resume_sweep(tmp_path / "out", control=True)
    assert Path(tmp_path / "out" / FOLDER / "notes.txt").read_text() == "mine"
