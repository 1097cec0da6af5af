"""Remote corpora: the bytes of a local analysis, and one clear line for whatever stands in the way."""

from __future__ import annotations

import gzip
import os
import sys
import zipfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from eirkit.engine.processes import Processes
from eirkit.errors import InputFileError, UsageError, install_command
from eirkit.vestige.corpus import work_units
from eirkit.vestige.corpus.pipeline import Corpus, analyze_here, analyze_in_parts, is_small
from eirkit.vestige.sources.documents import ReadLimits, Skipped
from eirkit.vestige.sources.folders import find_documents
from eirkit.vestige.sources.remote import Remote, as_location
from tests.processes import completed
from tests.vestige.test_parts import EIRKIT, OPTIONS, plain_run, silent, tables, write_corpus

fsspec = pytest.importorskip("fsspec", reason="remote corpora need fsspec; pip install 'eirkit[remote]'")


@pytest.fixture
def memory() -> Iterator[Any]:
    """A store of fsspec's own, emptied afterwards."""
    system = fsspec.filesystem("memory")
    yield system
    system.rm("/", recursive=True)


def packed_corpus(folder: Path) -> Path:
    """Write runs as they are, compressed, in an archive and hidden."""
    write_corpus(folder, runs=60)
    (folder / "more.jsonl.gz").write_bytes(gzip.compress(f"{plain_run(1000)}\n{plain_run(1001)}\n".encode()))
    with zipfile.ZipFile(folder / "packed.zip", "w") as archive:
        archive.writestr("inside.jsonl", plain_run(2000) + "\n")
    (folder / ".hidden.jsonl").write_text(plain_run(3000) + "\n")
    (folder / "torn.jsonl").write_text('{"run_id": "torn", "turns": [\n')
    return folder


def test_a_store_gives_the_tables_of_the_same_files_on_disk(tmp_path, memory):
    folder = packed_corpus(tmp_path / "logs")
    memory.put(str(folder), "/bucket/", recursive=True)
    here = analyze_here(Corpus((folder,)), tmp_path / "here", OPTIONS, progress=silent)
    there = analyze_here(Corpus((Remote("memory://bucket/logs"),)), tmp_path / "there", OPTIONS, progress=silent)
    assert here.runs == there.runs == 63
    assert [one.source for one in there.skipped] == [one.source for one in here.skipped]
    assert tables(tmp_path / "here") == tables(tmp_path / "there")


def test_workers_open_it_themselves(tmp_path, monkeypatch):
    monkeypatch.setattr(work_units, "PIECE_BYTES", 2_000)
    folder = packed_corpus(tmp_path / "logs")
    url = Remote(f"file://{folder}")
    pieces = list(
        work_units.plan_work_units(work_units.CorpusReader(outcomes=None, format=None, limits=ReadLimits()), [url])
    )
    assert sum(place.section is not None for piece in pieces for place in piece.places) > 3, (
        "cut between lines, as on disk"
    )
    analyze_here(Corpus((folder,)), tmp_path / "here", OPTIONS, progress=silent)
    found = analyze_in_parts(Corpus((url,)), tmp_path / "parts", OPTIONS, Processes(2))
    assert found.runs == 63
    assert tables(tmp_path / "here") == tables(tmp_path / "parts")


def test_the_command_takes_a_url_or_a_file(tmp_path):
    folder = write_corpus(tmp_path / "logs", runs=9)
    one = folder / "part-0.jsonl"
    for number, given in enumerate((f"file://{folder}", f"file://{one}")):
        command = [*EIRKIT, "vestige", "analyze", given, "--out", str(tmp_path / f"out-{number}"), "--json"]
        done = completed(command)
        assert done.returncode == 0, done.stderr


def test_bounds_hold_there_too(memory):
    memory.pipe("/bucket/long.jsonl", (plain_run(0, 400) + "\n").encode())
    memory.pipe("/bucket/bomb.jsonl.gz", gzip.compress(b" " * (80 << 20)))
    limits = ReadLimits(document_bytes=1 << 20, line_bytes=1 << 12)
    bomb, long = (one for one in find_documents([Remote("memory://bucket")], limits) if not isinstance(one, Skipped))
    ((_, error),) = long.lines()
    assert "longer than 4,096 bytes" in str(error)
    with pytest.raises(InputFileError, match="grows more than"):
        bomb.json()


def test_a_changed_file_has_another_identity(memory):
    memory.pipe("/bucket/a.jsonl", b"{}\n")
    before = Remote("memory://bucket/a.jsonl").identity()
    assert Remote("memory://bucket/a.jsonl").identity() == before
    memory.pipe("/bucket/b.jsonl", b"{} \n")
    assert Remote("memory://bucket/b.jsonl").identity() != before
    assert is_small(Corpus((Remote("memory://bucket"),)), 100)
    assert not is_small(Corpus((Remote("memory://bucket"),)), 5)


def test_what_is_no_url_stays_a_path(tmp_path, monkeypatch):
    assert as_location("logs/a.jsonl") == Path("logs/a.jsonl")
    assert as_location("s3://bucket/logs") == Remote("s3://bucket/logs")
    monkeypatch.chdir(tmp_path)
    Path("odd:").mkdir()
    Path("odd:/name").touch()
    assert as_location("odd://name") == Path("odd://name"), "a file of that name is a file"


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("memory://nowhere", "memory://nowhere does not exist; check the address"),
        ("nothing://a/b", "Protocol not known"),
        ("zip://a::memory://b", "give the last one alone"),
    ],
)
def test_what_stands_in_the_way_is_said_in_one_line(url, words):
    with pytest.raises(UsageError, match=words):
        list(find_documents([Remote(url)]))


def test_a_hub_that_is_out_of_reach_says_what_it_needs(monkeypatch):
    pytest.importorskip("huggingface_hub", reason="knows the protocol")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(InputFileError, match=r"hf://datasets/a/b.*the network, HF_TOKEN for a private"):
        list(find_documents([Remote("hf://datasets/a/b")]))


def test_a_store_whose_package_is_missing_names_it():
    if find_spec("adlfs"):
        pytest.skip("it is there")
    with pytest.raises(UsageError, match=r"a package is missing .*; pip install adlfs"):
        list(find_documents([Remote("abfs://container/runs")]))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
def test_a_pipe_is_never_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.jsonl")
    with pytest.raises(InputFileError, match="is not a file"):
        Remote(f"file://{tmp_path}/pipe.jsonl").open()


def test_a_missing_package_is_one_line(tmp_path):
    code = (
        "import sys; sys.modules['fsspec'] = None\n"
        "from eirkit.cli import main\n"
        f"sys.argv = ['eirkit', 'vestige', 'analyze', 's3://bucket/runs', '--out', {str(tmp_path / 'out')!r}]\n"
        "sys.exit(main())"
    )
    done = completed([sys.executable, "-c", code])
    assert done.returncode == 2
    assert done.stderr == (
        f"eirkit: reading remote corpora needs an optional dependency: {install_command('remote')}\n"
    )
