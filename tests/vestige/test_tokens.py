"""Counting tokens: a known text, texts no tokenizer likes, huge ones in bounded time, and equal ones once."""

import time

import pytest

from eirkit.vestige import tokens
from eirkit.vestige.tokens import estimating_counter, exact_counter, remembering

SECONDS = 20  # a count that is not linear would take hours; a busy machine may be slow


def test_a_known_text():
    assert exact_counter()("Hello, world!\n") == 4  # Hello | , | world | !\n


def test_nothing_costs_nothing():
    assert exact_counter()("") == estimating_counter()("") == 0


@pytest.mark.parametrize("text", ["\ud800", "a\udfffb", "\0", "🙂" * 3, "<|endoftext|>"])
def test_odd_texts_are_counted(text):
    assert exact_counter()(text) > 0


@pytest.mark.parametrize("piece", ["a", " ", "\n", "ab \n", "é", "1"])
def test_huge_texts_are_counted_in_pieces(piece):
    start = time.monotonic()
    assert exact_counter()(piece * (tokens._PIECE + 10)) > 0
    assert time.monotonic() - start < SECONDS


def test_pieces_at_line_ends_add_up_to_the_whole():
    line = "x = 1\n"
    lines = tokens._PIECE // len(line) + 100
    assert exact_counter()(line * lines) == exact_counter()(line) * lines


def test_an_estimate_is_a_quarter_of_the_characters_rounded_up():
    assert [estimating_counter()("x" * n) for n in (1, 4, 5)] == [1, 1, 2]


def test_equal_texts_are_counted_once():
    asked = []
    count = remembering(lambda text: asked.append(text) or len(text))
    assert [count("ab"), count("ab"), count("c")] == [2, 2, 1]
    assert asked == ["ab", "c"]
