"""What the studies with agents share: a published figure beside ours, which model made each, and why they differ."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from eirkit.cli.output import WholeConsole, table
from studies import published
from studies.published import TOLERANCE

WIDTH = 150  # columns
ROUNDING = 0.0005  # published figures have three digits


@dataclass(frozen=True, slots=True)
class Row(published.Row):
    """One published figure beside ours, and who made each.

    A verdict may also be `model`: a trait of the model that ours does not claim to have.
    """

    published_model: str
    our_model: str
    reason: str = ""  # why they differ, where they do


def compare(label: str, published: float, threes: Sequence[float], models: tuple[str, str], reason: str = "") -> Row:
    """Return a row: inside if the published figure lies within three standard deviations of our three-seed means.

    Args:
        reason: what is known of the difference, shown where there is one; it never changes the verdict.
    """
    ours, low, high = _spread(threes)
    inside = low - ROUNDING <= published <= high + ROUNDING
    return Row(label, published, ours, low, high, "inside" if inside else "outside", *models, "" if inside else reason)


def trait(label: str, published: float, threes: Sequence[float], models: tuple[str, str], reason: str) -> Row:
    """Return a row that is shown and never judged: near or far, the two figures belong to different models."""
    return Row(label, published, *_spread(threes), "model", *models, reason)


def _spread(threes: Sequence[float]) -> tuple[float, float, float]:
    values = np.asarray(threes, dtype=float)
    ours, spread = float(values.mean()), TOLERANCE * float(values.std())
    return ours, ours - spread, ours + spread


def document(identity: str, title: str, rows: Sequence[Row], **more: Any) -> dict[str, Any]:
    """Return the study as one document; rows that are not judged do not decide its verdict."""
    return {
        "id": identity,
        "title": title,
        "kind": "reference agents",
        "verdict": "outside" if any(row.verdict == "outside" for row in rows) else "inside",
        "rows": [asdict(row) for row in rows],
        **more,
    }


def show(made: dict[str, Any], arguments: Sequence[str]) -> None:
    """Print a study, as JSON or for reading."""
    if "--json" in arguments:
        print(json.dumps(made, ensure_ascii=False))
        return
    console = WholeConsole(width=WIDTH)
    names = ("label", "published", "ours", "low", "high", "verdict", "published_model", "our_model")
    columns = ("figure", "published", "ours", "− 3 sd", "+ 3 sd", "verdict", "published by", "ours by")
    console.print(table(made["title"], columns, [[row[name] for name in names] for row in made["rows"]]))
    for verdict, reason in dict.fromkeys((row["verdict"], row["reason"]) for row in made["rows"] if row["reason"]):
        console.print(f"{verdict}: {reason}", soft_wrap=True)
