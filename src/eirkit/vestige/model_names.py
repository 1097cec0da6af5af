"""Recognizes models by the names that logs give them: whatever the provider, region or date."""

from __future__ import annotations

import re
from collections.abc import Container

_NAME_CHARACTERS = 200  # longest model name that is looked up
_VENDOR_PARTS = 2  # parts before a model's own name, such as vendor and region
# Suffixes, such as dates, after which a known name still means the same model.
_VARIANT = re.compile(r"(?:-(?:\d{4,8}|\d{4}-\d\d-\d\d|latest|preview|exp|instruct|thinking|it|fp8|v\d|0))*")


def name_in(names: Container[str], model: str) -> str | None:
    """Return the name by which a collection of normalized names has a model; the longest one wins."""
    parts = plain_name(model).split("-")
    found: list[tuple[int, str]] = []
    for first in range(min(len(parts), _VENDOR_PARTS + 1)):
        for end in range(len(parts), first, -1):
            name = "-".join(parts[first:end])
            if name in names and _VARIANT.fullmatch("".join(f"-{part}" for part in parts[end:])):
                found.append((end - first, name))
    return max(found, default=(0, None))[1]


def plain_name(model: str) -> str:
    """Return a model's name without its provider, with one separator."""
    name = model[-_NAME_CHARACTERS:].lower().rpartition("/")[2]
    return re.sub(r"[._:@ ]+", "-", name)
