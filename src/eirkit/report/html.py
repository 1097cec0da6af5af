"""Renders a page as one HTML file: its markup, escaping and content security policy; styles are in web/src/report.

All content is escaped as text, and a content security policy allows only the script embedded in the file.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from html import escape
from importlib.resources import files
from itertools import count
from typing import Any
from urllib.parse import quote

from eirkit import __version__
from eirkit.measures import POOLED, UNITS, Measure, find_measure
from eirkit.report.colors import colored
from eirkit.report.document import Chart, Figure, Headline, Item, Listing, Page, Section, charts_of, drawn, plain_data
from eirkit.report.table import Cell, Table, clean

_CODE = re.compile(r"`([^`]+)`")
_IN_VIEWER = re.compile(r"view:((?:[\w.~*-]|%[0-9A-F]{2}|\+)+=(?:[\w.~*&=+-]|%[0-9A-F]{2})*)", re.ASCII)
_DATE = re.compile(r"\b(\d{4})-(\d\d)-(\d\d)\b")
_BESIDE = re.compile(r"(?:\.\./)?[\w-]+(?:/[\w-]+)*\.html(?:#[\w-]+)?|#[\w-]+")
_IN_SCRIPT = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})


def inert(text: str) -> str:
    """Return a text escaped for an HTML element or attribute."""
    return escape(clean(text), quote=True)


def _unbroken(html: str) -> str:
    """Return HTML in which no line ends inside a date, by joiners of no width."""
    return _DATE.sub(r"\1-&#8288;\2-&#8288;\3", html)


def prose(text: str) -> str:
    """Return a text as HTML, with `backticks` turned into code elements."""
    return _CODE.sub(lambda found: f"<code>{found.group(1)}</code>", inert(text))


def inert_json(document: object) -> str:
    """Return a document as JSON that is safe inside a script element."""
    return json.dumps(_cleaned(plain_data(document)), separators=(",", ":"), allow_nan=False).translate(_IN_SCRIPT)


def data_link(name: str, title: str, text: str) -> str:
    """Return a link that saves a text as a CSV file."""
    address = f"data:text/csv;charset=utf-8,{quote(text, safe='', errors='replace')}"
    return f'<a download="{inert(name)}.csv" href="{address}">CSV: {inert(title or name)}</a>'


def _cleaned(value: Any) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, Mapping):
        return {clean(str(key)): _cleaned(part) for key, part in value.items()}
    return [_cleaned(part) for part in value] if isinstance(value, (list, tuple)) else value


ANCHOR = "anchor"  # the key of a row's own anchor
LONGEST_NAME = 32  # letters that stay on one line in a table
SHORT_NOTE = 120  # characters of a note that is always shown below its table
_ASSETS = files("eirkit.report") / "assets"


def render(page: Page, viewer: str = "") -> str:
    """Return the page as HTML; equal pages give equal bytes. A page without charts has no script.

    Args:
        viewer: the address of the page's folder in the viewer, to which rows then link; a file on its own has none.
    """
    page, names = colored(page), _Names(viewer)
    links = "".join(f'<li><a href="#{section.anchor}">{inert(section.title)}</a></li>' for section in page.sections)
    contents = f'<nav aria-label="Sections"><ol>{links}</ol></nav>'
    anchors = [names.of(section.anchor) for section in page.sections]
    sections = (_section(section, anchor, names) for section, anchor in zip(page.sections, anchors, strict=True))
    parts = [_header(page, viewer), _answer(page.headline), contents, *sections, _terms(page)]
    body = "\n".join([*filter(None, parts), _footer()])
    script = f"<script>{asset('charts.js')}</script>\n" if page.charts() else ""
    return f"{_head(page)}\n<body>\n{body}\n{script}</body>\n</html>\n"


@cache
def asset(name: str) -> str:
    """Return a built script or stylesheet, after checking that it cannot end its own element."""
    text = (_ASSETS / name).read_text("utf-8")
    if "</script" in text.lower() or "</style" in text.lower():
        raise ValueError(f"{name} cannot stand in a page; build it again in web/")
    return text


def policy() -> str:
    """Return the content security policy: no network, and only the embedded script."""
    digest = b64encode(sha256(asset("charts.js").encode()).digest()).decode()
    allowed = {
        "default-src": "'none'",
        "script-src": f"'sha256-{digest}'",
        "style-src": "'unsafe-inline'",  # the chart library styles what it draws; nothing can be loaded by it
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    return "; ".join(f"{name} {value}" for name, value in allowed.items())


def _head(page: Page) -> str:
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy()}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="eirkit {__version__}">
<title>{inert(f"{page.subtitle} · {page.title}" if page.subtitle else page.title)}</title>
<style>{asset("report.css")}</style>
</head>"""


