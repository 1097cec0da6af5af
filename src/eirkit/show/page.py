"""A page as data: a headline that answers the reader's question, then sections of words, tables, charts and listings.

Nothing here is computed or drawn: `html.py` writes a page as one file, `exports.py` its tables and charts for papers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from eirkit.show.chart import Chart, Figure
from eirkit.show.table import Table


@dataclass(frozen=True, slots=True)
class Listing:
    """Text shown as it is, in a fixed width: a command that rebuilds the page, a manifest, a log line."""

    id: str
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Headline:
    """The first screen: one number with what it counts, and the answer in sentences.

    In sentences and in the words of sections, `backticks` set off commands and names; nothing else is markup.
    """

    number: str  # as people read it: 31%, 190.2 bits; a dash where nothing was measured
    caption: str
    sentences: tuple[str, ...]


Item = Table | Chart | Figure | Listing


@dataclass(frozen=True, slots=True)
class Section:
    """A heading with paragraphs and the things to look at, in this order."""

    title: str
    words: tuple[str, ...] = ()
    items: tuple[Item, ...] = ()
    id: str = ""  # an anchor; made from the title where empty

    @property
    def anchor(self) -> str:
        return self.id or anchor(self.title)

    def as_json(self) -> dict[str, Any]:
        items = [{"kind": type(item).__name__.lower(), **item_json(item)} for item in self.items]
        return {"id": self.anchor, "title": self.title, "words": list(self.words), "items": items}


@dataclass(frozen=True, slots=True)
class Page:
    """What one report says, from its first screen to its data."""

    title: str
    headline: Headline
    sections: tuple[Section, ...]
    subtitle: str = ""  # what was read: a folder's name, never a whole path
    answers: Mapping[str, Any] = field(default_factory=dict)  # the page's figures under names, for scripts
    kind: str = "report"  # lacuna-run, vestige-analysis, comparison, study, demo …

    def items(self) -> Iterator[Item]:
        for section in self.sections:
            yield from section.items

    def tables(self) -> list[Table]:
        return [item for item in self.items() if isinstance(item, Table)]

    def charts(self) -> list[Chart | Figure]:
        return [item for item in self.items() if isinstance(item, (Chart, Figure))]

    def as_json(self) -> dict[str, Any]:
        """Return the whole page as a document."""
        headline = {
            "number": self.headline.number,
            "caption": self.headline.caption,
            "sentences": list(self.headline.sentences),
        }
        return {
            "kind": self.kind,
            "title": self.title,
            "subtitle": self.subtitle,
            "headline": headline,
            "answers": dict(self.answers),
            "sections": [section.as_json() for section in self.sections],
        }


def anchor(title: str) -> str:
    """Return words of a title joined by hyphens: `#errors-by-cause`."""
    kept = "".join(letter if letter.isascii() and letter.isalnum() else " " for letter in title.lower())
    return "-".join(kept.split()) or "section"


def item_json(item: Item) -> dict[str, Any]:
    """Return one thing to look at as a document."""
    return {"id": item.id, "title": item.title, "text": item.text} if isinstance(item, Listing) else item.as_json()
