"""Plug-ins that go wrong in known ways, for tests of how a sweep bears it; real ones, found by reference."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from eirkit.errors import ModelError
from eirkit.lacuna.agents.reference import make_reference
from eirkit.lacuna.memories.in_process import Null
from eirkit.lacuna.models.model import Model, ModelOptions, Reply, Request
from eirkit.lacuna.tasks.policy import Policy, Record
from eirkit.lacuna.tasks.task import Payload, TaskSpec
from eirkit.lacuna.tasks.workloads import StepwiseSum


class Answering:
    """A model that answers as a reference agent does, but needs a moment, so that runs overlap."""

    def __init__(self, name: str, options: ModelOptions) -> None:
        self.options = options
        self._agent = make_reference(name, replace(options, extra={}))

    async def reply(self, request: Request) -> Reply:
        await asyncio.sleep(0)
        return await self._agent.reply(request)

    async def close(self) -> None:
        pass

    def settings(self) -> Mapping[str, Any]:
        return {}


class Flaky(Answering):
    """Fails at step 5 of every task whose input there is even, as long as a file of this name is there."""

    def __init__(self, name: str, options: ModelOptions) -> None:
        super().__init__(name, options)
        self.outage = Path(str(options.extra["outage"]))

    async def reply(self, request: Request) -> Reply:
        state = request.messages[-1].content
        even = int(state.partition("INPUT ")[2][:4]) % 2 == 0
        if self.outage.exists() and "STEP 05 " in state and even:
            raise ModelError("the line is dead; call again", "dropped")
        return await super().reply(request)


class Mute(Answering):
    """Talks, but never in commands."""

    async def reply(self, request: Request) -> Reply:
        return Reply("I would rather not say.")


class Parrot(Answering):
    """Gives the same answer to everything."""

    async def reply(self, request: Request) -> Reply:
        step = request.messages[-1].content.partition("STEP ")[2][:2]
        return Reply(f"ANSWER {step} 7")


class Broken(Answering):
    """Has a fault of its own."""

    async def reply(self, request: Request) -> Reply:
        raise ZeroDivisionError("in the model")


def make_plain(name: str, options: ModelOptions) -> Model:
    return Answering(name, options)


class BrokenMemory(Null):
    """Takes everything and breaks when it is asked."""

    async def search(self, query: str, limit: int) -> Sequence[str]:
        raise KeyError("in the memory")

    async def teardown(self) -> None:
        raise RuntimeError("even at the end")


class StillbornMemory(BrokenMemory):
    """Cannot even begin."""

    async def reset(self, scope: str) -> None:
        raise OSError("no store")


class BrokenPolicy(Policy):
    """Breaks at the first choice."""

    def victim(self, candidates: Sequence[Record], step: int) -> int:
        raise IndexError("in the policy")


class BrokenWorkload(StepwiseSum):
    """Breaks when an agent's answer is taken in."""

    def canonical(self, values: Payload) -> Payload:
        raise AttributeError("in the workload")

    def rule(self, spec: TaskSpec) -> str:
        return super().rule(spec)
