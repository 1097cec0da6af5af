"""The weights file of the bundled network: token features, safetensors arrays, loading, checks and packing.

A value in the prompt is one token that carries the label of its line, so a record `A_07 = 0042` is one token with four
digits of a label and four of a value. The network writes digits, one token each. Tokens do not encode their position
in the text, but which value, reference and decimal place they are.

Every size in the header is checked against the file before data is read, so that a damaged or foreign file is refused
with a one-line error.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eirkit.errors import InputFileError, UsageError
from eirkit.packages import load_vendor

PLACES = 4  # decimal places of a value, and of a label
WIDTH = 4  # values per record
FAN_IN = 4  # references per step
LARGEST_LABEL = 10**PLACES - 1

RECORD, INPUT, REFERENCE, OPERAND, ANSWER, DIGIT = range(6)  # what a token is
OPERATORS = ("sum", "max", "copy", "top")
SUM, MAX, COPY, TOP = range(4)
_OPERATOR = 6
LABEL = _OPERATOR + len(OPERATORS)  # + 10 × place + digit
VALUE = LABEL + 10 * PLACES  # + 10 × place + digit; places that a value does not have are left out
INDEX = VALUE + 10 * PLACES  # + which value of a record
ORDER = INDEX + WIDTH  # + which reference; FAN_IN stands for the answer
WRITTEN = ORDER + FAN_IN + 1  # + digit, of a token that the network wrote
PLACE = WRITTEN + 10  # + decimal place of such a token
DIGITS = PLACE + PLACES  # + digits a value − 1
SLOTS = DIGITS + PLACES  # + values a record − 1
FEATURES = SLOTS + WIDTH
MOST = 10  # most features of a token, which are those of a record


def operator(which: int) -> int:
    """Return the feature of an operator's token."""
    return _OPERATOR + which


def written_places(which: int, digits: int) -> range:
    """Return the decimal places of an answer in the order of writing: a sum begins where its carries do."""
    return range(digits) if which == SUM else range(digits - 1, -1, -1)


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


FORMAT = "eirkit-lacuna-tiny/1"
EXACT = 1 << 24  # sums of whole numbers below it are exact in float32
STEPS = 511  # largest quantised activation
MOST_LAYERS, WIDEST = 64, 4096
WIDEST_HEAD = EXACT // STEPS**2  # number of products of two activations whose sum is exact


@dataclass(frozen=True, slots=True)
class Matrix:
    """One matrix of integer weights, transposed for rows of activations, with a scale for each column."""

    weights: NDArray[np.float32]  # (in, out)
    units: NDArray[np.float32]  # (out,)
    steps: int  # quantisation steps of an activation, so that no sum exceeds EXACT


@dataclass(frozen=True, slots=True)
class Layer:
    ask: Matrix  # queries
    attend: Matrix  # keys, then values
    gather: Matrix
    rise: Matrix
    fall: Matrix


@dataclass(frozen=True, slots=True)
class Weights:
    """The weights of a network."""

    embedding: NDArray[np.float32]  # (FEATURES, width), integers
    unit: np.float32
    layers: tuple[Layer, ...]
    digits: Matrix
    heads: int
    sha256: str  # of the file
    about: dict[str, str]
    arrays: Any = np  # the module whose arrays hold them: NumPy, or CuPy on a GPU

    @property
    def width(self) -> int:
        return int(self.embedding.shape[1])

    @property
    def parameters(self) -> int:
        matrices = [getattr(layer, part) for layer in self.layers for part in Layer.__slots__]
        return int(self.embedding.size + sum(m.weights.size for m in (*matrices, self.digits)))

    def on_gpu(self) -> Weights:
        """Return the same weights on the GPU.

        Raises:
            MissingExtraError: CuPy is not installed.
            UsageError: there is no GPU.
        """
        cupy = _load_cupy()

        def moved(matrix: Matrix) -> Matrix:
            return replace(matrix, weights=cupy.asarray(matrix.weights), units=cupy.asarray(matrix.units))

        layers = tuple(Layer(*(moved(getattr(layer, part)) for part in Layer.__slots__)) for layer in self.layers)
        embedding, digits = cupy.asarray(self.embedding), moved(self.digits)
        return replace(self, embedding=embedding, layers=layers, digits=digits, arrays=cupy)


def _load_cupy() -> Any:
    cupy = load_vendor("cupy", "the bundled network on a GPU", "gpu")
    try:
        cupy.cuda.runtime.getDeviceCount()
    except Exception as error:
        raise UsageError(f"no GPU was found ({error}); check the driver with nvidia-smi, or use device=cpu") from error
    return cupy


