"""The site: pages, links, rankings, references and what is refused; the same submissions give the same bytes."""

import json
import os
import re
import shutil
import sqlite3
import sys

import msgspec
import pytest
from tools import board
from tools.board import KEPT, kept_folders

from eirkit import __version__
from eirkit.cli import run
from eirkit.lacuna.memories.factory import reason_absent
from eirkit.lacuna.runs.manifest import read_manifest, write_manifest
from eirkit.lacuna.runs.replay import Replays
from eirkit.lacuna.runs.suite import read_suite
from eirkit.lacuna.runs.sweep import start_sweep
from eirkit.records.documents import read_struct, write_struct
from eirkit.records.export import read_runs
from eirkit.records.listing import describe_files
from eirkit_bridges.board.checking import CheckRequest, check
from eirkit_bridges.board.site import DATA, INDEX, write_site
from eirkit_bridges.board.standings import entries_of, tracks_of
from eirkit_bridges.board.submission import DOCUMENT, SCHEMA, Submission, make_submission
from tests.processes import completed
from tests.timing import UNITS_IN_A_SECOND, cost

SUITE = {
    "workload": "store-recall",
    "model": "reference/recoverer",
    "memory": ["key-value", "text", "broken-drops", "broken-labels"],
    "n": 8,
    "m": 4,
    "h": 2,
    "seeds": "0:6",
}
SECONDS = 60  # of CPU on a machine of 2024, for a thousand entries
SHORT = 12  # entries of the short form


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    base = tmp_path_factory.mktemp("board")
    start_sweep(read_suite(SUITE), base / "run", control=False)
    make_submission(base / "run", base / "all" / "first", "first")
    return base


def test_a_board_ranks_what_holds_and_names_what_does_not(made, tmp_path, capsys):
    shutil.copytree(made / "all", tmp_path / "all")
    shutil.copytree(made / "all" / "first", tmp_path / "all" / "second")
    (tmp_path / "all" / "second" / "runs" / "runs.jsonl").write_text("")
    assert run(["board", str(tmp_path / "all"), "--out", str(tmp_path / "site"), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    (track,) = found["tracks"]
    best, *_, worst = track["entries"]
    assert (best["memory"], best["accuracy"]["mean"], best["over_null"]["low"] > 0) == ("key-value", 1.0, True)
    assert worst["memory"].startswith("broken-")
    assert found["refused"][0]["folder"] == "second"
    assert found["refused"][0]["problems"][0].startswith("runs/runs.jsonl: ")
    index = (tmp_path / "site" / INDEX).read_text()
    links = set(re.findall(r'href="(entries/\w+\.html)"', index))
    assert links == {f"entries/{one['id']}.html" for one in track["entries"]}
    for link in links:
        page = (tmp_path / "site" / link).read_text()
        assert f'href="../{INDEX}#track-{track["id"]}"' in page
        assert "<script" not in page
    assert "has changed since submission.json was written" in index
    assert "Every search asked for 5 passages" in index
    assert "Scripts extracted and read; no language model took part." in index


def test_the_same_submissions_give_the_same_site(made, tmp_path):
    sites = []
    for name in ("a", "b"):
        checked = [check(CheckRequest(made / "all" / "first"))]
        written = write_site(tmp_path / name, tracks_of(entries_of(checked[0])), checked)
        sites.append({path.name: path.read_bytes() for path in written})
    assert sites[0] == sites[1]
    assert len(sites[0]) == 6


def test_an_entry_that_is_gone_leaves_no_page_and_other_folders_are_left_alone(made, tmp_path, capsys):
    out = tmp_path / "site"
    assert run(["board", str(made / "all"), "--out", str(out)]) == 0
    (out / "entries" / "000000000000.html").write_text("old")
    assert run(["board", str(made / "all"), "--out", str(out)]) == 0
    assert len(list((out / "entries").iterdir())) == 4
    assert json.loads((out / DATA).read_text())["schema"] == "board/1"
    assert run(["board", str(made / "all"), "--out", str(made)]) == 2
    assert "holds other files" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"memory": None, "condition": "controlled"}, "has no run of a memory system"),
        ({"texts": False}, "--no-texts"),
    ],
)
def test_what_cannot_be_checked_is_not_submitted(change, complaint, tmp_path, capsys):
    given = {key: value for key, value in {**SUITE, **change}.items() if value is not None}
    start_sweep(read_suite({**given, "seeds": "0"}), tmp_path / "run", control=False)
    assert run(["submit", str(tmp_path / "run"), "--out", str(tmp_path / "out")]) == 2
    assert complaint in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_damaged_records_are_named(tmp_path, capsys):
    start_sweep(read_suite({**SUITE, "seeds": "0"}), tmp_path / "run", control=False)
    with sqlite3.connect(tmp_path / "run" / "sweep.db") as connection:
        damage = """CAST(replace(record, '"memory":{', '"memory":{"floor":1,') AS BLOB)"""
        connection.execute(f"UPDATE records SET record = {damage}")
    connection.close()
    assert run(["submit", str(tmp_path / "run"), "--out", str(tmp_path / "out")]) == 2
    assert "changed since it was written" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_submission_that_was_killed_is_made_by_the_same_command(made, tmp_path, capsys):
    process = completed([sys.executable, "-c", "import os; print(os.getpid())"]).stdout.strip()
    shutil.copytree(made / "all" / "first" / "runs", tmp_path / "out" / "runs")
    (tmp_path / "out" / f".{DOCUMENT}.{process}.unfinished").mkdir()
    assert run(["submit", str(made / "run"), "--out", str(tmp_path / "out"), "--name", "first"]) == 0
    capsys.readouterr()
    whole = sorted(path.name for path in (made / "all" / "first").iterdir())
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == whole


