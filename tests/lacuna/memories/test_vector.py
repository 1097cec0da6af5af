"""Vector memory: nearest first, the newest of equals first, and nothing of what was replaced, forgotten or reset."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eirkit.errors import EirkitError, UsageError
from eirkit.lacuna.memories import embeddings as minilm
from eirkit.lacuna.memories.embeddings import Vectors, embed_ngrams
from eirkit.lacuna.memories.factory import reason_absent
from eirkit.lacuna.memories.in_process import MiniLmVector, Vector
from eirkit.lacuna.memories.memory import Item

HERE = f"{__name__}:by_first_letter"


def by_first_letter(texts: Sequence[str]) -> Vectors:
    """Embed as a plane: texts in a point along one axis, all others along the other."""
    return np.array([[1, 0] if text[:1] == "a" else [0, 1] for text in texts], np.float32)


def remembering(memory: Vector, *texts: str) -> Vector:
    for number, text in enumerate(texts):
        asyncio.run(memory.write(Item(f"A_{number}", text)))
    return memory


def find(memory: Vector, query: str, limit: int = 5) -> list[str]:
    return list(asyncio.run(memory.search(query, limit)))


def test_the_nearest_come_first_and_the_newest_of_equals():
    memory = remembering(Vector(embedding=HERE), "apple", "banana", "apricot", "cherry")
    assert find(memory, "avocado") == ["apricot", "apple", "cherry", "banana"]
    assert find(memory, "x", 1) == ["cherry"]


def test_an_empty_memory_finds_nothing():
    assert find(Vector(), "A_1") == []


def test_what_was_written_again_is_found_in_its_new_form_only():
    memory = remembering(Vector(embedding=HERE), "apple", "banana")
    asyncio.run(memory.write(Item("A_0", "blackberry")))
    assert find(memory, "a") == ["blackberry", "banana"]


def test_what_is_forgotten_or_reset_is_gone():
    memory = remembering(Vector(embedding=HERE), "apple", "apricot")
    asyncio.run(memory.forget("A_1"))
    assert find(memory, "a") == ["apple"]
    asyncio.run(memory.reset("another"))
    assert find(memory, "a") == []


@given(st.lists(st.text(max_size=12), max_size=8), st.text(max_size=12))
def test_the_order_is_that_of_the_cosine(texts, query):
    memory = remembering(Vector(), *texts)
    likeness = {text: round(float(embed_ngrams([text])[0] @ embed_ngrams([query])[0]), 6) for text in texts}
    found = find(memory, query, len(texts))
    assert sorted(found) == sorted(texts)
    assert [likeness[text] for text in found] == sorted(likeness[text] for text in texts)[::-1]


@pytest.mark.parametrize("name", ["nonsense", "no.such.module:embed"])
def test_an_unknown_embedding_is_refused_before_anything_runs(name):
    with pytest.raises(EirkitError):
        Vector(embedding=name)


def test_minilm_says_what_is_missing():
    why = reason_absent("vector-minilm")
    assert why == minilm.reason_without_minilm()
    if why is None:
        assert find(remembering(MiniLmVector(), "a cat", "stock prices"), "kittens", 1) == ["a cat"]
    else:
        with pytest.raises(UsageError, match="pip install"):
            remembering(MiniLmVector(), "a cat")
