"""A memory system that asks a paid model; its processes import this module, so it imports little."""

from __future__ import annotations

import json
import urllib.request
from typing import Any

from eirkit.lacuna.memories.memory import Requirements
from tests.faults.hostile import Sound


class Thinking(Sound):
    """A memory system that asks its model about every record."""

    requirements = Requirements(endpoint=("model",))

    def __init__(self, *, endpoint: str) -> None:
        super().__init__()
        self.endpoint = endpoint

    def write(self, item: Any) -> None:
        asked = json.dumps({"model": "any", "max_tokens": 20, "messages": [{"role": "user", "content": item.text}]})
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.endpoint}/chat/completions", asked.encode(), headers)
        with urllib.request.urlopen(request) as reply:
            reply.read()
        super().write(item)
