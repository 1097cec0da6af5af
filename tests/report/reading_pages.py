"""A page read back as a browser would take it apart: elements, text, tables, references; and what is wrong with it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from html.parser import HTMLParser
from itertools import pairwise
from typing import Any
from urllib.parse import unquote

VOID = {"meta", "link", "br", "hr", "img", "input"}
HEADINGS = ("h1", "h2", "h3", "h4")


@dataclass
class Element:
    tag: str
    attributes: dict[str, str]
    parent: Element | None = None
    children: list[Element] = field(default_factory=list)
    pieces: list[str | Element] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(piece if isinstance(piece, str) else piece.text for piece in self.pieces)

    def all(self, tag: str = "", **attributes: str) -> list[Element]:
        """Return what lies inside, in order: elements of a tag, with attributes."""
        found = []
        for child in self.children:
            fits = all(child.attributes.get(name.rstrip("_")) == value for name, value in attributes.items())
            found += [child] if (not tag or child.tag == tag) and fits else []
            found += child.all(tag, **attributes)
        return found


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = self.open = Element("document", {})
        self.faults: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attributes]
        if len(set(names)) < len(names):
            self.faults.append(f"<{tag}> has an attribute twice")
        made = Element(tag, {name: value or "" for name, value in attributes}, self.open)
        self.open.children.append(made)
        self.open.pieces.append(made)
        if tag not in VOID:
            self.open = made

    def handle_endtag(self, tag: str) -> None:
        if self.open.tag != tag or self.open.parent is None:
            self.faults.append(f"</{tag}> closes <{self.open.tag}>")
            return
        self.open = self.open.parent

    def handle_data(self, data: str) -> None:
        self.open.pieces.append(data)


def read(text: str) -> tuple[Element, list[str]]:
    """Return the document and how it is ill-formed."""
    reader = _Reader()
    reader.feed(text)
    reader.close()
    unclosed = [] if reader.open is reader.root else [f"<{reader.open.tag}> is never closed"]
    return reader.root, reader.faults + unclosed


def faults(text: str) -> list[str]:
    """Return everything that is wrong with a page: form, names, headings, tables, references."""
    root, found = read(text)
    ids = [element.attributes["id"] for element in root.all() if "id" in element.attributes]
    found += [f"id {name} occurs twice" for name in set(ids) if ids.count(name) > 1]
    for element in root.all():
        for name in ("aria-labelledby", "aria-describedby"):
            found += [f"{name} to nowhere: {n}" for n in element.attributes.get(name, "").split() if n not in ids]
        for name in ("href", "src", "srcset", "action", "data", "poster"):
            where = element.attributes.get(name)
            if where is not None and not where.startswith(("data:text/csv", "#")):
                found.append(f"<{element.tag} {name}> leads out of the page: {where[:40]}")
            if where is not None and where.startswith("#") and where[1:] not in ids:
                found.append(f"a link to nowhere: {where}")
        found += [f"<{element.tag}> has {name}" for name in element.attributes if name.startswith("on")]
    found += _heading_faults(root) + _table_faults(root)
    found += [f"no <{tag}>" for tag in ("title", "main", "nav", "h1", "header", "footer") if not root.all(tag)]
    return found


def _heading_faults(root: Element) -> list[str]:
    levels = [HEADINGS.index(element.tag) for element in root.all() if element.tag in HEADINGS]
    return ([] if levels.count(0) == 1 else ["not one h1"]) + [
        f"h{a + 1} is followed by h{b + 1}" for a, b in pairwise(levels) if b > a + 1
    ]


def _table_faults(root: Element) -> list[str]:
    found = []
    for table in root.all("table"):
        width = len(table.all("thead")[0].all("th"))
        found += [] if table.all("caption") else ["a table without a caption"]
        found += ["a heading without a scope" for th in table.all("th") if "scope" not in th.attributes]
        rows = [row.children for row in table.all("tbody")[0].all("tr")]
        found += ["a row of another width" for row in rows if len(row) != width]
    return found


def cells(table: Element) -> list[list[str]]:
    """Return the body of a table as text."""
    return [[cell.text for cell in row.children] for row in table.all("tbody")[0].all("tr")]


def data_of(figure: Element) -> dict[str, Any]:
    """Return the data from which a figure is drawn."""
    (script,) = figure.all("script", type="application/json")
    document: dict[str, Any] = json.loads(script.text)
    return document


def saved(link: Element) -> str:
    """Return what a download link saves."""
    return unquote(link.attributes["href"].partition(",")[2])
