"""Reads a folder of `vestige compact` for the viewer: its compactions as a table, and one cut of a run line by line.

The folder says which lines of a context were needed and which each compactor kept. The text of the other lines is in
the logs, which are read again if they were given with --logs; without them, only the needed lines are shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from eirkit.errors import InputFileError
from eirkit.records.lines import read_document
from eirkit.report.table import Cell
from eirkit.report.viewer.logs import LogFolders
from eirkit.report.viewer.tables import CutQuery, Field, ListColumns, RowTable, telling
from eirkit.vestige.actions.touches import interpret
from eirkit.vestige.measures import COMPACTOR_MEASURES
from eirkit.vestige.tokens import estimating_counter
from eirkit_coding.compaction import MANIFEST, MANIFEST_SCHEMA
from eirkit_coding.compaction.context import ContextMessage, context_before, key_of, split_opening, texts_of
from eirkit_coding.compactors.comparison import joined
from eirkit_coding.compactors.page import compaction_document
from eirkit_coding.compactors.records import CompactionRow, CutFacts, RunRecord, marked

LONGEST_LINE = 400  # characters of a line that are shown
FIELDS: tuple[Field, ...] = (
    Field("run_id", "run", "text"),
    Field("turn", "cut before turn"),
    Field("compactor", "compactor", "text", facet=True),
    Field("budget", "budget", meaning="tokens that the compactor may return", facet=True),
    Field("status", "outcome", "text", "ok, or how it failed", facet=True),
    *(Field.of(COMPACTOR_MEASURES[name]) for name in ("kept_share", "regret_share", "gain_share")),
    Field("used_tokens", COMPACTOR_MEASURES["used_tokens_mean"].label, meaning="tokens that it returned"),
    Field("needed_tokens", "needed", meaning="tokens of the lines that later work needed"),
    Field("context_tokens", "context", meaning="tokens of the context at the cut"),
)


class CompactionTables:
    """The compactions of one folder, read on first use; texts of lines are read again for the cut that is shown."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def answers(self) -> list[str]:
        """The sentences that the command began with; none while a benchmark is not complete."""
        found = read_document(self.folder / MANIFEST, MANIFEST_SCHEMA).get("results")
        return [] if found is None else list(compaction_document(found).answer)

    @cached_property
    def table(self) -> RowTable:
        rows = [row for record in joined(self.folder) for row in _rows(record)]
        columns = ListColumns({one.key: [row[one.key] for row in rows] for one in FIELDS}, len(rows))
        return RowTable(telling(FIELDS, columns, [one.key for one in FIELDS]), columns, "compaction")

    def cut(self, run_id: str, query: CutQuery, logs: LogFolders) -> dict[str, Any]:
        """Return one cut of a run with its lines and, for each compactor, which of them it kept."""
        record = next((record for record in joined(self.folder) if record.run_id == run_id), None)
        if record is None:
            raise InputFileError(f"the folder has no run {run_id!r}; reload the page")
        return cut_document(record, query, logs)


def _rows(record: RunRecord) -> Iterator[dict[str, Cell]]:
    facts = {cut.turn: cut for cut in record.cuts}
    for row in record.rows:
        needed = facts[row.turn].needed_tokens
        yield {
            "run_id": row.run_id,
            "turn": row.turn,
            "compactor": row.compactor,
            "budget": row.budget,
            "status": row.status,
            "kept_share": _share(row.kept_tokens, needed),
            "regret_share": _share(row.best_tokens - row.kept_tokens, needed),
            "gain_share": _share(row.kept_tokens - row.sham_tokens, needed),
            "used_tokens": row.used_tokens,
            "needed_tokens": needed,
            "context_tokens": facts[row.turn].context_tokens,
        }


def _share(part: float, whole: int) -> float | None:
    return part / whole if whole else None


@dataclass(frozen=True, slots=True)
class _Line:
    """One line of a context, with a digit for each compactor: 1 where it was kept."""

    text: str
    needed: bool
    kept: str

    def is_chosen(self, which: str) -> bool:
        return which == "all" or (self.needed and (which == "needed" or "0" in self.kept))

    def as_json(self) -> dict[str, Any]:
        cut = self.text if len(self.text) <= LONGEST_LINE else f"{self.text[:LONGEST_LINE]}…"
        return {"text": cut, "needed": self.needed, "kept": self.kept}


