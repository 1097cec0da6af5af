"""`eirkit demo`: its numbers, its file, and that it stays short enough to read."""

import json
import math
import sqlite3
from contextlib import closing
from itertools import pairwise

import pytest
import zstandard

from eirkit.report.demo.questions import POLICIES, WORKLOADS
from tests.cli.test_main import call
from tests.report.reading_pages import faults, read

pytestmark = pytest.mark.slow

LONGEST_OUTPUT = 50  # lines: one screen
WIDEST_OUTPUT = 80  # columns
CAPABLE = 0.99  # what the agent's card says of sums with everything in sight, at the least
BY_CHANCE = 0.02  # one value in 10^4 may stand under two labels; a few of some three hundred steps could be right so
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
    assert max(len(line) for line in lines if str(demo[2]) not in line) <= WIDEST_OUTPUT


def test_the_first_sentences_say_what_the_rows_say(demo):
    rows = {row["h"]: row for row in demo[1]["causes"]}
    arms = {row["arm"]: f"{row['accuracy']:.0%}" for row in demo[1]["rescue"]["rows"]}
    said = " ".join(demo[0].stdout.partition("\n\n")[0].split())
    less, whole = f"{rows[12]['accuracy']:.0%}", f"{rows[max(rows)]['accuracy']:.0%}"
    assert said.startswith(
        f"{less} of the steps were right with 12 of {max(rows)} results in context, {whole} with all"
    )
    assert f"makes {arms['oracle']} of the steps" in said
    assert f"another value of the same length {arms['sham']}" in said


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
    assert f"page: {page}" in done.stdout.splitlines()
    assert done.stdout.splitlines()[-1] == f"next: eirkit view {out}"
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


def events(out, h):
    """Return the events of each run with h records in sight, read without our readers."""
    query = (
        "SELECT block FROM runs JOIN cells ON cells.id = runs.cell JOIN events ON events.run = runs.id "
        "WHERE control = 0 AND json_extract(setting, '$.access.h') = ?"
    )
    with closing(sqlite3.connect(out / "run" / "sweep.db")) as database:
        blocks = [zstandard.decompress(block) for (block,) in database.execute(query, (h,))]
    return [json.loads(line) for block in blocks for line in block.splitlines()]


def test_the_agent_answers_right_where_nothing_is_missing_so_claims_may_be_made(demo):
    summary = json.loads((demo[2] / "run" / "summary.json").read_text("utf-8"))
    for row in summary["rows"]:
        assert row["model"] == demo[1]["agent"] == "bundled/lacuna-tiny"
        assert row["claims"]
        assert all(gate["low"] >= CAPABLE for gate in row["control"]["gates"])
    (whole,) = (row for row in demo[1]["causes"] if row["h"] == 16)
    assert whole["accuracy"] >= CAPABLE


def test_under_pressure_its_errors_are_missing_state_and_what_follows_from_it(demo):
    rows = {row["h"]: row for row in demo[1]["causes"]}
    for h in (12, 8):
        errors, wrong = rows[h]["errors"], sum(rows[h]["errors"].values())
        assert errors["state_supply"] > 0 < errors["cascade"]
        assert errors["computation"] <= (1 - CAPABLE) * wrong
        # A second way: what the records say of each wrong step.
        causes = [
            cause for event in events(demo[2], h) if event["type"] == "verdicts" for _, cause, _ in event["wrong"]
        ]
        assert {cause: causes.count(cause) for cause in errors} == errors


def test_restoring_what_was_missing_repairs_and_a_sham_does_not(demo):
    arms = {row["arm"]: row["accuracy"] for row in demo[1]["rescue"]["rows"]}
    assert arms["oracle"] >= CAPABLE
    assert arms["sham"] <= BY_CHANCE
    assert arms["control"] <= BY_CHANCE


def test_what_stood_in_for_a_missing_result_is_shown_as_it_was(demo):
    found = demo[1]["substitutes"]
    example = found["example"]
    *records, step = example["prompt"].splitlines()
    held = dict(record.split(" = ") for record in records)
    operands, answer = example["reply"].splitlines()
    name, _, _, fresh, *refs = step.split()
    assert example["label"] in refs
    assert example["label"] not in held
    values = dict(zip(refs, operands.split(" | "), strict=True))
    assert values[example["label"]] == example["written"] != example["true"]
    assert [label for label, value in held.items() if value == example["written"]] == example["like"]
    # The agent's own arithmetic on what it wrote, which is right, and so its answer is not.
    assert (int(fresh) + sum(map(int, values.values()))) % 10**4 == int(example["submitted"])
    assert answer == f"ANSWER {int(name[2:])} {example['submitted']}"
    assert example["submitted"] != example["answer"]
    missing = [t for event in events(demo[2], 12) if event["type"] == "decision" for t in event.get("missing", ())]
    assert found["lookups"] == len(missing)
    assert found["right"] + found["copied"] <= found["lookups"]
    text = (demo[2] / "report.html").read_text("utf-8")
    assert example["sentence"] in text
    assert example["sentence"] in " ".join(demo[0].stdout.split())


def test_it_says_who_answers(demo):
    told = f"neural network of {demo[1]['agent_parameters'] / 1e6:.1f} million parameters that comes with"
    assert told in " ".join(demo[0].stdout.split())
    assert told in (demo[2] / "report.html").read_text("utf-8")
