"""Pools the runs of a folder: one row of measures per cell, memory totals, failures, money and control verdicts.

Every row shows how many of the attempted runs were scored. Failed runs are listed by kind and never count as zero. A
cell in which every answer failed in the same way is marked as suspect. Only cells that pass the control support claims
about lost information. Everything is read from the folder; nothing that runs agents is imported.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

from msgspec import structs

from eirkit.errors import InputFileError, UntrustedError, UsageError
from eirkit.lacuna import FLOOD
from eirkit.lacuna.findings.conversations import pool_conversations
from eirkit.lacuna.findings.statistics import pool
from eirkit.lacuna.findings.validity import check_validity
from eirkit.lacuna.tasks.task import spec_of
from eirkit.records.budgets import BUDGETED
from eirkit.records.database import SweepDatabase
from eirkit.records.documents import MANIFEST, RUNS_SCHEMA, SUMMARY, read_struct, write_struct
from eirkit.records.events import Answer
from eirkit.records.money import AGENT, MEMORY, NOTHING, AttemptSpend, exact_sum, exact_usd, journal_of
from eirkit.records.runs import (
    OUTCOMES,
    RETURNED,
    ConversationRun,
    Counted,
    Failure,
    MemoryRun,
    Outcome,
    RunFloor,
    RunRecord,
    RunScore,
    RunUsage,
)
from eirkit.records.settings import UNLIMITED, Setting, TaskColumns, control_key, pressure_of
from eirkit.records.sweeps import (
    CellFloor,
    CellRow,
    Excluded,
    FailureGroup,
    GateVerdict,
    Manifest,
    MemoryRow,
    Standing,
    Summary,
    read_verdicts,
)

SUMMARY_SCHEMA = "summary/1"
MOSTLY = 0.5  # share of replies above which those without the form asked for are the answer
FEWEST_ANSWERS = 8  # with fewer answers, a constant answer is not suspect
RAISED_TOKENS, USUAL_TOKENS = 16_384, 1024  # of a reply; `ModelOptions` raises the limit of models that reason
LOST: tuple[Outcome, ...] = tuple(
    outcome for outcome in OUTCOMES if outcome not in (*RETURNED, "unclear")
)  # known not to come back
NOT_ASKED: tuple[Outcome, ...] = (
    "not_sought",
    "unwritten",
)  # outcomes of records that the agent never wrote or never searched for


_TEXTS = ("scratch", "scratch-lru", "compaction")  # accesses in which records are recognized in texts of the agent


@dataclass(slots=True)
class MemoryTotals:
    """Totals of an external memory over the runs of one cell, and the maxima of what it held."""

    runs: list[MemoryRun] = field(default_factory=list)
    costs: dict[int, float | None] = field(default_factory=dict)  # own ones by attempt; others have negative numbers

    def add(self, memory: MemoryRun, attempt: int = 0) -> None:
        """Add the memory of a run."""
        # What was held at each cut is long, and only its sizes are pooled.
        self.runs.append(memory)
        self.costs[attempt or -len(self.runs)] = _own_cost(memory)

    def row(self, failed: Iterable[Failure]) -> MemoryRow | None:
        """Return the memory columns; None if the cell has no external memory.

        Args:
            failed: failures of runs that are not scored.
        """
        lost = Counter(failure.message for failure in failed if failure.kind == "memory")
        runs = self.runs
        if not runs and not lost and not self.costs:
            return None
        outcomes = {outcome: sum(run.outcomes.get(outcome, 0) for run in runs) for outcome in OUTCOMES}
        pooled = pool_outcomes([run.outcomes for run in runs])
        writes, searches = sum(run.writes for run in runs), sum(run.searches for run in runs)
        flooded = sum(run.flooded for run in runs)
        limited = bool(runs) and runs[-1].limit is not None
        shared = [run.shared.cost_usd for run in runs if run.shared is not None]
        return MemoryRow(
            outcomes=outcomes,
            outcome_shares=dict(pooled.shares),
            needing_runs=pooled.runs,
            writes=writes,
            searches=searches,
            confused=sum(run.confused for run in runs),
            flooded=flooded,
            model_calls=sum(run.model_calls for run in runs),
            input_tokens=sum(run.input_tokens for run in runs),
            output_tokens=sum(run.output_tokens for run in runs),
            write_seconds=math.fsum(run.write_seconds for run in runs) / writes if writes else None,
            search_seconds=math.fsum(run.search_seconds for run in runs) / searches if searches else None,
            slowest_seconds=max((run.slowest_seconds for run in runs), default=0.0),
            records=max((run.records for run in runs if run.records is not None), default=None),
            bytes=max((run.bytes for run in runs if run.bytes is not None), default=None),
            cost_usd=exact_sum([*self.costs.values(), *shared]),
            shared_runs=len(shared),
            shared_usd=exact_sum(shared),
            floor=pool_floors([run.floor for run in runs if run.floor is not None]),
            profile=runs[-1].profile if runs else None,
            warnings=tuple(dict.fromkeys(warning for run in runs for warning in run.warnings)),
            diagnosis=diagnose(outcomes, flooded, lost, limited=limited),
        )


def _own_cost(memory: MemoryRun) -> float | None:
    """Return what a run paid for its memory itself; None if that is unknown."""
    shared = memory.shared
    if shared is None:
        return memory.cost_usd
    if shared.model_calls == memory.model_calls:
        return 0.0
    if memory.cost_usd is None or shared.cost_usd is None:
        return None
    return float(exact_usd(memory.cost_usd) - exact_usd(shared.cost_usd))


def _settle(costs: dict[int, float | None], attempt: int, usd: Decimal) -> None:
    """Replace the cost of an attempt by that of its paid calls, unless some of its calls have an unknown price."""
    if costs.get(attempt, 0.0) is not None:
        costs[attempt] = float(usd)


@dataclass(slots=True)
class _CellTotals:
    """Totals of a cell while its runs are read."""

    scores: list[RunScore] = field(default_factory=list)
    usage: list[RunUsage] = field(default_factory=list)
    costs: dict[int, float | None] = field(default_factory=dict)  # by attempt; others have negative numbers
    faults: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    behavior: Counter[str] = field(default_factory=Counter)
    constants: set[Answer | None] = field(default_factory=set)
    memory: MemoryTotals = field(default_factory=MemoryTotals)
    conversations: list[ConversationRun] = field(default_factory=list)
    unconfirmed: Decimal = NOTHING

    def add(self, record: RunRecord) -> None:
        if record.score is not None:
            self.scores.append(record.score)
        self.spend(record.usage)
        self.faults.update(record.faults)
        self.refusals.update(record.refusals)
        self.behavior.update(record.behavior)
        if record.memory is not None:
            self.memory.add(record.memory, record.usage.attempt)
        if record.conversation is not None:
            self.conversations.append(record.conversation)
        self.constants.add(record.constant)

    def spend(self, usage: RunUsage) -> None:
        """Add the usage of an attempt, finished or not."""
        if usage != RunUsage():  # of a worker that died nothing is known
            self.usage.append(usage)
            self.costs[usage.attempt or -len(self.costs) - 1] = usage.cost_usd

    def pay(self, attempts: Mapping[int, AttemptSpend]) -> None:
        """Take the cost of attempts from the paid calls, and all of those that a kill or the cap cut short."""
        for number, spent in attempts.items():
            self.unconfirmed += spent.uncertain_usd
            if number not in self.costs:
                agent = spent.agent
                self.spend(
                    RunUsage(
                        attempt=number,
                        calls=agent.calls,
                        input_tokens=agent.input_tokens,
                        output_tokens=agent.output_tokens,
                        cached_tokens=agent.cached_tokens,
                    )
                )
            _settle(self.costs, number, spent.usd.get(AGENT, NOTHING))
            if MEMORY in spent.usd:
                _settle(self.memory.costs, number, spent.usd[MEMORY])

    def row(
        self,
        setting: Setting,
        seeds: int,
        repeats: int,
        failed: Mapping[str, Failure],
        standing: Standing | None,
        cell: str,
    ) -> CellRow:
        """Return the row; runs that failed count as attempted."""
        task, access, score = setting.task, setting.access, pool(self.scores)
        in_texts = access.memory is not None or access.condition in _TEXTS
        validity = check_validity(score.blind, score.unexplained, spec_of(task), recognized=in_texts)
        memory = self.memory.row(failed.values())
        if validity.sentence is not None and memory is not None:
            memory = structs.replace(memory, diagnosis=(validity.sentence,))
        used = bool(self.costs)
        kinds = Counter(failure.kind for failure in failed.values())

        def total(name: str) -> int | None:
            return sum(getattr(usage, name) for usage in self.usage) if used else None

        return CellRow(
            **structs.asdict(score),
            cell=cell,
            model=setting.model,
            condition=access.condition,
            policy=access.policy,
            memory=access.memory,
            memory_settings=access.memory_settings,
            panel=access.capacity_panel,
            context_tokens=access.context_tokens,
            summary_prompt=access.summary_prompt,
            budget=access.budget if access.condition in BUDGETED else None,
            **structs.asdict(TaskColumns.of(task)),
            h=access.h,
            pressure=pressure_of(task, access),
            b_oracle=UNLIMITED if access.reads is None else access.reads,
            b=UNLIMITED if access.recomputations is None else access.recomputations,
            seeds=seeds,
            repeats=repeats,
            faults=dict(sorted(self.faults.items())),
            refusals=dict(sorted(self.refusals.items())),
            behavior=dict(sorted(self.behavior.items())),
            calls=total("calls"),
            cache_hits=total("cache_hits"),
            input_tokens=total("input_tokens"),
            output_tokens=total("output_tokens"),
            reasoning_tokens=total("reasoning_tokens"),
            truncated_replies=total("truncated_replies"),
            reasked=total("reasked"),
            unreported_calls=total("unreported_calls"),
            memory_calls=total("memory_calls"),
            max_tokens=max((usage.max_tokens for usage in self.usage), default=0) or None,
            cost_usd=exact_sum(self.costs.values()) if used else None,
            unconfirmed_usd=float(self.unconfirmed),
            suspect=self._suspect(score.accuracy),
            attempted=len(self.scores) + len(failed),
            failures=dict(sorted(kinds.items())),
            memory_system=memory,
            conversation=pool_conversations(self.conversations) if self.conversations else None,
            validity=validity,
            control=standing,
            claims=standing is not None and standing.passes and validity.finding is None,
        )

    def _suspect(self, accuracy: float | None) -> str | None:
        """Return why the adapter is probably broken, if all answers look alike."""
        steps = sum(score.steps for score in self.scores)
        if not steps or accuracy is None:
            return None
        if not any(score.answered for score in self.scores) and len(self.faults) <= 1:
            (kind,) = self.faults or ("unreached",)
            others = [reason for reason, _ in self.refusals.most_common() if reason != kind]
            return f"every answer failed in the same way ({kind}{f', most often {others[0]}' if others else ''})"
        (only,) = self.constants if len(self.constants) == 1 and not self.conversations else (None,)
        if only is not None and steps >= FEWEST_ANSWERS and accuracy < 0.5:
            return f"every answer is {' '.join(map(str, only))}"
        return None


def write_summary(summary: Summary, folder: Path) -> None:
    """Write the summary of a sweep."""
    write_struct(folder / SUMMARY, SUMMARY_SCHEMA, summary)


def read_summary(folder: Path) -> Summary:
    """Return the summary of a sweep: the one that was written at its end, or one of its runs so far."""
    planned = read_struct(folder / MANIFEST, RUNS_SCHEMA, Manifest).runs
    path = folder / SUMMARY
    written = read_struct(path, SUMMARY_SCHEMA, Summary) if path.is_file() else None
    if written is not None and written.complete and written.planned == planned:
        return written
    try:
        with SweepDatabase(folder) as database:
            return summarize(database, () if written is None else written.stopped)
    except UsageError as error:
        if isinstance(error, InputFileError) and not isinstance(error, UntrustedError):
            raise  # damaged
        if written is not None:
            return written  # as it was when it was last summed up
        raise InputFileError(f"{folder} is not finished and cannot be summed up ({error})") from error


def summarize(database: SweepDatabase, stopped: Sequence[str] = ()) -> Summary:
    """Return the rows of a sweep from its database; a cell is pooled as soon as its last run is read."""
    settings, planned = database.settings(), database.planned()
    pooled_in = _Pooling(database.path)
    for cell in planned:
        repeat = settings[cell].repeat
        pooled_in[cell] = cell if repeat is None else repeat.of
    totals: Counter[str] = Counter()
    for cell, runs in planned.items():
        totals[pooled_in[cell]] += runs
    standings = {verdict.key: verdict.standing for verdict in read_verdicts(database.folder)}
    failed: dict[str, dict[str, Failure]] = {}  # the last failure of each run, by cell and run
    gathering: dict[str, _CellTotals] = {}
    for failure in database.failures():  # failed attempts cost money too, even if the run finished later
        cell = pooled_in[failure.cell]
        failed.setdefault(cell, {})[failure.run] = failure
        gathering.setdefault(cell, _CellTotals()).spend(failure.usage)
    journal = journal_of(database)
    paid: dict[str, dict[int, AttemptSpend]] = {}
    for name, attempts in ({} if journal is None else journal.by_cell()).items():
        paid.setdefault(pooled_in[name], {}).update(attempts)
    rows: dict[str, CellRow] = {}
    scored = 0

    def finish(cell: str) -> None:
        found, setting = gathering.pop(cell, None) or _CellTotals(), settings[cell]
        found.pay(paid.pop(cell, {}))
        seeds = planned[cell]
        standing = standings.get(control_key(setting)) if standings else None
        rows[cell] = found.row(setting, seeds, totals[cell] // seeds, failed.get(cell, {}), standing, cell)

    for record in database.records():
        cell = pooled_in[record.cell]
        failed.get(cell, {}).pop(record.run, None)
        gathered = gathering.setdefault(cell, _CellTotals())
        gathered.add(record)
        scored += 1
        if len(gathered.scores) == totals[cell]:
            finish(cell)
    for cell in totals:
        if cell not in rows:
            finish(cell)
    whole = tuple(rows[cell] for cell in totals)
    failures = _grouped([*failed.values(), _control_failures(database)])
    judged: dict[GateVerdict, dict[Excluded, None]] = {"passes": {}, "fails": {}, "undecided": {}}
    for row in whole:
        if row.control is not None:
            judged[row.control.verdict][Excluded(row.model, row.workload, row.control.reason)] = None
    return Summary(
        rows=whole,
        failures=failures,
        stopped=tuple(stopped),
        scored=scored,
        planned=totals.total(),
        complete=scored == totals.total(),
        excluded=tuple(judged["fails"]),
        undecided=tuple(judged["undecided"]),
        spending=None if journal is None else journal.sums(),
    )


class _Pooling(dict[str, str]):
    """The cell whose row each cell is part of."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path

    def __missing__(self, cell: str) -> str:
        raise InputFileError(f"{self.path}: a run of cell {cell!r}, which was not planned; restore the folder")


