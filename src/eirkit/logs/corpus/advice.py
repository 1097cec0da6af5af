"""Collects the few things in a corpus that are worth acting on, each with its tokens and the turn to look at.

Files that were shown again and again, compactions that dropped most of what was still needed, rules of the user that
were dropped and then broken, and clipped views that were never looked at again. How much money that is depends on
prices, which the pages add.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from heapq import nlargest
from typing import Any

from eirkit.logs.corpus.analysis import Analysis
from eirkit.logs.corpus.rows import RunRow

EACH = 3  # things of a kind
LEAST_TOKENS = 500  # less is not worth acting on
LEAST_REPEATS = 2  # times that a file was shown again
_CHARACTERS = 4  # of a token, by a rule of thumb


@dataclass(slots=True)
class RepeatedFile:
    """One file that was shown again although unchanged, over all runs."""

    path: str
    tokens: int = 0
    reads: int = 0
    runs: int = 0
    most: int = 0  # tokens that one reading showed again
    place: tuple[str, int, str] = ("", 0, "")  # run and turn of that reading, and the run's model

    def add(self, run: RunRow, tokens: int, reads: int, turn: int | None, most: int) -> None:
        self.tokens, self.reads, self.runs = self.tokens + tokens, self.reads + reads, self.runs + 1
        if most > self.most and turn is not None:
            self.most, self.place = most, (run.run_id, turn, run.model)

    def rank(self) -> tuple[int, int, str]:
        return self.tokens, self.reads, self.path

    def as_json(self) -> dict[str, Any]:
        run_id, turn, _ = self.place
        found = {"path": self.path, "repeat_tokens": self.tokens, "repeat_reads": self.reads, "runs": self.runs}
        return {**found, "run_id": run_id, "turn": turn}


@dataclass(slots=True)
class CorpusAdvice:
    """What the runs added so far have to act on."""

    instructions: Tally[str] = field(default_factory=Tally)  # at breaks, by what became of them; and broken ones
    _compactions: list[dict[str, Any]] = field(default_factory=list)
    _broken: list[dict[str, Any]] = field(default_factory=list)
    _clips: list[dict[str, Any]] = field(default_factory=list)

    def add(self, analysis: Analysis) -> None:
        """Add one run."""
        run = {"run_id": analysis.run.run_id, "model": analysis.run.model}
        for row in _rows(analysis, "breaks", ("cut", "kind", "dropped_tokens", "reread_tokens")):
            if row["dropped_tokens"] >= LEAST_TOKENS:
                found = {"kind": "compaction", **run, "turn": row["cut"], "subject": row["kind"]}
                self._compactions.append({**found, "tokens": row["dropped_tokens"], "count": row["reread_tokens"]})
        self._compactions = _largest(self._compactions)
        for row in _rows(analysis, "instructions", ("cut", "text", "survival", "broken_turn", "broken_by")):
            self.instructions[row["survival"]] += 1
            if row["broken_turn"] is not None:
                self.instructions["broken"] += 1
                found = {"kind": "instruction", **run, "turn": row["broken_turn"], "subject": row["text"]}
                self._broken.append({**found, "tokens": None, "cut": row["cut"], "by": row["broken_by"]})
        del self._broken[EACH:]
        for row in _rows(analysis, "clips", ("turn", "paths", "later_viewed", "hidden_characters")):
            hidden = (row["hidden_characters"] or 0) // _CHARACTERS
            if row["paths"] and not row["later_viewed"] and hidden >= LEAST_TOKENS:
                found = {"kind": "clip", **run, "turn": row["turn"], "subject": ", ".join(row["paths"])}
                self._clips.append({**found, "tokens": hidden})
        self._clips = _largest(self._clips)

    def as_json(self, repeated: Sequence[RepeatedFile]) -> list[dict[str, Any]]:
        """Return what to act on: broken rules first, then the rest by tokens, and clipped views last."""
        files = [
            {
                **dict(zip(("run_id", "turn", "model"), file.place, strict=True)),
                "kind": "file",
                "subject": file.path,
                "tokens": file.tokens,
                "count": file.reads,
                "runs": file.runs,
            }
            for file in repeated
            if file.tokens >= LEAST_TOKENS and file.reads >= LEAST_REPEATS
        ]
        rest = [*files[:EACH], *self._compactions, *self._clips]
        return [*self._broken, *sorted(rest, key=_rank)]


def _rank(one: dict[str, Any]) -> tuple[bool, int, str, str]:
    """Return the key by which things are listed: most tokens first; those that a cut output hid were not spent."""
    return one["kind"] == "clip", -one["tokens"], one["kind"], one["subject"]


def _rows(analysis: Analysis, table: str, names: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    columns: list[Sequence[Any]] = [analysis.tables.get(table, {}).get(name, ()) for name in names]
    for values in zip(*columns, strict=True):
        yield dict(zip(names, values, strict=True))


def _largest(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return nlargest(EACH, found, key=lambda one: (one["tokens"], one["run_id"], -one["turn"]))
