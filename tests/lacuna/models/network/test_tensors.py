"""Weights files: what is written comes back, others read the same, and whatever is damaged or foreign is refused."""

import json
import pickle
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from eirkit.errors import InputFileError
from eirkit.lacuna.models.network.layout import LARGEST_HEADER_BYTES, read_tensors, write_tensors

TYPES = ("i1", "<i2", "<i4", "<f4")
some_arrays = st.dictionaries(
    st.text("abc.0", min_size=1, max_size=6),
    st.sampled_from(TYPES).flatmap(lambda kind: arrays(np.dtype(kind), st.lists(st.integers(0, 4), max_size=3))),
    max_size=4,
)


@given(found=some_arrays, about=st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=3))
@settings(max_examples=40)
def test_what_is_written_comes_back(tmp_path_factory, found, about):
    path = tmp_path_factory.mktemp("tensors") / "w.safetensors"
    write_tensors(path, found, about)
    back = read_tensors(path)
    assert back.about == about
    assert {name: (a.dtype, a.shape, a.tobytes()) for name, a in back.arrays.items()} == {
        name: (a.dtype, a.shape, a.tobytes()) for name, a in found.items()
    }


def test_the_format_is_the_one_that_others_read_and_write(tmp_path):
    others = pytest.importorskip("safetensors.numpy")
    given_arrays = {"a": np.arange(6, dtype=np.int8).reshape(2, 3), "b": np.float32([1.5])}
    write_tensors(tmp_path / "ours", given_arrays, {"format": "x"})
    read = others.load((tmp_path / "ours").read_bytes())
    assert {name: value.tolist() for name, value in read.items()} == {"a": [[0, 1, 2], [3, 4, 5]], "b": [1.5]}
    (tmp_path / "theirs").write_bytes(others.save(given_arrays))
    ours = read_tensors(tmp_path / "theirs").arrays
    assert {name: value.tolist() for name, value in ours.items()} == {"a": [[0, 1, 2], [3, 4, 5]], "b": [1.5]}


def whole() -> bytes:
    header = {"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}
    return with_header(header, np.float32([1, 2]).tobytes())


def with_header(header: object, rest: bytes = b"") -> bytes:
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + rest


def entry(**changed: object) -> bytes:
    return with_header({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8], **changed}}, bytes(8))


FOREIGN = {
    "nothing": b"",
    "seven bytes": b"1234567",
    "a pickle": pickle.dumps({"weights": [1.0]}),
    "a zip": b"PK\x03\x04" + bytes(60),
    "text": b"these are no weights, whatever the name says\n" * 9,
    "a header that is longer than the file": (1 << 40).to_bytes(8, "little") + b"{}",
    "a header beyond the limit": (LARGEST_HEADER_BYTES + 1).to_bytes(8, "little") + b" " * (LARGEST_HEADER_BYTES + 1),
    "a header that is a list": with_header([1]),
    "a header that is deep": (50_000).to_bytes(8, "little") + b"[" * 50_000,
    "an unknown type": entry(dtype="F64"),
    "no type": entry(dtype=None),
    "a negative size": entry(shape=[-2]),
    "a size that is true": entry(shape=[True, 2]),
    "a size that is no number": entry(shape=["2"]),
    "another size than its shape": entry(shape=[3]),
    "a place outside the file": entry(data_offsets=[8, 16]),
    "a place that runs backwards": entry(data_offsets=[8, 0]),
    "an entry that is a text": with_header({"a": "b"}),
    "metadata that is no table of texts": with_header({"__metadata__": {"a": 1}}),
    "numbers that belong to nobody": whole() + b"\0",
    "numbers cut short": whole()[:-1],
}


@pytest.mark.parametrize("what", FOREIGN)
def test_a_damaged_or_foreign_file_is_refused_in_one_line(tmp_path, what):
    path = tmp_path / "w.safetensors"
    path.write_bytes(FOREIGN[what])
    with pytest.raises(InputFileError) as caught:
        read_tensors(path)
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith("; give a complete .safetensors file")


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(InputFileError, match=r"cannot read .*nowhere"):
        read_tensors(tmp_path / "nowhere")


@given(st.lists(st.tuples(st.integers(0, len(whole()) - 1), st.integers(0, 255)), min_size=1, max_size=6))
@settings(max_examples=150)
def test_whatever_is_changed_the_file_is_read_or_refused(tmp_path_factory, changes):
    content = bytearray(whole())
    for place, value in changes:
        content[place] = value
    path = tmp_path_factory.mktemp("changed") / "w.safetensors"
    path.write_bytes(content)
    with suppress(InputFileError):  # anything else that is raised fails the test
        assert sum(array.nbytes for array in read_tensors(path).arrays.values()) <= len(content)
