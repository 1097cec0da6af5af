"""What all commands that run agents share: `--out`, `--cap-usd`, the estimate of `--dry-run`, live progress, totals."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import asdict, dataclass, replace
from decimal import Decimal
from functools import wraps
from itertools import pairwise
from pathlib import Path
from typing import Any, Self, TypeVar

import click
import msgspec
from msgspec import Struct, structs

from eirkit.cli.command import OUTPUT, Show, option, options, repeated, say
from eirkit.cli.execution import LiveLine, engine_options
from eirkit.cli.options import Dollars
from eirkit.engine.interface import Engine
from eirkit.errors import InputFileError, UsageError
from eirkit.lacuna.findings.command_line import evidence_command
from eirkit.lacuna.findings.measures import SPENDING_MEASURES
from eirkit.lacuna.models.prices import add_up
from eirkit.lacuna.runs.budget import Budget, SpendingLimits
from eirkit.lacuna.runs.cells import CellPlan
from eirkit.lacuna.runs.estimate import (
    CellEstimate,
    EstimateRow,
    ModelAssumption,
    ModelEstimate,
    RecordedRuns,
    assumptions,
    by_model,
    estimate_plan,
    read_recorded,
)
from eirkit.lacuna.runs.journal import read_journal
from eirkit.lacuna.runs.manifest import read_manifest
from eirkit.lacuna.runs.runner import Progress as Sweep
from eirkit.lacuna.runs.runner import Results
from eirkit.lacuna.runs.sweep import open_plan, write_result
from eirkit.records.documents import MANIFEST
from eirkit.records.evidence import SETTINGS, EvidenceResult
from eirkit.records.money import Journal, cost_in_words
from eirkit.records.sweeps import Spending
from eirkit.report.document import Document, Listing, Section
from eirkit.report.table import Column, Table, counted, listed


class SweepProgress(LiveLine):
    """Shows the progress of a sweep; use it in a with statement.

    Args:
        first: said once the sweep has begun, so that one that is refused says nothing but why.
    """

    def __init__(self, first: str = "") -> None:
        super().__init__("running")
        self._first = first

    def __call__(self, now: Sweep) -> None:
        if self._first:
            say(self._first)
            self._first = ""
        parts = [
            f"cells {now.cells}/{now.planned_cells}",
            f"runs {now.runs}/{now.planned_runs}",
            f"{self.rate(now.steps):,.0f} steps/s",
        ]
        if now.spent_usd:
            parts.append(f"${now.spent_usd:.2f}")
        if now.failed:
            parts.append(f"{now.failed} failed")
        self.show(now.runs, now.control or "  ".join(parts), now.planned_runs)


Command = TypeVar("Command", bound=Callable[..., Any])
PATH = click.Path(path_type=Path)

control_option = option(
    "--control/--no-control",
    "control",
    default=None,
    group="Evidence",
    help="First run each model with nothing missing; only models that pass support claims about lost information.  "
    "[default: for reference agents only]",
)


class PartEstimate(Struct, frozen=True, kw_only=True):
    """What a part of a sweep would take."""

    calls: int
    input_tokens: int
    output_tokens: int
    cost_usd: float | None
    most_usd: float | None
    runs: int

    @classmethod
    def of(cls, estimates: Sequence[CellEstimate]) -> PartEstimate:
        whole = add_up([estimate.expected for estimate in estimates])
        return PartEstimate(**asdict(whole), runs=sum(estimate.runs for estimate in estimates))


class PlanEstimate(PartEstimate, frozen=True, kw_only=True):
    """What an experiment would take, what that assumes, and what was spent before."""

    rows: tuple[ModelEstimate, ...] | tuple[EstimateRow, ...]
    assumptions: tuple[ModelAssumption, ...]
    not_included: tuple[str | None, ...]  # memories that ask a model, of which nothing is known yet
    spent_usd: float | None
    spending: Spending | None  # None where nothing was paid for before

    @classmethod
    def of_plan(cls, estimates: Sequence[CellEstimate], known: RecordedRuns | None, **more: Any) -> Self:
        """Return the estimate of a plan, by model unless other rows are given."""
        memories = dict.fromkeys(estimate.cell.access.memory for estimate in estimates if estimate.is_partial)
        own = {
            **structs.asdict(PartEstimate.of(estimates)),
            "rows": tuple(by_model(estimates)),
            "assumptions": tuple(assumptions(estimates)),
            "not_included": tuple(memories),
            "spent_usd": None if known is None else float(known.journal.spending.total_usd),
            "spending": None if known is None else known.journal.sums(),
        }
        return cls(**{**own, **more})


@dataclass(frozen=True, slots=True)
class CommandResult:
    """What a command found, and its exit code."""

    document: Document
    code: int = 0


@dataclass(frozen=True, slots=True)
class RunnerOptions:
    """How the runs of a command are carried out, paid for and recorded."""

    out: Path | None
    resume: Path | None
    limits: SpendingLimits
    dry_run: bool
    engine: Engine | None

    def kept_budget(self) -> Budget:
        """Return the budget of the folder with the options given now; nothing is written."""
        return Budget(self.limits, self.resume if self.resume is not None and self.resume.is_dir() else None)

    def recorded(self, *, control: bool = False) -> RecordedRuns | None:
        """Return what is in the folder that is resumed, or of its control."""
        return None if self.resume is None else read_recorded(self.resume, control=control)

    def run(self, plan: CellPlan, measure: Callable[[Results], CommandResult], show: Show) -> int:
        """Run what is left of a plan, show what its runs say and return the exit code."""
        if self.dry_run:
            estimates = estimate_plan(plan, self.kept_budget(), self.recorded(), every_seed=True)
            found = PlanEstimate.of_plan(estimates, self.recorded())
            show(estimate_document(f"lacuna-{plan.kind}", found, totals(found, unpriced=unpriced(found.rows))))
            return 0
        folder = self.resume or self.out
        try:
            result = self._find(plan, folder, measure)
        except KeyboardInterrupt:
            if folder is None:
                raise
            say(f"eirkit: interrupted; continue with `eirkit lacuna {plan.kind} --resume {shlex.quote(str(folder))}`")
            return 130
        show(_with_records(result.document, folder, plan))
        return result.code

    def _find(self, plan: CellPlan, folder: Path | None, measure: Callable[[Results], CommandResult]) -> CommandResult:
        is_new = folder is not None and not (folder / MANIFEST).exists()
        budget = Budget(self.limits, folder, is_new=is_new)
        with SweepProgress() as progress, closing(self.engine) if self.engine else nullcontext():
            with open_plan(plan, folder, budget, progress, self.engine) as runner:
                found = _with_spending(measure(runner.complete(plan)), budget)
            if folder is not None:
                write_result(plan, folder, found.document.data)
        return found


def _sweep_of(plan: CellPlan) -> str:
    """Return the command that estimates a sweep of the first model and workload of a plan."""
    cell = next(cell for cell, _ in plan.plan())
    server = [] if cell.options.base_url is None else ["--base-url", cell.options.base_url]
    words = ["eirkit", "lacuna", "run", cell.task.workload, "--model", cell.model, *server, "--dry-run"]
    return shlex.join(words)


def _with_records(document: Document, folder: Path | None, plan: CellPlan) -> Document:
    """Return the document with where its records are, or how such records are kept."""
    if folder is None:
        lost = f"no records were kept; repeat it with --out out/{plan.kind} to look at its runs"
        document = replace(document, sections=(*document.sections, Section("", (lost,))))
        return replace(document, next=document.next or _sweep_of(plan))
    records = Section("", (), (Listing("records", "", f"records in {folder}"),))
    then = document.next or f"eirkit report {shlex.quote(str(folder))}"
    return replace(document, sections=(*document.sections, records), next=then)


def _with_spending(found: CommandResult, budget: Budget) -> CommandResult:
    """Return the result with what its folder has spent so far, or this command if it keeps none."""
    journal = None if budget.folder is None else read_journal(budget.folder)
    if journal is None and budget.ledger.spent_usd:
        journal = Journal(budget.ledger.cap_usd, spending=budget.ledger.spending)
    spending = None if journal is None else journal.sums()
    said = tuple(spending_remarks(spending))
    document, sections = found.document, (Section("", said),) if said else ()
    assert isinstance(document.data, EvidenceResult)
    data = structs.replace(document.data, spending=spending)
    document = replace(document, data=data, sections=(*document.sections, *sections))
    return replace(found, document=document)


def recorded_words(command: str, args: Sequence[str]) -> list[str]:
    """Return the options of the command that began the folder behind `--resume`; what is given besides comes after."""
    split = [part for word in args for part in (word.split("=", 1) if word.startswith("--resume=") else (word,))]
    folder = next((value for word, value in pairwise(split) if word == "--resume"), None)
    if folder is None:
        return []
    manifest = read_manifest(Path(folder))
    if manifest.command != command:
        remedy = f"continue with `eirkit lacuna {manifest.command} --resume {folder}`"
        raise InputFileError(f"{folder} holds no {command}; {remedy}")
    settings = msgspec.convert(manifest.settings, SETTINGS[command])
    return shlex.split(evidence_command(settings))[3:]


KEPT = "Folder for the records; repeat the command with the same folder to continue.  [default: none]"


def runner_options(out_help: str = KEPT) -> Callable[[Command], Command]:
    """Add the options of every command that runs agents; the command receives them as `runner`.

    They are --out, --resume, --dry-run, --cap-usd, --prices, --cache, and --engine with what belongs to it.
    """

    def decorate(command: Command) -> Command:
        @wraps(command)
        def with_runner(
            out: Path | None,
            resume: Path | None,
            funds: SpendingLimits,
            dry_run: bool,
            engine: Engine | None,
            **given: Any,
        ) -> Any:
            if resume is not None and out is not None:
                raise UsageError("--resume continues in its own folder; leave out --out")
            return command(runner=RunnerOptions(out, resume, funds, dry_run, engine), **given)

        return options(  # type: ignore[no-any-return]
            option("--out", type=PATH, metavar="DIR", group=OUTPUT, help=out_help),
            option(
                "--resume",
                type=PATH,
                metavar="DIR",
                group=OUTPUT,
                help="Finish the runs in this folder; needs nothing else.",
            ),
            funds_options,
            engine_options,
        )(with_runner)

    return decorate


def funds_options(command: Command) -> Command:
    """Add --dry-run, --cap-usd, --prices and --cache; the command receives `dry_run` and `funds`."""

    @wraps(command)
    def with_funds(cap_usd: Decimal | None, prices: Path | None, cache: Path | None, **given: Any) -> Any:
        return command(funds=SpendingLimits(cap_usd, prices, cache), **given)

    return options(  # type: ignore[no-any-return]
        option("--dry-run", is_flag=True, group="Spending", help="Estimate calls, tokens and cost; run nothing."),
        option(
            "--cap-usd",
            type=Dollars(),
            metavar="DOLLARS",
            group="Spending",
            help="Stop before more is spent; `none` lifts the cap of a folder.  [default: the folder's, else none]",
        ),
        option(
            "--prices",
            type=PATH,
            common=False,
            metavar="FILE",
            group="Spending",
            help="Prices that take precedence.",
        ),
        option(
            "--cache",
            type=PATH,
            common=False,
            metavar="FILE",
            group="Spending",
            help="Keep replies and reuse them.",
        ),
    )(with_funds)


def estimate_document(
    command: str,
    data: PlanEstimate,
    answer: str,
    words: Sequence[str] = (),
    rows: Sequence[EstimateRow | ModelEstimate] = (),
) -> Document:
    """Return what a dry run found: totals first, then what each row would cost.

    Args:
        rows: as they are printed; by default those of the data.
    """
    cells = [msgspec.to_builtins(row) for row in rows or data.rows]
    varying = [name for name in ("workload", "model", "condition") if len({row.get(name) for row in cells}) > 1]
    columns = (
        *(
            Column(name, name, role="name")
            for name in ("workload", "model", "condition")
            if name in {*varying, "model"}
        ),
        *(Column(name, name) for name in ("h", "seeds") if any(row.get(name) is not None for row in cells)),
        *((Column("repeats", "repeats"),) if any(row.get("repeats", 1) > 1 for row in cells) else ()),
        *(Column.of(SPENDING_MEASURES[name]) for name in ("calls", "input_tokens", "output_tokens")),
        Column("cost", SPENDING_MEASURES["cost_usd"].label, figures=True, raw="cost_usd"),
        Column("most", "at most", figures=True, raw="most_usd"),
    )
    priced = [{**row, "cost": dollars(row["cost_usd"]), "most": dollars(row["most_usd"])} for row in cells]
    table = Table("estimate", "Estimated by running a reference agent in place of the model", columns, tuple(priced))
    sections = (Section("", (*words, *_assumed(data, command)), (table,)),)
    return Document(command, "Estimate", (answer,), data, sections, next=repeated("--dry-run"))


def totals(sums: PartEstimate, of: str = "", unpriced: Iterable[str] = ()) -> str:
    """Return the sums of an estimate in one line, with what they are the sums of before it.

    Args:
        unpriced: models without a price, which make the cost unknown.
    """
    tokens = sums.input_tokens + sums.output_tokens
    said = f"{of}{sums.runs:,} runs, {sums.calls:,} calls, {tokens:,} tokens"
    if sums.cost_usd is not None:
        return f"{said}, {dollars(sums.cost_usd)}, at most {dollars(sums.most_usd)}"
    named = listed(list(dict.fromkeys(unpriced))) or "its model"
    return f"{said}; cost unknown: no price for {named}; give --prices FILE"


def unpriced(rows: Iterable[ModelEstimate | EstimateRow]) -> list[str]:
    """Return the models of an estimate that have no price."""
    return [row.model for row in rows if row.cost_usd is None]


def dollars(amount: float | None) -> str:
    return "unknown" if amount is None else f"${amount:,.2f}"


def _assumed(basis: PlanEstimate, command: str) -> Iterator[str]:
    """Yield what an estimate assumes about output, or what it takes from calls that were paid for."""
    again = "--dry-run" if command == "reproduce" else "--resume DIR --dry-run"  # which has its folder in --out
    for model in basis.assumptions:
        output = f"{model.output_tokens:,.0f} output tokens a call"
        if not model.calls:
            yield (
                f"{model.model}: assumes {output}, as a reference agent writes; a model that reasons or explains "
                f"writes more: buy a few runs (--cap-usd), then repeat with {again}"
            )
            continue
        cached = f", {model.cached_share:.0%} of the input cached" if model.cached_share else ""
        yield (
            f"{model.model}: by the {counted(model.calls, 'call')} that were paid for: {output}, "
            f"{1 / model.tokens_per_char:.1f} characters a token{cached}, {model.calls_ratio:.2f} calls where a "
            "reference agent makes one"
        )
    for memory in basis.not_included:
        yield f"not included: what {memory} asks of its model, which is unknown until a run has finished"
    if basis.spending is not None and basis.spent_usd:
        yield f"spent so far: {cost_in_words(basis.spending)}; the estimate is of what is left"


def spending_remarks(spending: Spending | None) -> Iterator[str]:
    """Yield what was spent, and what of it is not known exactly."""
    if spending is None:
        return
    cap = "" if spending.cap_usd is None else f"; the cap is ${spending.cap_usd:,.4f}"
    yield f"spent: {cost_in_words(spending)}{cap}"
    if spending.in_flight_usd or spending.unconfirmed_usd:
        yield "what is at most counts against the cap, and holds if the server kept to --set max_tokens=N"
    if spending.over_usd:
        calls, over = counted(spending.over_calls, "call"), f"${spending.over_usd:,.4f}"
        raised = "later calls of the model reserve more"
        yield f"billed above what was reserved for {calls}: {over}; {raised}; check --set max_tokens=N and the prices"


def losses(failures: Iterable[Mapping[str, int]]) -> tuple[str, ...]:
    """Return why runs were not scored, each reason once with its number."""
    total: Counter[str] = Counter()
    for lost in failures:
        total.update(lost)
    return tuple(f"not scored: {counted(runs, 'run')}: {reason}" for reason, runs in total.items())