def _control_failures(database: SweepDatabase) -> dict[str, Failure]:
    """Return the last failure of each unfinished run of the control, by run id."""
    failures = database.failures(control=True)
    found = {failure.run: structs.replace(failure, condition="capability") for failure in failures}
    for cell, seeds in database.finished(control=True).items() if found else ():
        for seed in seeds:
            found.pop(f"{cell}-{seed}", None)
    return found


def _grouped(failed: Iterable[Mapping[str, Failure]]) -> tuple[FailureGroup, ...]:
    groups: dict[tuple[str, ...], list[Failure]] = {}
    for failures in failed:
        for failure in failures.values():
            key = failure.workload, failure.model, failure.condition, failure.kind, failure.message
            groups.setdefault(key, []).append(failure)
    return tuple(
        FailureGroup(
            failure.workload, failure.model, failure.condition, failure.kind, failure.message, len(group), failure.run
        )
        for group in groups.values()
        for failure in group[:1]
    )


@dataclass(frozen=True, slots=True)
class OutcomeShares:
    """Outcomes over many runs: means of the shares of each run, so that all seeds have equal weight."""

    runs: int  # that needed a record from memory
    shares: Mapping[Outcome, float]  # empty without such a run

    def of(self, *outcomes: Outcome) -> float | None:
        """Return the share of needed records with one of these outcomes; None if no run needed any."""
        return math.fsum(self.shares[outcome] for outcome in outcomes) if self.shares else None


