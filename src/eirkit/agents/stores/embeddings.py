"""Embeds texts as unit vectors, offline: hashed n-grams, MiniLM, or a user's function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from eirkit.agents.stores.minilm import MiniLm
from eirkit.registry import load_object

Vectors: TypeAlias = NDArray[np.float32]
Embedding: TypeAlias = Callable[[Sequence[str]], Vectors]  # one unit vector per text

DIMENSIONS = 1024  # of the bundled embedding
_GRAM = 3  # characters


def find_embedding(name: str) -> Embedding:
    """Return the embedding `ngrams`, `minilm`, or the function at `module:name`; weights are loaded on first use."""
    if name == "ngrams":
        return embed_ngrams
    if name == "minilm":
        return MiniLm()
    function: Embedding = load_object(name, "embedding")
    return function


def embed_ngrams(texts: Sequence[str]) -> Vectors:
    """Return counts of hashed character trigrams, which capture spelling, not meaning; equal on every machine."""
    vectors = np.zeros((len(texts), DIMENSIONS), np.float32)
    for row, text in enumerate(texts):
        padded = f"  {text.lower()}  "
        for i in range(len(padded) - _GRAM + 1):
            vectors[row, crc32(padded[i : i + _GRAM].encode("utf-8", "surrogatepass")) % DIMENSIONS] += 1
    return normalise(vectors)


def normalise(vectors: Vectors) -> Vectors:
    """Return the rows at length 1; a row of zeros stays one."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: Vectors = vectors / np.maximum(lengths, np.finfo(np.float32).tiny)
    return unit
