"""Long texts in documents for pages: a document comes in, the same with its long texts cut goes out.

What a log holds may be ten megabytes of anything. A page gets the beginning, how long the whole is, and asks for more.
"""

from __future__ import annotations

from typing import Any

from eirkit.errors import InputFileError

LONGEST = 20_000  # characters of one text in one answer


def shorten(value: Any, part: str = "") -> Any:
    """Return a document whose long texts are replaced by their beginning, their length and the name of the part."""
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
    """Return the next piece of a text, found by the name that `shorten` gave it.

    Offsets are of our own counting: a page, which counts otherwise, hands back the `next` that it was given.
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