def pool_outcomes(counts: Iterable[Mapping[Outcome, int]]) -> OutcomeShares:
    """Return the shares of outcomes from their counts in each run."""
    needing = [(outcomes, needed) for outcomes in counts if (needed := sum(outcomes.values()))]
    shares = (
        {
            outcome: math.fsum(outcomes.get(outcome, 0) / needed for outcomes, needed in needing) / len(needing)
            for outcome in OUTCOMES
        }
        if needing
        else {}
    )
    return OutcomeShares(len(needing), shares)


def diagnose(
    outcomes: Mapping[Outcome, int], flooded: int, failures: Mapping[str, int], *, limited: bool = False
) -> tuple[str, ...]:
    """Return what is wrong with a memory system, in words; empty if everything was returned.

    Args:
        failures: messages of runs that failed because of the system, and their numbers.
        limited: it was limited to a number of records, so that eirkit itself removed some.
    """
    sought = sum(outcomes[outcome] for outcome in OUTCOMES if outcome not in NOT_ASKED)
    said: dict[Outcome, str] = {
        "not_stored": "no longer has what is written, held to h records" if limited else "loses what is written",
        "lost": "loses what it had stored",
        "not_found": "does not find what it holds",
        "contradicted_value": "contradicts itself: returns a wrong value beside the right one",
        "other_value": "returns a wrong value",
        "swapped_value": "returns another label's value",
        "cut_value": "returns a cut value",
        "foreign_value": "returns another user's value",
        "stale_value": "returns an outdated value, though it holds the new one",
        "not_overwritten": "keeps an outdated value: what is written again is lost",
        "deleted_value": "returns what was deleted",
        "expired_value": "returns what has expired as if it held",
        "unclear": "leaves it unclear whether the value was returned",
    }
    found = [
        f"{words} ({outcomes[outcome]} of {sought} lookups)" for outcome, words in said.items() if outcomes[outcome]
    ]
    if flooded:
        found.append(f"returns far more than can be read ({flooded} searches above {FLOOD:,} characters)")
    late = sum(runs for message, runs in failures.items() if "did not finish" in message)
    broken = sum(failures.values()) - late
    if late:
        found.append(f"answers late ({_runs(late)} lost)")
    if broken:
        found.append(f"raises ({_runs(broken)} lost)")
    return tuple(found)


