"""The size of the network, in a module that does not import torch."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Size:
    width: int = 192  # numbers a token
    layers: int = 6
    heads: int = 4
    hidden: int = 768