def test_the_runs_to_repeat_are_drawn_anew_and_the_draw_is_told(made, tmp_path, capsys):
    seeds = set()
    for number in range(2):
        assert run(["board", str(made / "all"), "--out", str(tmp_path / str(number)), "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        (seed,) = found["rerun"]["seeds"]
        assert sorted(one["made_anew"] for one in found["tracks"][0]["entries"]) == [0, 0, 0, 1]
        pages = [path.read_text() for path in (tmp_path / str(number) / "entries").iterdir()]
        assert sum("none of its runs was drawn" in page for page in pages) == 3
        assert json.loads((tmp_path / str(number) / DATA).read_text())["rerun"] == found["rerun"]
        assert f"--seed {seed}" in (tmp_path / str(number) / INDEX).read_text()
        seeds.add(seed)
    assert len(seeds) == 2  # of two thousand million
    words = ["board", str(made / "all"), "--out", str(tmp_path / "again"), "--seed", str(seed), "--json"]
    assert run(words) == 0
    capsys.readouterr()
    for path in (tmp_path / "1").rglob("*.*"):
        assert path.read_bytes() == (tmp_path / "again" / path.relative_to(tmp_path / "1")).read_bytes()


def test_records_of_somebody_else_are_refused_under_another_name(made, tmp_path, capsys):
    copies(made, tmp_path / "all", 2)
    shutil.copytree(made / "all" / "first", tmp_path / "all" / "zz")
    assert run(["board", str(tmp_path / "all"), "--out", str(tmp_path / "site"), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert [one["folder"] for one in found["refused"]] == ["0000", "0001"]
    assert "the same records as first (zz)" in found["refused"][0]["problems"][0]
    assert {entry["submission"] for entry in found["tracks"][0]["entries"]} == {"first"}


def test_a_folder_that_is_named_twice_is_one_submission(made, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(made)
    given = ["all/first", str(made / "all"), str(made / "run" / ".." / "all" / "first")]
    assert run(["board", *given, "--out", str(tmp_path / "site"), "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["tracks"][0]["entries"]) == 4


def test_a_run_is_to_be_submitted_first(made, tmp_path, capsys):
    for folder, complaint in ((made / "run", f"`eirkit submit {made / 'run'} --out "), (tmp_path, "no submission")):
        assert run(["board", str(folder), "--out", str(tmp_path / "site")]) == 2
        assert complaint in (said := capsys.readouterr().err)
        assert said.count("\n") == 1
        assert not (tmp_path / "site").exists()


@pytest.mark.skipif(
    any(read_manifest(path).eirkit != __version__ for path in kept_folders()), reason="kept by another version"
)
@pytest.mark.parametrize("folder", kept_folders(), ids=lambda path: path.name)
def test_the_kept_records_of_memory_systems_hold_where_the_systems_are_not_installed(folder):
    replays = Replays()
    for kept in read_runs(folder):
        assert replays.check(kept.record, kept.lines) == (True, []), kept.record.run


def test_a_system_is_submitted_and_ranked_where_it_is_not_installed(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("EIRKIT_HOME", str(tmp_path / "empty"))
    assert reason_absent("mem0", {}) is not None
    assert run(["submit", str(KEPT / "mem0"), "--out", str(tmp_path / "all" / "one"), "--name", "mem0"]) == 0
    capsys.readouterr()
    assert run(["board", str(tmp_path / "all"), "--out", str(tmp_path / "site"), "--json"]) == 0
    (track,) = json.loads(capsys.readouterr().out)["tracks"]
    assert (track["title"], track["entries"][0]["made_anew"]) == ("conversation · preset = small · 12 conversations", 0)
    page = next((tmp_path / "site" / "entries").iterdir()).read_text()
    assert "none: its memory is no script of eirkit" in page
    assert "0 of memories and 1 of null and sham were also run again" in (tmp_path / "site" / INDEX).read_text()
    assert "of scored questions are right" in page
    assert "of scored steps, mean" not in page


@pytest.mark.parametrize("damage", ["version", "record", "events"])
def test_a_kept_system_that_cannot_be_read_ends_our_board_with_one_line(tmp_path, monkeypatch, damage):
    kept = tmp_path / "kept" / "mem0"
    shutil.copytree(KEPT / "mem0", kept)
    if damage == "version":
        write_manifest(msgspec.structs.replace(read_manifest(kept), eirkit="0.0.1"), kept)
    elif damage == "record":
        (kept / "runs.jsonl").write_bytes((kept / "runs.jsonl").read_bytes().replace(b'"seed":3', b'"seed":"3"'))
    else:
        (kept / "events.jsonl.zst").write_bytes((kept / "events.jsonl.zst").read_bytes()[:-50])
    monkeypatch.setattr(board, "KEPT", tmp_path / "kept")
    with pytest.raises(SystemExit) as ended:
        board.main([str(tmp_path / "site")])
    assert str(ended.value).startswith("eirkit submit ")
    assert "mem0" in str(ended.value)
    assert "\n" not in str(ended.value)
    assert not (tmp_path / "site").exists()


OWN_WORKLOAD = """
from pathlib import Path
from eirkit.lacuna.tasks.workloads import StoreRecall

Path({!r}).touch()


class Mine(StoreRecall):
    pass
"""


def test_code_and_files_that_a_sweep_names_are_submitted_only_if_they_are_trusted(tmp_path, capsys):
    source = tmp_path / "mine.py"
    text = OWN_WORKLOAD.format(str(tmp_path / "ran"))
    source.write_text(text)
    given = {**SUITE, "workload": f"{source}:Mine", "memory": "key-value", "seeds": "0"}
    start_sweep(read_suite(given), tmp_path / "run", control=False)
    (tmp_path / "ran").unlink()
    os.utime(source, ns=(0, 0))  # as if it were new, so that it would be run again
    words = ["submit", str(tmp_path / "run"), "--out", str(tmp_path / "out")]
    assert run(words) == 2
    assert "mine.py" in (said := capsys.readouterr().err)
    assert (said.count("\n"), "add --plugins" in said) == (1, True)
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "ran").exists()
    assert run([*words, "--plugins"]) == 0
    assert (tmp_path / "out" / "sources" / "0-mine.py").read_text() == text
    assert run(["board", str(tmp_path / "out"), "--out", str(tmp_path / "site"), "--plugins", "--json"]) == 0
    capsys.readouterr()
    assert run(["board", str(tmp_path / "out"), "--out", str(tmp_path / "site"), "--json"]) == 1
    assert "add --plugins" in json.loads(capsys.readouterr().out)["refused"][0]["problems"][0]


def test_every_part_of_a_submission_finds_the_code_wherever_it_is(tmp_path, capsys, monkeypatch):
    for name in ("work", "elsewhere"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "work")
    (tmp_path / "work" / "relative.py").write_text(OWN_WORKLOAD.format(str(tmp_path / "ran")))
    given = {**SUITE, "workload": "relative.py:Mine", "memory": "key-value", "seeds": "0"}
    start_sweep(read_suite(given), tmp_path / "run", control=False)
    assert run(["submit", str(tmp_path / "run"), "--out", str(tmp_path / "out"), "--plugins"]) == 0
    capsys.readouterr()
    (tmp_path / "out").rename(tmp_path / "elsewhere" / "moved")
    shutil.rmtree(tmp_path / "work")
    (tmp_path / "work").mkdir()
    words = ["board", str(tmp_path / "elsewhere" / "moved"), "--out", str(tmp_path / "site")]
    done = completed([sys.executable, "-m", "eirkit", *words, "--plugins"], cwd=tmp_path / "elsewhere")
    assert done.returncode == 0, done.stderr
    for part in ("runs", "controls"):
        assert set(read_manifest(tmp_path / "elsewhere" / "moved" / part).places.values()) == {
            "../sources/0-relative.py"
        }


def test_no_other_file_than_the_code_that_was_run_is_handed_on(made, tmp_path, capsys):
    """Somebody else's sweep says that a private file of the user was its code."""
    (tmp_path / "private").write_text("secret")
    shutil.copytree(made / "run", tmp_path / "run")
    changed = msgspec.structs.replace(read_manifest(tmp_path / "run"), sources={str(tmp_path / "private"): "0" * 64})
    write_manifest(changed, tmp_path / "run")
    for more in ([], ["--plugins"]):
        assert run(["submit", str(tmp_path / "run"), "--out", str(tmp_path / "out"), *more]) == 2
        assert str(tmp_path / "private") in capsys.readouterr().err
        assert not (tmp_path / "out").exists()


def test_references_of_the_sweep_itself_are_used(tmp_path):
    given = {**SUITE, "memory": ["key-value", "null", "sham"], "seeds": "0:2"}
    start_sweep(read_suite(given), tmp_path / "run", control=False)
    make_submission(tmp_path / "run", tmp_path / "out", "whole")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["runs", DOCUMENT]
    assert check(CheckRequest(tmp_path / "out")).holds


def copies(made, folder, count):
    """Make further submissions of other names."""
    document = read_struct(made / "all" / "first" / DOCUMENT, SCHEMA, Submission)
    for number in range(count):
        copy = folder / f"{number:04}"
        shutil.copytree(made / "all" / "first", copy, copy_function=shutil.copyfile)
        renamed = msgspec.structs.replace(document, name=f"number {number}", files=describe_files(copy, DOCUMENT))
        write_struct(copy / DOCUMENT, SCHEMA, renamed)


def cost_of(made, tmp_path, entries):
    copies(made, tmp_path / "all", entries // 4)  # each has four

    def work():
        checked = [check(CheckRequest(path)) for path in sorted((tmp_path / "all").iterdir())]
        tracks = tracks_of([entry for one in checked for entry in entries_of(one)])
        assert len(tracks[0].entries) == entries
        assert len(write_site(tmp_path / "site", tracks, checked)) == entries + 2

    return cost(work) / UNITS_IN_A_SECOND


def test_an_entry_costs_less_than_a_thousandth_of_a_minute_by_ten(made, tmp_path):
    """A short form of the next test: ten times what an entry may cost there, because tests share their machine."""
    assert cost_of(made, tmp_path, SHORT) < 10 * SECONDS * SHORT / 1000


@pytest.mark.slow
def test_a_board_of_a_thousand_entries_takes_under_a_minute_of_cpu(made, tmp_path):
    assert cost_of(made, tmp_path, 1000) < SECONDS
