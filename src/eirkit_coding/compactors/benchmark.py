"""Runs a compaction benchmark over a corpus of logs: one run in memory at a time, recorded as soon as it is done."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from hashlib import blake2b
from importlib.metadata import version
from itertools import islice
from pathlib import Path

from msgspec import to_builtins
from msgspec.structs import replace

from eirkit.errors import EirkitError, MissingExtraError, SpendCapReached, UsageError
from eirkit.lacuna.models.model import ModelOptions
from eirkit.limits import RECORD_SECONDS, limited, time_limit
from eirkit.records.lines import RecordWriter
from eirkit.vestige.actions.touches import interpret
from eirkit.vestige.corpus.reader import read_corpus
from eirkit.vestige.demand.gold_patches import GoldPatches, Patch, open_gold_patches
from eirkit.vestige.demand.graph import goal_of, session_goal
from eirkit.vestige.demand.live_states import measure_touches
from eirkit.vestige.sources.documents import Skipped
from eirkit.vestige.sources.remote import Location
from eirkit.vestige.tokens import CHARACTERS_A_TOKEN, CachedCounter, Counter, exact_counter
from eirkit.vestige.trajectory import Recording, Trajectory
from eirkit_coding.compaction import COMPACTIONS, COMPACTIONS_SCHEMA, MANIFEST
from eirkit_coding.compaction.context import MESSAGE_TOKENS, LineCounter
from eirkit_coding.compaction.cuts import ContextCut, CutPlan, best_kept, cuts_of
from eirkit_coding.compactors.compactor import TokenBudget, compactors, find_compactor, make_compactor
from eirkit_coding.compactors.records import (
    TIMES,
    TIMES_SCHEMA,
    BenchmarkManifest,
    CompactionRow,
    CutFacts,
    RunRecord,
    RunSeconds,
    StoredLine,
    packed,
    read_manifest,
    read_runs,
)
from eirkit_coding.compactors.summary import ModelCompactor
from eirkit_coding.compactors.trial import CompactorChoice, CompactorSeat, TriedCompaction, open_seat, try_compactor

LINE_CHARACTERS = 160  # of a needed line that are stored
MOST_LINES = 20_000  # needed lines that are stored of one run, those of its first cuts; all of them are measured

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
        for choice in self.compactors:
            if choice.label in named:
                both = f"{named[choice.label]} and {choice.name}"
                raise UsageError(f"{both} would both be shown as {choice.label}; rename one of the files")
            named[choice.label] = choice.name

    def pairs(self) -> list[tuple[CompactorChoice, int]]:
        return [(choice, budget) for budget in self.budgets for choice in self.compactors]

    def manifest(self) -> BenchmarkManifest:
        code = {choice.label: choice.code for choice in self.compactors if choice.code is not None}
        return BenchmarkManifest(str(self.plan), None if self.gold is None else self.gold.name, code)


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
                        writer.append(to_builtins(found.record))
                        times.append(to_builtins(RunSeconds(item.run_id, found.seconds)))
                item = found if isinstance(found, Skipped) else item
            if isinstance(item, Skipped):
                skipped.append(item)
            if progress is not None:
                progress(item.source, runs, len(skipped))
    return BenchmarkTally(runs, uncut, tuple(skipped))


def claim_folder(out: Path, manifest: BenchmarkManifest) -> BenchmarkManifest:
    """Make the folder, or check that it holds a benchmark of the same cuts and files; return its description."""
    if (out / MANIFEST).is_file():
        before = read_manifest(out)
        for name, own, other in (("at", before.at, manifest.at), ("gold", before.gold, manifest.gold)):
            if own != other:
                raise UsageError(f"{out} was cut with {name} {own}; give it again, or another --out")
        for label, digest in manifest.code.items():
            if before.code.get(label, digest) != digest:
                raise UsageError(f"{out} has results of another {label}; give another --out")
        described = replace(before, code={**before.code, **manifest.code})
        if described != before:
            described.write(out)
        return described
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UsageError(f"{out} is not empty and no benchmark; give another --out")
    out.mkdir(parents=True, exist_ok=True)
    manifest.write(out)
    return manifest


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
    seconds: dict[str, float]


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
    digest = _digest(recording, benchmark.plan, repr(patch))
    before, done = known.get(recording.run_id, ("", set()))
    open_pairs = [
        (choice, budget)
        for choice, budget in benchmark.pairs()
        if before != digest or (choice.label, budget) not in done
    ]
    if not open_pairs:
        return _RunTrial(True, None, {})
    cuts, rows, seconds, left = list[CutFacts](), list[CompactionRow](), dict[str, float](), MOST_LINES
    for cut, counter in _cuts(bench, recording, patch):
        cuts.append(_facts(cut, left))
        left -= len(cuts[-1].needed)
        rows += _rows(bench, cut, counter, open_pairs, seconds)
    record = RunRecord(
        run_id=recording.run_id,
        source=recording.source,
        format=recording.format,
        digest=digest,
        tried=tuple((choice.label, budget) for choice, budget in open_pairs),
        cuts=tuple(cuts),
        rows=tuple(rows),
    )
    return _RunTrial(bool(cuts), record, {name: round(took, 6) for name, took in seconds.items()})


def _facts(cut: ContextCut, most: int) -> CutFacts:
    """Return what is recorded of a cut, with its first needed lines."""
    kinds = {
        kind: sum(line.tokens for line in cut.needed.values() if line.kind == kind) for kind in ("read", "written")
    }
    files = {path for line in cut.needed.values() for path in line.paths}
    return CutFacts(
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
        marks=packed(key in cut.needed for key in cut.lines),
        needed=tuple(
            StoredLine(line.text[:LINE_CHARACTERS], line.paths, line.tokens)
            for line in islice(cut.needed.values(), most)
        ),
    )


def _digest(recording: Recording, plan: CutPlan, gold: str) -> str:
    """Return a digest of all that the cuts of a run depend on."""
    found = blake2b(
        repr((version("eirkit"), str(plan), gold, recording.prompt)).encode("utf-8", "replace"), digest_size=16
    )
    for turn in recording.turns:
        found.update(repr(turn).encode("utf-8", "replace"))
    return found.hexdigest()


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
        yield _row(cut, tried, bounds[budget])


@dataclass(frozen=True, slots=True)
class Bounds:
    """What can be kept at a cut within a budget."""

    best_tokens: int  # by anybody
    random_tokens: float  # by random lines, on average

    @classmethod
    def at(cls, cut: ContextCut, budget: int) -> Bounds:
        """Return the bounds of a cut."""
        return cls(best_kept(cut, budget), cut.random_keeping.expected(max(0, budget - MESSAGE_TOKENS)))


def _row(cut: ContextCut, tried: TriedCompaction, bounds: Bounds) -> CompactionRow:
    """Return the row of one compaction."""
    outcome, state, usage = tried.outcome, tried.outcome.state, tried.usage
    return CompactionRow(
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
        kept=packed(key in outcome.present for key in cut.needed),
        present=packed(key in outcome.present for key in cut.lines),
    )


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
    found = {label: PlannedRequests(label, compactor.models) for label, compactor in asking.items()}
    gold = None if benchmark.gold is None else open_gold_patches(benchmark.gold)
    with ExitStack() as stack:
        bench = _Bench(benchmark, {}, stack, count or exact_counter())
        for item in read_corpus(benchmark.paths, format=benchmark.format) if found else ():
            if isinstance(item, Skipped) or item.domain != "files":
                continue
            for cut, counter in _cuts(bench, item, None if gold is None else gold.get(item.task_id)):
                for budget in (budget for budget in benchmark.budgets if budget < cut.context_tokens):
                    for label, plan in found.items():
                        request = asking[label].request(cut.messages, TokenBudget(budget, counter))
                        if request is not None:
                            plan.calls += 1
                            plan.prompt_chars += sum(len(message.content) for message in request.messages)
                            plan.reply_chars += CHARACTERS_A_TOKEN * (request.max_tokens or 0)
                            plan.most_tokens = max(plan.most_tokens, request.max_tokens or 0)
    return list(found.values())


def _asking(benchmark: CompactionBenchmark) -> Iterator[tuple[str, ModelCompactor]]:
    for choice in benchmark.compactors:
        if not compactors.is_foreign(choice.name) and issubclass(find_compactor(choice.name), ModelCompactor):
            made = make_compactor(find_compactor(choice.name), choice.settings)
            assert isinstance(made, ModelCompactor)
            yield choice.label, made
