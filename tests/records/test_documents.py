"""Typed documents: written in one step, validated when read; the manifest of runs has a checksum."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from eirkit.errors import InfrastructureError, InputFileError, UsageError
from eirkit.records.documents import MANIFEST, RUNS_SCHEMA, decode_struct, read_struct, schema_of, write_struct
from tests.processes import completed


class Note(msgspec.Struct, frozen=True):
    """A document."""

    text: str
    numbers: tuple[int, ...] = ()


class Nothing(msgspec.Struct, frozen=True):
    """A document without fields."""


def test_a_document_is_read_as_it_was_written(tmp_path):
    for schema in ("note/1", RUNS_SCHEMA):
        for document in (Note("ä \u2028 \U0001f600", (1, 2)), Note("")):
            write_struct(tmp_path / "a.json", schema, document)
            assert read_struct(tmp_path / "a.json", schema, Note) == document
            assert schema_of(tmp_path / "a.json") == schema
            assert next(iter(json.loads((tmp_path / "a.json").read_text()))) == "schema"
        write_struct(tmp_path / "b.json", schema, Nothing())
        assert read_struct(tmp_path / "b.json", schema, Nothing) == Nothing()
    assert {path.name for path in tmp_path.iterdir()} == {"a.json", "b.json"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not a document of 'note/1'"),
        (b"{", "not a document of 'note/1'"),
        (b"[]", "not a document of 'note/1'"),
        (b"\xff", "not a document of 'note/1'"),
        (b'{"schema": "note/2", "text": ""}', "schema 'note/2', expected 'note/1'; use the version that wrote it"),
        (b'{"text": ""}', "schema None, expected 'note/1'"),
        (b'{"schema": "note/1", "text": 7}', "not a document of 'note/1'"),
        (b'{"schema": "note/1", "text": ' + b"[" * 100_000, "not a document of 'note/1'"),
    ],
)
def test_what_is_no_document_is_refused(content, message):
    with pytest.raises(InputFileError, match=message):
        decode_struct(content, "note/1", Note, "here")


def test_no_flipped_bit_changes_what_a_manifest_says(tmp_path):
    path, document = tmp_path / MANIFEST, Note("You carry out a task of 12 steps.", (1, 20, 300))
    write_struct(path, RUNS_SCHEMA, document)
    whole, refused = path.read_bytes(), 0
    for place in range(len(whole)):
        for bit in range(8):
            changed = bytes([*whole[:place], whole[place] ^ 1 << bit, *whole[place + 1 :]])
            try:
                found = decode_struct(changed, RUNS_SCHEMA, Note, "here")
            except InputFileError:
                refused += 1
            else:
                assert found == document, f"byte {place}"
    assert refused > 0.9 * 8 * len(whole.replace(b" ", b""))


def test_a_manifest_that_was_changed_or_has_no_checksum_is_refused(tmp_path):
    path = tmp_path / MANIFEST
    write_struct(path, RUNS_SCHEMA, Note("some text"))
    message = "changed since it was written, as its checksum shows; restore the file"
    whole = path.read_bytes()
    for changed in (
        whole.replace(b"some", b"same"),
        whole[: whole.index(b',\n "crc32"')] + b"\n}\n",
        whole.replace(b'"crc32": ', b'"crc32": 1'),
        whole.replace(b'\n "text"', b'\n "text": "other",\n "text"'),
    ):
        assert changed != whole
        path.write_bytes(changed)
        with pytest.raises(InputFileError, match=message):
            read_struct(path, RUNS_SCHEMA, Note)


def test_a_place_where_nothing_can_be_written_is_said_in_one_line(tmp_path):
    with pytest.raises(UsageError, match=r"^cannot write .*: No such file or directory; choose another folder$"):
        write_struct(tmp_path / "none" / MANIFEST, RUNS_SCHEMA, Note(""))
    if Path("/dev/full").exists():
        (tmp_path / "full").symlink_to("/dev/full")
        with pytest.raises(InfrastructureError, match=r"No space left on device; free disk space and resume$"):
            write_struct(tmp_path / "full", RUNS_SCHEMA, Note(""))


def test_a_pipe_is_not_waited_for(tmp_path):
    completed(["mkfifo", tmp_path / MANIFEST], check=True)
    with pytest.raises(InputFileError, match="Not an ordinary file; check the path"):
        read_struct(tmp_path / MANIFEST, RUNS_SCHEMA, Note)
