"""A corpus as a whole: formats found from content, files that are no runs, outcomes joined, names of their own."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import os
import shutil
import sqlite3
import tarfile
import tracemalloc
import warnings
import zipfile
from collections import Counter
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from eirkit.errors import InputFileError, UnknownNameError
from eirkit.vestige.corpus.reader import possible_formats, read_corpus
from eirkit.vestige.formats import FILES_BESIDE
from eirkit.vestige.sources.documents import Skipped, StoredDocument, open_document
from eirkit.vestige.sources.folders import find_documents
from eirkit.vestige.trajectory import Recording, formats
from tests.vestige.formats.samples import write_sample
from tests.vestige.recorded import recorded

LARGEST_GROWTH = 1.5  # of memory from one document to forty equal ones: names are kept, and what waits to be collected


def run(name: str, **fields: Any) -> bytes:
    return json.dumps({"run_id": name, "turns": [{"reads": [{"path": "a.py"}]}], **fields}).encode() + b"\n"


def write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def names(*paths: Path, **options: Any) -> list[str]:
    return [item.run_id for item in read_corpus(paths, **options) if isinstance(item, Recording)]


def reasons(*paths: Path, **options: Any) -> dict[str, str]:
    return {item.source: item.reason for item in read_corpus(paths, **options) if isinstance(item, Skipped)}


def test_runs_come_in_the_order_of_names_from_every_kind_of_file(tmp_path: Path) -> None:
    write(tmp_path / "b.jsonl.gz", gzip.compress(run("b1") + run("b2")))
    write(tmp_path / "a" / "a.txt", run("a"))
    with zipfile.ZipFile(tmp_path / "c.zip", "w") as archive:
        archive.writestr("x/c2.jsonl", run("c2"))
        archive.writestr("x/c1.jsonl", run("c1"))
        archive.writestr("README.md", "none")
    assert names(tmp_path) == ["a", "b1", "b2", "c1", "c2"]
    assert reasons(tmp_path) == {}


def test_files_that_are_no_runs_are_passed_over_and_unknown_logs_are_named(tmp_path: Path) -> None:
    for name in ("README.md", "a.patch", "run.log", "notes.txt", "x.yaml", "image.png"):
        write(tmp_path / name, b"\x89 nothing")
    write(tmp_path / "results.json", b'{"instances": []}')
    write(tmp_path / "preds.json", b'{"x": {"model_patch": ""}}')
    write(tmp_path / "model.run.json", b'{"resolved_ids": ["x"]}')
    assert reasons(tmp_path) == {}
    for name, content in (("a.json", b"{}"), ("b.jsonl", b'{"a": 1}\n'), ("c.traj", b"[]"), ("d.json", b"")):
        write(tmp_path / "other" / name, content)
    home = f"{tmp_path.name}/other"
    unknown = "is of no known format; see `eirkit vestige formats`"
    expected = {f"{home}/{name}": unknown for name in ("a.json", "b.jsonl", "c.traj")}
    assert reasons(tmp_path) == expected | {f"{home}/d.json": "is empty; leave it out"}


def test_a_file_that_was_given_is_always_explained(tmp_path: Path) -> None:
    write(tmp_path / "notes.txt", b"nothing")
    assert reasons(tmp_path / "notes.txt") == {"notes.txt": "is of no known format; see `eirkit vestige formats`"}


def test_a_damaged_file_of_results_is_named(tmp_path: Path) -> None:
    write(tmp_path / "results.json", b'{"instances": [')
    ((source, reason),) = reasons(tmp_path).items()
    assert source.endswith("results.json")
    assert reason.startswith("not JSON (")


def test_what_a_run_records_comes_before_the_given_file_and_that_before_the_one_beside(tmp_path: Path) -> None:
    lines = run("own", resolved=False) + run("given") + run("beside") + run("unknown")
    write(tmp_path / "runs" / "a.jsonl", lines)
    write(tmp_path / "runs" / "results.json", json.dumps({"own": True, "given": True, "beside": True}).encode())
    write(tmp_path / "outcomes.csv", b"instance_id,resolved\nown,true\ngiven,false\n")
    found = list(read_corpus([tmp_path / "runs"], outcomes=tmp_path / "outcomes.csv"))
    assert [item.resolved for item in found] == [False, False, True, None]


def test_results_in_the_archive_of_a_run_are_used(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("trajs/a.jsonl", run("x") + run("y"))
        archive.writestr("results.json", json.dumps({"x": True}))
    write(tmp_path / "results.json", json.dumps({"x": False, "y": False}).encode())
    assert [item.resolved for item in read_corpus([tmp_path / "a.zip"])] == [True, False]


def test_runs_that_share_a_name_get_names_that_say_where_they_are_from(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", run("x") + run("y"))
    write(tmp_path / "b.jsonl", run("x") + run("x"))
    home = tmp_path.name
    assert names(tmp_path) == ["x", "y", f"x@{home}/b.jsonl:1", f"x@{home}/b.jsonl:2"]
    twice = names(tmp_path, tmp_path)
    assert len(set(twice)) == len(twice) == 8
    assert twice == names(tmp_path, tmp_path)


def test_a_format_can_be_demanded(tmp_path: Path) -> None:
    write(tmp_path / "a.json", b'{"run_id": "r"}\n')
    write(tmp_path / "results.json", b'{"x": true}')
    assert reasons(tmp_path, format="plain") == {
        f"{tmp_path.name}/a.json:1": "turns is not a list; give one object for each turn"
    }
    with pytest.raises(UnknownNameError, match="no format named 'plane'"):
        names(tmp_path, format="plane")


def test_what_is_missing_or_no_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputFileError, match="no such file"):
        names(tmp_path / "absent")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputFileError, match="is a pipe"):
        names(tmp_path / "pipe")
    with pytest.raises(InputFileError, match="no such file"):
        names(tmp_path, outcomes=tmp_path / "absent.csv")


def test_many_damaged_lines_are_counted_and_hopeless_files_are_left(tmp_path: Path) -> None:
    write(tmp_path / "some.jsonl", run("r") + b"[]\n" * 150)
    found = reasons(tmp_path / "some.jsonl")
    assert len(found) == 101
    assert found["some.jsonl"] == "50 more parts are damaged; the first 100 are named"
    write(tmp_path / "all.jsonl", run("r").replace(b'"r"', b"7") + b"[]\n" * 20_000)
    found = reasons(tmp_path / "all.jsonl")
    assert found["all.jsonl"] == "the first 10,000 parts are damaged; the rest was left unread"


def test_an_archive_in_an_archive_is_named(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "in.zip", "w") as archive:
        archive.writestr("a.jsonl", run("a"))
    with zipfile.ZipFile(tmp_path / "out.zip", "w") as archive:
        archive.write(tmp_path / "in.zip", "in.zip")
    assert reasons(tmp_path / "out.zip") == {"out.zip:in.zip": "is an archive in an archive; unpack the outer one"}


@pytest.mark.parametrize("mode", ["w", "w:gz"])
def test_the_logs_in_a_tar_are_not_read_as_one(mode: str, tmp_path: Path) -> None:
    name = "logs.tar.gz" if mode == "w:gz" else "logs.tar"
    with tarfile.open(tmp_path / name, mode) as archive:
        for one in ("a.jsonl", "b.jsonl"):
            write(tmp_path / "logs" / one, run(one))
            archive.add(tmp_path / "logs" / one, one)
    shutil.rmtree(tmp_path / "logs")
    why = "is packed as tar, which is not read; unpack it or use zip"
    assert reasons(tmp_path / name) == {name: why}
    assert list(reasons(tmp_path).values()) == [why]


def test_a_database_that_is_damaged_is_named_and_another_is_passed_over(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "other.db")) as database:
        database.executescript("".join(f"CREATE TABLE t{number}(x);" for number in range(100)))
    write(tmp_path / "cut.db", (tmp_path / "other.db").read_bytes()[:4096])
    (found,) = reasons(tmp_path).items()
    assert found[0].endswith("cut.db")
    assert found[1].startswith("cannot be read as a database (")


def test_a_log_in_a_compression_that_is_not_read_is_named(tmp_path: Path) -> None:
    for name, packed in (("a.jsonl.xz", lzma.compress(run("a"))), ("a.jsonl.bz2", bz2.compress(run("a")))):
        write(tmp_path / name, packed)
    write(tmp_path / "weights.xz", lzma.compress(b"no log"))
    assert sorted(reasons(tmp_path).values()) == [
        f"is packed as {name}, which is not read; unpack it or use zip" for name in ("bzip2", "xz")
    ]


@pytest.mark.parametrize("name", [name for name in FILES_BESIDE if name != "goose"])
def test_runs_of_several_files_are_the_same_inside_an_archive(name: str, tmp_path: Path) -> None:
    """Databases are named there instead, with the way out."""
    write_sample(name, tmp_path / "logs")
    for path in (tmp_path / "logs").rglob("*.db"):
        path.unlink()
    with zipfile.ZipFile(tmp_path / "logs.zip", "w") as archive:
        for path in (tmp_path / "logs").rglob("*.*"):
            archive.write(path, path.relative_to(tmp_path))
    folder, packed = (
        [replace(run, source="") if isinstance(run, Recording) else run for run in read_corpus([tmp_path / where])]
        for where in ("logs", "logs.zip")
    )
    assert any(isinstance(run, Recording) for run in folder)
    assert packed == folder


def test_names_in_an_archive_may_climb_repeat_and_nest_without_end(tmp_path: Path) -> None:
    deep = "a/" * 20_000
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive, warnings.catch_warnings(action="ignore"):
        for index, inner in enumerate(
            ("../../r.jsonl", "b/c.jsonl", "b/c.jsonl", "b", "b/c.jsonl/d.jsonl", f"{deep}x.jsonl")
        ):
            archive.writestr(inner, run(f"r{index}"))
    assert sorted(names(tmp_path / "x.zip")) == ["r0", "r1", "r2", "r3", "r4", "r5"]


def test_memory_is_bounded_by_the_largest_document(tmp_path: Path) -> None:
    turns = [{"reads": [{"path": f"{index}.py", "tokens": index}]} for index in range(500)]
    for index in range(40):
        write(tmp_path / f"{index}.jsonl", run(f"r{index}", turns=turns))
    list(read_corpus([tmp_path]))  # what is loaded once does not count
    assert peak_bytes([tmp_path]) < LARGEST_GROWTH * peak_bytes([tmp_path / "0.jsonl"])


def peak_bytes(paths: list[Path]) -> int:
    tracemalloc.start()
    for _ in read_corpus(paths):
        pass
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak


@pytest.mark.parametrize("name", formats.names())
def test_no_format_recognizes_what_is_none(name: str, tmp_path: Path) -> None:
    reader = formats.get(name)()
    for content in (
        b"",
        b"{}",
        b"[]",
        b"null",
        b"\0" * 100,
        b"\xff\xfe",
        b"PK\x05\x06" + bytes(18),
        b"PAR1",
        b"[" * 9999,
    ):
        write(tmp_path / "a.json", content)
        assert not reader.recognizes(open_document(tmp_path / "a.json"))


# Runs, resolved, unresolved; the other runs record no outcome.
EXPECTED = {
    "mini-swe-agent-v1": (246, 179, 67),
    "mini-swe-agent-v2": (53, 29, 24),
    "openhands-completions": (27, 13, 14),
    "openhands-events": (3, 0, 0),
    "swe-agent": (3, 0, 0),
    "tau-bench": (300, 157, 143),
    "tau2-bench": (20, 10, 10),
    "atif": (11, 0, 0),  # of twelve files one goes on where another ends
    "claude-code": (12, 0, 0),
    "inspect": (15, 9, 6),
}


@pytest.mark.parametrize("name", EXPECTED)
def test_every_recorded_set_is_read(name: str) -> None:
    found = list(read_corpus([recorded(name)]))
    assert not any(isinstance(item, Skipped) for item in found)
    outcomes = Counter(item.resolved for item in found if isinstance(item, Recording))
    assert (sum(outcomes.values()), outcomes[True], outcomes[False]) == EXPECTED[name]


def test_results_beside_the_given_folder_are_used() -> None:
    outcomes = Counter(item.resolved for item in read_corpus([recorded("mini-swe-agent-v2") / "trajs"]))
    assert outcomes == {True: 29, False: 24}


@pytest.mark.parametrize("name", EXPECTED)
def test_no_two_formats_are_equally_sure_of_a_recorded_log_and_its_signs_show(name: str) -> None:
    readers = {each: formats.get(each)() for each in formats.names()}
    for document in find_documents([recorded(name)]):
        assert isinstance(document, StoredDocument)
        sure = {each: reader.recognizes(document) for each, reader in readers.items()}
        knowing = [each for each, certainty in sure.items() if certainty == max(sure.values()) > 0]
        assert len(knowing) <= 1, (document.source, knowing)
        asked = possible_formats(readers, document)
        assert all(each in asked for each, certainty in sure.items() if certainty), document.source
