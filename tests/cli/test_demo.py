"""`eirkit demo`: its numbers, its file, and that it stays short enough to read."""

import json
import math
from itertools import pairwise

import pytest

from eirkit.report.demonstration.theory import POLICIES, WORKLOADS
from tests.cli.test_main import call
from tests.report.reading_pages import faults, read

LONGEST_OUTPUT = 40  # lines: one screen
WIDEST_OUTPUT = 110  # columns
B = math.log2(10**4)


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    out = tmp_path_factory.mktemp("demo") / "new" / "folder"
    return call("demo", "--out", out), json.loads((out / "demo.json").read_text("utf-8")), out


def test_it_fits_on_a_screen(demo):
    done = demo[0]
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert len(lines) <= LONGEST_OUTPUT
    assert max(map(len, lines)) <= WIDEST_OUTPUT


def test_the_closed_forms_are_those_of_the_theory(demo):
    rows = {row["workload"]: row for row in demo[1]["demand"]}
    assert tuple(rows) == WORKLOADS
    for workload, records in {"running-max": 1, "store-recall": 8, "stepwise-sum": 16, "full-lookup": 16}.items():
        assert rows[workload]["peak_bits"] == pytest.approx(records * B)
        assert rows[workload]["records"] == pytest.approx(records)
    # A window of 16 comparable values needs less than 16 free ones, and more than half of them.
    assert 8 * B < rows["stepwise-max"]["peak_bits"] < 16 * B
    assert 8 * 2 * B < rows["stepwise-topk"]["peak_bits"] < 16 * 2 * B


def test_the_contrast_is_one_value_against_the_whole_window(demo):
    contrast = demo[1]["contrast"]
    assert contrast["final_only_bits"] == pytest.approx(B)
    assert contrast["every_step_bits"] == pytest.approx(16 * B)


def test_at_pressure_one_the_right_policy_misses_nothing_and_lru_does(demo):
    for row in demo[1]["retention"]:
        rates = row["miss_rate"]
        assert tuple(rates) == POLICIES
        if row["eir_pressure"] <= 1.0:
            assert rates["theory"] == rates["belady"] == 0
            assert rates["lru"] > 0.1
        else:
            assert min(rates.values()) > 0


def test_recovery_grows_with_the_inputs_of_a_step(demo):
    rows = demo[1]["recovery"]
    assert [row["fetched"] for row in rows] == [1, 1, 1]
    assert rows[0]["results_kept"] == rows[0]["nothing_kept"] == rows[0]["depth"]
    for fewer, more in pairwise(rows):
        assert all(fewer[key] < more[key] for key in ("results_kept", "nothing_kept", "depth"))


def test_json_is_the_document_that_out_writes_and_a_second_demo_takes_the_place_of_the_first(demo):
    page = (demo[2] / "report.html").read_bytes()
    done = call("demo", "--json", "--out", demo[2])
    assert done.stderr == ""
    assert json.loads(done.stdout) == demo[1] == json.loads((demo[2] / "demo.json").read_text("utf-8"))
    assert (demo[2] / "report.html").read_bytes() == page


def test_it_ends_with_the_path_of_a_page_of_all_three_rooms(demo):
    done, document, out = demo
    page = out / "report.html"
    assert done.stdout.splitlines()[-1].endswith(str(page))
    text = page.read_text("utf-8")
    assert faults(text) == []
    titles = [heading.text for heading in read(text)[0].all("h2")]
    for wanted in ("1. How much must survive?", "4. An agent under pressure", "5. One recorded run"):
        assert wanted in titles
    assert f"{document['recorded']['peak_demand_tokens']:,} tokens" in text


def test_a_folder_with_something_else_in_it_is_left_alone(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "precious.txt").write_text("mine")
    done = call("demo", "--out", tmp_path)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert (tmp_path / "run" / "precious.txt").read_text() == "mine"


def test_out_that_is_a_file_is_refused_in_one_line(tmp_path):
    (tmp_path / "file").touch()
    done = call("demo", "--out", tmp_path / "file")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)


def test_every_error_of_an_exact_agent_is_missing_state_or_its_consequence(demo):
    rows = {row["h"]: row for row in demo[1]["causes"]}
    assert rows[16]["accuracy"] == 1
    assert not any(rows[16]["errors"].values())
    for h in (12, 8):
        assert rows[h]["errors"]["computation"] == 0
        assert rows[h]["errors"]["state_supply"] > 0 < rows[h]["errors"]["cascade"]


def test_restoring_what_was_missing_repairs_and_a_sham_does_not(demo):
    arms = {row["arm"]: row["accuracy"] for row in demo[1]["rescue"]["rows"]}
    assert arms["oracle"] == 1
    assert arms["sham"] <= 0.02  # a sham differs from the operand, so only a tie of two stored values could be right
