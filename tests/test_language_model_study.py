"""The study of a language model, with agents whose figures are known in its place."""

from __future__ import annotations

import pytest
from studies import language_model
from studies.language_model import Study, control_table, pressure_table, rescue_table, write_csv

SEEDS = range(4)


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    made = Study(tmp_path_factory.mktemp("study"), "reference/guesser", SEEDS)
    made.run()
    return made


def test_an_agent_without_errors_passes_both_gates(study):
    rows = control_table(study).rows
    assert {(row["workload"], row["m"]) for row in rows} == {
        (workload, m) for workload in language_model.WORKLOADS for m in language_model.WINDOWS
    }
    assert all(
        (row["accuracy"], row["informed"], row["ours"], row["papers"]) == (1, 1, "passes", "passes") for row in rows
    )


def test_less_in_context_is_less_accurate_and_the_shares_add_up(study):
    rows = [row for row in pressure_table(study).rows if row["memory"] == "–"]
    for workload in language_model.WORKLOADS:
        for m in language_model.WINDOWS:
            curve = [row["accuracy"] for row in rows if (row["workload"], row["m"]) == (workload, m)]
            assert len(curve) == 4
            assert curve == sorted(curve, reverse=True)
    for row in rows:
        assert row["accuracy"] + row["state_supply"] + row["cascade"] + row["computation"] == pytest.approx(1)


def test_restoring_repairs_and_a_sham_does_not(study):
    for row in rescue_table(study).rows:
        assert (row["control"], row["sham"], row["oracle"], row["over_sham"]) == (0, 0, 1, 1)


def test_nothing_is_run_twice_and_every_figure_is_in_the_file(study, tmp_path, monkeypatch):
    before = [len(study.scores(workload, 8, 4)) for workload in language_model.WORKLOADS]
    study.run()
    assert [len(study.scores(workload, 8, 4)) for workload in language_model.WORKLOADS] == before == [4, 4]
    monkeypatch.setattr(language_model, "CSV", tmp_path / "figures.csv")
    write_csv([control_table(study)])
    assert "control,store-recall,8,8,–,accuracy,1.0" in (tmp_path / "figures.csv").read_text()
