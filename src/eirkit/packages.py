"""Imports optional third-party packages on first use, with an error that names the extra to install."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from eirkit.errors import MissingExtraError


def require_vendor(module: str, feature: str, extra: str) -> None:
    """Raise MissingExtraError if the package is not installed, without importing it."""
    if find_spec(module.partition(".")[0]) is None:
        raise MissingExtraError(feature, extra)


def load_vendor(module: str, feature: str, extra: str) -> Any:
    """Return the package's module."""
    require_vendor(module, feature, extra)
    return import_module(module)
