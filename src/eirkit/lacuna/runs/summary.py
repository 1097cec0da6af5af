"""Computes `summary.json` of a sweep: one row of measures per cell, memory totals, failures and control verdicts.

Every row shows how many of the attempted runs were scored. Failed runs are listed by kind and never count as zero. A
cell in which every answer failed in the same way is marked as suspect. Only cells that pass the control support claims
about lost information.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

from eirkit.lacuna.conversation.totals import pool_words
from eirkit.lacuna.findings.causes import RunScore, read_score
from eirkit.lacuna.findings.fates import FATES, diagnose, pool_fates
from eirkit.lacuna.findings.floor import pool_floors
from eirkit.lacuna.findings.statistics import pool
from eirkit.lacuna.findings.validity import check_validity
from eirkit.lacuna.models.ledger import AGENT, MEMORY, NOTHING, exact_sum
from eirkit.lacuna.models.model import RAISED_TOKENS, USUAL_TOKENS
from eirkit.lacuna.runs.cells import Cell, coordinates
from eirkit.lacuna.runs.control import ControlVerdict, key_of, open_failures, read_verdicts
from eirkit.lacuna.runs.journal import AttemptSpend, read_journal
from eirkit.lacuna.runs.store import RUNS, SUMMARY, read_failures, scan_runs
from eirkit.lacuna.runs.suite import Suite
from eirkit.records.lines import write_document

FILE, SCHEMA = SUMMARY, "summary/1"
FEWEST_ANSWERS = 8  # with fewer answers, a constant answer is not suspect
_SUMS = ("writes", "searches", "confused", "flooded", "model_calls", "input_tokens", "output_tokens")
_IN_WORDS = ("scratch", "scratch-lru", "compaction")  # records are recognised in texts of the agent
_COUNTS = ("calls", "cache_hits", "input_tokens", "output_tokens", "reasoning_tokens", "truncated_replies", "reasked")
_USAGE = (*_COUNTS, "unreported_calls", "memory_calls")


@dataclass(frozen=True, slots=True)
class FailureGroup:
    """Runs that failed in the same way."""

    workload: str
    model: str
    condition: str
    kind: str
    message: str
    runs: int
    first: str  # id of one of the runs


@dataclass(frozen=True, slots=True)
class RunSummary:
    """The result of a sweep so far."""

    rows: tuple[dict[str, Any], ...]
    failures: tuple[FailureGroup, ...]
    stopped: tuple[str, ...]  # why runs were left out
    scored: int
    planned: int
    spending: Mapping[str, Any] | None = None  # None if nothing was paid for

    @property
    def complete(self) -> bool:
        return self.scored == self.planned

    @property
    def excluded(self) -> tuple[tuple[str, str, str], ...]:
        """Model, workload and reason of each failed control."""
        failed = (row for row in self.rows if row["control"] is not None and not row["control"]["passes"])
        return tuple(dict.fromkeys((row["model"], row["workload"], row["control"]["reason"]) for row in failed))

    def as_json(self) -> dict[str, Any]:
        return {
            "rows": list(self.rows),
            "failures": [asdict(group) for group in self.failures],
            "stopped": list(self.stopped),
            "scored": self.scored,
            "planned": self.planned,
            "complete": self.complete,
            "excluded": [list(entry) for entry in self.excluded],
            "spending": self.spending,
        }

    def write(self, folder: Path) -> None:
        write_document(folder / FILE, SCHEMA, self.as_json())


@dataclass(slots=True)
class MemoryTotals:
    """Totals of an external memory over the runs of one cell, and the maxima of what it held."""

    runs: int = 0
    sums: Counter[str] = field(default_factory=Counter)
    fates: list[Mapping[str, int]] = field(default_factory=list)  # of each run
    seconds: dict[str, list[float]] = field(default_factory=lambda: {"write": [], "search": []})
    slowest: float = 0.0
    held: dict[str, list[int]] = field(default_factory=lambda: {"records": [], "bytes": []})
    costs: dict[int, float | None] = field(default_factory=dict)  # by attempt; others have negative numbers
    floors: list[Mapping[str, Any]] = field(default_factory=list)
    limited: bool = False  # limited to a number of records
    profile: Mapping[str, str] | None = None  # in which the system was used
    warnings: dict[str, None] = field(default_factory=dict)  # of the system's own code, each once

    def add(self, record: Mapping[str, Any] | None, attempt: int = 0) -> None:
        """Add the memory section of a run record, if there is one."""
        if record is None:
            return
        self.runs += 1
        self.sums.update({name: record[name] for name in _SUMS})
        self.fates.append(record["fates"])
        for verb, taken in self.seconds.items():
            taken.append(record[f"{verb}_seconds"])
        self.slowest = max(self.slowest, record["slowest_seconds"])
        for unit, most in self.held.items():
            if record[unit] is not None:
                most.append(record[unit])
        self.costs[attempt or -self.runs] = record["cost_usd"]
        self.limited = record.get("limit") is not None
        self.profile = record.get("profile")
        self.warnings.update(dict.fromkeys(record.get("warnings", ())))
        if record.get("floor") is not None:
            self.floors.append(record["floor"])

    def row(self, failed: Iterable[Mapping[str, Any]]) -> dict[str, Any] | None:
        """Return the memory columns; None if the cell has no external memory.

        Args:
            failed: failure records of runs that are not scored.
        """
        lost = Counter(str(record["message"]) for record in failed if record["kind"] == "memory")
        if not self.runs and not lost and not self.costs:
            return None
        fates = {fate: sum(run.get(fate, 0) for run in self.fates) for fate in FATES}
        pooled = pool_fates(self.fates)
        return {
            "fates": fates,
            "fate_shares": dict(pooled.shares),
            "needing_runs": pooled.runs,
            **{name: self.sums[name] for name in _SUMS},
            "write_seconds": _mean(self.seconds["write"], self.sums["writes"]),
            "search_seconds": _mean(self.seconds["search"], self.sums["searches"]),
            "slowest_seconds": self.slowest,
            "records": max(self.held["records"], default=None),
            "bytes": max(self.held["bytes"], default=None),
            "cost_usd": exact_sum(self.costs.values()),
            "floor": pool_floors(self.floors),
            **({} if self.profile is None else {"profile": self.profile}),
            **({"warnings": list(self.warnings)} if self.warnings else {}),
            "diagnosis": diagnose(fates, self.sums["flooded"], lost, limited=self.limited),
        }


def _mean(sums: list[float], calls: int) -> float | None:
    return math.fsum(sums) / calls if calls else None


def _settle(costs: dict[int, float | None], attempt: int, usd: Decimal) -> None:
    """Replace the cost of an attempt by that of the journal, unless some of its calls have an unknown price."""
    if costs.get(attempt, 0.0) is not None:
        costs[attempt] = float(usd)


@dataclass(slots=True)
class _CellTotals:
    """Totals of a cell while its runs are read."""

    scores: list[RunScore] = field(default_factory=list)
    usage: Counter[str] = field(default_factory=Counter)
    costs: dict[int, float | None] = field(default_factory=dict)  # by attempt; others have negative numbers
    faults: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    behaviour: Counter[str] = field(default_factory=Counter)
    constants: set[tuple[int, ...] | None] = field(default_factory=set)
    memory: MemoryTotals = field(default_factory=MemoryTotals)
    words: list[Mapping[str, Any]] = field(default_factory=list)  # of runs whose task is told in words
    unconfirmed: Decimal = NOTHING
    max_tokens: int = 0  # largest limit on the tokens of a reply

    def add(self, record: Mapping[str, Any]) -> None:
        self.scores.append(read_score(record["score"]))
        self.spend(record["usage"])
        self.faults.update(record["faults"])
        self.refusals.update(record["refusals"])
        self.behaviour.update(record["behaviour"])
        self.memory.add(record.get("memory"), record["usage"].get("attempt", 0))
        self.words += [record["words"]] if "words" in record else []
        self.constants.add(None if record["constant"] is None else tuple(record["constant"]))

    def spend(self, usage: Mapping[str, Any]) -> None:
        """Add the usage of an attempt, finished or not."""
        if usage:
            self.usage.update({name: usage.get(name, 0) for name in _USAGE})  # a journal does not count all
            self.max_tokens = max(self.max_tokens, usage.get("max_tokens", 0))
            self.costs[usage.get("attempt") or -len(self.costs) - 1] = usage["cost_usd"]

    def pay(self, attempts: Mapping[int, AttemptSpend]) -> None:
        """Take the cost of attempts from the journal, and all of those that a kill or the cap cut short."""
        for number, spent in attempts.items():
            self.unconfirmed += spent.uncertain_usd
            if number not in self.costs:
                self.spend({**spent.usage, "attempt": number, "cost_usd": 0.0})
            _settle(self.costs, number, spent.usd.get(AGENT, NOTHING))
            if MEMORY in spent.usd:
                _settle(self.memory.costs, number, spent.usd[MEMORY])

    def row(self, failed: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
        """Return the row; runs that failed count as attempted."""
        scored = pool(self.scores)
        kinds = Counter(record["kind"] for record in failed.values())
        return {
            **scored.as_json(),
            "faults": dict(sorted(self.faults.items())),
            "refusals": dict(sorted(self.refusals.items())),
            "behaviour": dict(sorted(self.behaviour.items())),
            **{name: self.usage[name] if self.costs else None for name in _USAGE},
            "max_tokens": self.max_tokens or None,
            "cost_usd": exact_sum(self.costs.values()) if self.costs else None,
            "unconfirmed_usd": float(self.unconfirmed),
            "suspect": self._suspect(scored.accuracy),
            "attempted": len(self.scores) + len(failed),
            "failures": dict(sorted(kinds.items())),
            "memory_system": self.memory.row(failed.values()),
            **({"words": pool_words(self.words)} if self.words else {}),
        }

    def _suspect(self, accuracy: float | None) -> str | None:
        """Return why the adapter is probably broken, if all answers look alike."""
        steps = sum(score.steps for score in self.scores)
        if not steps or accuracy is None:
            return None
        if not any(score.answered for score in self.scores) and len(self.faults) <= 1:
            (kind,) = self.faults or ("unreached",)
            most = self.refusals.most_common(1)
            return f"every answer failed in the same way ({kind}{f', most often {most[0][0]}' if most else ''})"
        (only,) = self.constants if len(self.constants) == 1 and not self.words else (None,)
        if only is not None and steps >= FEWEST_ANSWERS and accuracy < 0.5:
            return f"every answer is {' '.join(map(str, only))}"
        return None


def summarise(suite: Suite, folder: Path, stopped: Sequence[str] = ()) -> RunSummary:
    """Return the rows of a sweep from its folder; a cell is pooled as soon as its last run is read."""
    rows_of, planned = _rows_of(suite)
    failures = [{**failure, "cell": rows_of[failure["cell"]]} for failure in read_failures(folder)]
    failed = _last_failures(failures)
    gathering: dict[str, _CellTotals] = {}
    for failure in failures:  # failed attempts cost money too, even if the run finished later
        gathering.setdefault(failure["cell"], _CellTotals()).spend(failure["usage"])
    journal = read_journal(folder)
    paid: dict[str, dict[int, AttemptSpend]] = {}
    for name, attempts in ({} if journal is None else journal.by_cell()).items():
        paid.setdefault(rows_of[name], {}).update(attempts)
    settled: dict[str, dict[str, Any]] = {}
    scored = 0
    for record, _ in scan_runs(folder / RUNS):
        name = rows_of[record["cell"]]
        failed.get(name, {}).pop(record["run"], None)
        gathered = gathering.setdefault(name, _CellTotals())
        gathered.add(record)
        scored += 1
        if len(gathered.scores) == planned[name]:
            gathered.pay(paid.pop(name, {}))
            settled[name] = gathering.pop(name).row({})
    for name, attempts in paid.items():
        gathering.setdefault(name, _CellTotals()).pay(attempts)
    standings = read_verdicts(folder)
    rows = tuple(
        {
            **coordinates(cell, len(seeds), planned[cell.id] // len(seeds)),
            **_checked(
                cell,
                settled.get(cell.id) or gathering.get(cell.id, _CellTotals()).row(failed.get(cell.id, {})),
                standings.get(key_of(cell)) if standings else None,
            ),
        }
        for cell, seeds in suite.plan()
        if not cell.repeat
    )
    groups = _grouped([*failed.values(), open_failures(folder)])
    spending = None if journal is None else journal.as_json()
    return RunSummary(rows, groups, tuple(stopped), scored, sum(planned.values()), spending)


def _rows_of(suite: Suite) -> tuple[dict[str, str], Counter[str]]:
    """Return the row of each cell, which repeats share with what they repeat, and the planned runs of each row."""
    rows_of: dict[str, str] = {}
    planned: Counter[str] = Counter()
    for cell, seeds in suite.plan():
        rows_of[cell.id] = cell.first.id
        planned[cell.first.id] += len(seeds)
    return rows_of, planned


def in_words(rows: Iterable[Mapping[str, Any]]) -> bool:
    """Return whether rows are of a workload in words."""
    return any("words" in row for row in rows)


_SILENT_WORDS = {
    "empty": "empty",
    "truncated": "cut before a complete answer",
    "filtered": "withheld by a content filter",
    "refused": "a refusal",
}


def silences(rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a sentence for every model whose limit was raised, and every row with replies that were cut or silent."""
    rows = list(rows)
    for model in dict.fromkeys(row["model"] for row in rows if row["max_tokens"] == RAISED_TOKENS):
        yield f"{model} reasons: the limit of a reply was raised from {USUAL_TOKENS:,} to {RAISED_TOKENS:,} tokens"
    for row in rows:
        where = f"{row['model']}, {row['memory'] or row['condition']}, h = {row['h']}"
        if row["truncated_replies"]:
            cut = f"{row['truncated_replies']:,} of {row['calls']:,} replies were cut at {row['max_tokens']:,} tokens"
            yield f"{where}: {cut}; raise --max-tokens"
        kinds = [f"{words} ({row['faults'][kind]})" for kind, words in _SILENT_WORDS.items() if row["faults"].get(kind)]
        if kinds:
            yield f"{where}: steps without an answer because the reply was {', '.join(kinds)}, of {row['steps']:,}"


