"""The built-in model providers; importing this package registers them."""

from eirkit.lacuna.models import anthropic, google, inspect_ai, local, openai, reference, replay

__all__ = ["anthropic", "google", "inspect_ai", "local", "openai", "reference", "replay"]
