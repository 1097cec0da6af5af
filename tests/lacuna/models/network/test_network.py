"""The network's arithmetic is the same to the bit, whatever the order of sums, the batch, and the way it is fed."""

import math

import numpy as np
import pytest

from eirkit.lacuna.agents.bundled import WEIGHTS
from eirkit.lacuna.models.network import network as n
from eirkit.lacuna.models.network.layout import EXACT, FEATURES, MOST, Matrix, Weights, load_weights
from tests.lacuna.models.network import small

SEEDS = range(5)


def tokens(seed: int, rows: int, length: int) -> np.ndarray:
    """Return drawn features, a few for each token."""
    rng = np.random.default_rng(seed)
    drawn = rng.integers(0, FEATURES, (rows, length, MOST))
    drawn[rng.random(drawn.shape) < 0.5] = FEATURES
    drawn[:, :, 0] = rng.integers(0, FEATURES, (rows, length))
    return drawn


def scores(weights: Weights, features: np.ndarray, pieces: list[int] | None = None) -> np.ndarray:
    rows, length, _ = features.shape
    past, start, found = n.KeyValueCache(rows, weights, length), 0, None
    for piece in pieces or [length]:
        part = features[:, start : start + piece]
        found = n.forward(weights, part, part[:, :, 0] < FEATURES, past)
        start += piece
    assert found is not None
    return found


@pytest.mark.parametrize("seed", SEEDS)
def test_one_row_alone_and_many_together_are_equal(tmp_path, seed):
    weights, given = small.network(tmp_path, small.parameters(seed)), tokens(seed, 7, 9)
    together = scores(weights, given)
    alone = np.concatenate([scores(weights, given[row : row + 1]) for row in range(7)])
    backwards = scores(weights, given[::-1].copy())[::-1]
    assert together.tobytes() == alone.tobytes() == backwards.tobytes()


@pytest.mark.parametrize("seed", SEEDS)
def test_tokens_one_by_one_and_all_at_once_are_equal(tmp_path, seed):
    weights, given = small.network(tmp_path, small.parameters(seed)), tokens(seed, 3, 8)
    assert scores(weights, given).tobytes() == scores(weights, given, [1] * 8).tobytes()
    assert scores(weights, given).tobytes() == scores(weights, given, [5, 1, 2]).tobytes()


@pytest.mark.parametrize("seed", SEEDS)
def test_padding_is_neither_seen_nor_counted(tmp_path, seed):
    weights, given = small.network(tmp_path, small.parameters(seed)), tokens(seed, 4, 6)
    nothing = np.full((4, 3, MOST), FEATURES)
    assert scores(weights, given).tobytes() == scores(weights, np.concatenate((nothing, given), 1)).tobytes()


@pytest.mark.parametrize("seed", SEEDS)
def test_the_order_in_which_a_machine_adds_up_changes_nothing(tmp_path, seed):
    """Hidden units in another order are other sums to a machine and the same to us."""
    given, features = small.parameters(seed), tokens(seed, 4, 6)
    order = np.random.default_rng(seed).permutation(small.HIDDEN)
    other = dict(given)
    for number in range(small.LAYERS):
        other[f"blocks.{number}.rise"] = given[f"blocks.{number}.rise"][order]
        other[f"blocks.{number}.fall"] = given[f"blocks.{number}.fall"][:, order]
    assert (
        scores(small.network(tmp_path, given), features).tobytes()
        == scores(small.network(tmp_path, other), features).tobytes()
    )


def test_products_are_those_of_whole_numbers():
    """Two ways: float32 by the machine's own library, and integers one by one."""
    weights, rng = load_weights(WEIGHTS), np.random.default_rng(0)
    matrices = [
        getattr(layer, name) for layer in weights.layers for name in ("ask", "attend", "gather", "rise", "fall")
    ]
    for matrix in (*matrices, weights.digits):
        x = rng.integers(-matrix.steps, matrix.steps + 1, (5, len(matrix.weights)))
        exact = x.astype(np.int64) @ matrix.weights.astype(np.int64)
        assert np.array_equal(x.astype(np.float32) @ matrix.weights, exact)


