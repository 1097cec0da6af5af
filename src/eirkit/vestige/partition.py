"""A corpus cut into pieces of work: paths come in, pieces that one worker can read by itself go out, in order.

Small documents are put together, large files of JSON lines are cut between lines. How a corpus is cut depends on the
corpus alone, never on who will do the work, so that equal corpora give equal pieces.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from eirkit.errors import InputFileError
from eirkit.vestige.corpus import CorpusReader
from eirkit.vestige.remote import Location, Remote
from eirkit.vestige.source import Limits, Skipped, Span, StoredDocument, open_document, open_lines
from eirkit.vestige.unpacking import open_file

PIECE_BYTES = 8 << 20  # a second or two of work
PIECE_DOCUMENTS = 64
_CHUNK_BYTES = 1 << 22


@dataclass(frozen=True, slots=True)
class Place:
    """One document, or some lines of one."""

    root: Location  # what was given
    path: Location
    source: str
    span: Span | None = None  # None: all of it
    format: str | None = None  # of a span

    def open(self, limits: Limits) -> StoredDocument:
        """Return the document; nothing is read yet."""
        if self.span is None:
            return open_document(self.path, limits, self.source)
        return open_lines(self.path, self.span, limits, self.source)


@dataclass(frozen=True, slots=True)
class Piece:
    """What one worker reads at a time."""

    places: tuple[Place, ...]
    skipped: tuple[Skipped, ...] = ()  # found on the way to the first place

    def halves(self) -> tuple[Piece, ...]:
        """Return the piece in smaller parts; a piece that cannot be cut further gives none."""
        if len(self.places) > 1:
            middle = len(self.places) // 2
            return Piece(self.places[:middle], self.skipped), Piece(self.places[middle:])
        spans = [] if not self.places or self.places[0].span is None else _cut(self.places[0])
        return tuple(Piece((place,), self.skipped if not number else ()) for number, place in enumerate(spans))


def plan_pieces(reader: CorpusReader, paths: Sequence[Location]) -> Iterator[Piece]:
    """Yield the pieces of a corpus in the order of its documents."""
    places: list[Place] = []
    skipped: list[Skipped] = []
    size = 0
    for root in paths:
        for document in reader.documents(root):
            if isinstance(document, Skipped) or document.path is None:
                skipped += [document] if isinstance(document, Skipped) else []
                continue
            for place, weight in _places(reader, root, document):
                if places and (size + weight > PIECE_BYTES or len(places) >= PIECE_DOCUMENTS):
                    yield Piece(tuple(places), tuple(skipped))
                    places, skipped, size = [], [], 0
                places.append(place)
                size += weight
    if places or skipped:
        yield Piece(tuple(places), tuple(skipped))


def _places(reader: CorpusReader, root: Location, document: StoredDocument) -> Iterator[tuple[Place, int]]:
    path = document.path
    assert path is not None
    try:
        size = path.size() if isinstance(path, Remote) else path.stat().st_size
    except (OSError, InputFileError):
        size = 0  # whoever reads it will say what is wrong
    whole = Place(root, path, document.source)
    name = reader.line_format(document) if size > 2 * PIECE_BYTES else None
    if name is None or _is_compressed(document):
        yield whole, size
        return
    for span in _spans(path, document.source, PIECE_BYTES):
        yield Place(root, path, document.source, span, name), span.stop - span.start


def _is_compressed(document: StoredDocument) -> bool:
    path = document.path
    assert path is not None
    with open_file(path, document.source) as stream:
        return stream.read(64) != document.head[:64]


def _spans(path: Location, label: str, size: int, within: Span | None = None) -> Iterator[Span]:
    """Yield spans of about a size that end where lines do."""
    start = within.start if within else 0
    lines = within.lines_before if within else 0
    with open_file(path, label) as stream:
        stream.seek(start)
        position = start
        began, before = start, lines
        while (within is None or position < within.stop) and (line := stream.readline(_CHUNK_BYTES)):
            position += len(line)
            lines += line.endswith(b"\n")
            if position - began >= size and line.endswith(b"\n"):
                yield Span(began, position, before)
                began, before = position, lines
        if position > began:
            yield Span(began, position, before)


def _cut(place: Place) -> list[Place]:
    """Return a place of several lines as about two, or as one for each line where one of them is most of it."""
    span = place.span
    assert span is not None
    spans = list(_spans(place.path, place.source, max(1, (span.stop - span.start) // 2), span))
    if len(spans) < 2:
        spans = list(_spans(place.path, place.source, 1, span))
    return [Place(place.root, place.path, place.source, one, place.format) for one in spans] if len(spans) > 1 else []