def _runs(count: int) -> str:
    return "1 run" if count == 1 else f"{count} runs"


def pool_floors(floors: Sequence[RunFloor]) -> CellFloor | None:
    """Return the peaks over runs and the mean share of cuts at which less was held than needed; None without runs."""
    if not floors:
        return None
    needed, held = max(floor.needed_bits for floor in floors), max(floor.held_bits for floor in floors)
    short = sum(floor.short_cuts for floor in floors)
    cuts = sum(len(floor.held_records) for floor in floors)
    sizes = [size for floor in floors for size in floor.held_bytes if size is not None]
    counted: Counted = "system" if all(floor.counted == "system" for floor in floors) else "writes"
    ratio = held / needed if needed else None
    return CellFloor(counted, max(sizes, default=None), needed, held, ratio, short / cuts)


_SILENT_WORDS = {
    "empty": "empty",
    "truncated": "cut before a complete answer",
    "filtered": "withheld by a content filter",
    "refused": "a refusal",
}


def is_unread(row: CellRow) -> bool:
    """True if most replies of a row had not the form asked for, so that it says nothing about what was remembered."""
    return row.faults.get("malformed", 0) > MOSTLY * row.steps


def silences(rows: Iterable[CellRow]) -> Iterator[str]:
    """Yield a sentence for every model whose limit was raised, and every row with replies that were cut or silent."""
    rows = list(rows)
    for model in dict.fromkeys(row.model for row in rows if row.max_tokens == RAISED_TOKENS):
        yield f"{model} reasons: the limit of a reply was raised from {USUAL_TOKENS:,} to {RAISED_TOKENS:,} tokens"
    for row in rows:
        where = f"{row.model}, {row.memory or row.condition}{row.held}"
        if row.truncated_replies:
            cut = f"{row.truncated_replies:,} of {row.calls:,} replies were cut at {row.max_tokens:,} tokens"
            yield f"{where}: {cut}; raise --set max_tokens=N"
        kinds = [f"{words} ({row.faults[kind]})" for kind, words in _SILENT_WORDS.items() if row.faults.get(kind)]
        if kinds:
            yield f"{where}: steps without an answer because the reply was {', '.join(kinds)}, of {row.steps:,}"
