"""The folder of a compaction benchmark as types: what was needed at each cut, what each compactor kept, the results.

One record a run and set of compactors, appended as soon as the run is done: an interrupted benchmark continues, and
records of the same run for other compactors or budgets are joined on reading.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeVar

from msgspec import Struct, ValidationError, convert
from msgspec.structs import replace

from eirkit.errors import InputFileError
from eirkit.lacuna.findings.ranking import Ranking
from eirkit.records.documents import read_struct, write_struct
from eirkit.records.lines import read_records
from eirkit.vestige.sources.documents import Skipped
from eirkit_coding.compaction import COMPACTIONS, COMPACTIONS_SCHEMA, MANIFEST, MANIFEST_SCHEMA, CompactionStatus

TIMES, TIMES_SCHEMA = "seconds.jsonl", "compaction-seconds/1"  # apart, since nothing else differs between two runs
_Kind = TypeVar("_Kind")


class StoredLine(Struct, frozen=True):
    """A needed line as it is stored."""

    text: str  # its beginning
    paths: tuple[str, ...]  # live files that contain it
    tokens: int


class CutFacts(Struct, frozen=True, kw_only=True):
    """What was needed at one cut, whoever compacted it."""

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
    needed: tuple[StoredLine, ...]  # in order; of a very long run, only the first are stored


class CompactionRow(Struct, frozen=True, kw_only=True):
    """What one compactor made of one cut within one budget."""

    turn: int
    compactor: str
    budget: int
    status: CompactionStatus
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


class RunRecord(Struct, frozen=True):
    """One run of a benchmark."""

    run_id: str
    source: str
    format: str  # of the log
    digest: str  # of the run and of where it is cut
    tried: tuple[tuple[str, int], ...]  # compactors and budgets; a cut whose context is within a budget has no row
    cuts: tuple[CutFacts, ...]
    rows: tuple[CompactionRow, ...]


class RunSeconds(Struct, frozen=True):
    """How long the compactions of one run took, by compactor."""

    run_id: str
    seconds: dict[str, float]


class Failures(Struct, frozen=True):
    """The failures of one kind of one compactor."""

    cuts: int
    first: str  # the reason of the first


class CompactorRow(Struct, frozen=True, kw_only=True):
    """One compactor within one budget, over all cuts; shares are of the needed tokens, with simultaneous intervals."""

    compactor: str
    budget: int
    tried: int
    cuts: int
    runs: int
    failed: int
    failures: dict[CompactionStatus, Failures]
    used_tokens: float | None  # mean over cuts
    kept_share: float | None
    kept_low: float | None
    kept_high: float | None
    regret_share: float | None
    regret_low: float | None
    regret_high: float | None
    gain_share: float | None
    gain_low: float | None
    gain_high: float | None
    beyond_random_share: float | None
    beyond_random_low: float | None
    beyond_random_high: float | None
    worst_regret: float | None
    least_regret: float | None
    read_kept: float | None
    written_kept: float | None
    rules_verbatim: float | None
    rules_kept: float | None
    paths_kept: float | None
    names_kept: float | None
    calls: int
    input_tokens: int
    output_tokens: int
    cost_usd: float | None
    seconds: float | None


class ExampleLine(StoredLine, frozen=True):
    """A needed line, and who kept it."""

    kept: dict[str, bool]  # by compactor


class ExampleCut(Struct, frozen=True):
    """The cut on which the compactors differ most."""

    run_id: str
    turn: int
    budget: int
    lines: tuple[ExampleLine, ...]


class Comparison(Struct, frozen=True, kw_only=True):
    """The compactors of a benchmark over all its cuts."""

    runs: int
    cuts: int
    needing_cuts: int  # at which the context showed a line that was needed
    level: float  # that all intervals hold together
    rows: tuple[CompactorRow, ...]
    rankings: dict[str, Ranking | None]  # by budget; None: there are no two candidates at the same cuts
    example: ExampleCut | None


class BenchmarkResults(Comparison, frozen=True, kw_only=True):
    """What `eirkit vestige compact` prints as JSON and stores in its folder."""

    out: str
    at: str
    budgets: tuple[int, ...]
    compactors: tuple[str, ...]
    uncut: int  # runs without a cut
    skipped: tuple[Skipped, ...]
    stopped: str  # why it stopped early


class BenchmarkManifest(Struct, frozen=True, omit_defaults=True):
    """How runs were cut, and the digests of the files of compactors."""

    at: str
    gold: str | None
    code: dict[str, str]
    results: BenchmarkResults | None = None  # None: it is not complete

    def write(self, folder: Path) -> None:
        write_struct(folder / MANIFEST, MANIFEST_SCHEMA, self)


def read_manifest(folder: Path) -> BenchmarkManifest:
    """Return the manifest of a benchmark's folder."""
    return read_struct(folder / MANIFEST, MANIFEST_SCHEMA, BenchmarkManifest)


def read_runs(folder: Path) -> Iterator[RunRecord]:
    """Yield the records of a benchmark in order."""
    return _read(folder / COMPACTIONS, COMPACTIONS_SCHEMA, RunRecord)


def read_seconds(folder: Path) -> Iterator[RunSeconds]:
    """Yield how long the compactions of each run took."""
    return _read(folder / TIMES, TIMES_SCHEMA, RunSeconds)


def _read(path: Path, schema: str, kind: type[_Kind]) -> Iterator[_Kind]:
    if path.is_file():
        for value in read_records(path, schema):
            yield _typed(value, kind, path)


def _typed(value: object, kind: type[_Kind], path: Path) -> _Kind:
    try:
        return convert(value, kind)
    except ValidationError as error:
        raise InputFileError(f"{path}: {error}; restore the file") from error


def joined(folder: Path) -> Iterator[RunRecord]:
    """Yield one record for each run: the newest state of its log, with the rows of all records of that state.

    Only of runs that were extended, only rows wait for their others: texts of lines are in memory of one run at a time.
    """
    newest: dict[str, tuple[str, int]] = {}  # by run: its last digest, and how many records have it
    for record in read_runs(folder):
        digest, several = newest.get(record.run_id, ("", 0))
        newest[record.run_id] = record.digest, several + 1 if digest == record.digest else 1
    waiting: dict[str, list[tuple[tuple[CompactionRow, ...], tuple[tuple[str, int], ...]]]] = {}
    for record in read_runs(folder):
        digest, several = newest[record.run_id]
        if record.digest != digest:
            continue
        found = [*waiting.pop(record.run_id, ()), (record.rows, record.tried)]
        if len(found) < several:
            waiting[record.run_id] = found
            continue
        rows = {(row.turn, row.compactor, row.budget): row for own, _ in found for row in own}
        tried = tuple(dict.fromkeys(pair for _, own in found for pair in own))
        yield replace(record, tried=tried, rows=tuple(rows.values()))


def packed(marks: Iterable[bool]) -> str:
    """Return marks in hexadecimal, the first as the lowest bit."""
    digits = "".join("01"[mark] for mark in marks)[::-1]
    return f"{int(digits or '0', 2):x}"


def marked(bits: str, places: int) -> list[bool]:
    """Return the marks of the first places, from their hexadecimal form."""
    wanted = int(bits or "0", 16) & ((1 << places) - 1)
    return [digit == "1" for digit in f"{wanted:0{places}b}"[::-1][:places]]
