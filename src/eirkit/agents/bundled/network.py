"""The bundled network's arithmetic: features of tokens come in, scores of the ten digits go out; weights are a file's.

Whatever is added up is a whole number that its type holds exactly, in whatever order a machine adds: activations are
rounded to whole numbers before every product, weights are stored as such. All the rest is one IEEE operation an
element. So the same file gives the same bits on every machine, in every batch and beside every neighbour.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from eirkit.agents.bundled.features import FEATURES
from eirkit.agents.bundled.layout import STEPS, Layer, Matrix, Weights

Floats = NDArray[np.float32]
Indices = NDArray[np.int64]
Wholes = tuple[Floats, Floats]  # whole numbers, and what one of a row is worth

LONGEST = 512  # tokens of a step, its reply included
FALL_STEPS = 128  # of the falling exponential, a unit
FALL_END = 12  # where it is 0
FALL_TOP = 1 << 14  # where it begins
FULL = 2047  # what the attention of one token is shared out in; rounding may add half a part a key
VALUE_STEPS = np.float32(256)  # of an attended value, a unit
MOST_VALUE = np.float32(7000)  # of those steps, either side of zero: (FULL + LONGEST / 2) of them stay below EXACT
TINY = np.float32(1e-30)  # instead of a division by zero


FALLING = np.array(  # exp(−x) in whole numbers, for x = 0, 1/FALL_STEPS, … and 0 at the end
    [*(round(math.exp(-i / FALL_STEPS) * FALL_TOP) for i in range(FALL_STEPS * FALL_END)), 0], np.float32
)


@dataclass(frozen=True, slots=True)
class Attended:
    """Where each token looked, for those who want to see: shares of FULL, (layers, rows, heads, tokens, keys)."""

    shares: list[Floats]


class KeyValueCache:
    """What the tokens so far have left behind for those that follow: keys, their units, and values, by layer.

    Each row has its own length; what stands beyond it is not there.
    """

    def __init__(self, rows: int, weights: Weights, tokens: int) -> None:
        heads, size = weights.heads, weights.width // weights.heads
        shape = (len(weights.layers), rows, tokens, heads)
        self.keys = np.zeros((*shape, size), np.float32)
        self.units = np.zeros(shape, np.float32)
        self.values = np.zeros((*shape, size), np.float32)
        self.lengths = np.zeros(rows, np.int64)

    def keep(self, rows: Sequence[int]) -> None:
        """Forget all other rows."""
        self.keys, self.units, self.values = (array[:, rows] for array in (self.keys, self.units, self.values))
        self.lengths = self.lengths[rows]


@dataclass(frozen=True, slots=True)
class Places:
    """Where tokens stand: one after the other in products, row by row in attention."""

    row: Indices
    column: Indices
    here: Indices  # (rows, columns): which token of its row each is; 0 where there is none

    @property
    def slots(self) -> Indices:
        return self.here[self.row, self.column]

    def spread(self, x: Floats) -> Floats:
        """Return (rows, columns, …): what was one after the other, row by row."""
        found = np.zeros((*self.here.shape, *x.shape[1:]), np.float32)
        found[self.row, self.column] = x
        return found

    def hidden(self, length: int) -> NDArray[np.bool_]:
        """Return (rows, 1, columns, keys): what a token may not see, which is what comes later."""
        return (np.arange(length) > self.here[:, :, None])[:, None]


def _places(there: NDArray[np.bool_], slots: Indices) -> Places:
    """Return the places of some tokens, given which of its row each of them is."""
    counts = there.sum(1)
    row, column = np.repeat(np.arange(len(there)), counts), _ranks(counts)
    here = np.zeros((len(there), counts.max()), np.int64)
    here[row, column] = slots
    return Places(row, column, here)


def _ranks(counts: Indices) -> Indices:
    """Return 0, 1, … for each row, one row after the other."""
    return cast(Indices, np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts))


def forward(
    weights: Weights,
    features: NDArray[np.int64],
    there: NDArray[np.bool_],
    past: KeyValueCache,
    look: Attended | None = None,
    wanted: NDArray[np.bool_] | None = None,
) -> Floats:
    """Take in some tokens of every row, and return the scores of the digit after those that are wanted, in order.

    Args:
        features: (rows, tokens, MOST), FEATURES where there is none.
        there: (rows, tokens); the others are neither seen nor counted.
        wanted: (rows, tokens), some of those that are there; the last of each row unless given.
    """
    counts = there.sum(1)
    last = there & (np.cumsum(there, 1) == counts[:, None]) if wanted is None else wanted
    chosen = np.flatnonzero(last[there])
    slots = np.repeat(past.lengths, counts) + _ranks(counts)
    every, few = _places(there, slots), _places(last, slots[chosen])
    past.lengths = past.lengths + counts
    x = _embed(weights, features[there])
    for number, layer in enumerate(weights.layers):
        ends = layer is weights.layers[-1]  # where only those count that are wanted
        seen = _attend(past, number, x, layer, (every, few if ends else every), chosen if ends else None, look)
        if ends:
            x = x[chosen]
        x += _product(_whole(seen, layer.gather.steps), layer.gather)
        risen = _product(_normal(x, layer.rise.steps), layer.rise)
        x += _product(_whole_positive(risen, layer.fall.steps), layer.fall)
    return _product(_normal(x, weights.digits.steps), weights.digits)


def _embed(weights: Weights, features: NDArray[np.int64]) -> Floats:
    several = np.zeros((len(features), FEATURES + 1), np.float32)
    several[np.arange(len(features))[:, None], features] = 1
    return cast(Floats, (several[:, :FEATURES] @ weights.embedding) * weights.unit)


def _whole(x: Floats, steps: int) -> Wholes:
    """Return rows as whole numbers up to ± steps, and what one of them is worth."""
    largest = np.maximum(np.abs(x).max(-1, keepdims=True), TINY)
    whole = x * (np.float32(steps) / largest)
    return np.rint(whole, out=whole), largest / np.float32(steps)


def _whole_positive(x: Floats, steps: int) -> Wholes:
    """Do the same after what is below zero was set to zero, in place."""
    np.maximum(x, np.float32(0), out=x)
    largest = np.maximum(x.max(-1, keepdims=True), TINY)
    x *= np.float32(steps) / largest
    return np.rint(x, out=x), largest / np.float32(steps)


def _normal(x: Floats, steps: int) -> Wholes:
    """Return rows as whole numbers that are worth as much as brings their mean square to one."""
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
    """Return what tokens gather from those before them: all of them, or those that were chosen.

    Args:
        places: of all tokens, and of those that gather.
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
    shares = _share(scores, asking.hidden(length))
    if look is not None:
        look.shares.append(shares)
    seen = shares @ values
    seen /= shares.sum(-1, keepdims=True) * VALUE_STEPS
    return cast(Floats, seen.transpose(0, 2, 1, 3)[asking.row, asking.column].reshape(-1, heads * size))


def _share(scores: Floats, hidden: NDArray[np.bool_]) -> Floats:
    """Return how a token's attention is shared out, in whole parts of FULL (about: each part is rounded)."""
    scores = np.where(hidden, np.float32(-np.inf), scores)
    best = scores.max(-1, keepdims=True)
    below = np.minimum(np.rint(best - scores), np.float32(len(FALLING) - 1)).astype(np.int32)
    parts = FALLING[below]
    return cast(Floats, np.rint(parts * (np.float32(FULL) / parts.sum(-1, keepdims=True))))
