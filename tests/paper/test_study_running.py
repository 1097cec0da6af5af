"""Studies on disk and on cores: what was computed is read back, what has changed is not, and a page ends it all."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from msgspec.structs import replace

from eirkit.cli import run
from eirkit.engine.interface import make_engine
from eirkit.records.documents import read_struct
from eirkit.vestige.audits.occupancy import read_windows
from eirkit.vestige.corpus.analysis import AnalysisOptions
from eirkit.vestige.corpus.pipeline import Corpus, analyze_here
from eirkit.vestige.corpus.planted_corpus import PlantedCorpus, write_logs
from eirkit_paper.page import (
    DOCUMENT,
    SCHEMA,
    Reproduction,
    overview,
    reproduction_page,
    row_tables,
    write_overview,
    write_study,
)
from eirkit_paper.runner import StudyOutcome, StudyStore, deciding_files, key_of, run_studies
from eirkit_paper.studies.catalog import find_study, perform
from eirkit_paper.study import (
    NEEDS_MEMORY,
    NEEDS_MODEL,
    NEEDS_RUNS,
    OWN_FAIL,
    OWN_HOLD,
    REPRODUCED,
    Findings,
    Setting,
    StudyRow,
    overall,
)
from eirkit_paper.verdicts import AGREES, DIFFERS, NOT_SAME, TOO_WIDE
from tests.processes import completed, running, wait_until

QUICK = ("eir-histories", "framework", "known-dependencies", "read-traces")
SETTING = Setting(seeds=range(3))


def studies(*names: str):
    return [find_study(name) for name in names or QUICK]


def refuse(piece):
    raise AssertionError(f"{piece[0]} was to be read back")


def test_the_verdict_of_many_is_that_of_those_that_were_judged():
    assert overall([row_with(AGREES), row_with(TOO_WIDE), row_with(NEEDS_MODEL)]) == REPRODUCED
    assert overall([row_with(AGREES), row_with(DIFFERS)]) == DIFFERS
    assert overall([row_with(NEEDS_RUNS), row_with(NEEDS_MODEL)]) == NEEDS_MODEL
    assert overall([row_with(NOT_SAME), row_with(TOO_WIDE)]) == TOO_WIDE


def test_one_of_many_figures_may_differ_by_chance():
    """p = 0.03 is nothing among twenty figures, and p = 0.001 is."""
    others = [row_with(AGREES)] * 19
    assert overall([replace(row_with(DIFFERS), p=0.03), *others]) == REPRODUCED
    assert overall([replace(row_with(DIFFERS), p=0.001), *others]) == DIFFERS


def test_what_was_computed_is_read_back_and_equal(tmp_path):
    store = StudyStore(tmp_path)
    first = {one.study.id: one for one in run_studies(studies(), SETTING, store, None, perform)}
    again = {one.study.id: one for one in run_studies(studies(), SETTING, store, None, refuse)}
    assert all(one.was_kept for one in again.values())
    assert {name: one.findings for name, one in first.items()} == {name: one.findings for name, one in again.items()}


def test_another_setting_or_a_torn_file_is_computed_again(tmp_path):
    store, (study,) = StudyStore(tmp_path), studies("read-traces")
    list(run_studies([study], SETTING, store, None, perform))
    assert store.find(study, Setting(seeds=range(2))) is None
    assert store.find(study, SETTING) is not None
    path = tmp_path / "studies" / "read-traces.json"
    path.write_text(path.read_text()[:100])
    assert store.find(study, SETTING) is None


def test_what_a_study_does_not_look_at_does_not_change_its_key():
    theory, agents = studies("eir-histories", "read-traces")
    assert key_of(theory, SETTING) == key_of(theory, Setting())
    assert key_of(agents, SETTING) != key_of(agents, Setting())
    assert key_of(agents, Setting(data=Path("x"))) == key_of(agents, Setting())


def analyze(folder: Path, data: Path, runs: int) -> None:
    """Do what the studies of recorded runs ask for, with planted ones."""
    folder.mkdir()
    corpus = Corpus((write_logs(PlantedCorpus(runs, runs, clipped=1.0), 0, folder),), folder / "gold")
    analyze_here(
        corpus,
        data / "openhands",
        AnalysisOptions(read_windows(), rule="paper"),
        estimate=True,
        progress=lambda *told: None,
    )


def test_analyzing_what_was_asked_for_and_running_again_is_enough(tmp_path):
    """The remedy that is printed works the first time and when an analysis is made again."""
    store, (study,) = StudyStore(tmp_path / "out"), studies("clipping-example")
    setting = Setting(data=tmp_path / "data")
    (tmp_path / "data").mkdir()

    def now() -> StudyOutcome:
        (outcome,) = run_studies([study], setting, store, None, perform)
        return outcome

    assert now().findings.verdict == NEEDS_RUNS
    assert store.find(study, setting) is None
    analyze(tmp_path / "first", tmp_path / "data", 24)
    assert now().findings.verdict == OWN_HOLD
    assert now().was_kept
    before = key_of(study, setting)
    (tmp_path / "data" / "base-lines.json").write_text("{}")
    assert key_of(study, setting) != before
    file = tmp_path / "data" / "openhands" / "analysis.json"
    before = key_of(study, setting)
    os.utime(file, ns=(0, 0))
    assert key_of(study, setting) != before
    assert not now().was_kept


@pytest.mark.parametrize(("verdict", "is_kept"), [(NEEDS_RUNS, False), (NEEDS_MEMORY, False), (NEEDS_MODEL, True)])
def test_what_lacks_something_that_may_come_is_not_kept(tmp_path, verdict, is_kept):
    store, (study,) = StudyStore(tmp_path), studies("eir-histories")
    found = Findings((row_with(AGREES), row_with(verdict)))
    store.keep(study, SETTING, found)
    assert (store.find(study, SETTING) is not None) is is_kept


def test_what_judges_and_what_is_bundled_belongs_to_the_key():
    names = {"/".join(path.parts[-2:]) for path in deciding_files()}
    assert {"eirkit_paper/study.py", "studies/comparison.py", "report/document.py", "tasks/learned.json"} <= names
    assert {"network/lacuna-tiny.safetensors", "audits/windows.toml", "eirkit_paper/figures.csv"} <= names
    assert not {"report/html.py", "cli/reproduce.py", "assets/sources.json", "guard/guard.py"} & names


def row_with(verdict: str) -> StudyRow:
    return StudyRow("x", 1.0, 1.0, 1.0, 1.0, verdict)


def test_a_study_says_how_much_of_it_was_judged_and_a_figure_is_counted_once():
    half, less = studies("eir-histories", "framework")
    named = [replace(row_with(AGREES), figure="a"), replace(row_with(NEEDS_MODEL), figure="b")]
    outcomes = [
        StudyOutcome(half, Findings((*named, replace(row_with(DIFFERS), figure="a", same_as="framework")))),
        StudyOutcome(less, Findings((replace(row_with(NOT_SAME), figure="a"), replace(row_with(DIFFERS), figure="c")))),
    ]
    assert [row["extent"] for row in overview(outcomes).rows] == ["1 of 2", "1 of 2"]
    page = reproduction_page(outcomes)
    assert (page.headline.number, page.headline.caption) == ("2 of 3", "printed figures are judged")
    assert page.headline.sentences[0].startswith("2 of 3 printed figures are judged: 1 agree, 1 differ")
    assert "1 of 2 printed figures judged" in page.sections[2].words[0]


def test_own_checks_are_shown_and_counted_apart(tmp_path):
    """Of seven channels the paper prints the findings, and nothing of planted leaks."""
    (outcome,) = run_studies(studies("channel-audit"), SETTING, StudyStore(tmp_path), None, perform)
    (line,) = overview([outcome]).rows
    assert (line["extent"], line[AGREES], line["own"]) == ("7 of 7", 7, "1 of 1")
    assert outcome.findings.judged == 7
    document = outcome.study.result(outcome.findings)
    assert (document.judged, document.of, document.counts[AGREES]) == (7, 7, 7)
    *_, own = document.rows
    assert (own.published, own.expected, own.figure) == (None, 7, "")
    printed, checked = row_tables("channel-audit", outcome.findings)
    assert (len(printed.rows), [row["verdict"] for row in checked.rows]) == (7, ["holds"])
    assert checked.title.startswith("Own checks")
    page = reproduction_page([outcome])
    assert page.headline.number == "7 of 7"
    assert "Of our own checks, of which the paper prints no figure, 1 of 1 hold." in page.headline.sentences


def test_a_study_of_which_nothing_is_printed_has_only_its_own_checks():
    own = StudyRow("x", None, 1.0, 1.0, 1.0, AGREES, expected=1.0)
    assert Findings((own,)).verdict == OWN_HOLD
    assert Findings((own, replace(own, verdict=DIFFERS))).verdict == OWN_FAIL
    assert Findings((own, replace(row_with(AGREES), figure="a"))).verdict == REPRODUCED
    assert Findings((replace(own, verdict=DIFFERS), replace(row_with(AGREES), figure="a"))).verdict == DIFFERS
    assert Findings((own,)).extent == "0 of 0"


def test_processes_find_the_same(tmp_path):
    here = {
        one.study.id: one.findings for one in run_studies(studies(), SETTING, StudyStore(tmp_path / "a"), None, perform)
    }
    engine = make_engine("local", workers=2)
    there = {
        one.study.id: one.findings
        for one in run_studies(studies(), SETTING, StudyStore(tmp_path / "b"), engine, perform)
    }
    assert here == there


def test_a_killed_run_goes_on(tmp_path):
    command = [sys.executable, "-m", "eirkit", "reproduce", *QUICK, "recovery-probes", "--workers", "1", "--json"]
    command += ["--out", str(tmp_path), "--seeds", "0:6"]
    kept = tmp_path / "studies"
    with running(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as started:
        wait_until(lambda: any(kept.glob("*.json")), "a study is finished", started)
    before = {path.name: path.stat().st_mtime_ns for path in kept.glob("*.json")}
    assert before, "at least one study was finished"
    done = completed(command, check=True)
    found = {study["id"] for study in json.loads(done.stdout)["studies"]}
    assert found == {*QUICK, "recovery-probes"}
    assert all((kept / name).stat().st_mtime_ns == changed for name, changed in before.items())


def test_the_page_holds_every_study_and_its_files_are_beside_it(tmp_path):
    outcomes = list(run_studies(studies(), SETTING, StudyStore(tmp_path), None, perform))
    for outcome in outcomes:
        write_study(outcome, tmp_path, None)
    page = write_overview(outcomes, tmp_path).read_text("utf-8")
    for name in QUICK:
        assert f'id="{name}"' in page
        endings = {path.suffix for path in (tmp_path / name).iterdir()}
        assert {".csv", ".md", ".tex"} <= endings
    assert not re.search(r"""(src|href)=["']https?://""", page)
    assert (tmp_path / "read-traces" / "read-overhead.csv").is_file()


