"""The built-in memory systems; importing this package registers them."""

from eirkit.lacuna.memories import key_value, null

__all__ = ["key_value", "null"]
