"""The built-in policies; importing this package registers them."""

from eirkit.lacuna.policies import belady, fifo, fixed, learned, lfu, lru, random_choice, theory, unbounded, window

__all__ = ["belady", "fifo", "fixed", "learned", "lfu", "lru", "random_choice", "theory", "unbounded", "window"]
