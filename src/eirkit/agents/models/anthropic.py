"""`anthropic/<name>`: Anthropic's models through the chat-completions endpoint that it offers."""

from __future__ import annotations

from eirkit.agents.model import ModelOptions, models
from eirkit.agents.serving.chat_server import ChatServer, Endpoint, make_chat_server

ENDPOINT = Endpoint("anthropic", "https://api.anthropic.com/v1", "ANTHROPIC_API_KEY")


@models.add("anthropic")
def make_anthropic(name: str, options: ModelOptions) -> ChatServer:
    """Return the model; the key is read from ANTHROPIC_API_KEY when it is first asked."""
    return make_chat_server(name, options, ENDPOINT)
