"""Embeddings: the bundled one by its properties, MiniLM in NumPy against vectors of its authors' own library."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eirkit.errors import EirkitError
from eirkit.lacuna.memories import embeddings as minilm
from eirkit.lacuna.memories.embeddings import DIMENSIONS, embed_ngrams, find_embedding, normalize

UNIT = 1e-5  # a sum of squares of up to a thousand 32-bit floats

# The first eight numbers that sentence-transformers 6.2 with torch 2.13 gives for these texts from the same weights.
REFERENCE = {
    "A_07 = 0042": (-0.0192729, 0.0071133, -0.0070875, 0.060426, -0.0925823, -0.021475, 0.0145141, 0.0460227),
    "A_7": (-0.1302894, -0.0355389, 0.0144485, 0.0983082, -0.0359058, 0.0087606, 0.1084364, 0.017877),
    "What is the value stored under A_12?": (
        *(-0.0457137, 0.1004306, -0.1390474, -0.0173715, -0.0729336, 0.0106958, 0.0466536, 0.0517656),
    ),
    "The quick brown fox jumps over the lazy dog.": (
        *(0.0439335, 0.0589344, 0.0481784, 0.0775481, 0.0267444, -0.0376296, -0.0026051, -0.0599431),
    ),
    # Accents, signs, and more words than the model takes in: all must be cut and split in the same places.
    "Grüße aus Zürich: 12,5 °C – naïve café; word " + "word " * 300: (
        *(-0.0125778, -0.0423535, -0.0216639, 0.0564476, -0.017152, -0.0015172, 0.018408, 0.0044271),
    ),
}
PLACES = [99, 145, 369, 621, 670]  # CRC-32 of "  a", " a_", "a_7", "_7 " and "7  ", modulo 1,024
PRECISION = 2e-6  # ten times the largest difference seen over all 384 numbers; the sums run in another order

needs_minilm = pytest.mark.skipif(
    minilm.reason_without_minilm() is not None, reason=str(minilm.reason_without_minilm())
)


@given(st.lists(st.text(max_size=30), max_size=5))
def test_the_bundled_embedding_gives_unit_vectors_one_for_each_text(texts):
    vectors = embed_ngrams(texts)
    assert vectors.shape == (len(texts), DIMENSIONS)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=UNIT)  # the blanks around a text count


@given(st.text(max_size=30), st.lists(st.text(max_size=30), max_size=3))
def test_a_vector_depends_on_its_text_alone(text, others):
    assert (embed_ngrams([*others, text])[-1] == embed_ngrams([text])[0]).all()


def test_the_bundled_embedding_is_the_same_everywhere():
    """Trigrams of two blanks, the text and two blanks: A_7 has five, each once, in five places."""
    (vector,) = embed_ngrams(["A_7"])
    assert sorted(np.flatnonzero(vector).tolist()) == PLACES
    assert vector[PLACES] == pytest.approx(5**-0.5, abs=UNIT)


def test_spelling_counts_and_case_does_not():
    like = embed_ngrams(["A_17 = 0042", "a_17 = 0042", "A_17 = 0043", "zebra"])
    assert (like[0] == like[1]).all()
    assert 0.5 < like[0] @ like[2] < 1
    assert like[0] @ like[3] < 0.2


def test_a_row_of_zeros_stays_one():
    assert (normalize(np.zeros((2, 3), np.float32)) == 0).all()


def test_embeddings_are_found_by_name_or_place():
    assert find_embedding("ngrams") is embed_ngrams
    assert find_embedding("eirkit.lacuna.memories.embeddings:embed_ngrams") is embed_ngrams
    with pytest.raises(EirkitError):
        find_embedding("nonsense")


@needs_minilm
def test_minilm_agrees_with_the_library_it_comes_from():
    embed = find_embedding("minilm")
    vectors = embed(list(REFERENCE))
    assert vectors.shape == (len(REFERENCE), 384)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=UNIT)
    assert np.abs(vectors[:, :8] - np.array(list(REFERENCE.values()))).max() < PRECISION


@needs_minilm
def test_minilm_takes_any_text():
    embed = find_embedding("minilm")
    assert embed([]).shape == (0, 384)
    odd = embed(["", "\x07", "\ud800", "x" * 10_000])
    assert np.isfinite(odd).all()