def test_a_page_can_be_read_while_studies_are_awaited(tmp_path):
    done, later = studies("eir-histories", "framework")
    found = Findings((row_with(AGREES),))
    page = write_overview([StudyOutcome(done, found), StudyOutcome(later, None, is_awaited=True)], tmp_path)
    shown = page.read_text("utf-8")
    assert "Still awaited: 1 study;" in shown
    assert "not finished yet" in shown
    document = read_struct(tmp_path / DOCUMENT, SCHEMA, Reproduction)
    assert [study.id for study in document.studies] == ["eir-histories"]
    assert (document.awaited, document.lost) == (("framework",), ())
    write_overview([StudyOutcome(done, found), StudyOutcome(later, found)], tmp_path)
    assert "Still awaited" not in page.read_text("utf-8")


def test_the_page_is_written_with_each_study_and_a_log_gets_a_line_for_it(tmp_path):
    """Whoever stops a run in the middle has a page of what had ended; stderr is a file here, as in a job."""
    command = [sys.executable, "-m", "eirkit", "reproduce", *QUICK, "--workers", "1", "--json", "--out", str(tmp_path)]
    with (tmp_path / "log").open("wb") as log, running(command, stdout=subprocess.PIPE, stderr=log) as started:
        seen = set()
        while started.poll() is None:
            if (tmp_path / DOCUMENT).exists():
                document = read_struct(tmp_path / DOCUMENT, SCHEMA, Reproduction)
                seen.add(len(document.awaited))
                assert len(document.awaited) + len(document.studies) == len(QUICK)
                assert f'id="{document.studies[0].id}"' in (tmp_path / "index.html").read_text("utf-8")
            time.sleep(0.01)
        found = json.loads(started.stdout.read())
    assert seen & set(range(1, len(QUICK))), "nobody could have looked before the end"
    lines = (tmp_path / "log").read_text("utf-8").splitlines()
    assert [line.split(",")[0] for line in lines] == [f"{n} of 4 studies" for n in range(1, 5)]
    verdicts = {study["id"]: study["verdict"] for study in found["studies"]}
    assert {line.split(": ")[1]: line.split(": ")[2] for line in lines} == verdicts
    assert found["awaited"] == []


