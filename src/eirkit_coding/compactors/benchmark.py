"""Runs a compaction benchmark over a corpus of logs: one run in memory at a time, recorded as soon as it is done."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eirkit.errors import EirkitError, MissingExtraError, SpendCapReached, UsageError
from eirkit.lacuna.models.model import ModelOptions
from eirkit.limits import RECORD_SECONDS, limited, time_limit
from eirkit.records.lines import RecordWriter, read_document, write_document
from eirkit.vestige.actions.touches import interpret
from eirkit.vestige.corpus.reader import read_corpus
from eirkit.vestige.demand.gold_patches import GoldPatches, Patch, open_gold_patches
from eirkit.vestige.demand.graph import goal_of, session_goal
from eirkit.vestige.demand.live_states import measure_touches
from eirkit.vestige.sources.documents import Skipped
from eirkit.vestige.sources.remote import Location
from eirkit.vestige.tokens import CHARACTERS_A_TOKEN, CachedCounter, Counter, exact_counter
from eirkit.vestige.trajectory import Recording, Trajectory
from eirkit_coding.compaction import COMPACTIONS, COMPACTIONS_SCHEMA, MANIFEST, MANIFEST_SCHEMA
from eirkit_coding.compaction.context import LineCounter
from eirkit_coding.compaction.cuts import ContextCut, CutPlan, cuts_of
from eirkit_coding.compactors.compactor import TokenBudget, compactors, find_compactor, make_compactor
from eirkit_coding.compactors.records import (
    MOST_LINES,
    TIMES,
    TIMES_SCHEMA,
    Bounds,
    CompactionRow,
    RunRecord,
    digest_of,
    facts_of,
    lines_of,
    read_runs,
    row_of,
)
from eirkit_coding.compactors.summary import ModelCompactor
from eirkit_coding.compactors.trial import CompactorChoice, CompactorSeat, open_seat, try_compactor

CompactProgress = Callable[[str, int, int], None]  # source, runs, skipped
Seating = Callable[[CompactorChoice], CompactorSeat]


@dataclass(frozen=True, slots=True)
class CompactionBenchmark:
    """What is tried on which logs."""

    paths: tuple[Location, ...]
    compactors: tuple[CompactorChoice, ...]
    budgets: tuple[int, ...]
    plan: CutPlan
    gold: Path | None = None
    format: str | None = None
    seating: Seating = field(default=open_seat)

    def __post_init__(self) -> None:
        """Refuse compactors that could not be told apart."""
        named: dict[str, str] = {}
        for one in self.compactors:
            if one.label in named:
                both = f"{named[one.label]} and {one.name}"
                raise UsageError(f"{both} would both be shown as {one.label}; rename one of the files")
            named[one.label] = one.name

    def pairs(self) -> list[tuple[CompactorChoice, int]]:
        return [(choice, budget) for budget in self.budgets for choice in self.compactors]

    def manifest(self) -> dict[str, Any]:
        code = {one.label: one.code for one in self.compactors if one.code is not None}
        return {"at": str(self.plan), "gold": None if self.gold is None else self.gold.name, "code": code}


@dataclass(frozen=True, slots=True)
class BenchmarkTally:
    """What was read."""

    runs: int
    uncut: int  # runs without a cut
    skipped: tuple[Skipped, ...]
    stopped: str = ""  # why it stopped early


def run_benchmark(
    benchmark: CompactionBenchmark, out: Path, *, count: Counter | None = None, progress: CompactProgress | None = None
) -> BenchmarkTally:
    """Try every compactor at every cut and append what each kept; what the folder already holds is not repeated.

    Raises:
        UsageError: the folder holds something else, or a benchmark with other cuts.
    """
    claim_folder(out, benchmark.manifest())
    known = _known(out)
    counting = count or exact_counter()
    gold = None if benchmark.gold is None else open_gold_patches(benchmark.gold)
    runs, uncut, skipped = 0, 0, list[Skipped]()
    with ExitStack() as stack:
        bench = _Bench(benchmark, {}, stack, counting)
        for choice in benchmark.compactors:  # what is wrong with one is found before anything is read
            bench.seat(choice)
        writer = stack.enter_context(RecordWriter(out / COMPACTIONS, COMPACTIONS_SCHEMA))
        times = stack.enter_context(RecordWriter(out / TIMES, TIMES_SCHEMA))
        for item in read_corpus(benchmark.paths, format=benchmark.format):
            if not isinstance(item, Skipped):
                try:
                    found = _tried_or_skipped(bench, item, gold, known)
                except SpendCapReached as stop:
                    return BenchmarkTally(runs, uncut, tuple(skipped), str(stop))
                if isinstance(found, _RunTrial):
                    runs += 1
                    uncut += not found.has_cuts
                    if found.record is not None:
                        writer.append(found.record.as_json())
                        times.append({"run_id": item.run_id, "seconds": found.seconds})
                item = found if isinstance(found, Skipped) else item
            if isinstance(item, Skipped):
                skipped.append(item)
            if progress is not None:
                progress(item.source, runs, len(skipped))
    return BenchmarkTally(runs, uncut, tuple(skipped))


def claim_folder(out: Path, manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Make the folder, or check that it holds a benchmark of the same cuts and files; return its description."""
    path = out / MANIFEST
    if path.is_file():
        before = read_document(path, MANIFEST_SCHEMA)
        for name in ("at", "gold"):
            if before.get(name) != manifest[name]:
                raise UsageError(f"{out} was cut with {name} {before.get(name)}; give it again, or another --out")
        code = dict(before.get("code", {}))
        for label, digest in manifest["code"].items():
            if code.setdefault(label, digest) != digest:
                raise UsageError(f"{out} has results of another {label}; give another --out")
        described = {**manifest, "code": code}
        if code != before.get("code", {}):
            write_document(path, MANIFEST_SCHEMA, {**before, **described})
        return described
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UsageError(f"{out} is not empty and no benchmark; give another --out")
    out.mkdir(parents=True, exist_ok=True)
    write_document(path, MANIFEST_SCHEMA, manifest)
    return dict(manifest)


