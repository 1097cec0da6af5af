"""Full information: who passes, who is excluded and why, and that a calculator takes arithmetic out of it."""

from __future__ import annotations

import asyncio
import json
import re
import shlex

import pytest

from eirkit.lacuna.agents.driver import drive
from eirkit.lacuna.agents.session import MOST_CALCULATIONS, CalculatorSession
from eirkit.lacuna.models.model import ModelOptions
from eirkit.lacuna.runs.capability import THRESHOLD, Control, assess
from eirkit.lacuna.tasks.generation import prepare
from eirkit.lacuna.tasks.task import TaskSpec
from eirkit.lacuna.tasks.view import publish
from eirkit.lacuna.tasks.workload import workloads
from tests.lacuna.running import Scripted, agent, eirkit, full_information, retention, task_of

QUICK = Control(seeds=(0, 1), windows=(4, 8))


def cells(model, *names, control=QUICK):
    return assess([f"reference/{model}"], [TaskSpec(name, n=24) for name in names], control, ModelOptions())


@pytest.mark.parametrize("name", ["stepwise-sum", "store-recall", "running-max", "stepwise-max", "stepwise-topk"])
def test_the_calculator_passes_everywhere(name):
    (cell,) = cells("calculator", name)
    assert (cell.accuracy, cell.calculator_accuracy, cell.passes) == (1.0, 1.0, True)
    assert (cell.scored, cell.steps, any(cell.errors.values()), cell.failures) == (4, 4 * 24, False, {})


def test_windows_seeds_and_threshold_are_those_that_were_registered():
    assert (Control().windows, list(Control().seeds), THRESHOLD) == ((4, 8, 16), [0, 1, 2], 0.9)
    sized = Control().specs(TaskSpec("stepwise-sum", lookback=3))
    assert [(spec.m, spec.reach) for spec in sized] == [(4, 4), (8, 8), (16, 16)]
    assert [spec.m for spec in Control().specs(TaskSpec("full-lookup"))] == [16]


def test_every_registered_workload_shows_all_it_refers_to_at_full_information():
    for name in workloads.names():
        task = task_of(name, m=8)
        trace = asyncio.run(drive(full_information(task), agent("calculator")))
        assert not any(decision.missing for decision in trace.decisions), name


def test_the_sloppy_one_is_excluded_and_the_calculator_shows_that_it_is_the_computation():
    (cell,) = cells("sloppy", "stepwise-sum")
    assert not cell.passes
    assert cell.calculator_accuracy == 1.0
    assert cell.errors["computation"] > 0
    assert cell.gates[0].low < THRESHOLD <= cell.gates[0].high
    assert cell.reason.startswith("undecided: ")
    assert "so it is the computation; run `eirkit " in cell.reason


def test_the_accuracy_is_the_mean_over_windows_and_seeds():
    (cell,) = cells("sloppy", "stepwise-max")
    assert list(cell.by_window) == [4, 8]
    assert cell.accuracy == pytest.approx(sum(cell.by_window.values()) / 2)


def test_without_the_calculator_nothing_is_said_about_it():
    (cell,) = cells("sloppy", "stepwise-sum", control=Control((0,), (4,), calculator=False))
    assert cell.calculator_accuracy is None
    assert "calculator" not in cell.reason.partition("; run ")[0]


def test_a_model_that_cannot_be_reached_is_undecided_without_a_score():
    options = ModelOptions(base_url="http://127.0.0.1:9/v1", retries=0)
    control = Control((0,), (4,), calculator=False)
    (cell,) = assess(["openai/nobody"], [TaskSpec("store-recall", n=4)], control, options)
    assert (cell.accuracy, cell.scored, cell.attempted, cell.passes) == (None, 0, 1, False)
    assert cell.reason == "undecided: no run of the control was scored"
    assert [(gate.verdict, gate.estimate, gate.command) for gate in cell.gates] == [("undecided", None, "")] * 2