def _header(page: Page, viewer: str) -> str:
    subtitle = f'<p class="subtitle">{inert(page.subtitle)}</p>' if page.subtitle else ""
    back = f'<p class="subtitle"><a href="{inert(viewer)}">Runs in the viewer</a></p>' if viewer else ""
    return (
        '<a class="skip" href="#answer">Skip to the answer</a>\n'
        f"<header><div><h1>{_unbroken(inert(page.title))}</h1>{subtitle}{back}</div>"
        '<div class="themes" role="group" aria-label="Colors" data-themes hidden></div></header>\n<main>'
    )


def _answer(headline: Headline) -> str:
    said = "".join(f"<p>{_unbroken(prose(sentence))}</p>" for sentence in headline.sentences)
    number = f'<p class="number">{inert(headline.number)}</p>' if headline.number else ""
    caption = f'<p class="caption">{prose(headline.caption)}</p>' if headline.caption else ""
    figure = f"<div>{number}{caption}</div>" if number or caption else ""
    return (
        f'<section class="answer" id="answer" aria-label="The answer">{figure}<div class="said">{said}</div></section>'
    )


class _Names:
    """Makes anchors unique when item ids repeat, and addresses of what a cell links to."""

    def __init__(self, viewer: str = "") -> None:
        self._seen: set[str] = set()
        self._viewer = viewer

    def row(self, anchor: str) -> str:
        """Return the anchor of a row, the first time that it is met."""
        return self.of(anchor) if anchor and anchor not in self._seen else ""

    def address(self, cell: Cell) -> str:
        """Return an address that leads into the viewer or to a file beside the page; anything else leads nowhere."""
        if not isinstance(cell, str):
            return ""
        if (found := _IN_VIEWER.fullmatch(cell)) is not None:
            return f"{self._viewer}&{found[1]}" if self._viewer else ""
        return cell if _BESIDE.fullmatch(cell) else ""

    def of(self, wanted: str) -> str:
        tried = (wanted if number == 1 else f"{wanted}-{number}" for number in count(1))
        found = next(name for name in tried if name not in self._seen)
        self._seen.add(found)
        return found


def _section(section: Section, anchor: str, names: _Names) -> str:
    words = "".join(f"<p>{prose(paragraph)}</p>\n" for paragraph in section.words)
    items = "".join(_item(item, names) for item in section.items)
    heading = f'<h2 id="{anchor}-title">{inert(section.title)}</h2>'
    return f'<section id="{anchor}" aria-labelledby="{anchor}-title">\n{heading}\n{words}{items}</section>'


def _item(item: Item, names: _Names) -> str:
    name = names.of(item.id)
    if isinstance(item, Table):
        return f'<div class="item" id="{inert(name)}">{_table(item, names)}{_below(item)}</div>\n'
    if isinstance(item, Listing):
        title = f"<h3>{inert(item.title)}</h3>" if item.title else ""
        label, text = inert(item.title or item.id), inert(item.text)
        listing = f'<pre tabindex="0" aria-label="{label}"><code>{text}</code></pre>'
        return f'<div class="item" id="{inert(name)}">{title}{listing}</div>\n'
    return _drawing(item, name)


def _below(table: Table) -> str:
    """Return what stands below a table: a short note, and folded away what its headings mean and longer notes."""
    is_short = len(table.note) <= SHORT_NOTE
    folded = [text for text in (table.meanings(), "" if is_short else table.note) if text]
    explained = "".join(f"<p>{prose(text)}</p>" for text in folded)
    parts = [
        f'<p class="note">{prose(table.note)}</p>' if table.note and is_short else "",
        f'<details class="meanings" data-print><summary>What the columns mean</summary>{explained}</details>'
        if folded
        else "",
        f'<p class="data-link">{data_link(table.id, table.title, table.csv())}</p>',
    ]
    return "".join(parts)


def _table(table: Table, names: _Names) -> str:
    lines = table.lines()
    classes = [
        _class(table.is_numeric(column), [line[at] for line in lines]) for at, column in enumerate(table.columns)
    ]
    titles = zip(table.columns, classes, strict=True)
    head = "".join(
        f'<th scope="col"{kind}{_hint(column.meaning)}>{term(column.title, column.measure)}</th>'
        for column, kind in titles
    )
    links = [[names.address(row.get(column.link)) for column in table.columns] for row in table.rows]
    anchors = [anchor if isinstance(anchor := row.get(ANCHOR), str) else "" for row in table.rows]
    rows = "\n".join(_row(*one, classes) for one in zip(lines, links, map(names.row, anchors), strict=True))
    # A table wider than the window scrolls in a box of its own, which the keyboard must be able to reach.
    return (
        f'<div class="table-box" role="region" aria-label="{inert(table.title)}" tabindex="0"><table>'
        f"<caption>{inert(table.title)}</caption>"
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody></table></div>"
    )


