"""`eirkit lacuna run`: runs or resumes a sweep; columns, remarks and the next command of what it prints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, nullcontext
from decimal import ROUND_CEILING, Decimal
from pathlib import Path
from shlex import quote
from typing import Any

from msgspec import structs

from eirkit.cli.command import Show, document_options, say
from eirkit.cli.options import workload_command
from eirkit.cli.run_options import axis_options, given_keys, suite_argument
from eirkit.cli.runner_options import (
    PartEstimate,
    PlanEstimate,
    RunnerOptions,
    SweepProgress,
    control_option,
    estimate_document,
    runner_options,
    spending_remarks,
    totals,
    unpriced,
)
from eirkit.errors import UsageError
from eirkit.lacuna import EXTRACTOR, READER
from eirkit.lacuna.findings.measures import CAUSE_MEASURES, OUTCOME_MEASURES, RUN_MEASURES
from eirkit.lacuna.findings.summary import NOT_ASKED, silences
from eirkit.lacuna.findings.validity import papers_verdict, system_remarks
from eirkit.lacuna.memories.plan import memory_factory
from eirkit.lacuna.models.metered import PRICE_LONGER
from eirkit.lacuna.runs.budget import Budget, SpendingLimits
from eirkit.lacuna.runs.capability import NO_CONTROL
from eirkit.lacuna.runs.control import control_plan
from eirkit.lacuna.runs.estimate import (
    NextCaps,
    caps_of_rest,
    estimate_plan,
    read_recorded,
)
from eirkit.lacuna.runs.manifest import read_manifest
from eirkit.lacuna.runs.suite import Suite, load_suite, read_suite
from eirkit.lacuna.runs.sweep import recorded_suite, resume_sweep, start_sweep
from eirkit.records.money import RAISE
from eirkit.records.runs import CAUSES, RETURNED
from eirkit.records.sweeps import CellRow, MemoryRow, Summary, read_verdicts
from eirkit.report.document import Document, Listing, Section
from eirkit.report.runs.answers import unread_headline, unread_replies
from eirkit.report.runs.folder import Coordinates, condition_of, is_candidate
from eirkit.report.runs.page import memory_tables
from eirkit.report.runs.words import answer_in_words, why_wrong, word_tables
from eirkit.report.table import Cell, Column, Table, counted, listed, share


def memory_remarks(rows: Sequence[CellRow]) -> Iterator[str]:
    """Yield a remark on each system, and on rows that cannot be compared."""
    yield from _held(rows)
    several = len({row.panel for row in rows}) > 1
    for row in rows:
        where = f"memory {row.memory}, {row.workload}{row.held}{', ' + row.panel if several else ''}"
        yield from (f"{where}: {finding}" for finding in system_of(row).diagnosis)
    if any(row.panel == "native" and row.scored for row in rows):
        remedy = "" if several else "; add --panel strict"
        yield (
            "native panel: each system keeps as much as it likes, so its rows do not compare with those held to h"
            f"{remedy}"
        )


def scripted_remarks(rows: Sequence[CellRow]) -> Iterator[str]:
    """Yield which memories asked a script in place of a model."""
    model_of = memory_factory().model_of
    asked: dict[str, dict[str, None]] = {}  # by script
    for row in rows:
        if system_of(row).model_calls and model_of(str(row.memory), row.memory_settings) == EXTRACTOR:
            asked.setdefault(EXTRACTOR if row.conversation is None else READER, {})[str(row.memory)] = None
    for script, systems in asked.items():
        yield (
            f"{script} answered what {listed(list(systems))} asked of a model: a script, not a model, and its tokens "
            "are an estimate; for a model add --set NAME.model=PROVIDER/MODEL"
        )


def _held(rows: Sequence[CellRow]) -> Iterator[str]:
    """Yield a line for each system and panel, over its scored rows without a diagnosed problem."""
    good: dict[tuple[str, str], list[CellRow]] = {}
    for row in rows:
        if not system_of(row).diagnosis and row.scored:
            good.setdefault((str(row.memory), row.panel), []).append(row)
    for (memory, panel), held in good.items():
        brought, left = (
            sum(system_of(row).outcomes[outcome] for row in held for outcome in outcomes)
            for outcomes in (RETURNED, NOT_ASKED)
        )
        by_h: dict[str, dict[str, None]] = {}
        for row in held:
            by_h.setdefault("" if row.h is None else f" at h = {row.h}", {})[row.workload] = None
        tasks = "; ".join(f"{', '.join(workloads)}{at}" for at, workloads in by_h.items())
        where = f"({panel} panel; {tasks})"
        never = " or ".join(OUTCOME_MEASURES[outcome].label for outcome in NOT_ASKED)
        if not brought and not left:
            yield f"{memory} was not tested {where}: no record was needed from it"
        elif not brought:
            yield (
                f"{memory} was not tested {where}: the {left} records needed from it were {never}; try an agent that "
                "writes and searches, such as reference/recoverer"
            )
        elif not left:
            yield f"{memory} retrieved every record needed from it {where}: {brought} of {brought}"
        else:
            yield (
                f"{memory} retrieved every record it was asked for {where}: {brought} of {brought + left}; {left} were "
                f"{never}"
            )


def system_of(row: CellRow) -> MemoryRow:
    """Return what the memory of a row did; rows without one are not asked for it."""
    assert row.memory_system is not None
    return row.memory_system


ALIGNED, INFORMED = RUN_MEASURES["first_error_at_first_miss"], "informed_accuracy"
OF_LOSS = ("state_supply", "cascade")  # causes that are withheld where the control fails
WITHHELD = "withheld"  # in place of a figure that may not be claimed


@workload_command(example="eirkit lacuna run words --model scripted/reader --memory text,bm25 --seeds 0:8", told=True)
@suite_argument
@axis_options
@control_option
@runner_options("A new or empty folder.  [default: a new one in ./out]")
@document_options
def run(
    suite: Path | None,
    control: bool | None,
    runner: RunnerOptions,
    show: Show,
    **options: Any,
) -> int:
    """Run agents on the tasks of a WORKLOAD or a SUITE.toml; options replace values of the suite.

    Options that take lists, separated by commas, make a grid. Without --memory and --condition only the last h records
    are visible (controlled retention); with --memory everything else must come from the memory system. In conversations
    everything must come from it; the memories whole and truncated are the text itself and its end. A token of a
    --budget is four characters.
    """
    wanted = _wanted(suite, runner.resume, given_keys(options))
    if runner.dry_run:
        show(_estimate(wanted, control, runner))
        return 0
    named = runner.resume or runner.out
    folder = named or fresh_folder(Path("out"), wanted.name)
    try:
        with (
            SweepProgress("" if named else f"writing to {folder}") as progress,
            closing(runner.engine) if runner.engine else nullcontext(),
        ):
            if runner.resume is None:
                summary = start_sweep(wanted, folder, runner.limits, progress, control, runner.engine)
            else:
                summary = resume_sweep(folder, wanted, runner.limits, progress, control, runner.engine)
    except KeyboardInterrupt:
        say(f"eirkit: interrupted; continue with `eirkit lacuna run --resume {quote(str(folder))}`")
        return 130
    show(_document(folder, summary, _caps(folder, wanted, runner) if _is_capped(summary) else None))
    return 0 if summary.complete and not summary.failures else 1


def _wanted(suite: Path | None, resume: Path | None, given: Mapping[str, Any]) -> Suite:
    """Return the suite of the file or of the folder, with the options over it; of the options alone otherwise."""
    if suite is not None:
        return load_suite(suite, given)
    if resume is not None:
        recorded = recorded_suite(resume)
        return read_suite(recorded.settings, given) if given else recorded
    if not {"workload", "model"} <= given.keys():
        raise UsageError("nothing to run; give a WORKLOAD and --model, a SUITE.toml, or --resume DIR")
    return read_suite(given)


def fresh_folder(parent: Path, name: str) -> Path:
    """Return the first folder name-1, name-2, … that does not exist yet."""
    number = 1
    while (parent / f"{name}-{number}").exists():
        number += 1
    return parent / f"{name}-{number}"


class SweepEstimate(PlanEstimate, frozen=True, kw_only=True):
    """What a sweep would take, with its control."""

    sweep: PartEstimate
    control: PartEstimate


def _estimate(suite: Suite, control: bool | None, runner: RunnerOptions) -> Document:
    budget, settled = runner.kept_budget(), set[str]()
    if runner.resume is not None:
        control = read_manifest(runner.resume).control if control is None else control
        settled = {verdict.key for verdict in read_verdicts(runner.resume) if not verdict.failures}
    before = control_plan(suite, control, settled)
    estimates = estimate_plan(suite, budget, runner.recorded())
    controls = estimate_plan(before, budget, runner.recorded(control=True), every_seed=True)
    sweep, own = PartEstimate.of(estimates), PartEstimate.of(controls)
    whole = structs.asdict(PartEstimate.of([*estimates, *controls]))
    rows = tuple(estimate.row() for estimate in estimates)
    more = {**whole, "runs": sweep.runs, "rows": rows, "sweep": sweep, "control": own}
    found = SweepEstimate.of_plan(estimates, runner.recorded(), **more)
    models = unpriced(rows)
    parts = (
        totals(sweep, "the sweep, below: ", models),
        totals(own, "before it, the control with nothing missing (--no-control leaves it out): ", models),
    )
    shown = [structs.replace(estimate.row(), condition=condition_of(estimate.cell.access)) for estimate in estimates]
    answer = totals(PartEstimate(**whole), unpriced=models)
    return estimate_document("lacuna-run", found, answer, parts if own.runs else (), shown)


def _caps(folder: Path, suite: Suite, runner: RunnerOptions) -> NextCaps | None:
    """Return caps at which one more run, and all, can finish; None if that is unknown."""
    budget = Budget(SpendingLimits(prices=runner.limits.prices), folder)
    recorded = read_recorded(folder)
    before = control_plan(suite, read_manifest(folder).control)
    controls = estimate_plan(before, budget, read_recorded(folder, control=True), every_seed=True)
    return caps_of_rest([*estimate_plan(suite, budget, recorded), *controls], recorded)


def _dollars(cap: Decimal) -> str:
    """Return a cap rounded up."""
    return f"{cap.quantize(Decimal(1).scaleb(min(-2, cap.adjusted() - 1)), ROUND_CEILING):f}"


def _again(folder: Path, summary: Summary, caps: NextCaps | None) -> str:
    """Return the command that goes on with a sweep; one that its cap has stopped needs a higher one."""
    again = f"eirkit lacuna run --resume {quote(str(folder))}"
    if not _is_capped(summary):
        is_unpriced = any(PRICE_LONGER in reason for reason in summary.stopped)
        return f"{again} --prices FILE" if is_unpriced else again
    return f"{again} --dry-run" if caps is None else f"{again} --cap-usd {_dollars(caps.rest_usd)}"


def _further(summary: Summary, caps: NextCaps) -> str:
    """Return which caps pay for one more run and for the rest."""
    left = counted(summary.planned - summary.scored, "run")
    return (
        f"a cap of ${_dollars(caps.rest_usd)} pays for the {left} left, if they cost what is expected; "
        f"${_dollars(caps.one_usd)} pays for one more"
    )


def _is_capped(summary: Summary) -> bool:
    return any(RAISE in reason for reason in summary.stopped)


class SweepDocument(Summary, frozen=True, kw_only=True):
    """The summary of a sweep, with its folder."""

    out: str


def _document(folder: Path, summary: Summary, caps: NextCaps | None) -> Document:
    sections = [Section("", (), tuple(_tables(summary.rows)))] if summary.scored else []
    remarks = [*_remarks(summary), *([] if caps is None else [_further(summary, caps)])]
    sections.append(Section("", tuple(remarks), (Listing("records", "", f"records in {folder}"),)))
    # Where a memory in the user's own file failed every run: once corrected, it is not the one of this sweep.
    is_own = not summary.scored and any(".py:" in str(row.memory or "") for row in summary.rows)
    again = not summary.complete and not (is_own and any(failure.kind == "memory" for failure in summary.failures))
    where = quote(str(folder))
    several = len({condition_of(row) for row in summary.rows if row.scored and is_candidate(row)}) > 1
    then = _again(folder, summary, caps) if again else f"eirkit {'choose' if several else 'report'} {where}"
    manifest, answer = read_manifest(folder), list(_answer(summary))
    unread = unread_replies(summary.rows, manifest)
    if unread_headline(summary.rows, manifest) is not None:
        then, answer = unread[0].command, []
    answer += [model.sentence for model in unread]
    data = SweepDocument(out=str(folder), **structs.asdict(summary))
    return Document("lacuna-run", f"Sweep in {folder}", tuple(answer), data, tuple(sections), next=then)


def _answer(summary: Summary) -> tuple[str, ...]:
    if not summary.scored:
        return (f"None of {counted(summary.planned, 'run')} is scored.",)
    rows = sorted((row for row in summary.rows if row.accuracy is not None), key=lambda row: -(row.accuracy or 0.0))
    best = rows[0]
    if (untested := _untested(rows)) is not None:
        return (untested,)
    if any(row.conversation is not None for row in rows):
        return answer_in_words(rows)
    if len(rows) == 1:
        said = f"{best.model} answered {share(best.accuracy or 0.0)} of the steps correctly"
        return (f"{said} with {condition_of(best)}{best.held}.",)
    named = Coordinates(rows)
    ends = [[row for row in rows if row.accuracy == end.accuracy] for end in (best, rows[-1])]
    first, last = (
        f"{share(own[0].accuracy)} ({listed([named.label(row, between=', ') for row in own], 2)})" for own in ends
    )
    if best.accuracy == rows[-1].accuracy:
        return (f"Steps answered correctly: {share(best.accuracy)} in each of {len(rows)} settings.",)
    return (f"Steps answered correctly: {first} at best, {last} at worst, over {len(rows)} settings.",)


def _untested(rows: Sequence[CellRow]) -> str | None:
    """Return that nothing was needed from any memory, so that accuracy says nothing about them; None otherwise."""
    if any(row.memory_system is None or row.conversation is not None for row in rows):
        return None
    if not rows or any(sum(system_of(row).outcomes.values()) for row in rows):
        return None
    names = list(dict.fromkeys(str(row.memory) for row in rows))
    was, it = ("was", "it") if len(names) == 1 else ("were", "them")
    return f"{listed(names)} {was} not tested, since no record was needed from {it}; give an --h below --m."


def _tables(rows: Sequence[CellRow]) -> Iterator[Table]:
    if any(row.conversation is not None for row in rows):
        yield from word_tables(rows)
        return
    named = Coordinates(rows)
    causes = [cause for cause in CAUSES if any(row.errors[cause] for row in rows)]
    columns = (
        *(Column(name, name, role="name", figures=name in ("B_oracle", "B")) for name in named.varying),
        *([Column("pressure", "m/h", 2, priority=2)] if any(row.pressure is not None for row in rows) else []),
        Column("scored", "scored", figures=True),
        Column("accuracy", RUN_MEASURES["accuracy"].label, figures=True),
        Column.of(RUN_MEASURES["informed_accuracy"], figures=True),
        *(Column.of(CAUSE_MEASURES[cause], figures=True) for cause in causes),
        Column.of(ALIGNED, figures=True, priority=1),
    )
    title = "Accuracy, and why steps were wrong"
    lines = tuple({**named.cells(row), **_figures(row)} for row in rows)
    note = "±: standard deviation over runs; in parentheses: 95% interval."
    yield Table("causes", f"{title} ({named.shared})" if named.shared else title, columns, lines, note)
    if stored := [(row, row.memory_system) for row in rows if row.memory_system is not None]:
        yield from memory_tables(stored, Coordinates([row for row, _ in stored]))


def _figures(row: CellRow) -> dict[str, Cell]:
    """Return what is printed of a row; causes about lost information are withheld like other claims."""
    accuracy, informed = row.accuracy, row.informed_accuracy
    aligned = row.first_error_at_first_miss if any(row.errors.values()) else None
    figures: dict[str, Cell] = {
        "pressure": row.pressure,
        "scored": row.scored_of,
        "accuracy": None if accuracy is None else f"{accuracy:.3f}±{row.accuracy_sd:.3f}",
        # Brief, since columns are many.
        INFORMED: None if informed is None else f"{informed:.3f} ({row.informed_low:.2f}–{row.informed_high:.2f})",
        **{str(cause): figure for cause, figure in row.error_shares.items()},
        ALIGNED.id: aligned,
    }
    return {**figures, **(dict.fromkeys((*OF_LOSS, ALIGNED.id), WITHHELD) if row.is_withheld else {})}


def _remarks(summary: Summary) -> Iterator[str]:
    for judged in (*summary.excluded, *summary.undecided):
        verdict, _, why = judged.reason.partition(": ")
        yield f"{verdict}: {judged.model}, {judged.workload}: {why}"
    if summary.undecided:
        yield "undecided by the control: causes are shown and claim nothing about lost information"
    papers = {(row.model, row.workload): row.control.gates[1] for row in summary.rows if row.control is not None}
    for (model, workload), gate in papers.items():
        if gate.verdict != "passes":
            yield f"{model}, {workload}: {papers_verdict(gate)}"
    if any(row.control is None and row.scored for row in summary.rows):
        which = "" if all(row.control is None for row in summary.rows) else " for some models"
        yield f"{NO_CONTROL}{which}: causes are descriptive; add --control"
    for row in summary.rows:
        if row.max_turn:
            never = CAUSE_MEASURES["not_answered"].label
            open_steps = f"{row.errors['not_answered']:,} of {row.steps:,} steps"
            yield (
                f"{row.max_turn} of {row.scored} runs of {condition_of(row)}, {row.workload}{row.held} "
                f"ended at their limit of actions ({never}: {open_steps}); raise --actions"
            )
    yield from why_wrong(summary.rows)
    yield from silences(summary.rows)
    for row in summary.rows:
        if doubt := row.validity.sentence:
            yield f"{row.model}, {condition_of(row)}{row.held}: {doubt}"
        if row.suspect:
            yield f"suspect: {row.model}, {condition_of(row)}{row.held}: {row.suspect}; check the adapter"
    for failure in summary.failures:
        yield f"not scored: {failure.runs} of {failure.model}, {failure.workload} ({failure.kind}): {failure.message}"
    stored = [row for row in summary.rows if row.memory_system is not None]
    yield from memory_remarks([row for row in stored if row.conversation is None])
    yield from (*scripted_remarks(stored), *system_remarks((row.memory, row.memory_system) for row in summary.rows))
    yield from (*spending_remarks(summary.spending), *(f"stopped: {line}" for line in summary.stopped))
