"""Logs of current versions of Inspect: archives whose members zstd compressed, which Python 3.11 cannot read."""

from __future__ import annotations

import io
import struct
import zipfile
from pathlib import Path

import pytest
import zstandard

from eirkit.vestige.corpus.reader import read_corpus
from eirkit.vestige.sources.documents import Skipped
from eirkit.vestige.trajectory import Recording
from tests.vestige.formats.samples import as_json
from tests.vestige.formats.samples.inspect import HEADER, SAMPLE

ZSTD = 93
FRAME_BYTES = 100  # Inspect writes long members as several frames


def compressed(content: bytes) -> bytes:
    parts = (content[start : start + FRAME_BYTES] for start in range(0, len(content), FRAME_BYTES))
    return b"".join(zstandard.ZstdCompressor().compress(part) for part in parts)


def archive(members: dict[str, bytes]) -> bytes:
    """Return a zip whose members say that they are compressed with zstd; the method's number is put in afterwards."""
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as made:
        for name, content in members.items():
            made.writestr(name, compressed(content))
    content = bytearray(written.getvalue())
    for magic, offset in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
        place = content.find(magic)
        while place >= 0:
            struct.pack_into("<H", content, place + offset, ZSTD)
            place = content.find(magic, place + 4)
    return bytes(content)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log.eval"
    path.write_bytes(archive({"header.json": as_json(HEADER), "samples/s1_epoch_1.json": as_json(SAMPLE)}))
    return path


def test_a_member_compressed_with_zstd_is_read(log):
    (run,) = read_corpus([log])
    assert isinstance(run, Recording)
    assert (run.task_id, run.format, len(run.turns)) == ("s1", "inspect", len(SAMPLE["messages"]) // 2)


def test_a_torn_or_lying_archive_is_skipped_with_a_reason(log):
    content = log.read_bytes()
    place = content.index(b"\x28\xb5\x2f\xfd") + 8
    log.write_bytes(content[:place] + b"\0" * 20 + content[place + 20 :])
    assert all(
        isinstance(item, Skipped) and item.reason for item in read_corpus([log]) if not isinstance(item, Recording)
    )
    # The directory points to a place where no member begins.
    moved = bytearray(content)
    struct.pack_into("<I", moved, content.index(b"PK\x01\x02") + 42, 7)
    log.write_bytes(moved)
    found = list(read_corpus([log]))
    assert [item for item in found if isinstance(item, Skipped)]
