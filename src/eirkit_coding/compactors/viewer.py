"""Reads a folder of `vestige compact` for the viewer: its compactions as a table, and one cut of a run line by line.

The folder says which lines of a context were needed and which each compactor kept. The text of the other lines is in
the logs, which are read again if they were given with --logs; without them, only the needed lines are shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import groupby
from pathlib import Path

from eirkit.errors import InputFileError
from eirkit.report.table import Cell
from eirkit.report.viewer.logs import LogFolders
from eirkit.report.viewer.tables import (
    CutCompactor,
    CutContext,
    CutLine,
    CutPart,
    CutQuery,
    Field,
    ListColumns,
    RowTable,
    telling,
)
from eirkit.vestige.actions.touches import interpret
from eirkit.vestige.measures import COMPACTOR_MEASURES
from eirkit.vestige.tokens import estimating_counter
from eirkit_coding.compaction.context import ContextMessage, key_of, split_opening, texts_of
from eirkit_coding.compaction.recorded import context_before
from eirkit_coding.compactors.page import compaction_document
from eirkit_coding.compactors.records import CompactionRow, CutFacts, RunRecord, joined, marked, read_manifest

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
        results = read_manifest(self.folder).results
        return [] if results is None else list(compaction_document(results).answer)

    @cached_property
    def table(self) -> RowTable:
        rows = [row for record in joined(self.folder) for row in _rows(record)]
        columns = ListColumns({field.key: [row[field.key] for row in rows] for field in FIELDS}, len(rows))
        return RowTable(telling(FIELDS, columns, [field.key for field in FIELDS]), columns, "compaction")

    def cut(self, run_id: str, query: CutQuery, logs: LogFolders) -> CutContext:
        """Return one cut of a run with its lines and, for each compactor, which of them it kept."""
        record = next((record for record in joined(self.folder) if record.run_id == run_id), None)
        if record is None:
            raise InputFileError(f"the folder has no run {run_id!r}; reload the page")
        return shown_cut(record, query, logs)


def _rows(record: RunRecord) -> Iterator[dict[str, Cell]]:
    facts = {cut.turn: cut for cut in record.cuts}
    for row in record.rows:
        needed = facts[row.turn].needed_tokens
        yield {
            "run_id": record.run_id,
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


def _is_chosen(line: CutLine, which: str) -> bool:
    return which == "all" or (line.needed and (which == "needed" or "0" in line.kept))


def shown_cut(record: RunRecord, asked: CutQuery, logs: LogFolders) -> CutContext:
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
        parts, missing = _needed_lines(facts, rows), str(error)
    chosen = [(part.title, line) for part in parts for line in part.lines if _is_chosen(line, asked.lines)]
    page = chosen[asked.offset : asked.offset + asked.limit]
    return CutContext(
        run=record.run_id,
        source=record.source,
        turn=facts.turn,
        turns=tuple(cut.turn for cut in record.cuts),
        budget=budget,
        budgets=tuple(budgets),
        context_tokens=facts.context_tokens,
        needed_tokens=facts.needed_tokens,
        needed_lines=facts.needed_lines,
        compactors=tuple(
            CutCompactor(
                row.compactor, row.status, row.reason, row.used_tokens, _share(row.kept_tokens, facts.needed_tokens)
            )
            for row in rows
        ),
        missing=missing,
        matched=len(chosen),
        offset=asked.offset,
        parts=tuple(
            CutPart(title, tuple(line for _, line in lines))
            for title, lines in groupby(page, key=lambda titled: titled[0])
        ),
    )


def _line(text: str, needed: bool, kept: str) -> CutLine:
    return CutLine(text if len(text) <= LONGEST_LINE else f"{text[:LONGEST_LINE]}…", needed, kept)


def _digits(rows: Sequence[CompactionRow], form: str, places: int) -> list[str]:
    """Return, for each line, a digit a compactor."""
    marks = [marked(getattr(row, form), places) for row in rows]
    return ["".join("01"[own[place]] for own in marks) for place in range(places)]


def _needed_lines(facts: CutFacts, rows: Sequence[CompactionRow]) -> list[CutPart]:
    """Return the needed lines as the folder has them, by file."""
    kept = _digits(rows, "kept", len(facts.needed))
    files: dict[str, list[CutLine]] = {}
    for line, digits in zip(facts.needed, kept, strict=True):
        files.setdefault(next(iter(line.paths), ""), []).append(_line(line.text, True, digits))
    return [CutPart(path, tuple(lines)) for path, lines in files.items()]


def _whole_text(record: RunRecord, facts: CutFacts, rows: Sequence[CompactionRow], logs: LogFolders) -> list[CutPart]:
    """Return the context line by line, as the log has it.

    Raises:
        InputFileError: the log was not given or has changed.
    """
    recording = logs.recording(record)
    messages = split_opening(context_before(interpret(recording, estimating_counter()), facts.turn))[1]
    keys = list(dict.fromkeys(key_of(line) for message in messages for line in _lines_of(message)))
    if len(keys) != facts.lines:
        raise InputFileError(f"{record.source} has changed since it was cut; give the log that was cut")
    needed = dict(zip(keys, marked(facts.marks, facts.lines), strict=True))
    kept = dict(zip(keys, _digits(rows, "present", facts.lines), strict=True))
    return [
        CutPart(
            _title(message),
            tuple(_line(line, needed[key_of(line)], kept[key_of(line)]) for line in _lines_of(message)),
        )
        for message in messages
    ]


def _lines_of(message: ContextMessage) -> Iterator[str]:
    for text in texts_of(message):
        yield from (line for line in text.splitlines() if line and not line.isspace())


def _title(message: ContextMessage) -> str:
    who = f"result of {message.tool}" if message.role == "tool" and message.tool else message.role
    return f"turn {message.turn}, {who}" if message.turn else who
