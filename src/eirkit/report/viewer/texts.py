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
        return value if len(value) <= LONGEST else {"text": value[:LONGEST], "length": len(value), "part": part}
    if isinstance(value, dict):
        return {key: shorten(one, f"{part}/{key}" if part else str(key)) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [shorten(one, f"{part}/{place}" if part else str(place)) for place, one in enumerate(value)]
    return value


def more_of(document: Any, part: str, offset: int) -> dict[str, Any]:
    """Return the next piece of a text, found by the name that `shorten` gave it."""
    value = document
    for name in part.split("/"):
        try:
            value = value[int(name)] if isinstance(value, (list, tuple)) else value[name]
        except (KeyError, IndexError, ValueError, TypeError):
            raise InputFileError(f"there is no text at {part!r}; reload the page") from None
    if not isinstance(value, str):
        raise InputFileError(f"there is no text at {part!r}; reload the page")
    return {"text": value[offset : offset + LONGEST], "offset": offset, "length": len(value)}
