"""Memories that note in a file every call that they get, and one whose model must be paid."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from eirkit.lacuna.memories.in_process import Text, usage_of_texts
from eirkit.lacuna.memories.memory import Item, MemoryUsage, Requirements
from tests.lacuna.asking import ask


class Counted(Text):
    """Notes its calls.

    Args:
        log: where, one line each.
        fails: a file; while it is there, the call that it names fails: `observe`, or `recall` and a number of texts.
    """

    def __init__(self, *, log: str = "", fails: str = "") -> None:
        super().__init__()
        self.log, self.fails = log, fails

    def note(self, *words: object) -> None:
        said = " ".join(map(str, words))
        with Path(self.log).open("a") as log:
            log.write(f"{said}\n")
        if self.fails and Path(self.fails).exists() and said.startswith(Path(self.fails).read_text()):
            raise ConnectionError("the store is gone")

    async def reset(self, scope: str) -> None:
        self.note("reset")
        await super().reset(scope)

    async def observe(self, messages: Sequence[Any], session: str, at: str) -> None:
        self.note("observe", session)
        await super().observe(messages, session, at)

    async def recall(self, question: str, at: str, limit: int) -> Sequence[str]:
        self.note("recall", limit)
        return await super().recall(question, at, limit)


class Rewriting(Counted):
    """Keeps what it is asked, and says so."""

    recall_writes = True

    async def recall(self, question: str, at: str, limit: int) -> Sequence[str]:
        found = await super().recall(question, at, limit)
        await self.write(Item("asked", f"[{at}] user: somebody asked: {question}"))
        return found


class Secretive(Rewriting):
    """Keeps what it is asked without saying so."""

    recall_writes = False


class Paying(Counted):
    """Asks its model once about each session, and once about each question."""

    requirements = Requirements(endpoint=("model",))

    def __init__(self, *, endpoint: str, log: str = "", fails: str = "") -> None:
        super().__init__(log=log, fails=fails)
        self.endpoint = endpoint

    async def _ask(self, text: str) -> None:
        said = {"model": "any", "messages": [{"role": "user", "content": text}]}
        await asyncio.to_thread(ask, self.endpoint, "chat/completions", said)

    async def observe(self, messages: Sequence[Any], session: str, at: str) -> None:
        await self._ask(session)
        await super().observe(messages, session, at)

    async def recall(self, question: str, at: str, limit: int) -> Sequence[str]:
        await self._ask(question)
        return await super().recall(question, at, limit)

    async def usage(self) -> MemoryUsage:
        return usage_of_texts(await self.contents())


def name_of(kind: type) -> str:
    """Return by what name a sweep finds one of these systems."""
    return f"{Path(__file__)}:{kind.__name__}"


def noted(log: Path) -> Counter[str]:
    """Return how often each method was called."""
    return Counter(line.split()[0] for line in log.read_text().splitlines())
