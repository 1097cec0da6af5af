"""The built-in model providers; importing this package registers them."""

from eirkit.lacuna.models import (
    agent,
    anthropic,
    bundled,
    google,
    habits,
    inspect_ai,
    local,
    openai,
    reference,
    replay,
    scripted,
)

__all__ = [
    "agent",
    "anthropic",
    "bundled",
    "google",
    "habits",
    "inspect_ai",
    "local",
    "openai",
    "reference",
    "replay",
    "scripted",
]
