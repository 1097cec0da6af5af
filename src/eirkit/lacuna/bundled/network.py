"""The bundled network's arithmetic: features of tokens come in, scores of the ten digits go out; weights are a file's.

Whatever is added up is a whole number that its type holds exactly, in whatever order a machine adds: activations are
rounded to whole numbers before every product, weights are stored as such. All the rest is one IEEE operation an
element. So the same file gives the same bits on every machine, in every batch and beside every neighbour.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from eirkit.lacuna.bundled.features import FEATURES
from eirkit.lacuna.bundled.layout import STEPS, Layer, Matrix, Weights

Floats = NDArray[np.float32]
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


class Past:
    """What the tokens so far have left behind for those that follow: keys, their units, and values, by layer."""

    def __init__(self, rows: int, weights: Weights, tokens: int) -> None:
        heads, size = weights.heads, weights.width // weights.heads
        shape = (len(weights.layers), rows, heads, tokens)
        self.keys = np.zeros((*shape, size), np.float32)
        self.units = np.zeros(shape, np.float32)
        self.values = np.zeros((*shape, size), np.float32)
        self.there = np.zeros((rows, tokens), np.bool_)
        self.length = 0


def forward(
    weights: Weights, features: NDArray[np.int64], there: NDArray[np.bool_], past: Past, look: Attended | None = None
) -> Floats:
    """Take in some tokens of every row, and return the scores of the digit after the last of them.

    Args:
        features: (rows, tokens, MOST), FEATURES where there is none.
        there: (rows, tokens); the others are neither seen nor counted.
    """
    rows, tokens, _ = features.shape
    start, past.length = past.length, past.length + tokens
    past.there[:, start : past.length] = there
    x = _embed(weights, features.reshape(rows * tokens, -1))
    hidden = _hidden(past, start, tokens)
    for number, layer in enumerate(weights.layers):
        keep = (
            slice(tokens - 1, None) if layer is weights.layers[-1] else slice(None)
        )  # at the end only the last counts
        seen = _attend(past, number, _normal(x, layer.attend.steps), layer, hidden[:, :, keep], look)
        x = np.ascontiguousarray(x.reshape(rows, tokens, -1)[:, keep]).reshape(len(seen), -1)
        x += _product(_whole(seen, layer.gather.steps), layer.gather)
        risen = _product(_normal(x, layer.rise.steps), layer.rise)
        x += _product(_whole_positive(risen, layer.fall.steps), layer.fall)
    return _product(_normal(x, weights.digits.steps), weights.digits)


def _embed(weights: Weights, features: NDArray[np.int64]) -> Floats:
    several = np.zeros((len(features), FEATURES + 1), np.float32)
    several[np.arange(len(features))[:, None], features] = 1
    return cast(Floats, (several[:, :FEATURES] @ weights.embedding) * weights.unit)


def _hidden(past: Past, start: int, tokens: int) -> NDArray[np.bool_]:
    """Return (rows, 1, tokens, keys): what a token may not see, which is what comes later or is not there.

    What is not there sees itself, since a sum over nothing has no shares.
    """
    key, here = np.arange(past.length), np.arange(start, start + tokens)[:, None]
    hidden: NDArray[np.bool_] = (key > here) | (~past.there[:, None, : past.length] & (key != here))
    return hidden[:, None]


def _whole(x: Floats, steps: int) -> Wholes:
    """Return rows as whole numbers up to ± steps, and what one of them is worth."""
    largest = np.maximum(np.maximum(x.max(-1, keepdims=True), -x.min(-1, keepdims=True)), TINY)
    whole = x * (np.float32(steps) / largest)
    return np.rint(whole, out=whole), largest / np.float32(steps)


def _whole_positive(x: Floats, steps: int) -> Wholes:
    """Do the same after what is below zero was set to zero, in place."""
    np.maximum(x, 0, out=x)
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
    past: Past, number: int, x: Wholes, layer: Layer, hidden: NDArray[np.bool_], look: Attended | None
) -> Floats:
    """Return what tokens gather from those before them; `hidden` has a row for each token that is asked for."""
    rows, _, asked, length = hidden.shape
    heads, size = past.keys.shape[2], past.keys.shape[4]
    tokens = len(x[0]) // rows
    split = (rows, tokens, 2, heads, size)
    k, v = _product(x, layer.attend).reshape(split).transpose(2, 0, 3, 1, 4)
    whole, worth = (part.reshape(rows, tokens, -1)[:, tokens - asked :].reshape(rows * asked, -1) for part in x)
    asking = _product((whole, worth), layer.ask).reshape(rows, asked, heads, size)
    q, q_unit = _whole(asking.transpose(0, 2, 1, 3), STEPS)
    fresh = slice(length - tokens, length)
    past.keys[number, :, :, fresh], unit = _whole(k, STEPS)
    past.units[number, :, :, fresh] = unit[..., 0]
    past.values[number, :, :, fresh] = np.clip(np.rint(v * VALUE_STEPS), -MOST_VALUE, MOST_VALUE)
    scores = q @ past.keys[number, :, :, :length].swapaxes(2, 3)
    scores *= q_unit * np.float32(FALL_STEPS / math.sqrt(size))
    scores *= past.units[number, :, :, None, :length]
    shares = _share(scores, hidden)
    if look is not None:
        look.shares.append(shares)
    seen = shares @ past.values[number, :, :, :length]
    seen /= shares.sum(-1, keepdims=True) * VALUE_STEPS
    return cast(Floats, seen.transpose(0, 2, 1, 3).reshape(rows * asked, heads * size))


def _share(scores: Floats, hidden: NDArray[np.bool_]) -> Floats:
    """Return how a token's attention is shared out, in whole parts of FULL (about: each part is rounded)."""
    scores = np.where(hidden, np.float32(-np.inf), scores)
    best = scores.max(-1, keepdims=True)
    below = np.minimum(np.rint(best - scores), np.float32(len(FALLING) - 1)).astype(np.int32)
    parts = FALLING[below]
    return cast(Floats, np.rint(parts * (np.float32(FULL) / parts.sum(-1, keepdims=True))))
