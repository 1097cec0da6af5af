"""Optional packages, looked for and imported when a plug-in first needs them."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from eirkit.errors import MissingExtraError


def require_vendor(module: str, feature: str, extra: str) -> None:
    """Raise MissingExtraError where the package is not installed; nothing of it is run."""
    if find_spec(module.partition(".")[0]) is None:
        raise MissingExtraError(feature, extra)


def load_vendor(module: str, feature: str, extra: str) -> Any:
    """Return the package's module."""
    require_vendor(module, feature, extra)
    return import_module(module)
