"""The records of a compaction benchmark: what was needed at each cut of a run, and what each compactor kept of it.

One record a run and set of compactors, appended as soon as the run is done: an interrupted benchmark continues, and
records of the same run for other compactors or budgets are joined on reading.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path
from typing import Any

from eirkit.records.lines import read_records
from eirkit.vestige.trajectory import Recording
from eirkit_coding.compaction import COMPACTIONS, COMPACTIONS_SCHEMA
from eirkit_coding.compaction.context import MESSAGE_TOKENS
from eirkit_coding.compaction.cuts import ContextCut, CutPlan, best_kept
from eirkit_coding.compactors.trial import TriedCompaction

LINE_CHARACTERS = 160  # of a needed line that are stored
MOST_LINES = 20_000  # needed lines that are stored of one run, those of its first cuts; all of them are measured
TIMES, TIMES_SCHEMA = "seconds.jsonl", "compaction-seconds/1"  # apart, since nothing else differs between two runs


@dataclass(frozen=True, slots=True)
class CutFacts:
    """What was needed at one cut, whoever compacted it."""

    run_id: str
    turn: int  # the cut lies just before it
    context_tokens: int  # without the opening
    lines: int  # distinct lines in the context
    needed_lines: int
    needed_tokens: int
    read_tokens: int  # of the needed: shown by reads
    written_tokens: int  # of the needed: written by the agent
    needed_files: int
    unread_files: int  # needed files of which the context shows no line
    instructions: int
    paths: int
    names: int
    marks: str  # by line of the context, as `CompactionRow.kept`: whether it was needed


@dataclass(frozen=True, slots=True)
class CompactionRow:
    """What one compactor made of one cut within one budget."""

    run_id: str
    turn: int
    compactor: str
    budget: int
    status: str
    reason: str
    used_tokens: int
    kept_tokens: int
    best_tokens: int  # the most that any compactor can keep
    random_tokens: float  # that random lines within the budget keep on average
    sham_tokens: float  # that random lines of as many tokens as were used keep on average
    read_tokens: int
    written_tokens: int
    verbatim: int
    substance: int
    paths: int
    names: int
    calls: int
    input_tokens: int
    output_tokens: int
    cost_usd: float | None
    kept: str  # by needed line, in hexadecimal: whether it was kept; the first line is the lowest bit
    present: str  # the same by line of the context, needed or not


def facts_of(cut: ContextCut) -> CutFacts:
    """Return what is recorded of a cut."""
    kinds = {
        kind: sum(line.tokens for line in cut.needed.values() if line.kind == kind) for kind in ("read", "written")
    }
    files = {path for line in cut.needed.values() for path in line.paths}
    return CutFacts(
        run_id=cut.run_id,
        turn=cut.turn,
        context_tokens=cut.context_tokens,
        lines=len(cut.lines),
        needed_lines=len(cut.needed),
        needed_tokens=cut.needed_tokens,
        read_tokens=kinds["read"],
        written_tokens=kinds["written"],
        needed_files=len(files),
        unread_files=cut.unread_files,
        instructions=len(cut.instructions),
        paths=len(cut.paths),
        names=len(cut.names),
        marks=_bits(key in cut.needed for key in cut.lines),
    )


def lines_of(cut: ContextCut) -> list[dict[str, Any]]:
    """Return the needed lines of a cut as they are recorded, in order."""
    return [
        {"text": line.text[:LINE_CHARACTERS], "paths": list(line.paths), "tokens": line.tokens}
        for line in cut.needed.values()
    ]


@dataclass(frozen=True, slots=True)
class Bounds:
    """What can be kept at a cut within a budget."""

    best_tokens: int  # by anybody
    random_tokens: float  # by random lines, on average

    @classmethod
    def at(cls, cut: ContextCut, budget: int) -> Bounds:
        """Return the bounds of a cut."""
        return cls(best_kept(cut, budget), cut.random_keeping.expected(max(0, budget - MESSAGE_TOKENS)))


def row_of(cut: ContextCut, tried: TriedCompaction, bounds: Bounds) -> CompactionRow:
    """Return the row of one compaction."""
    outcome, state, usage = tried.outcome, tried.outcome.state, tried.usage
    return CompactionRow(
        run_id=cut.run_id,
        turn=cut.turn,
        compactor=tried.choice.label,
        budget=tried.budget,
        status=outcome.status,
        reason=outcome.reason[:500],
        used_tokens=state.used_tokens,
        kept_tokens=state.kept_tokens,
        best_tokens=bounds.best_tokens,
        random_tokens=round(bounds.random_tokens, 6),
        sham_tokens=round(outcome.sham_tokens, 6),
        read_tokens=state.read_tokens,
        written_tokens=state.written_tokens,
        verbatim=state.verbatim,
        substance=state.substance,
        paths=state.paths,
        names=state.names,
        calls=usage.calls,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cost_usd=usage.cost_usd,
        kept=_bits(key in outcome.present for key in cut.needed),
        present=_bits(key in outcome.present for key in cut.lines),
    )


def _bits(marks: Iterable[bool]) -> str:
    """Return marks in hexadecimal, the first as the lowest bit."""
    digits = "".join("01"[mark] for mark in marks)[::-1]
    return f"{int(digits or '0', 2):x}"


def marked(bits: str, places: int) -> list[bool]:
    """Return the marks of the first places, from their hexadecimal form."""
    wanted = int(bits or "0", 16) & ((1 << places) - 1)
    return [digit == "1" for digit in f"{wanted:0{places}b}"[::-1][:places]]


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One run of a benchmark."""

    run_id: str
    source: str
    format: str  # of the log
    digest: str  # of the run and of where it is cut
    tried: tuple[tuple[str, int], ...]  # compactors and budgets; a cut whose context is within a budget has no row
    cuts: tuple[CutFacts, ...]
    lines: tuple[tuple[Mapping[str, Any], ...], ...]  # by cut: the needed lines
    rows: tuple[CompactionRow, ...]

    def as_json(self) -> dict[str, Any]:
        cuts = [{**asdict(cut), "needed": list(lines)} for cut, lines in zip(self.cuts, self.lines, strict=True)]
        rows = [asdict(row) for row in self.rows]
        for one in (*cuts, *rows):
            del one["run_id"]
        named = {"run_id": self.run_id, "source": self.source, "format": self.format, "digest": self.digest}
        return {**named, "tried": [list(one) for one in self.tried], "cuts": cuts, "rows": rows}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> RunRecord:
        run = value["run_id"]
        cuts, lines = [], []
        for one in value["cuts"]:
            facts = dict(one)
            lines.append(tuple(facts.pop("needed")))
            cuts.append(CutFacts(run_id=run, **facts))
        rows = tuple(CompactionRow(run_id=run, **row) for row in value["rows"])
        tried = tuple((str(label), int(budget)) for label, budget in value["tried"])
        return cls(run, value["source"], value["format"], value["digest"], tried, tuple(cuts), tuple(lines), rows)


def digest_of(recording: Recording, plan: CutPlan, gold: str) -> str:
    """Return a digest of all that the cuts of a run depend on."""
    found = blake2b(
        repr((version("eirkit"), str(plan), gold, recording.prompt)).encode("utf-8", "replace"), digest_size=16
    )
    for turn in recording.turns:
        found.update(repr(turn).encode("utf-8", "replace"))
    return found.hexdigest()


def read_runs(folder: Path) -> Iterator[RunRecord]:
    """Yield the records of a benchmark in order."""
    path = folder / COMPACTIONS
    if path.is_file():
        for value in read_records(path, COMPACTIONS_SCHEMA):
            yield RunRecord.from_json(value)
