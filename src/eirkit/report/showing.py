"""Renders a document as text, JSON, CSV, Markdown, LaTeX or HTML.

All output of commands passes through here, so control characters from logs and plug-ins are removed here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Literal

from eirkit.report import RENDERERS
from eirkit.report.document import Document, Item, Listing, charts_of, plain_data
from eirkit.report.table import Table, clean, markdown_text, one_line
from eirkit.report.terminal import document_lines

Form = Literal["text", "json", "csv", "markdown", "latex", "html"]

FORMS: tuple[Form, ...] = ("text", "json", "csv", "markdown", "latex", "html")
TEXT_WIDTH = 80  # columns if the terminal does not report its width
_CODE_MARK = re.compile(r"`+")
# Characters that are valid in JSON but unsafe in a terminal: C1 controls and marks that change text direction.
_ESCAPED_IN_JSON = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def shown(document: Document, form: Form, *, width: int = TEXT_WIDTH, explain: bool = False) -> str:
    """Return a document in the given format, without a trailing newline; `explain` is about text alone."""
    if form == "text":
        return "\n".join(line.text for line in document_lines(document, width, explain=explain))
    if form == "html":
        return str(import_module(RENDERERS[form]).render(document.page())).rstrip("\n")
    return _FORMS[form](document)


def json_text(data: object) -> str:
    """Return data that msgspec encodes as one line of JSON, with control characters and lone surrogates escaped."""
    text = json.dumps(plain_data(data), ensure_ascii=False, allow_nan=False)
    return _ESCAPED_IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _csv(document: Document) -> str:
    """Return every table as CSV; several are separated by empty lines, each below a comment with its id."""
    tables = document.tables()
    if len(tables) == 1:
        return clean(tables[0].csv().rstrip("\n"))
    return clean("\n\n".join(f"# {one_line(table.id)}\n{table.csv().rstrip()}" for table in tables))


def _markdown_parts(document: Document) -> Iterator[str]:
    yield f"# {markdown_text(document.title)}"
    yield from map(_markdown_prose, document.said())
    for section in (*document.sections, *document.details):
        if section.title:
            yield f"## {markdown_text(section.title)}"
        yield from map(_markdown_prose, section.words)
        for item in section.items:
            yield from _markdown_item(item)
    if document.next:
        yield f"Next:\n\n{_fenced(document.next)}"


def _markdown_item(item: Item) -> Iterator[str]:
    yield from [f"**{markdown_text(item.title)}**"] if item.title else []
    if isinstance(item, Listing):
        yield _fenced(item.text)
    elif isinstance(item, Table):
        yield item.markdown()
        yield from map(_markdown_prose, filter(None, (item.meanings(), item.note)))
    else:
        yield from map(_markdown_prose, filter(None, (*(chart.alt for chart in charts_of(item)), item.note)))


def _markdown_prose(text: str) -> str:
    """Return a text as Markdown; `backticks` are kept, everything else is escaped."""
    parts = re.split(r"(`[^`]+`)", one_line(text))
    return "".join(part if part.startswith("`") and part.endswith("`") else _markdown_piece(part) for part in parts)


def _markdown_piece(part: str) -> str:
    """Return part of a line as escaped Markdown, keeping spaces at its ends."""
    lead, tail = part[: len(part) - len(part.lstrip())], part[len(part.rstrip()) :]
    return f"{lead}{markdown_text(part)}{tail}" if part.strip() else part


def _fenced(text: str) -> str:
    longest = max((len(found) for found in _CODE_MARK.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text.rstrip()}\n{fence}"


def _latex(document: Document) -> str:
    """Return every table as LaTeX, with its title and notes as comments above and below it."""
    parts = ["\n".join(f"% {one_line(line)}" for line in (document.title, *document.said()))]
    for table in document.tables():
        below = [f"% {one_line(note)}" for note in (table.meanings(), table.note) if note]
        parts.append("\n".join([f"% {one_line(table.title)}", table.latex(), *below]))
    return clean("\n\n".join(parts))


_FORMS: dict[Form, Callable[[Document], str]] = {
    "json": lambda document: json_text(document.data),
    "csv": _csv,
    "markdown": lambda document: clean("\n\n".join(_markdown_parts(document))),
    "latex": _latex,
}
