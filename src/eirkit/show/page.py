"""Page data types: Page, Headline, Section and Listing, and their JSON form.

`html.py` renders a page as one file; `exports.py` writes its tables and charts for papers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from eirkit.show.chart import Chart, Figure
from eirkit.show.table import Table


@dataclass(frozen=True, slots=True)
class Listing:
    """Text shown verbatim in a fixed-width font, such as a command, a manifest or a log line."""

    id: str
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Headline:
    """The top of a page: one number with its caption, and the answer in sentences.

    In sentences and in the text of sections, `backticks` mark commands and names; there is no other markup.
    """

    number: str  # formatted, such as 31% or 190.2 bits; a dash if nothing was measured
    caption: str
    sentences: tuple[str, ...]


Item = Table | Chart | Figure | Listing


@dataclass(frozen=True, slots=True)
class Section:
    """A heading followed by paragraphs and then items (tables, charts and listings)."""

    title: str
    words: tuple[str, ...] = ()
    items: tuple[Item, ...] = ()
    id: str = ""  # the anchor; derived from the title if empty

    @property
    def anchor(self) -> str:
        return self.id or anchor(self.title)

    def as_json(self) -> dict[str, Any]:
        items = [{"kind": type(item).__name__.lower(), **item_json(item)} for item in self.items]
        return {"id": self.anchor, "title": self.title, "words": list(self.words), "items": items}


@dataclass(frozen=True, slots=True)
class Page:
    """A whole report: headline, sections and data."""

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
        """Return the whole page as JSON data."""
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
    """Return the anchor of a title, its words joined by hyphens, such as `errors-by-cause`."""
    kept = "".join(letter if letter.isascii() and letter.isalnum() else " " for letter in title.lower())
    return "-".join(kept.split()) or "section"


def item_json(item: Item) -> dict[str, Any]:
    """Return a table, chart, figure or listing as JSON data."""
    return {"id": item.id, "title": item.title, "text": item.text} if isinstance(item, Listing) else item.as_json()
