"""Reads the run records of a folder into table rows as the file grows.

Reading continues where it stopped; a file that shrank, because the unfinished last run of an interrupted command was
removed, is read again. Each call reads for a limited time, so that the page opens while many runs are still being read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Lock
from time import monotonic
from typing import IO, Any

from eirkit.errors import EirkitError, InputFileError
from eirkit.folders import open_ordinary
from eirkit.lacuna.findings.causes import RunScore, read_score
from eirkit.lacuna.findings.conversation_measures import WORD_FATES
from eirkit.lacuna.findings.measures import (
    ARM_MEASURES,
    CAUSE_MEASURES,
    FATE_MEASURES,
    RUN_MEASURES,
    SPENDING_MEASURES,
)
from eirkit.lacuna.findings.why import count_ways, way_measure
from eirkit.lacuna.runs.cells import cell_of
from eirkit.lacuna.runs.store import RUNS, decode_run
from eirkit.limits import RECORD_SECONDS, time_limit
from eirkit.report.viewer.tables import Field, ListColumns, RowTable, label, telling

FAILURE = "failure"
SLICE_SECONDS = 0.4  # of reading in one request
LARGEST_LINE = 1 << 24  # bytes of one run record

FIELDS: tuple[Field, ...] = (
    Field("run", "run", "text"),
    Field("workload", "workload", "text", facet=True, part="setting"),
    Field("model", "model", "text", facet=True, part="setting"),
    Field("condition", "condition", "text", "How earlier answers were had", facet=True, part="setting"),
    Field("policy", "policy", "text", "Which records were held", facet=True, part="setting"),
    Field("memory", "memory", "text", "The external memory system", facet=True, part="setting"),
    Field(
        "profile",
        "profile",
        "text",
        "How the memory system was used: as its vendor documents, or as a store",
        facet=True,
        part="setting",
    ),
    Field(
        "arm",
        "arm",
        "text",
        f"Of a rescue: {', '.join(one.label for one in ARM_MEASURES)}",
        facet=True,
        part="setting",
        order=("control", "sham", "oracle"),
    ),
    Field("n", "n", meaning="Steps of the task", facet=True, part="setting"),
    Field("m", "m", meaning="Dependency window", facet=True, part="setting"),
    Field("fan_in", "fan-in", meaning="References a step", facet=True, shown=False, part="setting"),
    Field(
        "lookback", "lookback", meaning="How far back a reference may reach", facet=True, shown=False, part="setting"
    ),
    Field("slots", "slots", meaning="Values a record", facet=True, shown=False, part="setting"),
    Field("digits", "digits", meaning="Decimal digits a value", facet=True, shown=False, part="setting"),
    Field("k", "k", meaning="Values a frontier, in Stepwise Top-k", facet=True, shown=False, part="setting"),
    Field(
        "queries", "queries", "text", "How labels are drawn, in Full Lookup", facet=True, shown=False, part="setting"
    ),
    Field("warm_up", "warm-up", meaning="Leading steps that are not scored", facet=True, shown=False, part="setting"),
    Field("preset", "preset", "text", "Size of a world of conversations", facet=True, shown=False, part="setting"),
    Field.of(RUN_MEASURES["h"], facet=True, part="setting"),
    Field("seed", "seed", part="replicate"),
    Field("repeat", "repeat", meaning="Which repeat of the task", facet=True, part="replicate"),
    Field.of(RUN_MEASURES["accuracy"]),
    Field(FAILURE, "main failure", "text", "How most needed records, answers or steps of the run failed", facet=True),
    Field.of(RUN_MEASURES["step_accuracy"], shown=False),
    *(Field.of(RUN_MEASURES[key]) for key in ("miss_rate", "first_miss", "first_error")),
    *map(Field.of, CAUSE_MEASURES),
    *map(Field.of, (*FATE_MEASURES, *WORD_FATES)),
    Field("ending", "ending", "text", facet=True),
    *(Field.of(SPENDING_MEASURES[key], shown=False) for key in ("calls", "cost_usd")),
)
OF_TASK = ("workload", "n", "m", "lookback", "fan_in", "slots", "digits", "k", "queries", "warm_up", "preset")
OF_WORDS = ("workload", "preset")  # what a conversation is made from; n, m and the rest mean nothing there
ALWAYS = ("run", "seed")
FATES = tuple(one.id for one in (*FATE_MEASURES, *WORD_FATES))
_KEYS = tuple(one.key for one in FIELDS)


def recorded_score(record: Mapping[str, Any]) -> RunScore | None:
    """Return the score that a run's record holds."""
    return read_score(record["score"]) if "score" in record else None


