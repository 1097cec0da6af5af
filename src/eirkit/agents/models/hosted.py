"""`openai/…`, `anthropic/…` and `google/…`: models behind chat-completions servers or their providers' APIs."""

from __future__ import annotations

from eirkit.agents.model import ModelOptions, models
from eirkit.agents.serving.chat_server import Apis, ChatServer, Endpoint, make_server
from eirkit.agents.serving.native_servers import GeminiServer, MessagesServer, ResponsesServer

OPENAI = Endpoint("openai", "https://api.openai.com/v1", "OPENAI_API_KEY", "max_completion_tokens")
OPENAI_APIS: Apis = {"chat": ChatServer, "responses": ResponsesServer}


@models.add("openai")
def make_openai(name: str, options: ModelOptions) -> ChatServer:
    """Return the model; the key is read from OPENAI_API_KEY on the first request."""
    return make_server(name, options, OPENAI, OPENAI_APIS)


ANTHROPIC = Endpoint("anthropic", "https://api.anthropic.com/v1", "ANTHROPIC_API_KEY")
ANTHROPIC_APIS: Apis = {"chat": ChatServer, "messages": MessagesServer}


@models.add("anthropic")
def make_anthropic(name: str, options: ModelOptions) -> ChatServer:
    """Return the model; the key is read from ANTHROPIC_API_KEY on the first request."""
    return make_server(name, options, ANTHROPIC, ANTHROPIC_APIS)


GOOGLE = Endpoint("google", "https://generativelanguage.googleapis.com/v1beta/openai", "GEMINI_API_KEY")
GOOGLE_APIS: Apis = {"chat": ChatServer, "gemini": GeminiServer}


@models.add("google")
def make_google(name: str, options: ModelOptions) -> ChatServer:
    """Return the model; the key is read from GEMINI_API_KEY on the first request."""
    return make_server(name, options, GOOGLE, GOOGLE_APIS)
