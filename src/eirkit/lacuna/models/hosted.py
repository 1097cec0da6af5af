"""`openai/…`, `anthropic/…`, `google/…`: models behind servers; `agent/<name>`: an external agent behind a bridge."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from eirkit.errors import ModelError
from eirkit.lacuna.models.chat_server import Apis, ChatServer, Endpoint, make_server, protocols_of
from eirkit.lacuna.models.factory import refuse_settings
from eirkit.lacuna.models.model import ModelOptions, Reply, Request, models
from eirkit.lacuna.models.native_servers import GeminiServer, MessagesServer, ResponsesServer
from eirkit.records.settings import TEXT, TOOLS

OPENAI = Endpoint("openai", "https://api.openai.com/v1", "OPENAI_API_KEY", "max_completion_tokens")
OPENAI_APIS: Apis = {"chat": ChatServer, "responses": ResponsesServer}


@models.add("openai")
def make_openai(name: str, options: ModelOptions) -> ChatServer:
    """Return the model; the key is read from OPENAI_API_KEY on the first request."""
    return make_server(name, options, OPENAI, OPENAI_APIS)


make_openai.protocols = protocols_of(OPENAI_APIS)  # type: ignore[attr-defined]


ANTHROPIC = Endpoint("anthropic", "https://api.anthropic.com/v1", "ANTHROPIC_API_KEY")


class CompatibleServer(ChatServer):
    """A server of Anthropic's own that speaks chat completions, and ignores a schema."""

    protocols = (TOOLS, TEXT)


ANTHROPIC_APIS: Apis = {"chat": CompatibleServer, "messages": MessagesServer}


@models.add("anthropic")
def make_anthropic(name: str, options: ModelOptions) -> ChatServer:
    """Return the model; the key is read from ANTHROPIC_API_KEY on the first request."""
    return make_server(name, options, ANTHROPIC, ANTHROPIC_APIS)


make_anthropic.protocols = protocols_of(ANTHROPIC_APIS)  # type: ignore[attr-defined]


GOOGLE = Endpoint("google", "https://generativelanguage.googleapis.com/v1beta/openai", "GEMINI_API_KEY")
GOOGLE_APIS: Apis = {"chat": ChatServer, "gemini": GeminiServer}


@models.add("google")
def make_google(name: str, options: ModelOptions) -> ChatServer:
    """Return the model; the key is read from GEMINI_API_KEY on the first request."""
    return make_server(name, options, GOOGLE, GOOGLE_APIS)


make_google.protocols = protocols_of(GOOGLE_APIS)  # type: ignore[attr-defined]


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


make_agent.protocols = lambda name, options: (TOOLS,)  # type: ignore[attr-defined]
