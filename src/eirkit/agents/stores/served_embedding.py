"""Asks the endpoint for embeddings, for stores that take vectors."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any
from urllib.request import Request, urlopen


def embed(endpoint: str, texts: Sequence[str]) -> list[list[float]]:
    """Return the embedding of each text.

    Args:
        endpoint: base URL of the OpenAI-compatible server of this run, on loopback.
    """
    body = json.dumps({"model": "eirkit", "input": list(texts)}).encode()
    asked = Request(f"{endpoint}/embeddings", body, {"Content-Type": "application/json"})
    with urlopen(asked) as answer:
        found: list[dict[str, Any]] = json.load(answer)["data"]
    return [[float(value) for value in one["embedding"]] for one in found]


def chroma_embedding(endpoint: str) -> Any:
    """Return a function for Chroma, which would otherwise download the weights of its own."""
    import numpy as np
    from chromadb import EmbeddingFunction

    class Served(EmbeddingFunction):  # type: ignore[misc]
        def __init__(self) -> None:
            pass

        def __call__(self, input: Sequence[str]) -> list[Any]:
            return [np.array(one, dtype=np.float32) for one in embed(endpoint, input)]

        @staticmethod
        def name() -> str:
            return "eirkit"

        def get_config(self) -> dict[str, Any]:
            return {}

        @staticmethod
        def build_from_config(config: dict[str, Any]) -> Any:
            return Served()

    return Served()
