"""Gives the pip command that installs an optional extra, for an installed package or a source checkout."""

from __future__ import annotations

import json
from functools import cache
from importlib.metadata import Distribution, PackageNotFoundError, distribution


def install_command(extra: str) -> str:
    """Return the command that installs an extra, editable if eirkit runs from a checkout."""
    return f"pip install -e '.[{extra}]' in the checkout" if _runs_from_checkout() else f"pip install 'eirkit[{extra}]'"


@cache
def _runs_from_checkout() -> bool:
    try:
        return is_of_folder(distribution("eirkit"))
    except PackageNotFoundError:
        return True  # not installed, so the sources themselves are on the path


def is_of_folder(installed: Distribution) -> bool:
    """True if a distribution was installed from a local folder, editable or not."""
    note = installed.read_text("direct_url.json")
    return note is not None and "dir_info" in json.loads(note)
