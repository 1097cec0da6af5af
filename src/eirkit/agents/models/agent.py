"""`agent/<name>`: stands for an external agent that connects through a bridge, such as `eirkit mcp serve`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from eirkit.agents.model import ModelOptions, Reply, Request, models
from eirkit.agents.serving.model_factory import refuse_settings
from eirkit.errors import ModelError


class Agent:
    """Names an external agent in run records; it cannot be called."""

    def __init__(self, name: str) -> None:
        self.name = name

    async def reply(self, request: Request) -> Reply:
        raise ModelError(
            f"agent/{self.name} is an external agent and cannot be called; continue with eirkit mcp serve --resume",
            "rejected",
        )

    async def close(self) -> None:
        pass

    def settings(self) -> Mapping[str, Any]:
        return {"provider": "agent", "model": self.name}


@models.add("agent")
def make_agent(name: str, options: ModelOptions) -> Agent:
    """An external agent that connects through a bridge, such as eirkit mcp serve."""
    refuse_settings("agent", options)
    return Agent(name)