class RunIndex:
    """The runs of a folder as columns; `refresh` reads the records added since the last call."""

    def __init__(self, folder: Path, score: Callable[[Mapping[str, Any]], RunScore | None] = recorded_score) -> None:
        self.folder, self.score = folder, score
        self.complete = False  # everything on disk was read
        self._lock = Lock()
        self._forget()

    def _forget(self) -> None:
        self._end = 0  # bytes of the file that were read
        self.size = 0
        self._columns: dict[str, list[Any]] = {key: [] for key in _KEYS}
        self._places: dict[str, int] = {}  # rows by run
        self._spans: list[
            tuple[int, int, int]
        ] = []  # where a run's record lies in the file, and the number of its line
        self.cells: list[str] = []
        self.skipped = 0  # records that are not valid runs
        self.ways: list[Mapping[str, int]] = []  # how often each run failed in each way
        self.scores: list[RunScore | None] = []
        self._table: RowTable | None = None

    def __len__(self) -> int:
        return len(self.scores)

    @property
    def read_share(self) -> float:
        return self._end / self.size if self.size else 1.0

    def refresh(self, seconds: float = SLICE_SECONDS) -> None:
        """Read new records for at most `seconds`; return at once if another thread is reading."""
        path = self.folder / RUNS
        if not self._lock.acquire(blocking=False):
            return
        try:
            self.size = path.stat().st_size if path.exists() else 0
            if self.size < self._end:
                self._forget()
                self.size = path.stat().st_size
            if self._end < self.size:
                self._read_on(path, monotonic() + seconds)
            self.complete = self._end >= self.size
        finally:
            self._lock.release()

    def table(self) -> RowTable:
        """Return the rows that were read so far."""
        made = self._table
        rows = len(self.scores)  # `scores` is appended last; a concurrent reader only adds rows after these
        if made is None or made.rows != rows:
            frozen = {key: column[:rows] for key, column in self._columns.items()}
            columns = ListColumns(frozen, rows)
            made = self._table = RowTable(telling(FIELDS, columns, ALWAYS, FATES), columns)
        return made

    def has(self, run: str) -> bool:
        return run in self._places

    def column(self, key: str) -> list[Any]:
        """Return the values of one column for every run."""
        return self._columns[key]

    def place(self, run: str) -> int:
        """Return the row number of a run."""
        if run not in self._places:
            raise InputFileError(f"no run named {run!r} here; go back to the table and choose one")
        return self._places[run]

    def record(self, run: str) -> dict[str, Any]:
        """Return the record of a run."""
        start, stop, number = self._spans[self.place(run)]
        with open_ordinary(self.folder / RUNS) as stream:
            stream.seek(start)
            return decode_run(stream.read(stop - start), self.folder / RUNS, number)

    def _read_on(self, path: Path, deadline: float) -> None:
        with open_ordinary(path) as stream:
            stream.seek(self._end)
            while line := stream.readline(LARGEST_LINE):
                if len(line) == LARGEST_LINE:
                    self._pass_over(line, stream)
                    continue
                if not line.endswith(b"\n"):
                    self.size = self._end  # the line is still being written, or its writer was killed
                    return
                self._take(line, path)
                if monotonic() > deadline:
                    return

    def _pass_over(self, line: bytes, stream: IO[bytes]) -> None:
        """Skip a line that is longer than any record."""
        size = len(line)
        while line and not line.endswith(b"\n"):
            line = stream.readline(LARGEST_LINE)
            size += len(line)
        self.skipped += 1
        self._end += size

    def _take(self, line: bytes, path: Path) -> None:
        """Add the run of one line; a line that is not a valid run is counted and skipped."""
        try:
            self._add(decode_run(line, path, len(self) + self.skipped + 1), len(line))
        except (
            EirkitError,
            LookupError,
            TypeError,
            ValueError,
            ArithmeticError,
            AttributeError,
            RecursionError,
            OSError,
        ):
            self.skipped += 1
            self._end += len(line)

    def _add(self, record: Mapping[str, Any], size: int) -> None:
        with time_limit(RECORD_SECONDS, "a run"):
            score = self.score(record)
        row = row_of(record, score)
        if not isinstance(row["run"], str) or any(isinstance(cell, (dict, list)) for cell in row.values()):
            raise InputFileError(f"{self.folder / RUNS}: a run's settings are no plain values; restore the file")
        for key in _KEYS:
            self._columns[key].append(row.get(key))
        self._places[record["run"]] = len(self.cells)
        self._spans.append((self._end, self._end + size, len(self) + self.skipped + 1))
        self.cells.append(cell_of(record) if "cell" in record else "")
        self.ways.append(count_ways(record, score))
        self.scores.append(score)
        self._end += size