def load_weights(path: Path) -> Weights:
    """Return the network in a file.

    Raises:
        InputFileError: the file is damaged, or holds something else.
    """
    found = read_tensors(path)
    try:
        return _assemble(found, sha256(path.read_bytes()).hexdigest())
    except (KeyError, ValueError) as error:
        words = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise InputFileError(
            f"{path} does not hold weights of this network ({words}); give a file written by studies.training"
        ) from error


def _assemble(found: Tensors, digest: str) -> Weights:
    about = dict(found.about)
    if about.get("format") != FORMAT:
        raise ValueError(f"its format is {about.get('format', 'not stated')!r:.60}, not {FORMAT!r}")
    layers, heads = (_count(about, name) for name in ("layers", "heads"))
    embedding, unit = _table(found.arrays)
    width = embedding.shape[1]
    if width % heads or not np.isfinite(unit):
        raise ValueError(f"a width of {width} is not a multiple of {heads} heads")
    if width // heads > WIDEST_HEAD:
        raise ValueError(f"its heads are {width // heads} wide; products are exact up to {WIDEST_HEAD}")
    made = tuple(_layer(found.arrays, number, width) for number in range(layers))
    digits = _matrix(found.arrays, "digits", 10, width)
    return Weights(embedding, unit, made, digits, heads, digest, about)


def _count(about: dict[str, str], name: str) -> int:
    text = about.get(name, "")
    if not (text.isascii() and text.isdecimal() and 1 <= int(text[:4]) <= MOST_LAYERS and len(text) <= 4):
        raise ValueError(f"{name} = {text!r:.20} is not a valid number")
    return int(text)


def _table(arrays: Arrays) -> tuple[NDArray[np.float32], np.float32]:
    table, unit = arrays["embedding"], arrays["embedding.unit"]
    if table.dtype != np.int16 or table.ndim != 2 or table.shape[0] != FEATURES or unit.shape != (1,):
        raise ValueError(f"its embedding does not have {FEATURES} features")
    if not 1 <= table.shape[1] <= WIDEST:
        raise ValueError(f"its embedding is {table.shape[1]} wide")
    return table.astype(np.float32), np.float32(unit[0])


def _layer(arrays: Arrays, number: int, width: int) -> Layer:
    rise = arrays[f"{number}.rise"]
    hidden = rise.shape[0] if rise.ndim == 2 else 0
    shapes = {
        "attention": (3 * width, width),
        "gather": (width, width),
        "rise": (hidden, width),
        "fall": (width, hidden),
    }
    attention, *others = (_matrix(arrays, f"{number}.{part}", *shape) for part, shape in shapes.items())
    return Layer(_columns(attention, slice(width)), _columns(attention, slice(width, None)), *others)


def _columns(matrix: Matrix, part: slice) -> Matrix:
    return Matrix(np.ascontiguousarray(matrix.weights[:, part]), matrix.units[part], matrix.steps)


def _matrix(arrays: Arrays, name: str, out: int, width: int) -> Matrix:
    weights, units = arrays[name], arrays[f"{name}.units"]
    if weights.dtype != np.int8 or weights.shape != (out, width) or not 1 <= width <= WIDEST:
        raise ValueError(f"{name} is not a matrix of {out} × {width} integers")
    if units.dtype != np.float32 or units.shape != (out,) or not np.isfinite(units).all():
        raise ValueError(f"{name} has no scales for its {out} rows")
    largest = int(np.abs(weights.astype(np.int64)).sum(1).max()) or 1
    turned = np.ascontiguousarray(weights.T, dtype=np.float32)
    return Matrix(turned, units.astype(np.float32), min(STEPS, (EXACT - 1) // largest))


def pack(parameters: dict[str, NDArray[Any]], heads: int) -> tuple[dict[str, NDArray[Any]], dict[str, str]]:
    """Return trained matrices as the file stores them: 8-bit weights with a scale per row, 16-bit embeddings."""
    arrays: dict[str, NDArray[Any]] = {}
    for name, values in parameters.items():
        if name == "embedding":
            unit = np.float32(np.abs(values).max() / 32767)
            arrays |= {name: np.rint(values / unit).astype(np.int16), f"{name}.unit": np.array([unit], np.float32)}
            continue
        name = name.removeprefix("blocks.")
        units = (np.abs(values).max(1) / 127).astype(np.float32)
        arrays |= {name: np.rint(values / units[:, None]).astype(np.int8), f"{name}.units": units}
    layers = len({name.partition(".")[0] for name in arrays if name[0].isdecimal()})
    return arrays, {"format": FORMAT, "layers": str(layers), "heads": str(heads)}
