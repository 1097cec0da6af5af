"""Adapters of other projects' compactors, through their own code, where their environments are installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from eirkit.agents.stores.environments import python_of
from eirkit.cli import run
from eirkit.compactors.benchmark import CompactionBenchmark, run_benchmark
from eirkit.compactors.records import read_runs
from eirkit.compactors.trial import CompactorChoice
from eirkit.logs.compaction.cuts import CutPlan
from tests.compactors.planted_sessions import write_sessions

ADAPTERS = ("langchain-clear-tool-uses", "inspect-edit", "inspect-trim")
BUDGET = 1500


@pytest.mark.parametrize("name", ADAPTERS)
def test_an_adapter_gives_messages_that_can_be_measured(name, tmp_path: Path):
    if python_of(name) is None:
        pytest.skip(f"run eirkit doctor --install {name}")
    logs = write_sessions(tmp_path / "logs", ["ada"])
    choices = (CompactorChoice(name), CompactorChoice("clear-tool-results", {"placeholder": "[cleared]"}))
    run_benchmark(CompactionBenchmark((logs,), choices, (BUDGET,), CutPlan.parse("every:5")), tmp_path / "out")
    (record,) = read_runs(tmp_path / "out")
    own = [row for row in record.rows if row.compactor == name]
    assert own
    assert {row.status for row in own} <= {"ok", "over budget"}, own
    if name.startswith("langchain"):  # the same rule, written by somebody else
        ours = [row for row in record.rows if row.compactor != name]
        assert [(row.status, row.used_tokens, row.kept) for row in own] == [
            (row.status, row.used_tokens, row.kept) for row in ours
        ]


def test_an_adapter_that_is_not_installed_says_how_to_install_it(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("EIRKIT_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    write_sessions(tmp_path / "logs", ["ada"])
    words = "vestige compact logs --compactor langchain-clear-tool-uses --at every:5 --budget 600 --out out"
    assert run(words.split(" ")) == 2
    assert "run eirkit doctor --install langchain-clear-tool-uses" in capsys.readouterr().err
