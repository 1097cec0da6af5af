"""Long texts of a document: sent as their beginning, and the rest in pieces on request."""

from __future__ import annotations

from typing import Any

from eirkit.errors import InputFileError

LONGEST = 20_000  # characters of one text in one answer


def shorten(value: Any, part: str = "") -> Any:
    """Return a document with each long text replaced by its beginning, its length and its path in the document."""
    if isinstance(value, str):
        return value if len(value) <= LONGEST else _begun(value, part)
    if isinstance(value, dict):
        return {key: shorten(one, f"{part}/{key}" if part else str(key)) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [shorten(one, f"{part}/{place}" if part else str(place)) for place, one in enumerate(value)]
    return value


def _begun(value: str, part: str) -> dict[str, Any]:
    return {"text": value[:LONGEST], "length": len(value), "next": LONGEST, "part": part}


def more_of(document: Any, part: str, offset: int) -> dict[str, Any]:
    """Return the next piece of a long text, found by the path that `shorten` gave it.

    Offsets count Python characters; JavaScript counts differently, so the page sends back the `next` it received.
    """
    value = document
    for name in part.split("/"):
        try:
            value = value[int(name)] if isinstance(value, (list, tuple)) else value[name]
        except (KeyError, IndexError, ValueError, TypeError):
            raise InputFileError(f"there is no text at {part!r}; reload the page") from None
    if not isinstance(value, str):
        raise InputFileError(f"there is no text at {part!r}; reload the page")
    end = min(offset + LONGEST, len(value))
    return {"text": value[offset:end], "offset": offset, "next": end, "length": len(value)}