def _hint(meaning: str) -> str:
    """Return the attribute that shows what a heading means where the pointer rests on it."""
    return f' title="{inert(meaning)}"' if meaning else ""


def _row(line: list[str], links: list[str], anchor: str, classes: list[str]) -> str:
    cells = []
    for place, (cell, kind, link) in enumerate(zip(line, classes, links, strict=True)):
        tag, scope = ("th", ' scope="row"') if place == 0 else ("td", "")
        shown = f'<a href="{inert(link)}">{prose(cell)}</a>' if link else prose(cell)
        cells.append(f"<{tag}{scope}{kind}>{shown}</{tag}>")
    own = f' id="{inert(anchor)}"' if anchor else ""
    return f"<tr{own}>{''.join(cells)}</tr>"


def _class(numeric: bool, cells: list[str]) -> str:
    """Return the CSS class of a column: numbers right-aligned, names on one line, text wrapped."""
    if numeric:
        return ' class="figure"'
    return ' class="name"' if all(len(cell) <= LONGEST_NAME for cell in cells) else ""


def _drawing(item: Chart | Figure, name: str) -> str:
    charts = charts_of(item)
    alts = [f"{chart.title}: {chart.alt}" for chart in charts] if isinstance(item, Figure) else [item.alt]
    alternatives = "".join(f'<p class="alt">{prose(text)}</p>' for text in alts)
    below = dict.fromkeys([item.note, *(text for chart in charts for text in (chart.note, chart.coincident))])
    notes = "".join(f'<p class="note">{prose(text)}</p>' for text in below if text)
    named = {series.measure: series.name for chart in charts for series in chart.series if find_measure(series.measure)}
    terms = ", ".join(term(name, measure) for measure, name in named.items())
    definitions = f'<p class="note">Definitions: {terms}</p>' if terms else ""
    tables = "".join(_table(chart.data(), _Names()) for chart in charts)
    links = " · ".join(data_link(chart.id, chart.title, chart.csv()) for chart in charts)
    return (
        f'<figure class="item" id="{inert(name)}" data-chart>'
        f"<figcaption><h3>{inert(item.title)}</h3>{alternatives}</figcaption>"
        f'<div class="drawing"></div>{definitions}{notes}'
        f"<details data-print><summary>The data behind this picture</summary>{tables}"
        f'<p class="data-link">{links}</p></details>'
        f'<script type="application/json">{inert_json(drawn(item))}</script></figure>\n'
    )


def term(name: str, measure: str) -> str:
    """Return the name of a measure with a link to its definition at the end of the page."""
    return (
        f'<a class="term" href="#measure-{inert(measure)}">{inert(name)}</a>' if find_measure(measure) else inert(name)
    )


def _measures_of(page: Page) -> list[Measure]:
    """Return the measures that tables and charts of a page show, in their order, each once."""
    found: list[str] = []
    for item in page.items():
        if isinstance(item, Table):
            found += [column.measure for column in item.columns]
        elif not isinstance(item, Listing):
            found += [series.measure for chart in charts_of(item) for series in chart.series]
    return [known for measure in dict.fromkeys(found) if (known := find_measure(measure))]


def _terms(page: Page) -> str:
    """Return the definitions of all measures on a page, to which its tables and charts link."""
    shown = _measures_of(page)
    if not shown:
        return ""
    entries = "".join(
        f'<div id="measure-{measure.id}"><dt>{inert(measure.label)} <code>{measure.id}</code></dt>'
        f"<dd>{inert(measure.meaning)} ({inert(f'share of {measure.of}' if measure.of else UNITS[measure.unit])}; "
        f"{inert(POOLED[measure.pooled])})</dd></div>"
        for measure in shown
    )
    return (
        '<section id="terms" aria-labelledby="terms-title"><h2 id="terms-title">What the measures mean</h2>'
        f'<dl class="terms">{entries}</dl></section>'
    )


def _footer() -> str:
    licenses = inert(asset("charts.licenses.md"))
    return (
        f"</main>\n<footer><p>Made by eirkit {__version__} from files alone; nothing on this page comes from a "
        "network.</p>\n<details><summary>Licenses of the software that draws the charts</summary>"
        f'<pre tabindex="0" aria-label="Licenses">{licenses}</pre></details></footer>'
    )
