"""`openai/<name>`: OpenAI's models, and with a base URL any server with a chat-completions API."""

from __future__ import annotations

from eirkit.agents.model import ModelOptions, models
from eirkit.agents.serving.chat_server import ChatServer, Endpoint, make_chat_server

ENDPOINT = Endpoint("openai", "https://api.openai.com/v1", "OPENAI_API_KEY", "max_completion_tokens")


@models.add("openai")
def make_openai(name: str, options: ModelOptions) -> ChatServer:
    """Return the model; the key is read from OPENAI_API_KEY on the first request."""
    return make_chat_server(name, options, ENDPOINT)
