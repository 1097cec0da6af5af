"""`openai/…`, `anthropic/…` and `google/…`: models behind chat servers of the OpenAI kind."""

from __future__ import annotations

from eirkit.agents.model import ModelOptions, models
from eirkit.agents.serving.chat_server import ChatServer, Endpoint, make_chat_server

OPENAI = Endpoint("openai", "https://api.openai.com/v1", "OPENAI_API_KEY", "max_completion_tokens")


@models.add("openai")
def make_openai(name: str, options: ModelOptions) -> ChatServer:
    """Return the model; the key is read from OPENAI_API_KEY on the first request."""
    return make_chat_server(name, options, OPENAI)


ANTHROPIC = Endpoint("anthropic", "https://api.anthropic.com/v1", "ANTHROPIC_API_KEY")


@models.add("anthropic")
def make_anthropic(name: str, options: ModelOptions) -> ChatServer:
    """Return the model; the key is read from ANTHROPIC_API_KEY on the first request."""
    return make_chat_server(name, options, ANTHROPIC)


GOOGLE = Endpoint("google", "https://generativelanguage.googleapis.com/v1beta/openai", "GEMINI_API_KEY")


@models.add("google")
def make_google(name: str, options: ModelOptions) -> ChatServer:
    """Return the model; the key is read from GEMINI_API_KEY on the first request."""
    return make_chat_server(name, options, GOOGLE)