_Part = tuple[str, Sequence[_Line]]  # what the lines are of: a message or a file


def cut_document(record: RunRecord, asked: CutQuery, logs: LogFolders) -> dict[str, Any]:
    """Return one cut with its lines and, for each compactor, which of them it kept."""
    facts = next((cut for cut in record.cuts if cut.turn == asked.turn), record.cuts[0] if record.cuts else None)
    if facts is None:
        raise InputFileError(f"run {record.run_id} has no cut; choose another")
    here = [row for row in record.rows if row.turn == facts.turn]
    budgets = sorted({row.budget for row in here})
    budget = asked.budget if asked.budget in budgets else max(budgets, default=0)
    rows = [row for row in here if row.budget == budget]
    missing = ""
    try:
        parts = _whole_text(record, facts, rows, logs)
    except InputFileError as error:
        parts, missing = _needed_lines(record, facts, rows), str(error)
    chosen = [(title, line) for title, lines in parts for line in lines if line.is_chosen(asked.lines)]
    return {
        "run": record.run_id,
        "source": record.source,
        "turn": facts.turn,
        "turns": [cut.turn for cut in record.cuts],
        "budget": budget,
        "budgets": budgets,
        "context_tokens": facts.context_tokens,
        "needed_tokens": facts.needed_tokens,
        "needed_lines": facts.needed_lines,
        "compactors": [_compactor(row, facts) for row in rows],
        "missing": missing,
        "matched": len(chosen),
        "offset": asked.offset,
        "parts": _grouped(chosen[asked.offset : asked.offset + asked.limit]),
    }


def _compactor(row: CompactionRow, facts: CutFacts) -> dict[str, Any]:
    return {
        "name": row.compactor,
        "status": row.status,
        "reason": row.reason,
        "used_tokens": row.used_tokens,
        "kept_share": _share(row.kept_tokens, facts.needed_tokens),
    }


def _grouped(lines: Sequence[tuple[str, _Line]]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for title, line in lines:
        if not found or found[-1]["title"] != title:
            found.append({"title": title, "lines": []})
        found[-1]["lines"].append(line.as_json())
    return found


def _digits(rows: Sequence[CompactionRow], form: str, places: int) -> list[str]:
    """Return, for each line, a digit a compactor."""
    marks = [marked(getattr(row, form), places) for row in rows]
    return ["".join("01"[own[place]] for own in marks) for place in range(places)]


def _needed_lines(record: RunRecord, facts: CutFacts, rows: Sequence[CompactionRow]) -> list[_Part]:
    """Return the needed lines as the folder has them, by file."""
    lines = record.lines[record.cuts.index(facts)]
    kept = _digits(rows, "kept", min(facts.needed_lines, len(lines)))
    files: dict[str, list[_Line]] = {}
    for line, digits in zip(lines, kept, strict=False):  # of a very long run, only the first are stored
        files.setdefault(str(next(iter(line["paths"]), "")), []).append(_Line(str(line["text"]), True, digits))
    return list(files.items())


def _whole_text(record: RunRecord, facts: CutFacts, rows: Sequence[CompactionRow], logs: LogFolders) -> list[_Part]:
    """Return the context line by line, as the log has it.

    Raises:
        InputFileError: the log was not given or has changed.
    """
    recording = logs.recording({"source": record.source, "run_id": record.run_id, "format": record.format})
    messages = split_opening(context_before(interpret(recording, estimating_counter()), facts.turn))[1]
    keys = list(dict.fromkeys(key_of(line) for message in messages for line in _lines_of(message)))
    if len(keys) != facts.lines:
        raise InputFileError(f"{record.source} has changed since it was cut; give the log that was cut")
    needed = dict(zip(keys, marked(facts.marks, facts.lines), strict=True))
    kept = dict(zip(keys, _digits(rows, "present", facts.lines), strict=True))
    return [
        (_title(message), [_Line(line, needed[key_of(line)], kept[key_of(line)]) for line in _lines_of(message)])
        for message in messages
    ]


def _lines_of(message: ContextMessage) -> Iterator[str]:
    for text in texts_of(message):
        yield from (line for line in text.splitlines() if line and not line.isspace())


def _title(message: ContextMessage) -> str:
    who = f"result of {message.tool}" if message.role == "tool" and message.tool else message.role
    return f"turn {message.turn}, {who}" if message.turn else who
