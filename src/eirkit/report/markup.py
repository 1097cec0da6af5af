"""Text from strangers as HTML that cannot be anything but text."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from html import escape
from typing import Any
from urllib.parse import quote

# Characters that steer a terminal, a parser or the direction of writing: nothing on a page needs them.
_STEERING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufeff\ufffe\uffff]"
)
_CODE = re.compile(r"`([^`]+)`")
_IN_SCRIPT = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})


def clean(text: str) -> str:
    """Return a text in which steering characters are replaced by the mark for what cannot be shown."""
    return _STEERING.sub("\ufffd", text)


def inert(text: str) -> str:
    """Return a text for an element or an attribute."""
    return escape(clean(text), quote=True)


def prose(text: str) -> str:
    """Return words in which `backticks` set off names and commands."""
    return _CODE.sub(lambda found: f"<code>{found.group(1)}</code>", inert(text))


def inert_json(document: Mapping[str, Any]) -> str:
    """Return a document that can stand in a script element and cannot end it."""
    return json.dumps(_cleaned(document), separators=(",", ":"), allow_nan=False).translate(_IN_SCRIPT)


def data_link(name: str, title: str, text: str) -> str:
    """Return a link that saves a text as a CSV file."""
    address = f"data:text/csv;charset=utf-8,{quote(text, safe='', errors='replace')}"
    return f'<a download="{inert(name)}.csv" href="{address}">CSV: {inert(title)}</a>'


def _cleaned(value: Any) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, Mapping):
        return {clean(str(key)): _cleaned(part) for key, part in value.items()}
    return [_cleaned(part) for part in value] if isinstance(value, (list, tuple)) else value
