"""Colours of measures, by token, for light screens and paper and for dark screens; writes them as CSS variables.

`tools/glossary.py --write` turns this table into `web/src/measures.css`, so that pages and figures show the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Shade:
    """One colour as hexadecimal RGB."""

    light: str  # on a light background, and on paper
    dark: str


COLOURS: Mapping[str, Shade] = {
    "correct": Shade("#0a7566", "#3fae9c"),
    "missing-input": Shade("#c0410a", "#ef7f45"),
    "carried-over-error": Shade("#96690a", "#d9ab3f"),
    "not-answered": Shade("#4470a8", "#86b3e8"),
    "own-error": Shade("#6a3fb5", "#a98be8"),
    "used": Shade("#1b7f4f", "#4fbf85"),
    "not-used": Shade("#6b7f1d", "#b3c75a"),
    "other-value": Shade("#a0338f", "#e58fd4"),
    "not-returned": Shade("#d0781c", "#f0a45a"),
    "not-stored": Shade("#a3261f", "#ee7b70"),
    "not-searched": Shade("#2c7fb8", "#74b9e6"),
    "not-written": Shade("#5c6470", "#a7b0bd"),
}


def css_variable(token: str) -> str:
    """Return the CSS variable of a colour."""
    return f"--measure-{token}"


def stylesheet() -> str:
    """Return the colours as CSS variables for light and dark screens; paper is always light."""
    light, dark = (
        [f"{css_variable(token)}: {getattr(shade, side)};" for token, shade in COLOURS.items()]
        for side in ("light", "dark")
    )
    by_system = _block(':root:not([data-theme="light"])', dark, "  ")
    by_choice = _block(':root[data-theme="dark"]', dark, "  ")
    return (
        "/* Generated from src/eirkit/show/colours.py by tools/glossary.py; do not edit. */\n"
        f"{_block(':root', light)}"
        f"@media screen and (prefers-color-scheme: dark) {{\n{by_system}}}\n"
        f"@media screen {{\n{by_choice}}}\n"
    )


def _block(selector: str, lines: list[str], margin: str = "") -> str:
    inside = "".join(f"{margin}  {line}\n" for line in lines)
    return f"{margin}{selector} {{\n{inside}{margin}}}\n"
