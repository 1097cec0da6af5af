"""A corpus cut into pieces of work: paths come in, pieces that one worker can read by itself go out, in order.

Small documents are put together, large ones are cut into sections, each a piece of its own. How a corpus is cut depends
on the corpus alone, never on who will do the work, so that equal corpora give equal pieces.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from eirkit.errors import InputFileError
from eirkit.vestige.corpus import CorpusReader
from eirkit.vestige.remote import Location, Remote
from eirkit.vestige.sections import halves_of, sections_of
from eirkit.vestige.source import Limits, Section, Skipped, StoredDocument, open_section

PIECE_BYTES = 8 << 20  # a second or two of work
PIECE_DOCUMENTS = 64
_PACKED = 8  # times that what is packed may well grow
_PACKED_ENDINGS = (".eval", ".gz", ".parquet", ".zip", ".zst", ".zstd")


@dataclass(frozen=True, slots=True)
class Place:
    """One document, or a section of one."""

    root: Location  # what was given
    path: Location
    source: str
    section: Section | None = None  # None: all of it
    format: str | None = None  # of a section

    def open(self, limits: Limits) -> StoredDocument:
        """Return the document; nothing is read yet."""
        return open_section(self.path, self.section, limits, self.source)


@dataclass(frozen=True, slots=True)
class Piece:
    """What one worker reads at a time, with what is to be skipped where it stands."""

    items: tuple[Place | Skipped, ...]

    @property
    def places(self) -> tuple[Place, ...]:
        return tuple(item for item in self.items if isinstance(item, Place))

    @property
    def section(self) -> Place | None:
        """The section that it is; None for whole documents."""
        first = self.items[0]
        return first if isinstance(first, Place) and first.section is not None else None

    def halves(self, limits: Limits) -> tuple[Piece, ...]:
        """Return the piece in smaller parts; a piece that cannot be cut further gives none."""
        if len(self.items) > 1:
            middle = len(self.items) // 2
            return Piece(self.items[:middle]), Piece(self.items[middle:])
        place = self.section
        if place is None or place.section is None:
            return ()
        halves = halves_of(place.open(limits), place.section)
        return tuple(Piece((replace(place, section=half),)) for half in halves)


def plan_pieces(reader: CorpusReader, paths: Sequence[Location]) -> Iterator[Piece]:
    """Yield the pieces of a corpus in the order of its documents."""
    items: list[Place | Skipped] = [*reader.damaged_results(paths)]
    size = 0
    for root in paths:
        for document in reader.documents(root):
            if isinstance(document, Skipped):
                items.append(document)
                continue
            for place, weight in _places(reader, root, document):
                is_full = size + weight > PIECE_BYTES or len(items) >= PIECE_DOCUMENTS
                if items and (is_full or place.section is not None):
                    yield Piece(tuple(items))
                    items, size = [], 0
                if place.section is not None:
                    yield Piece((place,))
                else:
                    items.append(place)
                    size += weight
    if items:
        yield Piece(tuple(items))


def _places(reader: CorpusReader, root: Location, document: StoredDocument) -> Iterator[tuple[Place, int]]:
    path = document.path
    assert path is not None
    try:
        size = path.size() if isinstance(path, Remote) else path.stat().st_size
    except (OSError, InputFileError):
        size = 0  # whoever reads it will say what is wrong
    whole = Place(root, path, document.source)
    if size > 2 * PIECE_BYTES or (size > 2 * PIECE_BYTES // _PACKED and _is_packed(document)):
        found = sections_of(reader, root, document, PIECE_BYTES)
        cuts = iter(found.cuts)
        first, second = next(cuts, None), next(cuts, None)
        if first and second:
            for section, weight in chain((first, second), cuts):
                yield replace(whole, section=section, format=found.format), weight
            return
    yield whole, size


def growth_of(name: str) -> int:
    """Return how much a file may grow when it is read, as far as its name tells."""
    return _PACKED if name.lower().endswith(_PACKED_ENDINGS) else 1


def _is_packed(document: StoredDocument) -> bool:
    try:
        return document.is_parquet or document.is_archive
    except InputFileError:
        return False
