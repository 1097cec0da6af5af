"""The commands that pages print make the same records again."""

import shlex
import tomllib
from dataclasses import asdict

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import to_builtins

from eirkit.cli import ROOT
from eirkit.cli.run_options import given_keys
from eirkit.lacuna.findings.command_line import SUITE_AXES, USUAL_OPTIONS, evidence_command, suite_text, sweep_command
from eirkit.lacuna.models.model import ModelOptions
from eirkit.lacuna.runs.manifest import read_manifest
from eirkit.lacuna.runs.suite import AXES, read_suite
from eirkit.report.runs.folder import read_evidence, read_sweep
from eirkit.report.runs.page import next_rescue, repair_near
from tests.report.folders import command, make_probe, make_sweep

GRID = {
    "workload": ["stepwise-sum", "store-recall"],
    "model": "reference/calculator",
    "h": [8, 4],
    "seeds": [0, 4, 9],
    "b": ["unlimited", 3],
    "condition": ["kv"],
    "model_options": {"temperature": "default", "protocol": "tools", "extra": {"p": "0.25"}, "seed": 7},
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
    assert read_suite(given_keys(options_of(line))).sha256() == then.plan_sha256
    assert "--no-control" in line


def test_a_suite_comes_back_from_its_text():
    suite = read_suite({"name": "s", "grid": [GRID, {**GRID, "m": 4}]})
    again = read_suite(tomllib.loads(suite_text(suite.settings)))
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
    command(*shlex.split(evidence_command(found.settings, str(tmp_path / "second")))[1:], "--json")
    again = read_evidence(tmp_path / "second")
    assert again.manifest.settings == found.manifest.settings
    assert again.result == found.result


def test_the_rescue_that_a_page_asks_for_answers_it(tmp_path):
    how = ("--digits", 3, "--warm-up", 2, "--lookback", 6, "--fan-in", 1, "--policy", "lru", "--set", "max_tokens=99")
    grid = ("--workload", "stepwise-sum", "--model", "reference/calculator", "--h", 2, "--m", 8, "--n", 12)
    command("lacuna", "run", *grid, *how, "--seeds", "0:2", "--no-control", "--out", tmp_path / "sweep", "--json")
    sweep = read_sweep(tmp_path / "sweep")
    command(*shlex.split(next_rescue(sweep))[1:], "--json")
    again = read_sweep(sweep.folder)
    (found,) = again.rescues()
    (row,) = sweep.rows
    asked = found.settings
    assert asked.task == row.task
    assert (asked.policy, asked.h, asked.models) == ("lru", 2, ("reference/calculator",))
    options = sweep.manifest.settings["grid"][0]["model_options"]
    assert to_builtins(asked.options).items() <= options.items()
    assert asked.options.max_tokens == 99
    assert repair_near(again).alike


def test_what_commands_leave_out_is_what_suites_and_models_take_for_granted():
    assert tuple(AXES) == SUITE_AXES
    usual = asdict(ModelOptions())
    assert usual == {"extra": {}, **USUAL_OPTIONS}
