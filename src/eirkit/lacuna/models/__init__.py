"""The built-in model providers; importing this package registers them."""

from eirkit.lacuna.models import anthropic, google, habits, inspect_ai, local, openai, reference, replay, scripted

__all__ = ["anthropic", "google", "habits", "inspect_ai", "local", "openai", "reference", "replay", "scripted"]
