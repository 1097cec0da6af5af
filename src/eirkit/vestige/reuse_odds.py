"""How often a file with a given past is used again: its uses, how long ago the last was, and whether it was edited.

The counts come from recorded runs (`python -m studies.guard_replay` makes them anew); no text of any run is in them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

MOST_USES = 4
IDLE = (0, 1, 3, 7, 15)  # turns; up to each of them, and beyond the last
PRIOR_USED, PRIOR = 1, 2  # one of two imagined files, so that no past is certain


@dataclass(frozen=True, slots=True)
class Past:
    """What the run has done with a file so far."""

    uses: int  # turns that read or wrote it
    idle: int  # turns since the last of them
    written: bool

    @property
    def cell(self) -> str:
        """The name of the cell in which such pasts are counted."""
        resting = next((str(most) for most in IDLE if self.idle <= most), "more")
        return f"{'written' if self.written else 'read'} {min(self.uses, MOST_USES)} {resting}"


Counts = Mapping[str, tuple[int, int]]  # cell → used again, all


def reuse_chance(past: Past, counts: Counts | None = None) -> float:
    """Return the share of files with such a past that were used again; a cell that nobody saw gives a half."""
    used, every = (counts if counts is not None else shipped_counts()).get(past.cell, (0, 0))
    return (used + PRIOR_USED) / (every + PRIOR)


def counted(pasts: Iterable[tuple[Past, bool]]) -> dict[str, tuple[int, int]]:
    """Return the counts of pasts, each with whether the file was used again."""
    found: dict[str, tuple[int, int]] = {}
    for past, again in pasts:
        used, every = found.get(past.cell, (0, 0))
        found[past.cell] = (used + again, every + 1)
    return dict(sorted(found.items()))


@cache
def shipped_counts() -> Counts:
    """Return the counts that come with the package."""
    text = (files(__package__) / "reuse_odds.json").read_text("utf-8")
    return {cell: (used, every) for cell, (used, every) in json.loads(text)["counts"].items()}
