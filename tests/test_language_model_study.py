"""The study of a language model, with agents whose figures are known in its place."""

from __future__ import annotations

from importlib.util import find_spec

import pytest
from studies import language_model
from studies.language_model import Study, control_table, pressure_table, rescue_table, write_csv

from eirkit.lacuna.models.local import GEMMA, PARTS

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


@pytest.mark.skipif(
    find_spec("xllamacpp") is None or find_spec(f"{PARTS}_part1") is None,
    reason="no base model here; `make session NAME=local` brings it",
)
def test_a_local_model_is_repaired_by_what_was_missing(tmp_path):
    study = Study(tmp_path, f"local/{GEMMA}", range(2))
    study.sweep("full-lookup", 4, [4])
    study.rescue("full-lookup", 4)
    (control,), (rescue,) = control_table(study).rows, rescue_table(study).rows
    assert control["informed"] > 0.5
    assert rescue["oracle"] > 0.5 > max(rescue["sham"], rescue["control"])
