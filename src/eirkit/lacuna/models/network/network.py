"""The forward pass of the bundled network: from token features to scores of the ten digits.

All sums are of integers that float32 represents exactly, so they do not depend on the order of addition: activations
are rounded to integers before every product, and weights are stored as integers. Everything else is one IEEE operation
per element. So the same file gives the same bits on every machine, in every batch, and on a GPU, where NumPy's
functions work on CuPy's arrays.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from eirkit.lacuna.models.network.layout import FEATURES, STEPS, Layer, Matrix, Weights

Floats = NDArray[np.float32]
Indices = NDArray[np.int64]
Wholes = tuple[Floats, Floats]  # integers, and the scale of each row

LONGEST = 512  # tokens of a step with its reply
FALL_STEPS = 128  # table entries per unit of the exponential
FALL_END = 12  # argument at which the table reaches 0
FALL_TOP = 1 << 14  # value of the table at 0
FULL = 2047  # sum of the attention of one token, in integer parts; rounding may add half a part per key
VALUE_STEPS = np.float32(256)  # quantisation steps per unit of an attended value
MOST_VALUE = np.float32(7000)  # largest quantised value: (FULL + LONGEST / 2) of them stay below EXACT
TINY = np.float32(1e-30)  # avoids division by zero


FALLING = np.array(  # exp(−x) as integers, for x = 0, 1/FALL_STEPS, …, and 0 at the end
    [*(round(math.exp(-i / FALL_STEPS) * FALL_TOP) for i in range(FALL_STEPS * FALL_END)), 0], np.float32
)


@dataclass(frozen=True, slots=True)
class Attended:
    """Recorded attention: shares of FULL for each layer, shape (rows, heads, tokens, keys)."""

    shares: list[Floats]


class KeyValueCache:
    """Keys, their scales and values of the tokens so far, for each layer.

    Each row has its own length; entries beyond it are ignored.
    """

    def __init__(self, rows: int, weights: Weights, tokens: int) -> None:
        heads, size = weights.heads, weights.width // weights.heads
        shape = (len(weights.layers), rows, tokens, heads)
        zeros = weights.arrays.zeros
        self.keys = zeros((*shape, size), np.float32)
        self.units = zeros(shape, np.float32)
        self.values = zeros((*shape, size), np.float32)
        self.lengths = np.zeros(rows, np.int64)  # always in main memory, like all positions
        self.move = weights.arrays.asarray
        self.falling = self.move(FALLING)

    def keep(self, rows: Sequence[int]) -> None:
        """Keep these rows and drop all others."""
        self.keys, self.units, self.values = (array[:, rows] for array in (self.keys, self.units, self.values))
        self.lengths = self.lengths[rows]


@dataclass(frozen=True, slots=True)
class Places:
    """Positions of tokens, which are concatenated for products and arranged in rows for attention."""

    row: Indices
    column: Indices
    here: Indices  # (rows, columns): index of the token; 0 for padding

    @property
    def slots(self) -> Indices:
        return self.here[self.row, self.column]

    def spread(self, x: Floats) -> Floats:
        """Return concatenated tokens arranged in rows: (rows, columns, …)."""
        found = np.zeros_like(x, shape=(*self.here.shape, *x.shape[1:]))
        found[self.row, self.column] = x
        return found

    def hidden(self, length: int) -> NDArray[np.bool_]:
        """Return the causal mask (rows, 1, columns, keys): True where a key comes after the token."""
        return (np.arange(length) > self.here[:, :, None])[:, None]


def _places(there: NDArray[np.bool_], slots: Indices) -> Places:
    """Return the positions of some tokens, given the index of each in its row."""
    counts = there.sum(1)
    row, column = np.repeat(np.arange(len(there)), counts), _ranks(counts)
    here = np.zeros((len(there), counts.max()), np.int64)
    here[row, column] = slots
    return Places(row, column, here)


def _ranks(counts: Indices) -> Indices:
    """Return 0, 1, … for each row, concatenated."""
    return cast(Indices, np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts))


def forward(
    weights: Weights,
    features: NDArray[np.int64],
    there: NDArray[np.bool_],
    past: KeyValueCache,
    look: Attended | None = None,
    wanted: NDArray[np.bool_] | None = None,
) -> Floats:
    """Process some tokens of every row and return the digit scores after the wanted ones, in order.

    Args:
        features: (rows, tokens, MOST), padded with FEATURES.
        there: (rows, tokens): False for padding.
        wanted: (rows, tokens): where digits are predicted; by default after the last token of each row.
    """
    counts = there.sum(1)
    last = there & (np.cumsum(there, 1) == counts[:, None]) if wanted is None else wanted
    chosen = np.flatnonzero(last[there])
    slots = np.repeat(past.lengths, counts) + _ranks(counts)
    every, few = _places(there, slots), _places(last, slots[chosen])
    past.lengths = past.lengths + counts
    x = _embed(weights, features[there])
    for number, layer in enumerate(weights.layers):
        ends = layer is weights.layers[-1]  # the last layer computes the wanted positions only
        seen = _attend(past, number, x, layer, (every, few if ends else every), chosen if ends else None, look)
        if ends:
            x = x[chosen]
        x += _product(_whole(seen, layer.gather.steps), layer.gather)
        risen = _product(_normal(x, layer.rise.steps), layer.rise)
        x += _product(_whole_positive(risen, layer.fall.steps), layer.fall)
    return _product(_normal(x, weights.digits.steps), weights.digits)


def _embed(weights: Weights, features: NDArray[np.int64]) -> Floats:
    several = weights.arrays.zeros((len(features), FEATURES + 1), np.float32)
    several[np.arange(len(features))[:, None], features] = 1
    return cast(Floats, (several[:, :FEATURES] @ weights.embedding) * weights.unit)


def _whole(x: Floats, steps: int) -> Wholes:
    """Return rows as integers up to ± steps, and their scales."""
    largest = np.maximum(np.abs(x).max(-1, keepdims=True), TINY)
    whole = x * (np.float32(steps) / largest)
    return np.rint(whole, out=whole), largest / np.float32(steps)


def _whole_positive(x: Floats, steps: int) -> Wholes:
    """Return rows as integers and scales after a ReLU, which is applied in place."""
    np.maximum(x, np.float32(0), out=x)
    largest = np.maximum(x.max(-1, keepdims=True), TINY)
    x *= np.float32(steps) / largest
    return np.rint(x, out=x), largest / np.float32(steps)


def _normal(x: Floats, steps: int) -> Wholes:
    """Return rows as integers with scales that normalize their mean square to one."""
    whole, _ = _whole(x, steps)
    squares = np.einsum("nd,nd->n", whole, whole, dtype=np.float64)[:, None]
    return whole, np.sqrt(x.shape[1] / np.maximum(squares, 1.0)).astype(np.float32)


def _product(x: Wholes, matrix: Matrix) -> Floats:
    whole, unit = x
    out = whole @ matrix.weights
    out *= unit
    out *= matrix.units
    return cast(Floats, out)


def _attend(
    past: KeyValueCache,
    number: int,
    x: Floats,
    layer: Layer,
    places: tuple[Places, Places],
    chosen: Indices | None,
    look: Attended | None,
) -> Floats:
    """Return the attention output of all tokens, or of the chosen ones.

    Args:
        places: positions of all tokens, and of those whose output is wanted.
    """
    every, asking = places
    heads, size = past.keys.shape[3:]
    whole, unit = _normal(x, layer.attend.steps)
    k, v = np.split(_product((whole, unit), layer.attend).reshape(-1, 2 * heads, size), 2, 1)
    if chosen is not None:
        whole, unit = whole[chosen], unit[chosen]
    q, q_unit = _whole(_product((whole, unit), layer.ask).reshape(-1, heads, size), STEPS)
    at = number, every.row, every.slots
    past.keys[at], k_unit = _whole(k, STEPS)
    past.units[at] = k_unit[..., 0]
    past.values[at] = np.clip(np.rint(v * VALUE_STEPS), -MOST_VALUE, MOST_VALUE)
    length = int(past.lengths.max())
    keys, values = (array[number, :, :length].transpose(0, 2, 1, 3) for array in (past.keys, past.values))
    scores = asking.spread(q).transpose(0, 2, 1, 3) @ keys.swapaxes(2, 3)
    scores *= asking.spread(q_unit).transpose(0, 2, 1, 3) * np.float32(FALL_STEPS / math.sqrt(size))
    scores *= past.units[number, :, :length].transpose(0, 2, 1)[:, :, None]
    shares = _share(scores, past.move(asking.hidden(length)), past.falling)
    if look is not None:
        look.shares.append(shares)
    seen = shares @ values
    seen /= shares.sum(-1, keepdims=True) * VALUE_STEPS
    return cast(Floats, seen.transpose(0, 2, 1, 3)[asking.row, asking.column].reshape(-1, heads * size))


def _share(scores: Floats, hidden: NDArray[np.bool_], falling: Floats) -> Floats:
    """Return the attention of each token in integer parts of FULL, each part rounded."""
    scores = np.where(hidden, np.float32(-np.inf), scores)
    best = scores.max(-1, keepdims=True)
    below = np.minimum(np.rint(best - scores), np.float32(len(falling) - 1)).astype(np.int32)
    parts = falling[below]
    return cast(Floats, np.rint(parts * (np.float32(FULL) / parts.sum(-1, keepdims=True))))
