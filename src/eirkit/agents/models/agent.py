"""`agent/<name>`: an agent that comes by itself, through a bridge; its runs can be read and resumed, not asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from eirkit.agents.model import ModelOptions, Reply, Request, models
from eirkit.agents.serving.model_factory import refuse_settings
from eirkit.errors import ModelError


class Agent:
    """The name of an agent in the records of the runs that it came for."""

    def __init__(self, name: str) -> None:
        self.name = name

    async def reply(self, request: Request) -> Reply:
        raise ModelError(
            f"agent/{self.name} comes by itself and cannot be asked; go on with eirkit mcp serve --resume", "rejected"
        )

    async def close(self) -> None:
        pass

    def settings(self) -> Mapping[str, Any]:
        return {"provider": "agent", "model": self.name}


@models.add("agent")
def make_agent(name: str, options: ModelOptions) -> Agent:
    """An agent that comes by itself through a bridge, such as eirkit mcp serve."""
    refuse_settings("agent", options)
    return Agent(name)
