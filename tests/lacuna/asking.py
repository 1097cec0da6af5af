"""Memory systems that ask a model and an embedding, with the standard library alone: their processes start fast.

`test_endpoint.py` has the same calls through OpenAI's own client.
"""

from __future__ import annotations

import asyncio
import json
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from eirkit.lacuna.memories.in_process import KeyValue
from eirkit.lacuna.memories.memory import Item, Requirements

_DIRECTLY = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def ask(endpoint: str, path: str, body: dict[str, Any]) -> Any:
    """Return what a server answers to one request."""
    request = urllib.request.Request(f"{endpoint}/{path}", json.dumps(body).encode())
    request.add_header("Content-Type", "application/json")
    try:
        with _DIRECTLY.open(request) as response:
            return json.load(response)
    except urllib.error.HTTPError as error:
        error.close()  # it holds the connection
        raise


class Asking(KeyValue):
    """Asks its model about every record and its embedding about every query."""

    requirements = Requirements(endpoint=("model", "embedding"))

    def __init__(self, *, endpoint: str, bears: bool = False) -> None:
        super().__init__()
        self.endpoint, self.bears = endpoint, bears

    async def write(self, item: Item) -> None:
        said = {"model": "any", "messages": [{"role": "user", "content": item.text}]}
        try:
            await asyncio.to_thread(ask, self.endpoint, "chat/completions", said)
        except OSError:
            if not self.bears:
                raise
        await super().write(item)

    async def search(self, query: str, limit: int) -> Sequence[str]:
        await asyncio.to_thread(ask, self.endpoint, "embeddings", {"model": "any", "input": query})
        return [text for text in self._kept.values() if query in text][:limit]


class OnlyModel(Asking):
    """Has an embedding of its own."""

    requirements = Requirements(endpoint=("model",))


class Careless(Asking):
    """Goes on as if nothing were wrong when its model fails."""

    def __init__(self, *, endpoint: str) -> None:
        super().__init__(endpoint=endpoint, bears=True)


def name_of(kind: type) -> str:
    """Return by what name a sweep finds one of these systems."""
    return f"{Path(__file__)}:{kind.__name__}"
