"""A corpus in a bucket: a real server of the S3 protocol on loopback, asked by s3fs, gives the bytes of the same files.

`make session NAME=remote` runs it, in an environment with moto and s3fs.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from eirkit.engine.processes import Processes
from eirkit.errors import InputFileError
from eirkit.vestige.corpus import work_units
from eirkit.vestige.corpus.pipeline import Corpus, analyze_here, analyze_in_parts, is_small
from eirkit.vestige.sources.folders import find_documents
from eirkit.vestige.sources.remote import Remote
from tests.vestige.test_parts import OPTIONS, silent, tables
from tests.vestige.test_remote import packed_corpus
from tests.vestige.test_sections import message_row, row_file

s3fs = pytest.importorskip("s3fs", reason="asks for a bucket as users do")
moto_server = pytest.importorskip("moto.server", reason="serves the bucket on loopback")


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The address of a server that holds no bucket yet."""
    served = moto_server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    served.start()
    host, port = served.get_host_and_port()
    yield f"http://{host}:{port}"
    served.stop()


@pytest.fixture
def bucket(server: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A file system whose address and keys come from the usual variables, for workers too."""
    for name, value in {
        "AWS_ENDPOINT_URL": server,
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_DEFAULT_REGION": "us-east-1",
    }.items():
        monkeypatch.setenv(name, value)
    s3fs.S3FileSystem.clear_instance_cache()
    system = s3fs.S3FileSystem()
    system.mkdir("runs")
    yield system
    system.rm("runs", recursive=True)
    s3fs.S3FileSystem.clear_instance_cache()


def filled(bucket: Any, tmp_path: Path) -> Path:
    """Put logs of every kind into the bucket; return the same on disk."""
    folder = packed_corpus(tmp_path / "logs")
    row_file(folder / "rows.parquet", [message_row(number) for number in range(60)])
    bucket.put(str(folder), "runs/", recursive=True)
    return folder


def test_a_bucket_gives_the_tables_of_the_same_files(tmp_path, bucket):
    folder, there = filled(bucket, tmp_path), Corpus((Remote("s3://runs/logs"),))
    here = analyze_here(Corpus((folder,)), tmp_path / "here", OPTIONS, progress=silent)
    found = analyze_here(there, tmp_path / "there", OPTIONS, progress=silent)
    assert here.runs == found.runs == 123
    assert {**here, "out": ""} == {**found, "out": ""}
    assert tables(tmp_path / "here") == tables(tmp_path / "there")
    assert is_small(there, 1 << 30)


def test_workers_ask_for_their_sections_themselves(tmp_path, bucket, monkeypatch):
    monkeypatch.setattr(work_units, "PIECE_BYTES", 2_000)
    folder = filled(bucket, tmp_path)
    analyze_here(Corpus((folder,)), tmp_path / "here", OPTIONS, progress=silent)
    found = analyze_in_parts(Corpus((Remote("s3://runs/logs"),)), tmp_path / "parts", OPTIONS, Processes(2))
    assert found.runs == 123
    assert tables(tmp_path / "here") == tables(tmp_path / "parts")


def test_an_object_that_is_put_anew_has_another_identity(bucket):
    bucket.pipe("runs/a.jsonl", b"{}\n")
    before = Remote("s3://runs/a.jsonl").identity()
    bucket.pipe("runs/b.jsonl", b"[]\n")
    assert Remote("s3://runs/a.jsonl").identity() == before != Remote("s3://runs/b.jsonl").identity()


@pytest.mark.parametrize("url", ["s3://nobodys-bucket/logs", "s3://runs/nothing/here"])
def test_what_is_not_there_is_said_in_one_line(bucket, url):
    with pytest.raises(InputFileError, match=rf"^{url} does not exist; check the address$"):
        list(find_documents([Remote(url)]))
