"""Formats shares, numbers, counts and lists for use in sentences."""

from __future__ import annotations

from collections.abc import Sequence

FEWEST = 0.005  # shares up to this would be rounded to 0%, which is reserved for exactly 0


def share(value: float | None) -> str:
    """Return a share as a whole percentage; only exactly 0 is shown as 0% and only exactly 1 as 100%."""
    if value is None:
        return "–"
    if 0 < value <= FEWEST:
        return "under 1%"
    return "over 99%" if 1 - FEWEST <= value < 1 else f"{value:.0%}"


def number(value: float | None, digits: int = 0) -> str:
    return "–" if value is None else f"{value:,.{digits}f}"


def points(value: float) -> str:
    """Return a difference of two shares in percentage points, with its sign."""
    shown = f"{100 * value:+.1f}"
    return "0.0" if float(shown) == 0 else shown.replace("-", "−")


def counted(amount: int, noun: str, plural: str = "") -> str:
    """Return `1 run`, `3 runs`."""
    return f"{amount:,} {noun if amount == 1 else plural or noun + 's'}"


def listed(words: Sequence[str], most: int = 6) -> str:
    """Return `a, b and c`; beyond `most` words only the number of the others."""
    if len(words) > most:
        return f"{', '.join(words[: most - 1])} and {len(words) - most + 1} more"
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))