_Known = dict[str, tuple[str, set[tuple[str, int]]]]  # by run: its digest, and the compactors and budgets tried


def _known(out: Path) -> _Known:
    found: _Known = {}
    for record in read_runs(out):
        digest, tried = found.get(record.run_id, (record.digest, set()))
        found[record.run_id] = record.digest, {*(tried if digest == record.digest else ()), *record.tried}
    return found


@dataclass(frozen=True, slots=True)
class _RunTrial:
    has_cuts: bool
    record: RunRecord | None  # None: all of it was known
    seconds: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class _Bench:
    """What all runs share."""

    benchmark: CompactionBenchmark
    seats: dict[str, CompactorSeat]
    stack: ExitStack
    count: Counter

    def seat(self, choice: CompactorChoice) -> CompactorSeat:
        if choice.label not in self.seats:
            self.seats[choice.label] = seat = self.benchmark.seating(choice)
            self.stack.callback(seat.close)
        return self.seats[choice.label]


def _tried_or_skipped(
    bench: _Bench, recording: Recording, gold: GoldPatches | None, known: _Known
) -> _RunTrial | Skipped:
    if recording.domain != "files":
        return Skipped(recording.source, f"run {recording.run_id} has no files, so what it needed is not known by line")
    patch = None if gold is None else gold.get(recording.task_id)
    try:
        return _tried(bench, recording, patch, known)
    except (MissingExtraError, MemoryError, SpendCapReached):
        raise
    except EirkitError as error:
        return Skipped(recording.source, str(error))


def _tried(bench: _Bench, recording: Recording, patch: Patch | None, known: _Known) -> _RunTrial:
    benchmark = bench.benchmark
    digest = digest_of(recording, benchmark.plan, repr(patch))
    before, done = known.get(recording.run_id, ("", set()))
    open_pairs = [one for one in benchmark.pairs() if before != digest or (one[0].label, one[1]) not in done]
    if not open_pairs:
        return _RunTrial(True, None, {})
    facts, lines, rows, seconds, stored = [], [], list[CompactionRow](), dict[str, float](), 0
    for cut, counter in _cuts(bench, recording, patch):
        facts.append(facts_of(cut))
        found = lines_of(cut)[: MOST_LINES - stored]
        stored += len(found)
        lines.append(tuple(found))
        rows += _rows(bench, cut, counter, open_pairs, seconds)
    tried = tuple((choice.label, budget) for choice, budget in open_pairs)
    named = recording.run_id, recording.source, recording.format
    record = RunRecord(*named, digest, tried, tuple(facts), tuple(lines), tuple(rows))
    return _RunTrial(bool(facts), record, {name: round(took, 6) for name, took in seconds.items()})


