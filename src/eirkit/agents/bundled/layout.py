"""Loads and checks the weights file of the bundled network, and packs trained matrices into it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eirkit.agents.bundled.features import FEATURES
from eirkit.agents.bundled.tensors import Arrays, Tensors, read_tensors
from eirkit.errors import InputFileError, UsageError
from eirkit.packages import load_vendor

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
