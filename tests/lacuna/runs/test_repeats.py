"""Repeats of tasks: the seeds that a server was sent, one row and one cluster for all, resume and estimate."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from statistics import fmean, stdev

import pytest

from eirkit.cli import run as command_line
from eirkit.errors import UsageError
from eirkit.lacuna.models.model import ModelOptions
from eirkit.lacuna.runs.suite import make_cell, read_suite
from eirkit.records.settings import Repeat
from eirkit.report.runs.accuracy import intervals_of
from eirkit.report.runs.comparison import compare_sweeps
from eirkit.report.runs.folder import read_sweep
from tests.lacuna.servers import ModelServer, answers_as
from tests.runs import lose_last, records, row

GRID = {"workload": "stepwise-sum", "n": 12, "m": 4, "h": 2, "model": "openai/m"}


def words(server: ModelServer, folder: Path, *more: str) -> list[str]:
    task = ["stepwise-sum", "--n", "12", "--m", "4", "--h", "2", "--seeds", "0:2", "--model", "openai/m"]
    return ["lacuna", "run", *task, "--base-url", server.url, "--out", str(folder), "--json", *more]


@pytest.fixture(scope="module")
def repeated(tmp_path_factory):
    """A sweep of two tasks, three times each, and the server that answered it."""
    folder = tmp_path_factory.mktemp("repeats") / "runs"
    with ModelServer(answers_as("calculator")) as server:
        assert command_line(words(server, folder, "--repeats", "3", "--set", "connections=2")) == 0
    return folder, server


def test_every_repeat_is_sent_its_own_seed_and_they_share_the_connections(repeated):
    folder, server = repeated
    assert Counter(one.body["seed"] for one in server.received) == {0: 24, 1: 24, 2: 24}  # two runs of 12 steps each
    assert server.busiest <= 2
    assert Counter(
        (run.seed, run.setting.repeat.number if run.setting.repeat else 0) for run in records(folder)
    ) == Counter((seed, repeat) for seed in range(2) for repeat in range(3))


def test_repeats_are_one_row_and_their_tasks_are_the_clusters(repeated):
    folder, _ = repeated
    only = row(folder)
    assert (only.seeds, only.repeats, only.scored, only.attempted, only.calls) == (2, 3, 6, 6, 72)
    assert {record.pooled_cell for record in records(folder)} == {only.cell}
    sweep = read_sweep(folder)
    assert intervals_of(sweep)[only.cell].clusters == 2


def test_a_lost_repeat_alone_is_run_again(tmp_path, capsys):
    folder = tmp_path / "runs"
    task = ["stepwise-sum", "--n", "12", "--m", "4", "--h", "2", "--seeds", "0:2", "--repeats", "3"]
    assert command_line(["lacuna", "run", *task, "--model", "reference/guesser", "--out", str(folder), "--json"]) == 0
    before = {record.run: record.score for record in records(folder)}
    lost = records(folder)[-1]
    lose_last(folder)
    capsys.readouterr()
    assert command_line(["lacuna", "run", "--resume", str(folder), "--dry-run", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["runs"] == 1
    assert command_line(["lacuna", "run", "--resume", str(folder), "--json"]) == 0
    assert {record.run: record.score for record in records(folder)} == before
    assert records(folder)[-1].setting.repeat == lost.setting.repeat


def test_an_estimate_counts_repeats(tmp_path, capsys):
    with ModelServer(answers_as("calculator")) as server:
        for often in (1, 3):
            assert command_line(words(server, tmp_path / "x", "--repeats", str(often), "--dry-run")) == 0
            told = json.loads(capsys.readouterr().out)
            (row,) = told["rows"]
            assert (told["runs"], told["calls"]) == (2 * often, 24 * often)
            assert (row["seeds"], row["repeats"], row["runs"]) == (2, often, 2 * often)
        assert not server.received


def test_comparisons_take_the_mean_over_repeats_of_a_task(tmp_path):
    """Each side is averaged by task first, so that more repeats make no more evidence."""
    sides = []
    for name, often in (("a", 1), ("b", 4)):
        folder = tmp_path / name
        arguments = ["lacuna", "run", "stepwise-sum", "--n", "12", "--m", "4", "--h", "2", "--seeds", "0:8"]
        arguments += ["--model", "reference/sloppy", "--repeats", str(often), "--out", str(folder), "--json"]
        assert command_line(arguments) == 0
        sides.append(read_sweep(folder))
    one = next(one for one in compare_sweeps(*sides).overall if one.measure == "accuracy")
    by_seed = [
        fmean(run.score.accuracy for run in sides[1].runs if run.seed == seed)
        - fmean(run.score.accuracy for run in sides[0].runs if run.seed == seed)
        for seed in range(8)
    ]
    assert (one.pairs, one.clusters) == (8, 8)
    assert one.difference == pytest.approx(fmean(by_seed))
    assert stdev(run.score.accuracy for run in sides[1].runs if run.seed == 0) > 0  # it draws by the seed of the model


def test_a_repeat_has_an_identity_of_its_own_and_remembers_what_it_repeats():
    cell = make_cell({"workload": "stepwise-sum", "model": "openai/m"}, ModelOptions(seed=7))
    again = cell.repeated(2)
    assert (again.options.seed, again.first.id, cell.first) == (9, cell.id, cell)
    assert again.id not in (cell.id, cell.repeated(1).id)
    assert again.id != make_cell({"workload": "stepwise-sum", "model": "openai/m"}, ModelOptions(seed=9)).id
    assert (cell.setting.repeat, again.setting.repeat) == (None, Repeat(2, cell.id))


def test_a_suite_reads_and_writes_repeats():
    suite = read_suite({**GRID, "repeats": 3})
    assert len(suite) == 9
    assert read_suite(suite.settings).sha256() == suite.sha256() != read_suite(GRID).sha256()
    assert "repeats" not in read_suite({**GRID, "repeats": 1}).settings["grid"][0]
    for wrong in (0, -1, True, "3"):
        with pytest.raises(UsageError):
            read_suite({**GRID, "repeats": wrong})