def row_of(record: Mapping[str, Any], score: RunScore | None) -> dict[str, Any]:
    """Return the row of a run from its record."""
    task, access, done = record["task"], record["access"], record.get("intervention", {})
    condition = done["kind"] if done.get("kind") in ("probe", "calculator") else access.get("condition")
    row = {
        "run": record["run"],
        "model": record["model"],
        "seed": record["seed"],
        "repeat": record["repeat"]["number"] if "repeat" in record else None,
        **{name: task.get(name) for name in (OF_WORDS if "words" in record else OF_TASK)},
        "condition": condition,
        **{name: access.get(name) for name in ("policy", "memory", "h")},
        "profile": _profile(record),
        "arm": done.get("arm"),
        "ending": record.get("ending"),
        "calls": record["usage"]["calls"],
        "cost_usd": record["usage"]["cost_usd"],
    }
    return {**row, **({} if score is None else _scored(score)), **_fates(record, score)}


def _profile(record: Mapping[str, Any]) -> str | None:
    """Return the profile in which a memory system was used; None if it has none."""
    return ((record.get("memory") or {}).get("profile") or {}).get("name")


def _fates(record: Mapping[str, Any], score: RunScore | None) -> dict[str, Any]:
    """Return the shares of fates, and how most of what failed did so: records or answers, else steps."""
    lookups, words = (record.get("memory") or {}).get("fates", {}), record.get("words")
    needed, ways = sum(lookups.values()), count_ways(record, score)
    shares = {fate: count / needed for fate, count in lookups.items()} if needed else {}
    if words is not None:
        asked = record["task"]["n"]
        shares |= {one.id: words["fates"].get(one.id, 0) / asked for one in WORD_FATES}
    counted = {way: count for way, count in ways.items() if way in FATES} or ways
    most = max(counted, key=counted.__getitem__, default=None)
    return {**shares, FAILURE: None if most is None else way_measure(most).label}


def _scored(score: RunScore) -> dict[str, Any]:
    names = ("accuracy", "step_accuracy", "miss_rate", "first_miss", "first_error")
    return {**{name: getattr(score, name) for name in names}, **dict(score.error_shares.items())}


MOST = 60
# The columns that define a task; runs that agree in all of them can be compared.
_TASK = (*OF_TASK, "seed")
_ACCESS = ("arm", "model", "condition", "policy", "memory", "profile", "h")


def siblings(index: RunIndex, record: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return runs of the same task and seed with the settings in which they differ, the most similar first."""
    own = index.place(record["run"])
    same = [place for place in range(len(index)) if place != own and _same_task(index, place, own)]
    found = []
    for place in same:
        columns = {key: index.column(key) for key in _ACCESS}
        different = [key for key, column in columns.items() if column[place] != column[own]]
        words = [f"h = {columns[key][place]}" if key == "h" else label(columns[key][place]) for key in different]
        found.append({"run": index.column("run")[place], "different": different, "words": ", ".join(words) or "again"})
    return sorted(found, key=lambda one: len(one["different"]))[:MOST]


def _same_task(index: RunIndex, place: int, own: int) -> bool:
    # Reversed, so that seeds are compared first: they differ most often.
    return all(index.column(key)[place] == index.column(key)[own] for key in reversed(_TASK))


def own_words(record: Mapping[str, Any]) -> str:
    """Return a short label that distinguishes a run from its siblings."""
    done, access = record.get("intervention", {}), record["access"]
    kept = access.get("memory") or access.get("policy")
    parts = [done.get("arm") or done.get("kind"), kept, _profile(record), record["model"]]
    h = access.get("h")
    return ", ".join([str(part) for part in parts if part] + ([f"h = {h}"] if h is not None else []))
