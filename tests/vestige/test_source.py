"""What people have, opened in place: every way of keeping a file gives the same document, and nothing hostile hangs."""

from __future__ import annotations

import gzip
import io
import json
import os
import socket
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from eirkit.errors import InputFileError
from eirkit.folders import DEEPEST_FOLDER
from eirkit.vestige.sources.documents import ReadLimits, Skipped, StoredDocument, open_document
from eirkit.vestige.sources.folders import find_documents
from eirkit.vestige.sources.json_parser import _parse_in_little_memory, is_deeper, parse_json
from eirkit.vestige.sources.members import MemberPath
from tests.lacuna.running import eirkit
from tests.processes import completed

ROWS = [{"run": 1, "text": "é"}, {"run": 2, "text": "🙂"}]
LINES = b"".join(json.dumps(row).encode() + b"\n" for row in ROWS)
NESTING = 200
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
)


def documents(path: Path) -> list[StoredDocument]:
    return [each for each in find_documents([path]) if isinstance(each, StoredDocument)]


def skipped(path: Path) -> list[Skipped]:
    return [each for each in find_documents([path]) if isinstance(each, Skipped)]


def write(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def zipped(**members: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return stream.getvalue()


@pytest.mark.parametrize(
    "name, pack",
    [("a.jsonl", bytes), ("a.jsonl.gz", gzip.compress), ("a.jsonl.zst", zstandard.ZstdCompressor().compress)],
)
def test_every_compression_gives_the_same_lines(tmp_path: Path, name: str, pack) -> None:
    document = open_document(write(tmp_path / name, pack(LINES)))
    assert document.name == "a.jsonl"
    assert document.head == LINES
    assert list(document.lines()) == list(enumerate(ROWS, 1))


def test_two_frames_of_zstd_and_two_members_of_gzip_are_one_document(tmp_path: Path) -> None:
    half = len(LINES) // 2
    for name, pack in (("a.zst", zstandard.ZstdCompressor().compress), ("a.gz", gzip.compress)):
        document = open_document(write(tmp_path / name, pack(LINES[:half]) + pack(LINES[half:])))
        assert [row for _, row in document.lines()] == ROWS


def test_the_members_of_an_archive_are_documents_whose_names_are_labels_only(tmp_path: Path) -> None:
    content = zipped(**{"../../etc/evil.json": b"[1]", "in/b.json.gz": gzip.compress(b"[2]"), "/abs.json": b"[3]"})
    archive = open_document(write(tmp_path / "logs.zip", content))
    members = {member.source: member for member in archive.members()}
    assert sorted(members) == ["logs.zip:../../etc/evil.json", "logs.zip:/abs.json", "logs.zip:in/b.json.gz"]
    assert [members[name].json() for name in sorted(members)] == [[1], [3], [2]]
    parents = [members[name].parent for name in sorted(members)]
    assert [parent.inner for parent in parents if isinstance(parent, MemberPath)] == ["../../etc", "", "in"]
    assert not any(isinstance(parent, MemberPath) and (parent / "logs.zip").is_file() for parent in parents)
    assert list(tmp_path.rglob("*")) == [tmp_path / "logs.zip"]


@pytest.mark.parametrize("name, pack", [("a.parquet", bytes), ("a.parquet.gz", gzip.compress)])
def test_parquet_rows_come_out_as_they_went_in(tmp_path: Path, name: str, pack) -> None:
    stream = io.BytesIO()
    parquet.write_table(pyarrow.Table.from_pylist(ROWS * 20), stream)
    document = open_document(write(tmp_path / name, pack(stream.getvalue())))
    assert list(document.rows()) == list(enumerate(ROWS * 20, 1))


def test_rows_that_are_too_large_are_refused(tmp_path: Path) -> None:
    parquet.write_table(pyarrow.Table.from_pylist([{"text": "x" * 10_000}]), tmp_path / "a.parquet")
    with pytest.raises(
        InputFileError, match=r"has a row group of [\d,]+ bytes, more than 5,000; write it with smaller"
    ):
        list(open_document(tmp_path / "a.parquet", ReadLimits(document_bytes=5000)).rows())


def stored_table(path: Path, columns: dict[str, object], **how: object) -> Path:
    parquet.write_table(pyarrow.table(columns), path, compression="zstd", **how)
    return path


def test_a_table_that_claims_to_grow_out_of_all_proportion_is_not_unpacked(tmp_path: Path) -> None:
    texts = pyarrow.array(["x" * 1_000_000] * 3)
    path = stored_table(tmp_path / "a.parquet", {"text": texts}, use_dictionary=False)
    with pytest.raises(InputFileError, match=r"claims to hold 3,\d{3},\d{3} bytes in [\d,]+; unpack it yourself"):
        list(open_document(path, ReadLimits(document_bytes=2_000_000)).rows())


def test_a_value_stored_once_and_repeated_is_stopped_while_it_is_read(tmp_path: Path) -> None:
    once = pyarrow.DictionaryArray.from_arrays(pyarrow.array([0] * 50, pyarrow.int32()), pyarrow.array(["x" * 200_000]))
    path = stored_table(tmp_path / "a.parquet", {"text": once}, store_schema=False)
    rows = open_document(path, ReadLimits(document_bytes=1_000_000)).rows()
    with pytest.raises(InputFileError, match="grows more than 200 times when unpacked"):
        list(rows)


def test_more_rows_than_bytes_are_no_table(tmp_path: Path) -> None:
    nothing = pyarrow.nulls(2_000_000, pyarrow.int8())
    path = stored_table(tmp_path / "a.parquet", {"n": nothing}, row_group_size=2_000_000)
    with pytest.raises(InputFileError, match="claims to hold 2,000,000 rows in"):
        list(open_document(path).rows())


def test_a_damaged_row_group_costs_itself(tmp_path: Path) -> None:
    texts = [f"{number}" * 100 for number in range(30)]
    path = stored_table(tmp_path / "a.parquet", {"text": texts}, row_group_size=10, use_dictionary=False)
    group = parquet.read_metadata(path).row_group(1).column(0)
    content = bytearray(path.read_bytes())
    content[group.data_page_offset : group.data_page_offset + 20] = b"\xff" * 20
    path.write_bytes(bytes(content))
    found = list(open_document(path).rows())
    assert [number for number, _ in found] == [*range(1, 12), *range(21, 31)]
    (error,) = [row for _, row in found if isinstance(row, Exception)]
    assert str(error).startswith("rows up to 20 are damaged Parquet")


def test_only_parquet_has_rows_and_only_archives_have_members(tmp_path: Path) -> None:
    document = open_document(write(tmp_path / "a.json", b"{}"))
    assert (list(document.rows()), list(document.members())) == ([], [])


def test_folders_are_walked_in_the_order_of_names_without_hidden_files(tmp_path: Path) -> None:
    for name in ("b/2.json", "b/10.json", "a.json", ".hidden/c.json", "b/.d.json", "c/d/e/f.json"):
        write(tmp_path / "runs" / name, b"{}")
    found = [document.source for document in documents(tmp_path / "runs")]
    assert found == ["runs/a.json", "runs/b/10.json", "runs/b/2.json", "runs/c/d/e/f.json"]


def test_claimed_names_are_left_out_with_all_that_lies_below_them(tmp_path: Path) -> None:
    for name in ("a/x.json", "a/y.json", "b/z.json"):
        write(tmp_path / name, b"{}")
    found = find_documents([tmp_path], ReadLimits(), lambda folder, names: {"b"} & {*names} or {"y.json"} & {*names})
    assert [each.source for each in found] == [f"{tmp_path.name}/a/x.json"]


@contextmanager
def nested(folder: Path, levels: int) -> Iterator[None]:
    """Nest so many folders; they are removed by a program that does not recurse as Python would."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        for _ in range(levels):
            Path("d").mkdir()
            os.chdir("d")
        os.chdir(folder)
        yield
    finally:
        os.chdir(folder)
        completed(["rm", "-r", "d"], check=True)
        os.chdir(before)


def test_links_to_themselves_and_folders_without_end_are_named_and_skipped(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "a").symlink_to("b")
    (tmp_path / "runs" / "b").symlink_to("a")
    (tmp_path / "runs" / "kept.json").write_text("{}")
    with nested(tmp_path / "runs", 1_500):  # more than the interpreter's limit of nested calls
        assert [one.source for one in documents(tmp_path / "runs")] == ["runs/kept.json"]
        reasons = sorted(one.reason.partition(";")[0] for one in skipped(tmp_path / "runs"))
        loop = "is a link that leads back to itself"
        assert reasons == [loop, loop, f"is nested in more than {DEEPEST_FOLDER} folders"]
        assert eirkit("vestige", "analyze", str(tmp_path / "runs"), "--out", str(tmp_path / "out")) == 2
        assert eirkit("vestige", "analyze", str(tmp_path / "runs" / "a"), "--out", str(tmp_path / "out")) == 2


def test_links_that_lead_out_of_the_folder_are_named_and_not_followed(tmp_path: Path) -> None:
    secret = write(tmp_path / "secret.json", b"{}")
    write(tmp_path / "runs" / "a.json", b"{}")
    (tmp_path / "runs" / "out.json").symlink_to(secret)
    (tmp_path / "runs" / "up").symlink_to(tmp_path)
    (tmp_path / "runs" / "loop").symlink_to(tmp_path / "runs")
    assert [document.source for document in documents(tmp_path / "runs")] == ["runs/a.json"]
    assert [each.source for each in skipped(tmp_path / "runs")] == ["runs/out.json", "runs/up"]
    assert documents(tmp_path / "runs" / "out.json")[0].json() == {}  # a link that was given is what people mean


def test_a_pipe_a_socket_and_a_device_are_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.jsonl")
    server = socket.socket(socket.AF_UNIX)
    here = Path.cwd()
    os.chdir(tmp_path)  # a socket's path must be short
    server.bind("socket.jsonl")
    os.chdir(here)
    server.close()
    assert [each.reason.partition(";")[0] for each in skipped(tmp_path)] == ["is a pipe", "is a socket"]
    for path, kind in ((tmp_path / "pipe.jsonl", "a pipe"), (Path("/dev/null"), "a device")):
        with pytest.raises(InputFileError, match=f"is {kind}; save its content as a file"):
            list(find_documents([path]))


def test_a_missing_path_is_an_error_of_one_line(tmp_path: Path) -> None:
    with pytest.raises(InputFileError, match="no such file or directory"):
        list(find_documents([tmp_path / "absent"]))


@pytest.mark.parametrize(
    "content, reason",
    [
        (b"", "empty"),
        (b"  \n", "empty"),
        (b'{"a": "\xff"}', "not UTF-8 at byte 7"),
        (b'{"a": "\0"}', "holds a null byte at 7"),
        (b"[" * 100_000, "nested deeper than 1024 levels"),
        (b'{"a":' * 1500 + b"1" + b"}" * 1500, "nested deeper than 1024 levels"),
        (b'{"a": 1', "not JSON"),
        (b"{'a': 1}", "not JSON"),
        (b"9" * 5000, "not JSON"),
    ],
)
def test_what_is_no_json_is_named(tmp_path: Path, content: bytes, reason: str) -> None:
    with pytest.raises(InputFileError, match=rf"^a\.json: {reason}"):
        open_document(write(tmp_path / "a.json", content)).json()


@pytest.mark.parametrize(
    "content, value",
    [
        (b"\xef\xbb\xbf[1]", [1]),
        (rb'["\ud800", "\ud83d\ude42", "\\ud800", "x\udc00\ud83dx"]', ["\ufffd", "🙂", r"\ud800", "x\ufffd\ufffdx"]),
        (b'{"a": [1e999]}', {"a": [float("inf")]}),
    ],
)
def test_what_real_logs_hold_and_strict_readers_refuse_is_read(content: bytes, value: object) -> None:
    assert parse_json(content, NESTING) == value


def test_nan_is_read() -> None:
    (value,) = parse_json(b"[NaN]", NESTING)
    assert value != value


@given(VALUES)
def test_sound_json_is_read_as_the_standard_library_reads_it(value: object) -> None:
    assert parse_json(json.dumps(value).encode(), NESTING) == value


@given(VALUES)
def test_both_parsers_read_the_same(value: object) -> None:
    assert _parse_in_little_memory(json.dumps(value).encode()) == value


@pytest.mark.skipif(sys.platform != "linux", reason="limits the address space")
def test_a_text_too_large_for_its_memory_crashes_no_parser() -> None:
    """A limit of a few MiB is reached at another place of the text each time; orjson alone was killed by SIGSEGV."""
    program = """
import os
from eirkit.vestige.sources.json_parser import parse_json
from eirkit.limits import limit_memory

texts = [b"[" + b",".join([unit] * 150_000) + b"]" for unit in (b'{"":0}', b'[1.5]', b'"abcdefghi"', b'{"a":{"b":[]}}')]
for text in [b"[]", *texts]:
    parse_json(text, 1000)  # everything is imported
for text in texts:
    for mib in range(1, 40, 5):
        child = os.fork()
        if child == 0:
            limit_memory(mib << 20)
            try:
                parse_json(text, 1000)
            except MemoryError:
                os._exit(7)
            os._exit(0)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    codes = completed([sys.executable, "-c", program], check=True).stdout.split()
    assert set(codes) == {"0", "7"}


@pytest.mark.parametrize("levels", [1, 5, 200])
def test_depth_is_counted_exactly(levels: int) -> None:
    value: object = 1
    for _ in range(levels):
        value = {"a": [1, 2], "b": value} if levels > 1 else [value]
    assert is_deeper(value, levels - 1)
    assert is_deeper(value, levels) == (levels > 1)  # the list beside the innermost value is one more
    assert not is_deeper(value, levels + 1)


def test_a_damaged_line_costs_no_other_line(tmp_path: Path) -> None:
    content = b'{"a": 1}\n\n{"a": \n{"a": "\xff"}\n' + b"[" * 2000 + b'\n{"a": 2}\n{"a"'
    found = list(open_document(write(tmp_path / "a.jsonl", content)).lines())
    assert [number for number, _ in found] == [1, 3, 4, 5, 6, 7]
    assert [value for _, value in found if not isinstance(value, Exception)] == [{"a": 1}, {"a": 2}]


@given(st.lists(st.sampled_from([b"1", b"", b" ", b"\t", b"[2]", b"\r"]), max_size=30), st.booleans())
def test_blank_lines_are_counted_and_left_out(tmp_path_factory, lines: list[bytes], ends: bool) -> None:
    path = write(tmp_path_factory.mktemp("blank") / "a.jsonl", b"\n".join(lines) + b"\n" * ends)
    expected = [(number, json.loads(line)) for number, line in enumerate(lines, 1) if line.strip()]
    assert list(open_document(path).lines()) == expected


def test_many_blank_lines_are_passed_over_quickly(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", b"\n" * (1 << 24) + b"7\n" + b" " * 100_000 + b"\n\n8")
    assert list(open_document(path).lines()) == [((1 << 24) + 1, 7), ((1 << 24) + 4, 8)]


def test_a_line_that_is_too_long_is_passed_over_within_bounds(tmp_path: Path) -> None:
    content = b'"' + b"x" * 5000 + b'"\n[2]\n'
    found = list(open_document(write(tmp_path / "a.jsonl", content), ReadLimits(line_bytes=1000)).lines())
    assert [number for number, _ in found] == [1, 2]
    assert "longer than 1,000 bytes" in str(found[0][1])
    assert found[1][1] == [2]


def test_ten_gigabytes_without_a_line_end_are_given_up_early(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", b"{")
    os.truncate(path, 10 << 30)  # a hole: it takes no room on disk
    limits = ReadLimits(document_bytes=1 << 22, line_bytes=1 << 20)
    ((number, reason),) = open_document(path, limits).lines()
    assert (number, str(reason)) == (1, "longer than 1,048,576 bytes; remove the line")
    with pytest.raises(InputFileError, match="longer than 4,194,304 bytes"):
        open_document(path, limits).json()


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.ZstdCompressor().compress])
def test_a_stream_that_grows_out_of_proportion_is_stopped(tmp_path: Path, pack) -> None:
    bomb = pack(b"\n" * (64 << 20))
    document = open_document(write(tmp_path / "a.jsonl", bomb), ReadLimits(document_bytes=1 << 20))
    for verb in (document.json, lambda: list(document.lines())):
        with pytest.raises(InputFileError, match=r"longer than|grows more than"):
            verb()


def test_an_archive_that_claims_too_much_is_refused(tmp_path: Path) -> None:
    content = zipped(**{f"{index}.json": b" " * (1 << 20) for index in range(8)})
    archive = open_document(write(tmp_path / "a.zip", content), ReadLimits(document_bytes=1 << 20))
    with pytest.raises(InputFileError, match="claims to hold 8,388,608 bytes"):
        archive.members()


@pytest.mark.parametrize("name", ["a.json.gz", "a.json.zst", "a.zip", "a.parquet"])
def test_a_torn_file_is_named(tmp_path: Path, name: str) -> None:
    table = io.BytesIO()
    parquet.write_table(pyarrow.Table.from_pylist(ROWS), table)
    whole = {
        "a.json.gz": gzip.compress(os.urandom(1000)),
        "a.json.zst": zstandard.ZstdCompressor().compress(os.urandom(1000)),
        "a.zip": zipped(**{"a.json": b"[1]"}),
        "a.parquet": table.getvalue(),
    }[name]
    document = open_document(write(tmp_path / name, whole[: len(whole) * 2 // 3]))
    verbs = {"a.zip": document.members, "a.parquet": lambda: list(document.rows())}
    with pytest.raises(InputFileError, match=rf"^{name}: (a )?damaged"):
        verbs.get(name, document.json)()


def test_an_encrypted_member_says_so(tmp_path: Path) -> None:
    content = bytearray(zipped(**{"a.json": b"[1]"}))
    for header, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        content[content.index(header) + flags] |= 1
    (member,) = open_document(write(tmp_path / "a.zip", bytes(content))).members()
    with pytest.raises(InputFileError, match="encrypted"):
        member.json()


def test_strange_names_become_labels_that_can_be_printed(tmp_path: Path) -> None:
    (document,) = open_document(write(tmp_path / "a.zip", zipped(**{"\x1b[31m\n.json": b"1"}))).members()
    assert document.source == "a.zip:?[31m?.json"
    write(Path(os.fsdecode(os.fsencode(tmp_path) + b"/d/\xff.json")), b"1")
    assert [each.source for each in documents(tmp_path / "d")] == ["d/\ufffd.json"]


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="a file whose every read fails, which only Linux has")
def test_a_file_that_cannot_be_read_on_is_named() -> None:
    document = open_document(Path("/proc/self/mem"))
    for verb in (lambda: document.head, document.json, document.text, lambda: list(document.lines())):
        with pytest.raises(InputFileError, match=r"^mem: cannot be read \(input/output error\)"):
            verb()


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "a.json", b"{}")
    path.chmod(0)
    with pytest.raises(InputFileError, match=r"a\.json: cannot be read \(permission denied\)"):
        open_document(path).json()


def test_a_large_text_of_little_but_commas_is_refused_before_it_is_parsed() -> None:
    """Its objects would take many times its size; prose of the same size is read."""
    with pytest.raises(InputFileError, match="17,825,794 values in 35,651,588 bytes, which no agent log does"):
        parse_json(b"[" + b"0," * (17 * 2**20 + 1) + b"]", 9)
    prose = b'["' + b"a word, and another one. " * (1_400_000) + b'"]'
    assert len(parse_json(prose, 9)[0]) == len(prose) - 4


def test_a_history_of_aider_in_a_folder_is_found_though_its_name_begins_with_a_dot(tmp_path: Path) -> None:
    for name in (".aider.chat.history.md", ".hidden.jsonl"):
        (tmp_path / name).write_text("{}")
    assert [document.source for document in find_documents([tmp_path])] == [f"{tmp_path.name}/.aider.chat.history.md"]
