"""Random streams: pinned for ever by golden words, and equal to numpy's own Philox word by word."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eirkit.errors import SpecError
from eirkit.seeds import below, drawing, name_key, words

# These words are a promise: a task of some seed is the same task in every release. Never edit them to make a test pass.
GOLDEN = [
    (0, ("graph",), 0xB0957B18272F731B, "1367440a1d32aea8 cbc764ebda35e499 242ed75fc07ed7f2 cced82ce6e9bb488"),
    (1, ("graph",), 0xB0957B18272F731B, "94377cccd5a70be4 3f727b175a77c4f6 26da2624505c07f6 f719919909a258f3"),
    (7, ("input",), 0x27FC7B15CCF1DEA5, "b9c20be4ee2b19ce d930bbd672e997d6 725e29742568b5db e3cdd18f7d15b190"),
    (2**64 - 1, ("input",), 0x27FC7B15CCF1DEA5, "1d78dced4d66f560 e6365807389834a7 31819c0d9c958402 5c2fa2d08428bf1a"),
    (3, ("lookup", 3), 0x3D3ADC3883795B97, "6ac8afc9ad842a1f 3c8de0b245b28439 7ff64b1eb93998a3 6d17f0a34366e036"),
    (3, ("lookup", "3"), 0x6F4E7AB3F456F1A8, "540b50466657207c 4abde79ade5f2967 6bf3d5329e1ccfb0 0156173553a2125d"),
    (12345678901234567890, (), 0x0841C5B39C0CA244, "4e5b3a28830e23b9 72833b481f6be9fd d0a07440369a008a"),
    (0, ("Prüfung", -1), 0xB18219B356259BED, "49c1e1b8b552fdf5 1fe0f7a974f823ca 38109c6877be53fb"),
]

seeds = st.integers(0, 2**64 - 1)
names = st.lists(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x1f")) | st.integers(), max_size=3
)


@pytest.mark.parametrize(("seed", "name", "key", "expected"), GOLDEN)
def test_golden_words(seed, name, key, expected):
    assert name_key(*name) == key
    assert [f"{word:016x}" for word in words([seed], len(expected.split()), *name)[0]] == expected.split()


@given(seeds, names, st.integers(0, 70))
def test_equals_numpys_philox(seed, name, count):
    independent = np.random.Philox(key=np.array([name_key(*name), seed], dtype=np.uint64))
    assert words([seed], count, *name)[0].tolist() == independent.random_raw(count).tolist()


@given(st.lists(seeds, max_size=3), st.integers(0, 40), st.integers(0, 40))
def test_words_from_a_start_are_those_of_the_stream(many, start, count):
    assert words(many, count, "x", start=start).tolist() == words(many, start + count, "x")[:, start:].tolist()


@given(st.lists(seeds, max_size=6), st.integers(0, 20))
def test_a_batch_is_its_rows(many, count):
    batch = words(many, count, "x")
    assert batch.shape == (len(many), count)
    for row, seed in zip(batch, many, strict=True):
        assert row.tolist() == words([seed], count, "x")[0].tolist()


def test_a_batch_larger_than_one_chunk_is_its_rows():
    batch = words(range(3000), 37, "x")
    assert all((batch[i] == words([i], 37, "x")[0]).all() for i in range(0, 3000, 97))
    assert len(np.unique(batch)) == batch.size  # a repeated 64-bit word among 10^5 has probability below 10^-9


@given(seeds, st.integers(0, 40), st.integers(0, 40))
def test_asking_for_more_words_changes_no_earlier_one(seed, few, more):
    few, more = sorted((few, more))
    assert words([seed], more, "x")[0][:few].tolist() == words([seed], few, "x")[0].tolist()


def test_seeds_may_be_numbers_of_any_integer_type():
    expected = words([5], 4, "x").tolist()
    for array in (np.array([5], dtype=np.int32), np.array([5], dtype=np.uint64), [np.int64(5)], range(5, 6), (5,)):
        assert words(array, 4, "x").tolist() == expected


@pytest.mark.parametrize("bad", [[-1], [2**64], np.array([-1]), [0, 1, -3]])
def test_seeds_outside_the_range_are_refused(bad):
    with pytest.raises(SpecError, match=r"is outside 0 … 2\^64 − 1; choose another"):
        words(bad, 4, "x")


def test_seeds_that_are_no_integers_are_refused():
    with pytest.raises(TypeError, match="convert them first"):
        words(np.array([0.5]), 4, "x")


@given(names, names)
def test_different_names_have_different_keys(a, b):
    # A collision of 64 bits of SHA-256 will not be met here.
    assert (name_key(*a) == name_key(*b)) == ([(type(x), x) for x in a] == [(type(x), x) for x in b])


def test_a_name_with_the_separator_is_refused():
    with pytest.raises(ValueError, match=r"separator U\+001F"):
        name_key("a\x1fint:3")


def test_numpy_integers_in_names_are_plain_integers():
    assert name_key("x", np.int64(3)) == name_key("x", 3) != name_key("x", "3")
    with pytest.raises(TypeError):
        name_key("x", 0.5)


@given(seeds, st.integers(0, 2**32))
def test_below_is_the_exact_product(word, bound):
    drawn = below(np.array([word], dtype=np.uint64), bound)
    assert drawn.tolist() == [word * bound >> 64]


@given(st.integers(0, 2**64 - 1), st.integers(0, 9), st.lists(st.integers(1, 2**32), max_size=60))
def test_numbers_drawn_one_by_one_are_those_of_the_stream(seed, given_words, bounds):
    draw = drawing(words((seed,), given_words, "drawn")[0, ::-1].tolist(), seed, "drawn")
    expected = below(words((seed,), len(bounds), "drawn")[0], np.array(bounds, dtype=np.int64))
    assert [draw(bound) for bound in bounds] == expected.tolist()


@pytest.mark.parametrize("bound", [1, 2, 3, 7, 10, 10**4, 10**9, 2**32])
def test_below_reaches_both_ends_and_steps_where_it_should(bound):
    # Value v begins at word ⌈v · 2^64 / bound⌉; the word before it still gives v − 1.
    for v in {bound // 2, bound - 1} - {0}:
        first = -(-v * 2**64 // bound)
        assert below(np.array([first - 1, first], dtype=np.uint64), bound).tolist() == [v - 1, v]
    assert below(np.array([0, 2**64 - 1], dtype=np.uint64), bound).tolist() == [0, bound - 1]


@pytest.mark.parametrize("bound", [1, 2, 8, 64])
def test_below_is_exactly_uniform_where_the_bound_divides_the_words(bound):
    # 256 words at equal distances through the whole range: 256 / bound of them belong to each value.
    spaced = np.arange(256, dtype=np.uint64) << np.uint64(56)
    assert np.bincount(below(spaced, bound), minlength=bound).tolist() == [256 // bound] * bound


def test_below_takes_one_bound_a_word():
    drawn = np.full(4, 2**63, dtype=np.uint64)
    assert below(drawn, np.array([0, 1, 10, 2**32])).tolist() == [0, 0, 5, 2**31]


@pytest.mark.parametrize("bound", [-1, 2**32 + 1, np.array([3, -1]), np.array([2**33])])
def test_below_refuses_bounds_it_cannot_serve(bound):
    with pytest.raises(ValueError, match="draw in two parts"):
        below(np.zeros(2, dtype=np.uint64), bound)


@pytest.mark.parametrize("bound", [2, 10, 97])
def test_draws_look_uniform_along_a_stream_and_across_seeds(bound):
    # A chi-square variable X of d degrees satisfies P(X ≥ d + 2√(dx) + 2x) ≤ e^-x (Laurent and Massart); with x = 14
    # fewer than one fair stream in a million fails. The words are fixed, so this passes always or never.
    degrees, x = bound - 1, 14.0
    threshold = degrees + 2 * math.sqrt(degrees * x) + 2 * x
    for drawn in (words([4], 200_000, "along"), words(range(50_000), 4, "across")):
        counts = np.bincount(below(drawn, bound).ravel(), minlength=bound)
        expected = drawn.size / bound
        assert ((counts - expected) ** 2).sum() / expected < threshold


def test_neighboring_seeds_and_words_are_unrelated():
    # 64 · 10^4 fair bits: the share of ones leaves 1/2 by more than 5 standard deviations (0.0032) once in 10^6.
    tolerance = 5 * 0.5 / math.sqrt(64 * 10_000)
    by_seed = words(range(10_001), 1, "x")[:, 0]
    by_word = words([0], 10_001, "x")[0]
    for stream in (by_seed, by_word):
        changed = np.unpackbits((stream[1:] ^ stream[:-1]).view(np.uint8)).mean()
        assert abs(changed - 0.5) < tolerance