def _checked(cell: Cell, row: dict[str, Any], verdict: ControlVerdict | None) -> dict[str, Any]:
    """Return a row with its validity, the verdict of the control (None if it was not run), and whether it may claim."""
    access = cell.access
    in_words = access.memory is not None or access.condition in _IN_WORDS
    found = check_validity(row["blind"], row["unexplained"], cell.task, in_words=in_words)
    if found.sentence is not None and row["memory_system"] is not None:
        row = {**row, "memory_system": {**row["memory_system"], "diagnosis": [found.sentence]}}
    claims = verdict is not None and bool(verdict["passes"]) and found.finding is None
    return {**row, "validity": found.as_json(), "control": verdict, "claims": claims}


def _last_failures(failures: Iterable[dict[str, Any]]) -> dict[str, dict[str, dict[str, Any]]]:
    """Return the last failure of each run, by cell and run."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for record in failures:
        found.setdefault(record["cell"], {})[record["run"]] = record
    return found


def _grouped(failed: Iterable[Mapping[str, Mapping[str, Any]]]) -> tuple[FailureGroup, ...]:
    names = ("workload", "model", "condition", "kind", "message")
    groups: dict[tuple[str, ...], list[str]] = {}
    for runs in failed:
        for run, record in runs.items():
            groups.setdefault(tuple(record[name] for name in names), []).append(run)
    return tuple(
        FailureGroup(**dict(zip(names, key, strict=True)), runs=len(runs), first=runs[0])
        for key, runs in groups.items()
    )