def test_no_sum_can_pass_what_float32_holds_exactly():
    weights = load_weights(WEIGHTS)
    for layer in weights.layers:
        for name in ("ask", "attend", "gather", "rise", "fall"):
            matrix: Matrix = getattr(layer, name)
            assert np.abs(matrix.weights).sum(0).max() * matrix.steps < EXACT
    size = weights.width // weights.heads
    assert n.STEPS**2 * size < EXACT  # scores
    assert n.FALL_TOP * n.LONGEST < EXACT  # shares before they are brought to FULL
    assert (n.FULL + n.LONGEST / 2) * float(n.MOST_VALUE) < EXACT  # what is gathered


def test_the_exponential_is_rounded_the_same_by_every_library():
    """No entry lies so near to a half that the last digit of exp(), which libraries differ in, could decide."""
    doubt = 1e-6  # a million times the error of any library
    for i in range(n.FALL_STEPS * n.FALL_END):
        part = math.exp(-i / n.FALL_STEPS) * n.FALL_TOP % 1
        assert abs(part - 0.5) > doubt
    assert n.FALLING[0] == n.FALL_TOP
    assert n.FALLING[-1] == 0
    assert (np.diff(n.FALLING) <= 0).all()


def test_whoever_looks_sees_shares_of_what_is_there(tmp_path):
    weights, given = small.network(tmp_path, small.parameters(1)), tokens(1, 2, 5)
    there = np.array([[False, True, True, True, True], [True] * 5])
    look = n.Attended([])
    n.forward(weights, given, there, n.KeyValueCache(2, weights, 5), look)
    assert [layer.shape for layer in look.shares] == [(2, 2, 5, 5), (2, 2, 1, 5)]
    first = look.shares[0]
    assert (first[0, :, :4, 4] == 0).all()  # the shorter row has four tokens
    assert (np.triu(first[1, 0], 1) == 0).all()  # what comes later
    rounding = 5 / 2  # half a part a key
    assert (np.abs(first.sum(-1) - n.FULL) <= rounding).all()


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_wanted_of_one_pass_is_what_each_token_alone_would_have_given(tmp_path, seed):
    weights, given = small.network(tmp_path, small.parameters(seed)), tokens(seed, 3, 6)
    there = np.random.default_rng(seed).random((3, 6)) < 0.7
    there[:, -1] = True
    found = n.forward(weights, given, there, n.KeyValueCache(3, weights, 6), wanted=there)
    alone = [
        n.forward(weights, part, np.ones((1, len(part[0])), np.bool_), n.KeyValueCache(1, weights, 6))
        for row in range(3)
        for end in np.flatnonzero(there[row])
        if (part := given[row : row + 1, : end + 1][:, there[row, : end + 1]]).size
    ]
    assert found.tobytes() == np.concatenate(alone).tobytes()


@pytest.mark.parametrize("seed", SEEDS)
def test_what_was_taken_back_leaves_no_trace(tmp_path, seed):
    """Rows are cut to lengths of their own, one is dropped, and other tokens follow: as if nothing else had been."""
    weights, given = small.network(tmp_path, small.parameters(seed)), tokens(seed, 3, 9)
    past = n.KeyValueCache(3, weights, 9)
    n.forward(weights, given[:, :6], np.ones((3, 6), np.bool_), past)
    past.lengths -= [1, 0, 4]
    past.keep([0, 2])
    after = n.forward(weights, given[[0, 2], 6:], np.ones((2, 3), np.bool_), past)
    kept = [np.concatenate((given[row, :length], given[row, 6:]))[None] for row, length in ((0, 5), (2, 2))]
    assert after.tobytes() == np.concatenate([scores(weights, one) for one in kept]).tobytes()
