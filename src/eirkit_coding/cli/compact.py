"""`eirkit vestige compact`: tries compactors on recorded runs and shows what each keeps of what later work needed."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from shlex import quote
from typing import Any

import click
from msgspec import Struct, structs, to_builtins

from eirkit.cli.agent_options import typed_value
from eirkit.cli.command import OUTPUT, Show, command, document_options, option, say
from eirkit.cli.runner_options import funds_options
from eirkit.cli.vestige.analyze import LOCATION, CorpusProgress
from eirkit.errors import InputFileError, UsageError
from eirkit.lacuna.models.prices import estimate
from eirkit.lacuna.runs.budget import Budget, SpendingLimits
from eirkit.records.database import SweepWriter
from eirkit.report.document import Document, Section
from eirkit.report.table import Column, Table, counted, listed
from eirkit.vestige.sources.remote import Location
from eirkit_coding.compaction.cuts import CutPlan
from eirkit_coding.compactors.benchmark import (
    BenchmarkTally,
    CompactionBenchmark,
    claim_folder,
    planned_requests,
    run_benchmark,
)
from eirkit_coding.compactors.compactor import compactors
from eirkit_coding.compactors.comparison import compare_compactors
from eirkit_coding.compactors.page import compaction_document
from eirkit_coding.compactors.records import BenchmarkResults
from eirkit_coding.compactors.trial import CompactorChoice, asks_by_itself, open_seat

DEFAULT_NAMES = "keep-last,head-and-tail,clear-tool-results"
ALWAYS = ("oracle", "random")  # the bounds, without which no figure can be read
REPLIES = "replies.sqlite"  # what models answered, so that nothing is paid for twice
_PATH = click.Path(path_type=Path)
_SHOWN = ("calls", "input_tokens", "output_tokens", "cost_usd", "most_usd")


@command(example="eirkit vestige compact LOGS --context-tokens 4000 --out out/compact")
@click.argument("paths", metavar="LOGS...", type=LOCATION, nargs=-1, required=True)
@option(
    "--compactor",
    "names",
    default=DEFAULT_NAMES,
    show_default=True,
    metavar="NAMES",
    group="Compactors",
    known=lambda: compactors.names(),
    help="Names or path/file.py:Name, separated by commas; oracle and random are always tried.",
)
@option(
    "--set",
    "settings",
    multiple=True,
    metavar="NAME.KEY=VALUE",
    group="Compactors",
    help="A setting of a compactor, such as clear-tool-results.keep=5.",
)
@option(
    "--context-tokens",
    "budget",
    required=True,
    metavar="TOKENS[,TOKENS]",
    group="Compactors",
    help="Tokens that a compactor may return.",
)
@option(
    "--at",
    "plan",
    default="tokens:10000",
    show_default=True,
    metavar="CUTS",
    group="Cuts",
    help="Where runs are cut: real (where the log was compacted), every:TURNS, or tokens:TOKENS of new context.",
)
@option("--gold", type=_PATH, group="Cuts", help="Reference patches, whose files are the goals of the runs.")
@option("--log-format", group="Cuts", metavar="NAME", help="Format of all logs.  [default: detected from the content]")
@funds_options
@option("--out", type=_PATH, required=True, metavar="DIR", group=OUTPUT, help="A new folder, or one to continue.")
@document_options
def compact(
    paths: tuple[Location, ...],
    names: str,
    settings: tuple[str, ...],
    budget: str,
    plan: str,
    gold: Path | None,
    log_format: str | None,
    out: Path,
    dry_run: bool,
    funds: SpendingLimits,
    show: Show,
) -> None:
    """Try compactors on the runs in LOGS and show how much of what later work needed each one keeps.

    Each compactor receives the messages up to a cut and returns what the agent would continue with. The rest of the run
    shows, line by line, what was needed, so no model acts as a judge. Repeat the command to continue an interrupted
    benchmark.
    """
    benchmark = CompactionBenchmark(
        paths, chosen(names, settings), budgets_of(budget), CutPlan.parse(plan), gold, log_format
    )
    if dry_run:
        show(_estimated(benchmark, funds))
        return
    manifest = claim_folder(out, benchmark.manifest())
    budgeted = Budget(replace(funds, cache=funds.cache or out / REPLIES), out)
    with SweepWriter(out) as database, CorpusProgress(paths) as progress, closing(budgeted):
        budgeted.open(database)
        seated = replace(benchmark, seating=partial(open_seat, make=budgeted.make))
        tally = run_benchmark(seated, out, progress=progress)
    if tally.stopped:
        say(tally.stopped)
    if not tally.runs and not tally.stopped:
        if not tally.skipped:
            raise InputFileError("no runs found; give files or folders of logs, see `eirkit vestige formats`")
        raise InputFileError(f"no run could be tried: {tally.skipped[0].source}: {tally.skipped[0].reason}")
    results = _results(benchmark, tally, out)
    structs.replace(manifest, results=results).write(out)
    show(compaction_document(results, next_command=f"eirkit report {quote(str(out))}"))


def chosen(names: str, settings: Iterable[str]) -> tuple[CompactorChoice, ...]:
    """Return the compactors that were named, with their settings, and the bounds.

    Raises:
        UsageError: a name or a setting cannot be understood.
    """
    listed = list(dict.fromkeys([*ALWAYS, *(name.strip() for name in names.split(",") if name.strip())]))
    given: dict[str, dict[str, Any]] = {}
    for setting in settings:
        left, equals, value = setting.partition("=")
        name, _, key = left.rpartition(".")
        if not equals or name not in listed:
            raise UsageError(f"--set {setting} names no compactor that is tried; write NAME.KEY=VALUE")
        given.setdefault(name, {})[key.replace("-", "_")] = typed_value(value)
    return tuple(CompactorChoice(name, given.get(name, {})) for name in listed)


def budgets_of(text: str) -> tuple[int, ...]:
    """Return the budgets of a list, sorted.

    Raises:
        UsageError: it is no list of token counts.
    """
    try:
        found = sorted({int(part) for part in text.split(",")})
    except ValueError:
        found = []
    if not found or found[0] < 1:
        raise UsageError(f"--context-tokens {text} is no list of tokens; give for example 4000,8000")
    return tuple(found)


def _results(benchmark: CompactionBenchmark, tally: BenchmarkTally, out: Path) -> BenchmarkResults:
    labels = tuple(choice.label for choice in benchmark.compactors)
    return BenchmarkResults(
        out=str(out),
        at=str(benchmark.plan),
        budgets=benchmark.budgets,
        compactors=labels,
        uncut=tally.uncut,
        skipped=tally.skipped,
        stopped=tally.stopped,
        **structs.asdict(compare_compactors(out, labels, benchmark.budgets)),
    )


class CompactorEstimate(Struct, frozen=True):
    """What one compactor would ask its model."""

    compactor: str
    calls: int
    input_tokens: int
    output_tokens: int
    cost_usd: float | None
    most_usd: float | None


class BenchmarkEstimate(Struct, frozen=True):
    """What `eirkit vestige compact --dry-run` prints as JSON."""

    rows: tuple[CompactorEstimate, ...]
    calls: int
    not_known: tuple[str, ...]  # compactors whose own code decides what a model is asked


def _estimated(benchmark: CompactionBenchmark, funds: SpendingLimits) -> Document:
    """Return the estimate of what the models of a benchmark will be asked; nothing is asked or written."""
    money, rows = Budget(funds), list[CompactorEstimate]()
    for asked in planned_requests(benchmark):
        price = money.price_of(*asked.model)
        found = estimate(asked.calls, asked.prompt_chars, asked.reply_chars, asked.most_tokens, price)
        rows.append(CompactorEstimate(asked.label, **to_builtins(found)))
    calls = sum(row.calls for row in rows)
    unknown = tuple(choice.label for choice in benchmark.compactors if asks_by_itself(choice))
    answer = f"{counted(calls, 'model call')} would be made; none was." if rows else "No compactor calls a model."
    if unknown:
        known = answer if rows else "No model was called."
        answer = f"{known} What {listed(unknown)} would ask is not known in advance; --cap-usd limits it."
    columns = (
        Column("compactor", "compactor", role="name"),
        *(Column(key, key.replace("_", " "), 4) for key in _SHOWN),
    )
    tables = (Table("estimate", "Estimate", columns, to_builtins(tuple(rows))),) if rows else ()
    data = BenchmarkEstimate(tuple(rows), calls, unknown)
    return Document("vestige-compact", "Estimate", (answer,), data, (Section("", (), tables),))
