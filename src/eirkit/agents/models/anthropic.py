"""`anthropic/<name>`: Anthropic's models through its chat-completions endpoint."""

from __future__ import annotations

from eirkit.agents.model import ModelOptions, models
from eirkit.agents.serving.chat_server import ChatServer, Endpoint, make_chat_server

ENDPOINT = Endpoint("anthropic", "https://api.anthropic.com/v1", "ANTHROPIC_API_KEY")


@models.add("anthropic")
def make_anthropic(name: str, options: ModelOptions) -> ChatServer:
    """Return the model; the key is read from ANTHROPIC_API_KEY on the first request."""
    return make_chat_server(name, options, ENDPOINT)
