"""What is read from Parquet files: footers beside pyarrow's own reading, and files with every byte of it damaged."""

from __future__ import annotations

import io
import sys
from itertools import islice
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eirkit.errors import InputFileError
from eirkit.vestige.sources.parquet import RowGroup, read_row_groups, read_rows
from tests.processes import completed

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

LIMIT_BYTES = 1 << 24
COLUMNS = {
    "id": ["a", None, "c", "d", "e"],
    "messages": [[{"role": "user", "content": "hello"}], [], None, [{"role": None, "content": "x" * 40}] * 3, []],
    "reward": [1.0, None, 0.0, 0.5, 1.0],
    "resolved": [True, False, None, True, True],
    "steps": [1, 2, 3, 4, 2**62],
}


def written(table: Any, **how: Any) -> bytes:
    stored = io.BytesIO()
    parquet.write_table(table, stored, **how)
    return stored.getvalue()


def as_pyarrow_reads(content: bytes) -> list[RowGroup]:
    metadata, found, start = parquet.read_metadata(io.BytesIO(content)), [], 0
    for place in range(metadata.num_row_groups):
        group = metadata.row_group(place)
        columns = [group.column(number) for number in range(group.num_columns)]
        begins = [one.dictionary_page_offset or one.data_page_offset for one in columns]
        found.append(
            RowGroup(
                start,
                start + group.num_rows,
                max(group.total_byte_size, sum(one.total_uncompressed_size for one in columns)),
                sum(one.num_values for one in columns),
                min(begins, default=0),
                max((begin + one.total_compressed_size for begin, one in zip(begins, columns, strict=True)), default=0),
            )
        )
        start += group.num_rows
    return found


@given(
    names=st.lists(st.sampled_from(sorted(COLUMNS)), unique=True, min_size=1),
    rows=st.integers(0, 60),
    group_rows=st.integers(1, 20),
    compression=st.sampled_from(["none", "snappy", "gzip", "zstd"]),
    dictionary=st.booleans(),
    index=st.booleans(),
    version=st.sampled_from(["1.0", "2.0"]),
    notes=st.dictionaries(st.text(min_size=1, max_size=5), st.text(max_size=200), max_size=3),
)
def test_a_footer_reads_as_pyarrow_reads_it(
    names: list[str],
    rows: int,
    group_rows: int,
    compression: str,
    dictionary: bool,
    index: bool,
    version: str,
    notes: dict[str, str],
) -> None:
    table = pyarrow.table({name: [COLUMNS[name][row % 5] for row in range(rows)] for name in names})
    content = written(
        table.replace_schema_metadata(notes),
        row_group_size=group_rows,
        compression=compression,
        use_dictionary=dictionary,
        write_page_index=index,
        data_page_version=version,
    )
    assert list(read_row_groups(io.BytesIO(content))) == as_pyarrow_reads(content)
    assert [row for _, row in read_rows(io.BytesIO(content), "x", LIMIT_BYTES)] == table.to_pylist()


def test_moments_that_python_cannot_hold_cost_nothing_else() -> None:
    moments = pyarrow.array([1_001, 2], pyarrow.timestamp("ns"))
    days = pyarrow.array([2**31 - 1, 0], pyarrow.date32())
    content = written(pyarrow.table({"id": ["a", "b"], "created_at": moments, "day": days}))
    assert list(read_rows(io.BytesIO(content), "x", LIMIT_BYTES)) == [(1, {"id": "a"}), (2, {"id": "b"})]


def test_a_moment_deep_inside_costs_its_row_alone() -> None:
    inside = pyarrow.array([[{"at": 2**31 - 1}], [{"at": 0}]], pyarrow.list_(pyarrow.struct({"at": pyarrow.date32()})))
    (_, first), (number, second) = read_rows(io.BytesIO(written(pyarrow.table({"turns": inside}))), "x", LIMIT_BYTES)
    assert isinstance(first, InputFileError)
    assert "holds a value that cannot be read (OverflowError)" in str(first)
    assert number == 2
    assert not isinstance(second, Exception)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"PAR1", "too short for a footer"),
        (b"PAR1" + b"\xff\xff\xff\x7fPAR1", "the footer is longer than the file"),
        (b"\x49" + b"\x1c" * 100 + b"\x65\x00\x00\x00PAR1", "the footer is nested too deep"),
        (b"\x19\xfc\xff\xff\xff\xff\x0f" + b"\x07\x00\x00\x00PAR1", "the footer ends too early"),
        (b"\x16" + b"\xff" * 11 + b"\x0c\x00\x00\x00PAR1", "the footer holds a number of more than 64 bits"),
        (b"\x1e\x01\x00\x00\x00PAR1", "the footer holds an unknown type, 14"),
    ],
)
def test_a_footer_that_is_none_is_refused(content: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        read_row_groups(io.BytesIO(content))


DAMAGE = """
import io, sys
from eirkit.errors import InputFileError
from eirkit.vestige.sources.parquet import read_rows

content, outcomes = sys.stdin.buffer.read(), {"read": 0, "refused": 0}
footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
for place in range(footer, len(content) - 8):
    for value in (content[place] ^ 1, content[place] ^ 16, content[place] + 1 & 255, 255):
        damaged = content[:place] + bytes([value]) + content[place + 1 :]
        try:
            for _ in read_rows(io.BytesIO(damaged), "x", 1 << 24):
                pass
            outcomes["read"] += 1
        except InputFileError:
            outcomes["refused"] += 1
print(outcomes["read"], outcomes["refused"])
"""


def test_no_damaged_byte_of_a_footer_ends_the_process() -> None:
    # pyarrow ends the process where the statistics of sizes are damaged, so the damage is done in one of its own.
    content = written(pyarrow.table({name: COLUMNS[name] for name in ("id", "messages")}))
    ended = completed([sys.executable, "-c", DAMAGE], input=content, text=False)
    assert ended.returncode == 0, ended.stderr.decode()[-500:]
    read, refused = map(int, ended.stdout.split())
    assert read > 100
    assert refused > 100


def test_a_small_file_whose_dictionary_repeats_a_large_value_is_given_up():
    """A value that is stored once costs nothing to repeat: some kilobytes once took most of a minute."""
    text = "x" * 1_000_000
    written = io.BytesIO()
    rows = pyarrow.table({"messages": pyarrow.array([text] * 500).dictionary_encode()})
    parquet.write_table(rows, written, compression="zstd")
    assert len(written.getvalue()) < 5_000
    rows = read_rows(io.BytesIO(written.getvalue()), "small.parquet", 1 << 30)
    with pytest.raises(InputFileError, match="grows more than 200 times when unpacked"):
        list(islice(rows, 20))
