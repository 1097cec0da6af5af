"""The commands that pages print make the same records again."""

import json
import shlex
import tomllib

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eirkit.cli import ROOT
from eirkit.cli.run_options import given_keys
from eirkit.lacuna.sweeps.manifest import read_manifest
from eirkit.lacuna.sweeps.suite import read_suite
from eirkit.report.rebuilding import evidence_command, rescue_command, suite_text, sweep_command
from eirkit.report.sweep_folder import read_evidence, read_sweep
from tests.report.folders import command, make_probe, make_sweep

GRID = {
    "workload": ["stepwise-sum", "store-recall"],
    "model": "reference/calculator",
    "h": [8, 4],
    "seeds": [0, 4, 9],
    "tool_calls": [True],
    "b": ["unlimited", 3],
    "condition": ["kv"],
    "model_options": {"temperature": "default", "extra": {"p": "0.25"}, "seed": 7},
}


def options_of(line: str) -> dict:
    """Return the options of a `lacuna run` command as its function receives them."""
    found: click.Command = ROOT
    words = shlex.split(line)[1:]
    for name in words[:2]:
        found = found.get_command(click.Context(found), name)
    return found.make_context("run", words[2:]).params


def test_a_sweep_is_told_by_its_options(tmp_path):
    folder = make_sweep(tmp_path / "sweep")
    then = read_manifest(folder)
    line = sweep_command(then, "again")
    assert read_suite(given_keys(options_of(line))).sha256() == then.suite_sha256
    assert "--no-control" in line


def test_a_suite_comes_back_from_its_text():
    suite = read_suite({"name": "s", "grid": [GRID, {**GRID, "m": 4}]})
    again = read_suite(tomllib.loads(suite_text(suite.as_json())))
    assert again.sha256() == suite.sha256()
    assert again == suite


@given(st.dictionaries(st.text(min_size=1, max_size=8), st.text(max_size=12) | st.integers(-9, 9) | st.booleans()))
def test_any_setting_survives_as_toml(extra):
    suite = {"name": "x", "texts": True, "grid": [{"workload": ["a"], "model_options": {"extra": extra}}]}
    (grid,) = tomllib.loads(suite_text(suite))["grid"]
    assert grid == {"workload": ["a"], "model_options": {"extra": extra}}


@pytest.mark.parametrize("make", [make_probe])
def test_an_evidence_folder_is_made_again_by_its_command(tmp_path, make):
    found = read_evidence(make(tmp_path / "first"))
    command(*shlex.split(evidence_command(found.manifest, str(tmp_path / "second")))[1:], "--json")
    again = read_evidence(tmp_path / "second")
    assert again.manifest["settings"] == found.manifest["settings"]
    assert json.dumps(again.document, sort_keys=True) == json.dumps(found.document, sort_keys=True)


def test_the_rescue_that_a_page_asks_for_answers_it(tmp_path):
    sweep = read_sweep(make_sweep(tmp_path / "sweep"))
    row = next(row for row in sweep.rows if row["h"] == 2 and row["model"] == "reference/calculator")
    line = rescue_command(row, sweep.seeds, sweep.folder / "rescue")
    command(*shlex.split(line)[1:], "--json")
    found = read_sweep(sweep.folder).found_by("rescue")[0].document
    assert (found["workload"], found["m"], found["h"]) == (row["workload"], row["m"], row["h"])
