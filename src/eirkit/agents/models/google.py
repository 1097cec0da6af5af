"""`google/<name>`: Gemini models through Google's chat-completions endpoint."""

from __future__ import annotations

from eirkit.agents.model import ModelOptions, models
from eirkit.agents.serving.chat_server import ChatServer, Endpoint, make_chat_server

ENDPOINT = Endpoint("google", "https://generativelanguage.googleapis.com/v1beta/openai", "GEMINI_API_KEY")


@models.add("google")
def make_google(name: str, options: ModelOptions) -> ChatServer:
    """Return the model; the key is read from GEMINI_API_KEY on the first request."""
    return make_chat_server(name, options, ENDPOINT)
