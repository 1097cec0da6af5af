"""Counting tokens: a known text, texts no tokenizer likes, huge ones in bounded time, equal ones once, and in parts.

A second library, which reads the same vocabulary with code of its own, must count the same.
"""

import warnings

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from eirkit.vestige import tokens
from eirkit.vestige.tokens import CachedCounter, estimating_counter, exact_counter, is_token_boundary
from tests.timing import UNITS_IN_A_SECOND, cost

# What the vocabulary's words treat differently, and a little of everything else.
PIECES = st.sampled_from(
    ["\n", "\n\n", "\r", "\r\n", " ", "    ", "\t", "\x0b", "\x1c", "\x85", "\xa0", "\u2028", "/", "//", "#", ")", "):",
     "EOF", "x", "Ab", "'s", "12345", "é", "日本", "🙂", "\u0301", "\ud800", "\0"]
)  # fmt: skip
TEXTS = st.lists(PIECES | st.text(max_size=3), max_size=25).map("".join)
FEW_CUTS = 1e-4  # a text of blank lines has no seam, and each of its few cuts may add a token
LONGEST = 20 * UNITS_IN_A_SECOND  # a count that is not linear would take hours


def test_a_known_text():
    assert exact_counter()("Hello, world!\n") == 4  # Hello | , | world | !\n


@pytest.fixture(scope="module")
def other_count():
    with warnings.catch_warnings():
        # It opens its own data in a way that Python 3.11 and 3.12 call outdated.
        warnings.simplefilter("ignore", DeprecationWarning)
        bindings = pytest.importorskip("bpe_openai._bindings")
    return bindings.tokenizer_for_encoding(tokens.ENCODING).count


CONTROL = st.sampled_from(["<|endoftext|>", "<|endofprompt|>", "<|im_start|>", "<|", "|>", "<|think|>"])


@settings(max_examples=400)
@given(st.lists(PIECES | CONTROL | st.text(max_size=8), max_size=25).map("".join))
def test_another_library_counts_the_same(other_count, text):
    assert exact_counter()(text) == other_count(text.encode("utf-8", "replace").decode())


@pytest.mark.parametrize("line", ["x = (1)\n", "# 日本\n\n", "    \n", "/\n"])
def test_a_huge_text_costs_what_another_library_counts(other_count, line):
    text = line * (2 * tokens._PIECE // len(line) + 7)
    assert exact_counter()(text) == pytest.approx(other_count(text), rel=FEW_CUTS)


def test_nothing_costs_nothing():
    assert exact_counter()("") == estimating_counter()("") == 0


@pytest.mark.parametrize("text", ["\ud800", "a\udfffb", "\0", "🙂" * 3, "<|endoftext|>"])
def test_odd_texts_are_counted(text):
    assert exact_counter()(text) > 0


@pytest.mark.parametrize("piece", ["a", " ", "\n", "ab \n", "é", "1"])
def test_huge_texts_are_counted_in_pieces(piece):
    assert cost(lambda: exact_counter()(piece * (tokens._PIECE + 10))) < LONGEST


def test_pieces_at_line_ends_add_up_to_the_whole():
    line = "x = 1\n"
    lines = tokens._PIECE // len(line) + 100
    assert exact_counter()(line * lines) == exact_counter()(line) * lines


def test_an_estimate_is_a_quarter_of_the_characters_rounded_up():
    assert [estimating_counter()("x" * n) for n in (1, 4, 5)] == [1, 1, 2]


def test_equal_texts_are_counted_once():
    asked = []
    count = CachedCounter(lambda text: asked.append(text) or len(text))
    assert [count("ab"), count("ab"), count("c")] == [2, 2, 1]
    assert asked == ["ab", "c"]


@given(TEXTS)
@example("x\n\n/y")
@example("f():\n  \n\n  /y\n\r\nz")
def test_tokens_add_up_at_every_seam(text):
    count = exact_counter()
    for at in filter(lambda at: is_token_boundary(text, at), range(len(text) + 1)):
        assert count(text[:at]) + count(text[at:]) == count(text)


@given(TEXTS, st.data())
def test_a_text_costs_the_same_in_parts(text, data):
    ends = sorted(data.draw(st.lists(st.integers(0, len(text)), min_size=2, max_size=6)))
    parts = [text[start:end] for start, end in zip(ends[::2], ends[1::2], strict=False)]
    count = CachedCounter(exact_counter())
    assert count.with_parts(text, parts) == count(text) == exact_counter()(text)
    assert [count(part) for part in parts] == list(map(exact_counter(), parts))


def test_a_part_on_lines_of_its_own_is_counted_once():
    count, body = CachedCounter(exact_counter()), "x = 1\n\n    y = 2\n"
    count.with_parts(f"cat > a.py <<EOF\n{body}EOF", [body])
    assert body in count._known


def test_an_estimate_is_of_the_whole_text():
    count = CachedCounter(estimating_counter())
    assert count.with_parts("a\nb\nc\n", ["b\n"]) == estimating_counter()("a\nb\nc\n")
