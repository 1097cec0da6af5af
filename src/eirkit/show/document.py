"""Document, the result of one command as data: answer, sections of tables and charts, and the next command.

A document has the same sections, tables and charts as a page. `showing.py` renders it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from eirkit.show.page import Headline, Item, Listing, Page, Section
from eirkit.show.table import Cell, Column, Table


@dataclass(frozen=True, slots=True)
class Document:
    """The result of one command."""

    kind: str  # the command, as words joined by hyphens: eir-curve
    title: str
    answer: tuple[str, ...]  # one or two sentences, the result first
    data: Mapping[str, Any]  # what --json prints
    sections: tuple[Section, ...] = ()
    details: tuple[Section, ...] = ()  # too long for a terminal; in every other form they follow the sections
    next: str = ""  # a command to type next
    number: str = ""  # the main result as one figure, shown above the sentences
    caption: str = ""  # what the number counts

    def said(self) -> tuple[str, ...]:
        """Return the number with its caption, if any, followed by the answer."""
        return (f"{self.number} {self.caption}", *self.answer) if self.number else self.answer

    def page(self) -> Page:
        """Return the document as a page."""
        sections = tuple(
            section if section.title else Section("Details", section.words, section.items)
            for section in (*self.sections, *self.details)
        )
        if self.next:
            sections = (*sections, Section("What to do next", (), (Listing("next", "A command", self.next),)))
        headline = Headline(self.number, self.caption, self.answer)
        return Page(self.title, headline, sections, answers=self.data, kind=self.kind)

    def items(self) -> Iterator[Item]:
        for section in (*self.sections, *self.details):
            yield from section.items

    def tables(self) -> list[Table]:
        """Return every table; without any, the plain figures of the data as one table."""
        found = [item for item in self.items() if isinstance(item, Table)]
        if found:
            return found
        plain = {key: value for key, value in self.data.items() if isinstance(value, (str, int, float, bool))}
        return [facts(self.kind, self.title, plain)]


def facts(id: str, title: str, found: Mapping[str, Cell] | Iterable[tuple[str, Cell]], note: str = "") -> Table:
    """Return named figures as a two-column table; names may repeat."""
    columns = (Column("name", "figure"), Column("value", "value", role="text"))
    pairs = found.items() if isinstance(found, Mapping) else found
    return Table(id, title, columns, tuple({"name": name, "value": value} for name, value in pairs), note)
