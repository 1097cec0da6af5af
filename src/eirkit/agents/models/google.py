"""`google/<name>`: Gemini models through the chat-completions endpoint that Google offers."""

from __future__ import annotations

from eirkit.agents.model import ModelOptions, models
from eirkit.agents.serving.chat_server import ChatServer, Endpoint, make_chat_server

ENDPOINT = Endpoint("google", "https://generativelanguage.googleapis.com/v1beta/openai", "GEMINI_API_KEY")


@models.add("google")
def make_google(name: str, options: ModelOptions) -> ChatServer:
    """Return the model; the key is read from GEMINI_API_KEY when it is first asked."""
    return make_chat_server(name, options, ENDPOINT)