def _cuts(bench: _Bench, recording: Recording, patch: Patch | None) -> Iterator[tuple[ContextCut, LineCounter]]:
    what = f"run {recording.run_id}"
    with time_limit(RECORD_SECONDS, what):
        count = CachedCounter(bench.count)
        trajectory = interpret(recording, count)
        counter = LineCounter(bench.count)
        cuts = planned_cuts(trajectory, patch, bench.benchmark.plan, count, counter)
    for cut in limited(cuts, RECORD_SECONDS, what):
        yield cut, counter


def planned_cuts(
    trajectory: Trajectory, patch: Patch | None, plan: CutPlan, count: Counter, counter: LineCounter
) -> Iterator[ContextCut]:
    """Yield the cuts of a run, with edit-aware demand."""
    by_paper = goal_of(trajectory, patch)
    goal = by_paper if by_paper.source != "own-edits" else session_goal(trajectory)
    run = measure_touches(trajectory, goal, count, by_paper)
    yield from cuts_of(trajectory, goal, run, plan, counter)


def _rows(
    bench: _Bench,
    cut: ContextCut,
    counter: LineCounter,
    pairs: Sequence[tuple[CompactorChoice, int]],
    seconds: dict[str, float],
) -> Iterator[CompactionRow]:
    bounds: dict[int, Bounds] = {}
    for choice, budget in pairs:
        if cut.context_tokens <= budget:
            continue  # nothing has to go
        if budget not in bounds:
            bounds[budget] = Bounds.at(cut, budget)
        tried = try_compactor(choice, bench.seat(choice), cut, budget, counter)
        seconds[choice.label] = seconds.get(choice.label, 0.0) + tried.seconds
        yield row_of(cut, tried, bounds[budget])


@dataclass(slots=True)
class PlannedRequests:
    """What one compactor would ask its model in a whole benchmark."""

    label: str
    model: tuple[str, ModelOptions]
    calls: int = 0
    prompt_chars: int = 0
    reply_chars: int = 0
    most_tokens: int = 0  # of one reply


def planned_requests(benchmark: CompactionBenchmark, count: Counter | None = None) -> list[PlannedRequests]:
    """Return what compactors would ask their models; nothing is asked."""
    asking = dict(_asking(benchmark))
    found = {label: PlannedRequests(label, one.models) for label, one in asking.items()}
    gold = None if benchmark.gold is None else open_gold_patches(benchmark.gold)
    with ExitStack() as stack:
        bench = _Bench(benchmark, {}, stack, count or exact_counter())
        for item in read_corpus(benchmark.paths, format=benchmark.format) if found else ():
            if isinstance(item, Skipped) or item.domain != "files":
                continue
            for cut, counter in _cuts(bench, item, None if gold is None else gold.get(item.task_id)):
                for budget in (one for one in benchmark.budgets if one < cut.context_tokens):
                    for label, plan in found.items():
                        _add_request(plan, asking[label], cut, TokenBudget(budget, counter))
    return list(found.values())


def _asking(benchmark: CompactionBenchmark) -> Iterator[tuple[str, ModelCompactor]]:
    for one in benchmark.compactors:
        if not compactors.is_foreign(one.name) and issubclass(find_compactor(one.name), ModelCompactor):
            made = make_compactor(find_compactor(one.name), one.settings)
            assert isinstance(made, ModelCompactor)
            yield one.label, made


def _add_request(plan: PlannedRequests, compactor: ModelCompactor, cut: ContextCut, budget: TokenBudget) -> None:
    request = compactor.request(cut.messages, budget)
    if request is not None:
        plan.calls += 1
        plan.prompt_chars += sum(len(one.content) for one in request.messages)
        plan.reply_chars += CHARACTERS_A_TOKEN * (request.max_tokens or 0)
        plan.most_tokens = max(plan.most_tokens, request.max_tokens or 0)
