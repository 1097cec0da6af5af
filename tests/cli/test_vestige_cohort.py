"""`eirkit vestige cohort` as a person or a script meets it."""

import json
import os
import subprocess

import pytest

from eirkit.vestige.corpus.planted_corpus import PlantedCorpus
from tests import warm
from tests.processes import completed
from tests.vestige.planted import analyzed_corpus


def call(*arguments: object) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "NO_COLOR": "1", "TERM": "dumb"}
    command = [warm.programs() / "eirkit", "vestige", "cohort", *map(str, arguments)]
    return completed(command, env=environment)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return analyzed_corpus(PlantedCorpus(60, 12, 2, "few"), tmp_path_factory.mktemp("cohort"))


def test_one_document_with_what_scripts_rely_on(folder):
    done = call(folder, "--only", "demand", "--only", "later", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    document = json.loads(done.stdout)
    (row,) = document["cohorts"]
    wanted = {"cohort", "runs", "resolved", "goal_access", "mean_peak_tokens", "failure_auc", "auc_low", "auc_high"}
    assert wanted <= set(row)
    assert 0 <= row["auc_low"] <= row["failure_auc"] <= row["auc_high"] <= 1
    fields = {"name", "estimate", "low", "high", "p", "n", "scale", "excluded", "shows", "does_not_show", "planned"}
    assert all(fields <= set(test) for test in document["tests"])


def test_a_page_for_reading_says_what_each_test_shows_and_what_it_does_not(folder, tmp_path):
    suite = tmp_path / "suite.toml"
    suite.write_text('[cohort]\nplanned = ["demand-failure"]\nresamples = 30\n')
    done = call(folder, "--by", "model", "--suite", suite, "--only", "demand", "--only", "gaps", "--explain")
    assert done.returncode == 0, done.stderr
    assert "Tests on planted/0" in done.stdout
    assert "planned" in done.stdout
    told = " ".join(done.stdout.split())
    cohorts = done.stdout.count("Tests on ")
    assert told.count("shows that demand causes failure") == cohorts  # once for all the tests of a cohort
    assert done.stdout.startswith("planted/0: ")
    assert "A failed run needed more than a successful one with probability" in told
    assert "no estimate of clipped-demand-failure" in done.stdout
    assert "fixed in advance: demand-failure" in done.stdout


def test_what_was_left_out_of_a_test_with_an_estimate_is_printed(folder):
    document = json.loads(call(folder, "--only", "demand", "--only", "rereads", "--json").stdout)
    told = " ".join(call(folder, "--only", "demand", "--only", "rereads").stdout.split())
    left_out = [test for test in document["tests"] if test["estimate"] is not None and test["excluded"]]
    assert left_out
    for test in left_out:
        for part in test["excluded"]:
            assert f"{part['rows']:,} ({part['reason']})" in told


def test_planned_tests_that_were_not_run_are_counted_aloud(folder, tmp_path):
    suite = tmp_path / "suite.toml"
    suite.write_text('[cohort]\nplanned = ["demand-failure", "closed-gap", "fair-clock-gap"]\n')
    told = " ".join(call(folder, "--suite", suite, "--only", "demand").stdout.split())
    assert "Holm over these, 2 that were not run among them" in told


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("nowhere",), "eirkit vestige analyze"),
        ((".", "--by", "color"), "color"),
        ((".", "--suite", "nowhere.toml"), "give TOML with [cohort] planned"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_code_2(arguments, words):
    done = call(*arguments)
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr
