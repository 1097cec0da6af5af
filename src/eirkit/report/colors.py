"""The colors of measures, also as CSS variables, and of other series, which keep theirs throughout a page.

`tools/glossary.py --write` turns the table into `web/src/measures.css`, so that pages and figures show the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from eirkit.report.document import Chart, Figure, Page, Series


@dataclass(frozen=True, slots=True)
class Shade:
    """One color as hexadecimal RGB."""

    light: str  # on a light background, and on paper
    dark: str


COLORS: Mapping[str, Shade] = {
    "correct": Shade("#0a7566", "#3fae9c"),
    "missing-input": Shade("#c0410a", "#ef7f45"),
    "carried-over-error": Shade("#96690a", "#d9ab3f"),
    "not-answered": Shade("#4470a8", "#86b3e8"),
    "malformed": Shade("#7a4a86", "#c79bd3"),
    "truncated": Shade("#2f6f8f", "#7fb9d6"),
    "undetermined": Shade("#6f6a5a", "#b9b39f"),
    "own-error": Shade("#6a3fb5", "#a98be8"),
    "used": Shade("#1b7f4f", "#4fbf85"),
    "not-used": Shade("#6b7f1d", "#b3c75a"),
    "returned": Shade("#3f7d86", "#7fc0c9"),
    "other-value": Shade("#a0338f", "#e58fd4"),
    "swapped-value": Shade("#7d4bc0", "#bb9aee"),
    "cut-value": Shade("#b0305f", "#f08cb0"),
    "stale-value": Shade("#8a5a3c", "#cfa283"),
    "not-overwritten": Shade("#6e4a7e", "#c3a0d3"),
    "expired": Shade("#8f6b00", "#dcbb55"),
    "contradicted": Shade("#b8004a", "#ff86ad"),
    "rightly-gone": Shade("#2f6d57", "#7dc2a8"),
    "unclear": Shade("#3f6f73", "#86b8bc"),
    "not-returned": Shade("#d0781c", "#f0a45a"),
    "not-stored": Shade("#a3261f", "#ee7b70"),
    "not-searched": Shade("#2c7fb8", "#74b9e6"),
    "not-written": Shade("#5c6470", "#a7b0bd"),
    "nothing-injected": Shade("#767e8a", "#98a1ad"),
    "sham-injected": Shade("#b45f93", "#e3a3c8"),
    "restored": Shade("#1f5fa8", "#7ab0ee"),
    "withdrawn": Shade("#8c1d5a", "#e37fb6"),
    "another-user": Shade("#4b5d16", "#a9bd62"),
    "left-out": Shade("#0f6b7a", "#6bc0ce"),
    "opaque": Shade("#3d4f8f", "#93a5e6"),
    "lost-again": Shade("#7f2d1d", "#d98775"),
    "unlisted": Shade("#5f5a8a", "#aba6d8"),
    "out-of-view": Shade("#4d7354", "#9cc3a2"),
    "unmatched": Shade("#a36a1f", "#dfb06e"),
    "below-budget": Shade("#756c5d", "#c4bba9"),
    "misdated": Shade("#2b6e1e", "#86cf77"),
    "invented": Shade("#c2185b", "#f48fb1"),
    "misread": Shade("#512da8", "#b39ddb"),
    "several-values": Shade("#6d5a00", "#cdb94a"),
    "partial": Shade("#9c4221", "#f0a07c"),
    "planted": Shade("#145a32", "#6fcf97"),
    "line-kept": Shade("#00707f", "#4cc5d6"),
    "line-dropped": Shade("#b5122f", "#ff8a95"),
}


def css_variable(token: str) -> str:
    """Return the CSS variable of a color."""
    return f"--measure-{token}"


def stylesheet() -> str:
    """Return the colors as CSS variables for light and dark screens; paper is always light."""
    light, dark = (
        [f"{css_variable(token)}: {getattr(shade, side)};" for token, shade in COLORS.items()]
        for side in ("light", "dark")
    )
    by_system = _block(':root:not([data-theme="light"])', dark, "  ")
    by_choice = _block(':root[data-theme="dark"]', dark, "  ")
    return (
        "/* Generated from src/eirkit/report/colors.py by tools/glossary.py; do not edit. */\n"
        f"{_block(':root', light)}"
        f"@media screen and (prefers-color-scheme: dark) {{\n{by_system}}}\n"
        f"@media screen {{\n{by_choice}}}\n"
    )


def _block(selector: str, lines: list[str], margin: str = "") -> str:
    inside = "".join(f"{margin}  {line}\n" for line in lines)
    return f"{margin}{selector} {{\n{inside}{margin}}}\n"


# Color-blind safe palette of Okabe and Ito; the same as for paper in charts.css.
SERIES_COLORS = ("#0072b2", "#d55e00", "#009e73", "#aa4499", "#b8860b", "#56b4e9", "#5b5f97", "#666666")
_NUMBERED = "series-"  # how the token of a color of the palette begins


def number_of(series: Series, index: int) -> int:
    """Return which symbol of the palette a series has, and which color unless it is that of a measure."""
    return int(series.color.removeprefix(_NUMBERED)) if series.color.startswith(_NUMBERED) else index - series.pale


def color_of(series: Series, index: int) -> str:
    """Return the color of a series on paper: that of its measure, else one of the palette."""
    if series.color and not series.color.startswith(_NUMBERED):
        return COLORS[series.color].light
    return SERIES_COLORS[number_of(series, index) % len(SERIES_COLORS)]


def colored(page: Page) -> Page:
    """Return a page on which series of the same name have the same color in all charts, as long as colors last."""
    known: dict[str, int] = {}
    sections = [
        replace(
            section,
            items=tuple(
                colored_item(item, known) if isinstance(item, (Chart, Figure)) else item for item in section.items
            ),
        )
        for section in page.sections
    ]
    return replace(page, sections=tuple(sections))


def colored_item(item: Chart | Figure, known: dict[str, int] | None = None) -> Chart | Figure:
    """Return a chart, or a figure in whose panels series of the same name have the same color.

    Args:
        known: the numbers of colors that names have already; those of the item are added.
    """
    known = {} if known is None else known
    if isinstance(item, Figure):
        return replace(item, panels=tuple(_colored_chart(panel, known) for panel in item.panels))
    return _colored_chart(item, known)


def _colored_chart(chart: Chart, known: dict[str, int]) -> Chart:
    taken: set[int] = set()
    series: list[Series] = []
    for one in chart.series:
        if one.pale and series:
            series.append(replace(one, color=series[-1].color))
            continue
        if one.color or one.mark == "cells":
            series.append(one)
            continue
        usual = known.get(one.name)
        others = set(known.values()) | taken
        free = [number for number in range(len(SERIES_COLORS)) if number not in others]
        left = [number for number in range(len(SERIES_COLORS)) if number not in taken] or [len(taken)]
        number = usual if usual is not None and usual not in taken else (free or left)[0]
        known.setdefault(one.name, number)
        taken.add(number)
        series.append(replace(one, color=f"{_NUMBERED}{number}"))
    return replace(chart, series=tuple(series))
