"""Long texts in documents of the viewer: their beginning is sent, and the page asks for the rest."""

from __future__ import annotations

from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from eirkit.errors import InputFileError

LONGEST = 20_000  # characters of one text in one document


class Excerpt(Struct, frozen=True):
    """The beginning of a long text.

    The server counts characters otherwise than a page does: `next` is where it goes on, of the `length` that it counts.
    """

    text: str
    length: int
    next: int
    part: str  # where the text is in its document


Text = str | Excerpt
T = TypeVar("T")


class TextPiece(Struct, frozen=True):
    """More of a long text."""

    text: str
    offset: int
    next: int
    length: int


def shorten(value: T, part: str = "") -> T:
    """Return a document with each long text replaced by its beginning, its length and its place in the document."""
    if isinstance(value, str):
        whole = len(value) <= LONGEST
        return value if whole else Excerpt(value[:LONGEST], len(value), LONGEST, part)  # type: ignore[return-value]
    if isinstance(value, Struct):
        names = value.__struct_fields__
        return replace(value, **{name: shorten(getattr(value, name), _within(part, name)) for name in names})
    if isinstance(value, tuple):
        return tuple(shorten(item, _within(part, place)) for place, item in enumerate(value))  # type: ignore[return-value]
    return value


def _within(part: str, name: object) -> str:
    return f"{part}/{name}" if part else str(name)


def more_of(document: object, part: str, offset: int) -> TextPiece:
    """Return the next piece of a long text, found by the place that `shorten` gave it.

    Offsets count Python characters; JavaScript counts differently, so the page sends back the `next` it received.
    """
    value = document
    for name in part.split("/"):
        try:
            if isinstance(value, tuple):
                value = value[int(name)]
            else:
                value = getattr(value, name) if name in getattr(value, "__struct_fields__", ()) else None
        except (IndexError, ValueError):
            value = None
    if not isinstance(value, str):
        raise InputFileError(f"there is no text at {part!r}; reload the page")
    end = min(offset + LONGEST, len(value))
    return TextPiece(value[offset:end], offset, end, len(value))
