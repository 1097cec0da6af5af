"""Rows of a sweep against the same numbers, worked out again from the events alone or by hand."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from eirkit.lacuna.findings.summary import read_summary, summarize
from eirkit.lacuna.runs.suite import Suite, read_suite
from eirkit.lacuna.runs.sweep import start_sweep
from eirkit.lacuna.tasks.generation import generate, graph_of
from eirkit.lacuna.tasks.simulation.plain import simulate
from eirkit.lacuna.tasks.task import TaskInstance, TaskSpec
from eirkit.records.database import FinishedRun, SweepDatabase, SweepWriter
from eirkit.records.documents import MANIFEST
from eirkit.records.events import Decision
from eirkit.records.runs import Failure, RunRecord, RunUsage
from eirkit.records.sweeps import CONTROL, Summary
from tests.runs import events, records

GRID = {
    "workload": ["stepwise-sum", "store-recall"],
    "model": ["reference/calculator", "reference/sloppy"],
    "n": 20,
    "m": 6,
    "h": [6, 3],
    "seeds": "5:15",
}


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    folder, suite = tmp_path_factory.mktemp("sweep") / "out", read_suite(GRID)
    return folder, suite, start_sweep(suite, folder)


def task_of(record: RunRecord) -> TaskInstance:
    return generate(TaskSpec.of(record.setting.task).with_seed(record.seed))


def decisions_of(folder: Path, record: RunRecord) -> list[Decision]:
    return [event for event in events(folder, record.run) if isinstance(event, Decision)]


def test_rows_are_the_cells_in_the_order_of_the_suite(swept):
    _, suite, summary = swept
    assert [row.cell for row in summary.rows] == [cell.id for cell, _ in suite.plan()]
    assert [(row.h, row.pressure) for row in summary.rows[:2]] == [(6, 1.0), (3, 2.0)]
    assert all((row.seeds, row.scored, row.attempted) == (10, 10, 10) for row in summary.rows)


def test_accuracy_is_what_the_events_say(swept):
    folder, _, summary = swept
    by_cell: dict[str, list[float]] = {}
    wrong: dict[str, int] = {}
    for record in records(folder):
        task = task_of(record)
        correct = [decision.submitted == task.step(decision.t).answer for decision in decisions_of(folder, record)]
        by_cell.setdefault(record.cell, []).append(sum(correct) / 20)
        wrong[record.cell] = wrong.get(record.cell, 0) + 20 - sum(correct)
    for row in summary.rows:
        runs = by_cell[row.cell]
        middle = sum(runs) / 10
        assert row.accuracy == pytest.approx(middle, abs=1e-12)  # another order of summing
        assert row.accuracy_sd == pytest.approx((sum((x - middle) ** 2 for x in runs) / 10) ** 0.5, abs=1e-12)
        assert sum(row.errors.values()) == wrong[row.cell], "every wrong step has a cause, once"


def test_miss_rates_are_those_of_the_simulator(swept):
    _, suite, summary = swept
    for cell, seeds in suite.plan():
        (row,) = (row for row in summary.rows if row.cell == cell.id)
        rates = [simulate(generate(cell.task.with_seed(s)), "window", cell.access.h).miss_rate for s in seeds]
        assert row.miss_rate == pytest.approx(sum(rates) / len(rates), abs=1e-12)


def test_the_graph_is_in_the_record(swept):
    folder, _, _ = swept
    for record in records(folder):
        task = task_of(record)
        assert record.fingerprint == task.fingerprint
        assert [decision.required for decision in decisions_of(folder, record)] == list(graph_of(task))


def copied(folder: Path, suite: Suite, place: Path, chosen: list[int], lost: tuple[Failure, ...] = ()) -> Summary:
    """Copy runs of a sweep, by their places in the order in which they ended, to a folder, and return its summary."""
    place.mkdir(exist_ok=True)
    for name in (MANIFEST, CONTROL):
        shutil.copy(folder / name, place / name)
    with SweepDatabase(folder) as database, SweepWriter(place, is_new=True) as writer:
        ended = [FinishedRun(record, database.event_lines(record.run)) for record in database.records()]
        writer.plan((cell.setting, len(seeds)) for cell, seeds in suite.plan())
        writer.add([ended[number] for number in chosen], durable=False)
        for failure in lost:
            writer.fail(failure)
    return read_summary(place)


def test_the_order_in_which_runs_ended_does_not_matter(swept, tmp_path):
    folder, suite, summary = swept
    order = list(range(80))
    for seed in range(3):
        random.Random(seed).shuffle(order)
        assert copied(folder, suite, tmp_path / str(seed), order) == summary, "to the last bit"


def test_the_summary_on_disk_is_the_one_that_was_returned(swept):
    folder, _, summary = swept
    assert read_summary(folder) == summary
    with SweepDatabase(folder) as database:
        assert summarize(database) == summary


def test_half_a_sweep_has_half_its_rows_filled(swept, tmp_path):
    folder, suite, _ = swept
    half = copied(folder, suite, tmp_path, list(range(25)))
    assert [row.scored for row in half.rows] == [10, 10, 5, 0, 0, 0, 0, 0]
    assert half.rows[3].accuracy is None, "nothing scored is no zero"
    assert (half.scored, half.planned, half.complete) == (25, 80, False)


NOTHING_USED = RunUsage()


def failure(
    suite: Suite, seed: int, kind: str, message: str = "no; try again", usage: RunUsage = NOTHING_USED
) -> Failure:
    cell, _ = next(suite.plan())
    return Failure(
        run=cell.run_id(seed),
        cell=cell.id,
        seed=seed,
        workload=cell.task.workload,
        model=cell.model,
        condition=cell.access.condition,
        kind=kind,
        message=message,
        steps=0,
        usage=usage,
    )


def test_failures_count_as_attempts_once_and_only_while_they_last(swept, tmp_path):
    folder, suite, _ = swept
    attempts = [failure(suite, 7, "timeout"), failure(suite, 12, "timeout"), failure(suite, 12, "server")]
    attempts += [failure(suite, 13, "server"), failure(suite, 14, "timeout", "late; wait")]
    summary = copied(folder, suite, tmp_path, list(range(6)), tuple(attempts))  # seeds 5 … 10 are scored
    row = summary.rows[0]
    assert (row.scored, row.attempted) == (6, 9), "seed 7 was repaired; seed 12 failed twice and is one run"
    assert row.failures == {"server": 2, "timeout": 1}, "the last word on a run counts"
    assert [(g.kind, g.message, g.runs, g.first) for g in summary.failures] == [
        ("server", "no; try again", 2, suite_run(suite, 12)),
        ("timeout", "late; wait", 1, suite_run(suite, 14)),
    ]


SPENT = ("calls", "cache_hits", "input_tokens", "output_tokens", "memory_calls", "cost_usd")


def test_every_attempt_is_paid_for_whether_it_was_scored_or_not(swept, tmp_path):
    folder, suite, whole = swept
    took = RunUsage(calls=5, cache_hits=1, input_tokens=500, output_tokens=50, memory_calls=2, cost_usd=2.5)
    # Seed 7 was repaired, seed 12 failed twice: three attempts in all, each of them paid for.
    attempts = tuple(failure(suite, seed, "server", usage=took) for seed in (7, 12, 12))
    first, second = copied(folder, suite, tmp_path, list(range(6)), attempts).rows[:2]
    assert first.calls == sum(record.usage.calls for record in records(tmp_path)) + 15
    assert (first.input_tokens, first.output_tokens, first.memory_calls) == (1500, 150, 6)
    assert first.cost_usd == 7.5
    assert [getattr(second, name) for name in SPENT] == [None] * len(SPENT), "nothing was attempted, which is no zero"
    again = copied(folder, suite, tmp_path / "again", list(range(80)), attempts)
    assert again.rows[0].cost_usd == whole.rows[0].cost_usd + 7.5


def test_a_cell_whose_every_run_failed_shows_what_was_spent(swept, tmp_path):
    folder, suite, _ = swept
    took = RunUsage(calls=5, input_tokens=500, output_tokens=50, cost_usd=2.5)
    row = copied(folder, suite, tmp_path, [], (failure(suite, 5, "rejected", usage=took),)).rows[0]
    assert (row.scored, row.accuracy) == (0, None)
    assert {name: getattr(row, name) for name in SPENT} == {name: getattr(took, name) for name in SPENT}


def suite_run(suite: Suite, seed: int) -> str:
    return next(suite.plan())[0].run_id(seed)


def test_behavior_of_managed_runs_is_summed(tmp_path):
    suite = read_suite(
        {
            "workload": "stepwise-sum", "model": ["reference/thrasher", "reference/recoverer"], "condition": "lru",
            "n": 16, "m": 6, "h": 2, "b_oracle": "unlimited", "seeds": "0:4",
        }
    )  # fmt: skip
    thrasher, recoverer = start_sweep(suite, tmp_path).rows
    assert thrasher.behavior["redundant"] > 0 == recoverer.behavior["redundant"]
    assert recoverer.behavior["recovered"] == recoverer.missed_steps * 4
    assert recoverer.accuracy == 1.0
    assert recoverer.answered_fraction == 1.0
    assert recoverer.b_oracle == "unlimited"


def test_a_run_that_reaches_its_limit_of_actions_is_scored(tmp_path):
    suite = read_suite(
        {"workload": "stepwise-sum", "model": "reference/calculator", "condition": "window", "n": 20, "m": 4, "h": 4,
         "actions": 21, "seeds": "0:2"}
    )  # fmt: skip
    (row,) = start_sweep(suite, tmp_path).rows
    assert (row.scored, row.max_turn) == (2, 2)
    # NEXT and ANSWER in turn: 21 actions are ten answers and one step more revealed.
    assert row.answered_fraction == 0.5
    assert row.accuracy == 0.5
    assert row.kinds == {"unanswered": 2, "unreached": 18}