def test_the_papers_gate_is_on_the_mean_accuracy_over_windows_and_seeds():
    (cell,) = cells("sloppy", "stepwise-sum")
    _, papers = cell.gates
    assert (papers.measure, papers.threshold, papers.estimate, papers.counted) == ("accuracy", 0.75, cell.accuracy, 4)
    assert papers.low < cell.accuracy < papers.high
    (perfect,) = cells("calculator", "stepwise-sum")
    assert [gate.verdict for gate in perfect.gates] == ["passes", "passes"]


def run_calculator(task, replies):
    session = CalculatorSession(publish(task, prepare(task.spec)), retention(task, task.spec.m))
    trace = asyncio.run(drive(session, Scripted(replies)))
    return [exchange.request.messages[-1].content for exchange in trace.exchanges], trace.decisions


def test_the_calculator_applies_the_rule_to_the_named_operands():
    task = task_of("stepwise-sum", n=2, m=2)
    first, second = task.steps
    one = f"ANSWER 1 {first.answer[0]}"
    prompts, decisions = run_calculator(task, [one, "CALCULATE A_1", f"ANSWER 2 {second.answer[0]}"])
    assert prompts[2].endswith(f"RESULT {second.answer[0]:04d}")
    assert [decision.submitted for decision in decisions] == [first.answer, second.answer]
    # Without its operand the result is the input alone.
    prompts, _ = run_calculator(task, [one, "CALCULATE", "ANSWER 2 0"])
    assert prompts[2].endswith(f"RESULT {second.input[0]:04d}")


def test_the_calculator_knows_only_what_is_shown():
    task = task_of("stepwise-sum", n=2, m=2)
    prompts, _ = run_calculator(task, ["ANSWER 1 5", "CALCULATE 2 7", "ANSWER 2 0"])
    assert "refused: the answer of step 2 is not shown" in prompts[2]
    assert "RESULT" not in prompts[0]


def test_calculating_without_end_is_a_fault_of_the_step():
    task = task_of("stepwise-sum", n=1, m=1)
    prompts, decisions = run_calculator(task, ["CALCULATE"] * 20)
    assert len(prompts) == MOST_CALCULATIONS + 1
    assert decisions[0].fault == "malformed"


STEPS = ("store-recall", "--n", "32", "--m", "8", "--h", "4", "--model", "reference/sloppy", "--set", "p=0.04")
WORDS = ("conversation", "--preset", "small+questions=4", "--memory", "bm25", "--model", "scripted/reader")


@pytest.mark.parametrize("words", [STEPS, WORDS], ids=["steps", "words"])
def test_an_undecided_control_is_called_so_and_the_command_beside_it_decides(words, tmp_path, capsys):
    assert eirkit("lacuna", "run", *words, "--seeds", "0:2", "--out", str(tmp_path / "out")) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert f"undecided: {words[-3] if words is STEPS else words[-1]}, {words[0]}: " in said
    assert "excluded" not in said
    command = re.search(r"may reach 0.9 or not; run `eirkit ([^`]+)`", said)
    assert command is not None
    assert eirkit("report", str(tmp_path / "out")) == 0
    page = (tmp_path / "out" / "report.html").read_text("utf-8")
    assert "No model here answers well enough" not in page
    assert command[1] in page
    assert eirkit(*shlex.split(command[1])) in (0, 1)  # 3 would be undecided


def test_the_command(capsys):
    line = ["lacuna", "capability", "--workload", "store-recall,stepwise-sum", "--n", "24", "--seeds", "0:2"]
    assert eirkit(*line, "--model", "reference/sloppy", "--json") == 3, "no threshold is known to be reached"
    document = json.loads(capsys.readouterr().out)
    assert {row["workload"] for row in document["rows"]} == {"store-recall", "stepwise-sum"}
    assert ["reference/sloppy", "stepwise-sum"] in [undecided[:2] for undecided in document["undecided"]]
    assert len(document["eligible"]) + len(document["undecided"]) == 2
    assert document["excluded"] == []
    assert eirkit(*line, "--model", "reference/sloppy") == 3
    said = capsys.readouterr().out
    (table,) = [part for part in said.split("\n\n") if part.startswith("Claims about lost information")]
    assert "undecided" in table
    assert " no " not in table
    assert eirkit(*line, "--model", "reference/calculator") == 0
