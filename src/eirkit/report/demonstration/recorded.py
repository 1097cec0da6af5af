"""Recorded runs of the demonstration: one log written by hand, and a corpus with a planted effect; no extra needed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from eirkit.errors import InputFileError
from eirkit.report.analysed import Analysed
from eirkit.report.measured import analysed_here
from eirkit.vestige.analysis import Analysis, Options, measure
from eirkit.vestige.formats.plain import Plain
from eirkit.vestige.occupancy import read_windows
from eirkit.vestige.planting import Effects, Planted, plain_lines
from eirkit.vestige.source import Document, Skipped
from eirkit.vestige.tokens import estimating_counter

EXAMPLE = "example.jsonl"
CORPUS = Planted(400, 80, coverage=0.9, effects=Effects(demand_odds=1.6))
SEED = 0


@dataclass(frozen=True, slots=True)
class TextLog:
    """A log in memory: JSON lines of ours, which need no lenient parser."""

    source: str
    text: str
    parent: Path | None = None

    @property
    def name(self) -> str:
        return self.source

    @property
    def head(self) -> bytes:
        return self.text.encode()[: 1 << 16]

    def json(self) -> Any:
        raise InputFileError(f"{self.source} is not one document; read its lines")

    def lines(self) -> Iterator[tuple[int, Any | Exception]]:
        return ((number, json.loads(line)) for number, line in enumerate(self.text.splitlines(), 1))

    def rows(self) -> Iterator[tuple[int, Mapping[str, Any] | Exception]]:
        return iter(())

    def members(self) -> Sequence[Document]:
        return ()


def example() -> Analysis:
    """Return the analysis of the run that comes with the package."""
    text = (files("eirkit.report") / "assets" / EXAMPLE).read_text("utf-8")
    (analysis,) = _measured(TextLog(EXAMPLE, text))
    return analysis


def planted() -> Analysed:
    """Return the analysis of a corpus in which need goes with failure, because it was put there."""
    text = b"".join(plain_lines(CORPUS, SEED)).decode()
    return analysed_here("planted", list(_measured(TextLog("planted.jsonl", text))), {"visibility": "seen"})


def _measured(log: TextLog) -> Iterator[Analysis]:
    """Yield the analysis of each run; these logs give their own token counts, so the counter is never asked."""
    options, count = Options(read_windows()), estimating_counter()
    for recording in Plain().read(log):
        if isinstance(recording, Skipped):
            raise InputFileError(f"{recording.source}: {recording.reason}; the package is damaged, install it again")
        yield measure(recording, None, options, count)
