"""Reads and writes arrays in the safetensors format; reading executes no code.

Every size in the header is checked against the file before data is read, so that a damaged or foreign file is refused
with a one-line error.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eirkit.errors import InputFileError

LARGEST_FILE_BYTES = 64 << 20
LARGEST_HEADER_BYTES = 1 << 16
MOST_TENSORS = 1_000
_TYPES = {"I8": "<i1", "I16": "<i2", "I32": "<i4", "F32": "<f4"}
_NAMES = {np.dtype(code): name for name, code in _TYPES.items()}
_LENGTH = 8  # bytes that hold the length of the header

Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Tensors:
    arrays: Arrays
    about: Mapping[str, str]  # the metadata of the file


def write_tensors(path: Path, arrays: Arrays, about: Mapping[str, str]) -> None:
    """Write arrays in the order of their names; the same arrays give the same bytes."""
    header: dict[str, Any] = {"__metadata__": dict(sorted(about.items()))}
    parts, start = [], 0
    for name, array in sorted(arrays.items()):
        raw = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).tobytes()
        where = [start, start + len(raw)]
        header[name] = {"dtype": _NAMES[array.dtype], "shape": list(array.shape), "data_offsets": where}
        parts.append(raw)
        start += len(raw)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % _LENGTH)  # data starts at a multiple of eight bytes
    path.write_bytes(len(text).to_bytes(_LENGTH, "little") + text + b"".join(parts))


def read_tensors(path: Path) -> Tensors:
    """Return the arrays of a file.

    Raises:
        InputFileError: the file cannot be read, is incomplete or has another format.
    """
    content = _read(path)
    try:
        header, start = _header(content)
        about = header.pop("__metadata__", {})
        if not isinstance(about, dict) or not all(isinstance(value, str) for value in about.values()):
            raise ValueError("its metadata is not a table of strings")
        if len(header) > MOST_TENSORS:
            raise ValueError(f"it declares {len(header)} tensors; the limit is {MOST_TENSORS}")
        arrays = {name: _array(name, entry, content, start) for name, entry in header.items()}
        if start + sum(array.nbytes for array in arrays.values()) != len(content):
            raise ValueError("its tensors do not match the size of the file")
    except (ValueError, TypeError, RecursionError) as error:
        words = str(error).partition("\n")[0][:160]
        raise InputFileError(f"{path} is not a weights file ({words}); give a complete .safetensors file") from error
    return Tensors(arrays, about)


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as stream:
            content = stream.read(LARGEST_FILE_BYTES + 1)
    except OSError as error:
        raise InputFileError(f"cannot read {path}: {error.strerror}; check the path") from error
    if len(content) > LARGEST_FILE_BYTES:
        raise InputFileError(f"{path} is larger than {LARGEST_FILE_BYTES >> 20} MiB; give the weights of a small model")
    return content


def _header(content: bytes) -> tuple[dict[str, Any], int]:
    length = int.from_bytes(content[:_LENGTH], "little")
    if len(content) < _LENGTH or not 2 <= length <= min(LARGEST_HEADER_BYTES, len(content) - _LENGTH):
        raise ValueError("the length of its header is invalid")
    header = json.loads(content[_LENGTH : _LENGTH + length].decode())
    if not isinstance(header, dict):
        raise ValueError("its header is not a table")
    return header, _LENGTH + length


def _array(name: str, entry: Any, content: bytes, start: int) -> NDArray[Any]:
    if not isinstance(entry, dict) or entry.get("dtype") not in _TYPES:
        raise ValueError(f"the type of {name[:40]!r} is none of {', '.join(_TYPES)}")
    shape, where = _counts(entry.get("shape")), _counts(entry.get("data_offsets"))
    if shape is None or where is None or len(where) != 2 or len(shape) > 4:
        raise ValueError(f"{name[:40]!r} has an invalid shape or offset")
    kind = np.dtype(_TYPES[entry["dtype"]])
    begin, end = where
    if end - begin != math.prod(shape) * kind.itemsize or start + end > len(content):
        raise ValueError(f"{name[:40]!r} exceeds the file or does not have the size of its shape")
    return np.frombuffer(content, kind, math.prod(shape), start + begin).reshape(shape)


def _counts(values: Any) -> list[int] | None:
    """Return a list of sizes; None if it is not one."""
    fits = isinstance(values, list) and all(type(v) is int and 0 <= v <= LARGEST_FILE_BYTES for v in values)
    return values if fits else None
