"""Named, counter-based random streams: word i of stream (seed, name) is a pure function of the three; seeds as text.

Philox4x64 with 10 rounds, keyed by a hash of the name and by the seed. Nothing depends on the order of draws, so one
seed gives the same bytes alone or in a batch, on every platform. The golden values in `tests/test_seeds.py` pin it, and
`numpy.random.Philox` is the independent second implementation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import sha256
from operator import index
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eirkit.errors import SpecError

Words = NDArray[np.uint64]

_MULTIPLIERS = (0xD2E7470EE14C6C93, 0xCA5A826395121157)
_WEYL = (0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B)
_ROUNDS = 10
MOST_SEEDS = 10_000_000  # of one sweep
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_MASK = (1 << 64) - 1
_LARGEST_BOUND = 1 << 32  # beyond it the products in `below` would overflow 64 bits
_BLOCK_WORDS = 1 << 15  # words per chunk, so that the working set of a chunk stays in cache


def name_key(*names: str | int) -> int:
    """Return the 64-bit key of a stream's name; "3" and 3 differ, 3 and numpy's 3 do not."""
    text = "\x1f".join(f"str:{name}" if isinstance(name, str) else f"int:{index(name)}" for name in names)
    if text.count("\x1f") >= max(1, len(names)):
        raise ValueError("the name of a stream contains the separator U+001F, so names could collide; remove it")
    return int.from_bytes(sha256(f"eirkit/stream/1\x1f{text}".encode()).digest()[:8], "little")


def words(seeds: Sequence[int] | NDArray[Any], count: int, *names: str | int, start: int = 0) -> Words:
    """Return an array of shape (seeds, count): words of the named stream of every seed, from word `start` on."""
    key_seed = _as_words(seeds)
    first, skipped = divmod(start, 4)
    out = np.empty((len(key_seed), (skipped + count + 3) // 4 * 4), dtype=np.uint64)
    key_name = name_key(*names)
    rows = max(1, _BLOCK_WORDS // max(1, out.shape[1]))
    for row in range(0, len(key_seed), rows):
        out[row : row + rows] = _philox(key_name, key_seed[row : row + rows], first, out.shape[1] // 4)
    return out[:, skipped : skipped + count]


def below(drawn: Words, bound: int | NDArray[Any]) -> NDArray[np.int64]:
    """Map words to integers in [0, bound) by multiplication: ⌊word · bound / 2^64⌋, and 0 where the bound is 0.

    One word gives one integer, whatever the bound, so positions never shift; a value's probability differs from
    1/bound by less than 2^-64, which is undetectable.
    """
    limits = np.asarray(bound)
    if limits.size and not 0 <= int(limits.min()) <= int(limits.max()) <= _LARGEST_BOUND:
        raise ValueError(f"bound {bound} is outside 0 … 2^32; draw in two parts")
    limit = limits.astype(np.uint64)
    high = (drawn >> _HALF) * limit
    low = ((drawn & _LOW) * limit) >> _HALF
    drawn_below: NDArray[np.int64] = ((high + low) >> _HALF).astype(np.int64)
    return drawn_below


def drawing(row: list[int], seed: int, name: str) -> Callable[[int], int]:
    """Return a function that draws a whole number from 0 to bound − 1 at each call, as `below` does.

    Args:
        row: the first words of the stream, the next one last; it is used up, and more are drawn as they are needed.
    """
    drawn, pop = len(row), row.pop

    def draw(bound: int) -> int:
        nonlocal drawn
        try:
            return (pop() * bound) >> 64
        except IndexError:
            more = max(drawn, 4)
            row.extend(words((seed,), more, name, start=drawn)[0, ::-1].tolist())
            drawn += more
            return (pop() * bound) >> 64

    return draw


def _as_words(seeds: Sequence[int] | NDArray[Any]) -> Words:
    if isinstance(seeds, np.ndarray):
        if seeds.dtype.kind not in "iu":
            raise TypeError(f"seeds must be integers, not {seeds.dtype}; convert them first")
        lowest, highest = (int(seeds.min()), int(seeds.max())) if seeds.size else (0, 0)
    else:
        lowest, highest = min(seeds, default=0), max(seeds, default=0)
    if lowest < 0 or highest > _MASK:
        raise SpecError(f"seed {lowest if lowest < 0 else highest} is outside 0 … 2^64 − 1; choose another")
    return np.array(seeds, dtype=np.uint64)


def _philox(key_name: int, key_seed: Words, first: int, blocks: int) -> Words:
    shape = (len(key_seed), blocks)
    # Counting starts at 1 as in numpy.random.Philox, so that tests can compare with it.
    x0 = np.broadcast_to(np.arange(first + 1, first + blocks + 1, dtype=np.uint64), shape)
    x1 = x2 = x3 = np.zeros(shape, dtype=np.uint64)
    for round_number in range(_ROUNDS):
        k0 = np.uint64((key_name + round_number * _WEYL[0]) & _MASK)
        k1 = (key_seed + np.uint64(round_number * _WEYL[1] & _MASK))[:, None]
        low0, high0 = _multiply(x0, _MULTIPLIERS[0])
        low1, high1 = _multiply(x2, _MULTIPLIERS[1])
        x0, x1, x2, x3 = high1 ^ x1 ^ k0, low1, high0 ^ x3 ^ k1, low0
    return np.stack((x0, x1, x2, x3), axis=-1).reshape(len(key_seed), blocks * 4)


def _multiply(a: Words, b: int) -> tuple[Words, Words]:
    """Return the low and high words of the 128-bit products a × b."""
    b_low, b_high = np.uint64(b & 0xFFFFFFFF), np.uint64(b >> 32)
    a_low, a_high = a & _LOW, a >> _HALF
    cross = (a_low * b_low >> _HALF) + a_high * b_low
    middle = (cross & _LOW) + a_low * b_high
    return a * np.uint64(b), a_high * b_high + (cross >> _HALF) + (middle >> _HALF)


def read_seeds(value: Any) -> Sequence[int]:
    """Return seeds from `3`, `[0, 4, 9]`, `"0,4,9"` or `"0:300"` (300 excluded)."""
    seeds = _seeds(value)
    if seeds is None or not _are_seeds(seeds):
        raise SpecError(f'seeds = {value!r} must name 1 … {MOST_SEEDS:,} different seeds, such as 3, [0, 4] or "0:300"')
    return seeds


def show_seeds(seeds: Sequence[int]) -> str | list[int]:
    """Return seeds in their shortest form; `read_seeds` is the inverse."""
    first = seeds[0]
    is_range = isinstance(seeds, range) or list(seeds) == list(range(first, first + len(seeds)))
    return f"{first}:{first + len(seeds)}" if is_range else list(seeds)


def _seeds(value: Any) -> Sequence[int] | None:
    if isinstance(value, range):
        return value if value.step == 1 else list(value[:MOST_SEEDS])
    if isinstance(value, str):
        return _seeds_of_text(value)
    listed = value if isinstance(value, (list, tuple)) else [value]
    return None if any(type(seed) is not int for seed in listed) else list(listed)


def _seeds_of_text(text: str) -> Sequence[int] | None:
    try:
        if ":" in text:
            first, last = (int(part) for part in text.split(":"))
            return range(first, last)
        return [int(part) for part in text.split(",")]
    except ValueError:
        return None


def _are_seeds(seeds: Sequence[int]) -> bool:
    if isinstance(seeds, range):  # check the ends only: a range may be very long
        return 0 <= seeds.start < seeds.stop <= min(seeds.start + MOST_SEEDS, 1 << 64)
    return bool(seeds) and 0 <= min(seeds) <= max(seeds) < 1 << 64 and len(set(seeds)) == len(seeds)


def seeds_text(seeds: Sequence[int]) -> str:
    """Return seeds in the form that --seeds takes."""
    shown = show_seeds(seeds) if seeds else "0:3"
    return shown if isinstance(shown, str) else ",".join(map(str, shown))