def test_figures_are_drawn_when_asked(tmp_path):
    outcomes = list(run_studies(studies("eir-histories"), SETTING, StudyStore(tmp_path), None, perform))
    for outcome in outcomes:
        write_study(outcome, tmp_path, "svg")
    assert (tmp_path / "eir-histories" / "eir-histories.svg").read_text("utf-8").lstrip().startswith("<?xml")


def test_the_command_prints_one_document(tmp_path, capsys):
    assert run(["reproduce", "eir-histories", "framework", "--out", str(tmp_path), "--json", "--workers", "1"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [(study["id"], study["verdict"]) for study in document["studies"]] == [
        ("eir-histories", REPRODUCED),
        ("framework", OWN_HOLD),
    ]
    for study in document["studies"]:
        assert {"id", "title", "kind", "verdict", "rows"} <= study.keys()
        assert study["judged"] == study["of"] == sum(bool(row["figure"]) for row in study["rows"])
        for row in study["rows"]:
            assert {"label", "published", "ours", "low", "high", "verdict"} <= row.keys()
    assert Path(document["page"]).is_file()


def test_the_command_lists_studies(capsys):
    assert run(["reproduce", "--list", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["studies"]) >= 25


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["reproduce"], "--all"),
        (["reproduce", "--all", "rescue"], "leave one of them out"),
        (["reproduce", "rescu"], "did you mean 'rescue'"),
        (["reproduce", "rescue", "--set", "p=1"], "--model"),
        (["reproduce", "rescue", "--model", "nobody/x"], "nobody"),
        (["reproduce", "rescue", "--model", "reference/calculator", "--model", "reference/calculator"], "once"),
        (["reproduce", "error-heat-map", "--model", "reference/calculator"], "those of other studies"),
        (["reproduce", "rescue", "--dry-run"], "--model"),
        (["reproduce", "--verify", "."], "archive.json"),
        (["reproduce", "vestige-cohorts", "--data", "no-such-folder"], "no-such-folder"),
        (["reproduce", "cross-family-policies", "--seeds", "0:2", "--workers", "1"], "give --seeds 0:3 or more"),
        (["reproduce", "recovery-cones", "--seeds", "4,5", "--workers", "1"], "give --seeds 0:3 or more"),
    ],
)
def test_wrong_usage_is_one_line_with_a_remedy(tmp_path, monkeypatch, capsys, arguments, words):
    monkeypatch.chdir(tmp_path)
    assert run(arguments) == 2
    said = capsys.readouterr().err
    assert words in said
    assert said.count("\n") == 1
